//! A server for tests: found on this machine, in a folder of the test's, and gone with it.

use std::{
    env, fs,
    net::TcpListener,
    os::unix::fs::{MetadataExt as _, chown},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

/// What is done where there is no server: a test does not pass without one.
const ABSENT: &str = "PostgreSQL is not installed, and these tests need it: `apt-get install postgresql` (Debian), or put \
     `initdb` and `postgres` into PATH";

/// Programs of the server.
struct Programs(PathBuf);

impl Programs {
    fn find() -> Self {
        let path = env::var_os("PATH").unwrap_or_default();
        let mut folders: Vec<PathBuf> = installed();
        folders.extend(env::split_paths(&path));
        let has = |folder: &PathBuf, name: &str| folder.join(name).is_file();
        let found = folders
            .into_iter()
            .find(|folder| ["initdb", "postgres", "pg_ctl"].iter().all(|name| has(folder, name)));
        Self(found.expect(ABSENT))
    }

    /// A program of the server, as a user who may run it: it refuses to run as root.
    fn command(&self, name: &str) -> Command {
        let program = self.0.join(name);
        let Some(user) = server_user() else { return Command::new(program) };
        let mut command = Command::new("setpriv");
        command
            .args([format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".into()])
            .arg(program);
        command
    }
}

/// Where Debian puts them, the newest first.
fn installed() -> Vec<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql")
        .map(|found| found.flatten().collect::<Vec<_>>())
        .unwrap_or_default();
    let mut numbered: Vec<(u32, PathBuf)> = versions
        .iter()
        .filter_map(|version| Some((version.file_name().to_str()?.parse().ok()?, version.path().join("bin"))))
        .collect();
    numbered.sort();
    numbered.into_iter().rev().map(|(_, folder)| folder).collect()
}

/// Whom the server runs as where the tests run as root.
fn server_user() -> Option<u32> {
    /// A user without rights.
    const UNPRIVILEGED: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let postgres =
        users.lines().find_map(|line| line.strip_prefix("postgres:")?.split(':').nth(1)?.parse().ok());
    Some(postgres.unwrap_or(UNPRIVILEGED))
}

/// A server. It ends with this, and with the test program, however that ends.
pub(crate) struct Cluster {
    programs: Programs,
    folder: PathBuf,
    pub(crate) port: u16,
    /// Stops the server once its input ends.
    guard: Child,
}

impl Cluster {
    /// The one server of this program.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(&[]))
    }

    /// A server with these settings.
    pub(crate) fn start(settings: &[&str]) -> Self {
        let programs = Programs::find();
        let folder = tempfile::Builder::new().prefix("sp-pg-").tempdir().unwrap().keep();
        if let Some(user) = server_user() {
            chown(&folder, Some(user), Some(user)).unwrap();
        }
        // Another program may take it before the server does, which then says so.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let data = folder.join("data");
        let mut make = programs.command("initdb");
        make.args([
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
            "-D",
        ])
        .arg(&data);
        run(make, "initdb");
        let own = format!(
            "listen_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = '{}'\nfsync = off\n\
             max_connections = 200\nshared_buffers = 64MB\nlog_min_messages = fatal\n{}\n",
            folder.display(),
            settings.join("\n")
        );
        let file = data.join("postgresql.conf");
        fs::write(&file, fs::read_to_string(&file).unwrap() + &own).unwrap();
        let guard = guard(&programs, &folder);
        let cluster = Self { programs, folder, port, guard };
        cluster.control(&["start"]);
        cluster
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// An address of the store, over the socket.
    pub(crate) fn address(&self) -> String {
        let folder = self.folder.display().to_string().replace('/', "%2F");
        format!("postgres://postgres@{folder}:{}/postgres", self.port)
    }

    /// A program of the server, as the user whose files the server reads.
    pub(crate) fn command(&self, name: &str) -> Command {
        self.programs.command(name)
    }

    /// Starts or stops it: waits until that is so.
    pub(crate) fn control(&self, how: &[&str]) {
        let mut control = self.command("pg_ctl");
        control.args(how).args(["--wait", "--silent", "-D"]).arg(self.folder.join("data"));
        control.arg("--log").arg(self.folder.join("log"));
        run(control, "pg_ctl");
    }

    /// Ends it as a crash does, and starts it again.
    pub(crate) fn crash(&self) {
        self.control(&["stop", "--mode=immediate"]);
        self.control(&["start"]);
    }

    /// The user whose files the server reads.
    pub(crate) fn give(&self, file: &Path) {
        let of = fs::metadata(&self.folder).unwrap();
        chown(file, Some(of.uid()), Some(of.gid())).unwrap();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        self.guard.wait().unwrap();
    }
}

/// A shell that stops the server, by the process id in its folder, once this program has ended or lets go of it.
fn guard(programs: &Programs, folder: &Path) -> Child {
    const STOP: &str = "trap '' INT TERM; cat > /dev/null; \"$0\" stop --mode=immediate --silent -D \"$1/data\"; rm -rf \"$1\"";
    let control = programs.0.join("pg_ctl");
    let mut command = match server_user() {
        None => Command::new("sh"),
        Some(user) => {
            let mut command = Command::new("setpriv");
            command.args([
                format!("--reuid={user}"),
                format!("--regid={user}"),
                "--clear-groups".into(),
                "sh".into(),
            ]);
            command
        }
    };
    command.args(["-c", STOP]).arg(control).arg(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn run(mut command: Command, what: &str) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what} failed: {}{words}", String::from_utf8_lossy(&output.stdout));
}

//! A database for one test, and the binary over it. Whatever the binary says is searched for the password.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
};

use rustix::process::{Pid, Signal, kill_process};
use safepoint_testkit::wait::{self, InTime as _};
use serde_json::Value;
use tempfile::TempDir;

use crate::cluster::Cluster;

/// In every address of a database here, and in nothing that is ever said.
pub(super) const PASSWORD: &str = "Zq9hunter2";

pub(super) struct World {
    pub(super) folder: TempDir,
    /// With the password.
    pub(super) database: String,
}

/// What the binary said.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) code: i32,
    pub(super) out: String,
    pub(super) err: String,
}

/// A `safepoint serve` that listens.
pub(super) struct Server {
    process: Child,
    pub(super) url: String,
    pub(super) token: String,
}

impl World {
    pub(super) fn new() -> Self {
        // Relaxed: each number is given once, and orders nothing else.
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let name = format!("cli{}", MADE.fetch_add(1, Ordering::Relaxed));
        let cluster = Cluster::shared();
        let (port, mut make) = (cluster.port.to_string(), cluster.command("createdb"));
        make.args(["--host", "127.0.0.1", "--username", "postgres", "--port", &port, &name]);
        let made = make.output().unwrap();
        assert!(made.status.success(), "{made:?}");
        let database = format!("postgres://postgres:{PASSWORD}@127.0.0.1:{port}/{name}");
        Self { folder: tempfile::tempdir().unwrap(), database }
    }

    /// Drops a schema that servers use. That takes locks in an order of its own, and so is asked for again after a deadlock.
    #[cfg(feature = "graphile")]
    pub(super) async fn drop_schema(&self, schema: &str) {
        let statement = format!("DROP SCHEMA {schema} CASCADE");
        let look = || {
            let mut command = Cluster::shared().command("psql");
            let ran = command.args([&self.database, "--quiet", "--command", &statement]).output().unwrap();
            let is_victim = String::from_utf8_lossy(&ran.stderr).contains("deadlock detected");
            assert!(ran.status.success() || is_victim, "{ran:?}");
            ran.status.success()
        };
        wait::so(format_args!("the schema {schema} is dropped"), look).await;
    }

    pub(super) fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// The binary, which sees nothing of the tester's own environment.
    pub(super) fn binary(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_safepoint"));
        command.args(args).env_clear().env("PATH", std::env::var("PATH").unwrap_or_default());
        command.env("XDG_RUNTIME_DIR", self.folder.path()).env("TMPDIR", self.folder.path());
        command.env("HOME", self.folder.path()).current_dir(self.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// What a command over the database says.
    pub(super) async fn says(&self, args: &[&str]) -> Said {
        said(self.binary(&[args, &["--store", &self.database]].concat())).await
    }

    /// The same, where it must succeed.
    pub(super) async fn does(&self, args: &[&str]) -> Said {
        let said = self.says(args).await;
        assert_eq!(said.code, 0, "{args:?}: {said:?}");
        said
    }

    /// A server over the database, as this node.
    pub(super) fn serve(&self, node: &str) -> Server {
        self.serving(&["--node", node], node)
    }

    /// A server over the database with these flags, and a log of this name.
    pub(super) fn serving(&self, flags: &[&str], log: &str) -> Server {
        let (tokens, log) =
            (self.file("own.toml"), fs::File::create(self.file(&format!("{log}.log"))).unwrap());
        let agent = ["--tools", "shell", "--approve", "auto", "--sandbox", "off", "--no-project"];
        let serve = ["serve", "--listen", "127.0.0.1:0", "--lease", "4s", "--tokens", &tokens];
        let store = ["--store", &self.database];
        let mut command = self.binary(&[&serve[..], flags, &agent, &store].concat());
        let mut process = command.stderr(log).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        let text = |name: &str| line[name].as_str().unwrap().to_owned();
        Server { process, url: text("listening"), token: text("token") }
    }

    /// Nothing that was written has the password.
    pub(super) fn has_no_password(&self) {
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
                match entry.file_type().unwrap() {
                    kind if kind.is_dir() => folders.push(entry.path()),
                    kind if kind.is_file() => is_clean(&entry.path()),
                    _ => {}
                }
            }
        }
    }
}

fn is_clean(path: &Path) {
    let text = fs::read(path).unwrap();
    let has = text.windows(PASSWORD.len()).any(|part| part == PASSWORD.as_bytes());
    assert!(!has, "the password is in {}", path.display());
}

impl Server {
    /// Ends it as an operator does.
    pub(super) fn end(mut self) {
        kill_process(Pid::from_child(&self.process), Signal::TERM).unwrap();
        assert!(self.process.wait().unwrap().success());
    }

    /// Ends it as a crash does.
    #[cfg(feature = "graphile")]
    pub(super) fn kill(mut self) {
        kill_process(Pid::from_child(&self.process), Signal::KILL).unwrap();
        self.process.wait().unwrap();
    }

    /// Waits until it has ended by itself.
    pub(super) async fn ended(mut self) {
        let status = wait::so("the end of a drained server", || self.process.try_wait().unwrap()).await;
        assert!(status.success());
    }
}

/// A test that fails leaves none.
impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            self.process.kill().unwrap();
            self.process.wait().unwrap();
        }
    }
}

/// What a command says, once it has ended: never the password.
pub(super) async fn said(mut command: Command) -> Said {
    let ended = tokio::task::spawn_blocking(move || command.output().unwrap());
    let Output { status, stdout, stderr } = ended.in_time("the end of the command").await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let said = Said { code: status.code().unwrap(), out: text(stdout), err: text(stderr) };
    assert!(!said.out.contains(PASSWORD) && !said.err.contains(PASSWORD), "{said:?}");
    said
}

impl Said {
    pub(super) fn lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

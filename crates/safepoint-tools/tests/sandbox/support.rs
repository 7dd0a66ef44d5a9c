//! A root, something outside of it, and commands that are tried on both.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt, chown},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use safepoint_tools::{Confinement, Layers};

/// Who tries something. Exhaustive: the user who runs the tests, and where that is root an ordinary user too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    Own,
    Nobody,
}

impl User {
    const NOBODY: u32 = 65534;

    pub(crate) fn all() -> Vec<Self> {
        if is_root() { vec![Self::Own, Self::Nobody] } else { vec![Self::Own] }
    }

    pub(crate) fn is_root(self) -> bool {
        self == Self::Own && is_root()
    }

    fn own(self, path: &Path) {
        if self == Self::Nobody {
            chown(path, Some(Self::NOBODY), Some(Self::NOBODY)).unwrap();
        }
    }

    fn put_on(self, command: &mut Command) {
        if self == Self::Nobody {
            command.uid(Self::NOBODY).gid(Self::NOBODY);
        }
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// What is run of ours, where every user can execute it.
pub(crate) struct Programs {
    folder: tempfile::TempDir,
    layers: Layers,
}

/// Copies a program that is to be run. By another process: what a sibling thread forks meanwhile would hold a file that is written here,
/// and it could not be run.
pub(crate) fn copied(program: &Path, to: &Path) {
    assert!(Command::new("cp").args([program, to]).status().unwrap().success());
}

impl Programs {
    /// None, with a line that says why, where this system does not enforce everything.
    pub(crate) fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let own = std::env::current_exe().unwrap();
        for (name, program) in
            [("helper", Path::new(env!("CARGO_BIN_EXE_safepoint-guard"))), ("attempt", &own)]
        {
            let to = folder.path().join(name);
            if fs::hard_link(program, &to).is_err() {
                copied(program, &to);
            }
        }
        let probe = Command::new(folder.path().join("helper")).args(Layers::probe()).output().unwrap();
        let layers = Layers::read(&String::from_utf8_lossy(&probe.stdout));
        if layers.is_complete() {
            return Some(Self { folder, layers });
        }
        eprintln!("not tried: this system does not enforce everything: {}", layers.missing().join("; "));
        None
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn layers(&self) -> Layers {
        self.layers.clone()
    }
}

/// A user's files: a root, and what lies outside of it.
pub(crate) struct Site<'a> {
    folder: tempfile::TempDir,
    programs: &'a Programs,
    user: User,
    /// A process of the user, outside.
    victim: Child,
}

impl<'a> Site<'a> {
    pub(crate) fn new(programs: &'a Programs, user: User) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        user.own(folder.path());
        let files = [
            ("root/inside", "inside"),
            ("root/.git/config", "[core]\n"),
            ("root/.git/hooks/sample", "#!/bin/sh\n"),
            ("root/.git/objects/one", "one"),
            ("outside/file", "secret file"),
            ("outside/home/.bashrc", "# mine\n"),
            ("outside/home/.ssh/authorized_keys", "key\n"),
            ("outside/store/store.db", "secret store"),
        ];
        for (file, content) in files {
            let mut made = folder.path().to_owned();
            for part in Path::new(file).parent().unwrap() {
                made.push(part);
                if !made.exists() {
                    fs::create_dir(&made).unwrap();
                    user.own(&made);
                }
            }
            let path = folder.path().join(file);
            fs::write(&path, content).unwrap();
            user.own(&path);
        }
        let mut victim = Command::new("sleep");
        victim.arg("1000").stdin(Stdio::null()).stdout(Stdio::null());
        user.put_on(&mut victim);
        Self { folder, programs, user, victim: victim.spawn().unwrap() }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(crate) fn victim(&self) -> u32 {
        self.victim.id()
    }

    /// A confinement to the root that hides the store.
    pub(crate) fn confinement(&self) -> Confinement {
        let confinement = Confinement::new(self.path("root"), self.programs.layers()).unwrap();
        self.user.own(confinement.temporary());
        confinement.hide(self.path("outside/store"))
    }

    /// Runs a program as the user, with all that the user can do.
    pub(crate) fn free(&self, program: &Path, args: &[&str]) -> Output {
        self.run(Command::new(program).args(args))
    }

    /// Runs it confined.
    pub(crate) fn confined(&self, program: &Path, args: &[&str]) -> Output {
        self.confined_by(&self.confinement(), program, args)
    }

    pub(crate) fn confined_by(&self, confinement: &Confinement, program: &Path, args: &[&str]) -> Output {
        let mut command = Command::new(self.programs.path("helper"));
        command.args(confinement.command(program, args)).env("TMPDIR", confinement.temporary());
        self.run(&mut command)
    }

    /// A line of shell, confined.
    pub(crate) fn shell(&self, line: &str) -> Output {
        self.confined(Path::new("/bin/sh"), &["-c", line])
    }

    fn run(&self, command: &mut Command) -> Output {
        self.user.put_on(command);
        command
            .current_dir(self.path("root"))
            .env("HOME", self.path("outside/home"))
            .env("OUT", self.path("outside"))
            .env("VICTIM", self.victim().to_string())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// All that must not change: what is outside, what git executes, and whether the process lives.
    pub(crate) fn world(&mut self) -> BTreeMap<String, String> {
        let mut world = BTreeMap::new();
        for part in ["outside", "root/.git"] {
            look(&self.path(part), &mut world);
        }
        let lives = self.victim.try_wait().unwrap().is_none();
        world.insert("the process".into(), format!("lives: {lives}"));
        let limits = fs::read_to_string(format!("/proc/{}/limits", self.victim())).unwrap_or_default();
        world.insert("its limits".into(), limits);
        world
    }
}

impl Drop for Site<'_> {
    fn drop(&mut self) {
        self.victim.kill().unwrap();
        self.victim.wait().unwrap();
    }
}

fn look(path: &Path, world: &mut BTreeMap<String, String>) {
    let found = fs::symlink_metadata(path).unwrap();
    let content = match found.is_file() {
        true => String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned(),
        false => String::new(),
    };
    let changed = if found.is_dir() { 0 } else { found.mtime() };
    let about = format!("{:o} {} {changed} {content}", found.mode(), found.uid());
    world.insert(path.display().to_string(), about);
    if found.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| look(&entry.unwrap().path(), world));
    }
}

/// What was written, for a failure.
pub(crate) fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}: {}{}", output.status, text(&output.stdout), text(&output.stderr))
}

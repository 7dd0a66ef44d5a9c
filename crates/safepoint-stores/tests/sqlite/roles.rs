//! Other processes that tests need: this very test program, started again with a role.
//!
//! A role is a test that does nothing unless the environment names it, so that it needs no separate program.

use std::{
    env,
    ffi::OsStr,
    io::{BufRead, BufReader, ErrorKind},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

use safepoint_testkit::wait::until;

const ROLE: &str = "SAFEPOINT_STORE_ROLE";
const STORE: &str = "SAFEPOINT_STORE_PATH";
const DETAIL: &str = "SAFEPOINT_STORE_DETAIL";
/// The prefix of a role's output: the test program prints other lines too.
const SAYS: &str = "says: ";

/// The input of a process with this role: the store's path, and a detail.
pub(crate) fn reported(role: &str) -> Option<(PathBuf, String)> {
    let is_it = env::var(ROLE).is_ok_and(|named| named == role);
    is_it.then(|| (env::var_os(STORE).unwrap().into(), env::var(DETAIL).unwrap()))
}

/// For the process in the role.
pub(crate) fn say(word: impl std::fmt::Display) {
    println!("{SAYS}{word}");
}

/// The command that starts this program in a role: `module::name_role`.
pub(crate) fn command(
    program: &Path,
    module: &str,
    role: &str,
    store: &Path,
    detail: impl AsRef<OsStr>,
) -> Command {
    let mut command = Command::new(program);
    command
        .args([&format!("{module}::{role}_role"), "--exact", "--nocapture", "--test-threads", "1"])
        .env(ROLE, role)
        .env(STORE, store)
        .env(DETAIL, detail)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// A process in a role. It is killed with this.
pub(crate) struct Process {
    pub(crate) child: Child,
    said: BufReader<ChildStdout>,
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Self {
        // A program that was just copied is still open for writing in whatever another test forked meanwhile.
        let mut child = until("the program may be started", || match command.spawn() {
            Err(busy) if busy.kind() == ErrorKind::ExecutableFileBusy => Err(busy),
            spawned => Ok(spawned.unwrap()),
        });
        let said = BufReader::new(child.stdout.take().unwrap());
        Self { child, said }
    }

    /// The next thing it says; `None` once it has ended.
    pub(crate) fn hear(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.said.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some((_, word)) = line.trim_end().split_once(SAYS) {
                return Some(word.to_owned());
            }
        }
    }

    /// Kills it, and waits until it is gone: `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.child.kill().is_err() {
            // It has ended by itself.
        }
        self.child.wait().unwrap();
    }
}

pub(crate) fn this_program() -> PathBuf {
    env::current_exe().unwrap()
}

//! Other processes that tests need: this very test program, started again with a role.
//!
//! A role is a test that does nothing unless the environment names it, so that it needs no separate program.

use std::{
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
};

use safepoint_tools::process::{CommandSpec, Processes};

use super::support::{self, guard_program, started, written_pid};

const ROLE: &str = "SAFEPOINT_TEST_ROLE";
const RUN: &str = "SAFEPOINT_TEST_RUN";
const LINES: &str = "SAFEPOINT_TEST_LINES";

/// Three awkward trees.
const AWKWARD: [&str; 3] = [
    "trap '' INT TERM HUP; echo far=$$ ready; while :; do sleep 0.01; done",
    "setsid sh -c 'trap \"\" INT TERM HUP; echo far=$$ ready; while :; do sleep 0.01; done' & wait",
    "(setsid sh -c 'sleep 1000 & echo far=$!' & ); sleep 0.2; echo ready; sleep 1001",
];

/// Held by a test that leaves processes of a dead runtime for others to find, or that looks for all of them.
pub(crate) static LEFT: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// This program in a role, as a command to be started.
pub(crate) fn as_role(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([&format!("process::{role}"), "--exact", "--nocapture", "--test-threads", "1"])
        .env(ROLE, role.rsplit(':').next().unwrap());
    command
}

/// Whether this program was started in that role.
pub(crate) fn has_role(role: &str) -> bool {
    std::env::var(ROLE).as_deref() == Ok(role)
}

/// A runtime in a separate process, with commands that run.
pub(crate) struct Runtime {
    pub(crate) child: Child,
    pub(crate) run: String,
    pub(crate) guard: i32,
    pub(crate) commands: Vec<i32>,
}

impl Runtime {
    /// Starts it, in a separate process group, and waits until its commands run.
    pub(crate) fn start() -> Self {
        Self::start_with(&AWKWARD)
    }

    /// The same with these lines of shell. Each writes `far=` and a pid.
    pub(crate) fn start_with(lines: &[&str]) -> Self {
        let run = support::unique("runtime");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["process::roles::runtime_role", "--exact", "--nocapture", "--test-threads", "1"])
            .env(ROLE, "runtime")
            .env(RUN, &run)
            .env(LINES, lines.join("\n"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines().map(Result::unwrap);
        let line = lines
            .find_map(|line| Some(line.split_once("up: ")?.1.to_owned()))
            .expect("it says that it is up");
        let pids: Vec<i32> = line.split(' ').map(|pid| pid.parse().unwrap()).collect();
        Self { child, run, guard: pids[0], commands: pids[1..].to_vec() }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.commands.iter().all(|pid| !support::exists(*pid))
            && !support::is_alive(self.guard)
            && support::alive_of(&self.run).is_empty()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if self.child.kill().is_err() {
            // it is dead already, which is what most tests want of it
        }
        self.child.wait().unwrap();
    }
}

/// The line of shell that starts this program in a role.
pub(crate) fn line_of(role: &str) -> String {
    let program = std::env::current_exe().unwrap();
    format!(
        "{ROLE}={role} exec {} process::roles::{role}_role --exact --nocapture --test-threads 1",
        program.display()
    )
}

/// The role of a program whose first thread ends while another continues.
#[test]
fn headless_role() {
    if std::env::var(ROLE).as_deref() != Ok("headless") {
        return;
    }
    if !forked() {
        return;
    }
    let head = std::process::id().cast_signed();
    std::thread::spawn(move || {
        support::until("the first thread has ended", || support::state(head) == Some('Z'));
        println!("head={head} ready");
        loop {
            std::thread::park();
        }
    });
    end_this_thread();
}

/// Whether this is the new one of two processes. A test does not run on its program's first thread; in a new process
/// it is the first.
#[expect(unsafe_code, reason = "a new process with this thread as its first needs a fork")]
fn forked() -> bool {
    // SAFETY: the only other thread of this program waits for its single test, and holds no lock meanwhile.
    unsafe { libc::fork() == 0 }
}

#[expect(unsafe_code, reason = "no safe call ends the first thread alone")]
fn end_this_thread() {
    // SAFETY: it never returns, so no value of this thread is used after it; what it owns is leaked.
    unsafe {
        libc::syscall(libc::SYS_exit, 0);
    }
}

/// The role of a runtime: starts trees under a guard, prints their pids, and waits without end.
#[tokio::test]
async fn runtime_role() {
    if std::env::var(ROLE).as_deref() != Ok("runtime") {
        return;
    }
    tokio::spawn(async {
        // Deaf to the interrupt that one of the tests sends to this whole group.
        let mut interrupts =
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt()).unwrap();
        while interrupts.recv().await.is_some() {}
    });
    let processes = Processes::guarded_by(std::env::var(RUN).unwrap(), guard_program());
    let lines = std::env::var(LINES).unwrap();
    let mut running = Vec::new();
    let mut pids = Vec::new();
    for line in lines.lines() {
        let process = started(&processes, CommandSpec::shell(line)).await;
        pids.extend([process.pid(), written_pid(&process, "far")]);
        running.push(process);
    }
    let guard = processes.guard_pid().unwrap();
    let pids: Vec<_> = pids.iter().map(ToString::to_string).collect();
    println!("up: {guard} {}", pids.join(" "));
    std::future::pending::<()>().await;
    drop(running);
}

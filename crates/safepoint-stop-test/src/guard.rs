//! Two processes, so that one of them is left to end what the test has started, whatever ends the other.
//!
//! The first one is what a person or a CI system starts and kills. It starts this program anew, which does the work, and waits for it. Both are
//! where the system hands the children of a process that has ended: whatever forks, leaves its session and hides its folder is still below one
//! of them.
//!
//! **Invariants:** where one of the two is left, nothing that the test has started is alive once that one has ended, and the folder is gone.

use std::{
    env,
    ffi::OsString,
    fs, io,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use rustix::process::{
    Pid, Signal, getpid, getppid, kill_process, set_child_subreaper, set_parent_process_death_signal,
};
use tokio::{
    process::{Child, Command},
    signal::unix::{SignalKind, signal},
};

use crate::stage::{end_all, end_below};

/// The first argument of the process that works; the number of the one that waits for it, and the folder of the run, follow.
const WORKS: &str = "--work-of-stop-test";
/// What is left to say where the process that works did not say how it ended.
const KILLED: u8 = 3;

/// The run that is guarded, as the process that works knows it.
#[derive(Debug)]
pub struct Guard {
    folder: PathBuf,
    args: Vec<OsString>,
}

impl Guard {
    /// Has this work done by a process of its own, and is done when nothing of it is left. The program's `main` does nothing else.
    pub fn run(work: impl FnOnce(&Self) -> ExitCode) -> ExitCode {
        let args: Vec<OsString> = env::args_os().collect();
        if let [program, mode, waits, folder, rest @ ..] = &args[..]
            && mode == WORKS
        {
            let args = [program].into_iter().chain(rest).cloned().collect();
            return Self { folder: folder.into(), args }.works(waits, work);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.and_then(|runtime| runtime.block_on(guards(&args))).unwrap_or_else(|error| {
            eprintln!("stop-test: there is no place for a run: {error}");
            // Exit: it is a program of its own; what could not be begun is what could not be driven (S15.5).
            ExitCode::from(KILLED)
        })
    }

    /// Where trials have their folders.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The arguments of the program, its name first.
    #[must_use]
    pub fn args(&self) -> &[OsString] {
        &self.args
    }

    fn works(&self, waits: &OsString, work: impl FnOnce(&Self) -> ExitCode) -> ExitCode {
        is_above();
        if set_parent_process_death_signal(Some(Signal::TERM)).is_err() {
            // Then the end of the one that waits is not seen, and that one alone ends what is left.
        }
        let parent = getppid().map(|parent| parent.as_raw_nonzero().to_string());
        if parent.is_none_or(|parent| *waits != *parent) {
            // Exit: who waited is gone, before anything was begun.
            return ExitCode::from(KILLED);
        }
        let code = work(self);
        self.clean();
        code
    }

    /// Ends what is left of the run, and says how that went: nothing of it is alive, or what could not be done.
    pub fn clean(&self) -> &'static str {
        clean(&self.folder)
    }
}

/// Makes this the process below which the children of processes that have ended are found.
fn is_above() {
    if set_child_subreaper(Some(getpid())).is_err() {
        // Then what has hidden its folder is not found.
    }
}

/// Ends what is left of a run, and says whether all of it has ended.
fn clean(folder: &Path) -> &'static str {
    let (named, hidden) = (end_all(folder), end_below());
    if let Err(error) = fs::remove_dir_all(folder)
        && error.kind() != io::ErrorKind::NotFound
    {
        eprintln!("stop-test: {} could not be removed: {error}", folder.display());
    }
    match named && hidden {
        true => "all that was started has been ended",
        false => "some of what was started could not be ended",
    }
}

/// Starts the process that works, hands it each signal, and ends what it leaves.
async fn guards(args: &[OsString]) -> io::Result<ExitCode> {
    is_above();
    let folder = tempfile::Builder::new().prefix("stop-test-").tempdir()?;
    let mut command = Command::new(env::current_exe()?);
    command.arg(WORKS).arg(getpid().as_raw_nonzero().to_string()).arg(folder.path());
    // In a group of its own, so that what ends this one's group leaves it.
    let mut child = command.args(args.iter().skip(1)).process_group(0).spawn()?;
    let status = waited(&mut child).await;
    let cleaned = clean(folder.path());
    let status = status?;
    Ok(match status.code().and_then(|code| u8::try_from(code).ok()) {
        // Exit: as the one that works has said it (S15.5).
        Some(code) => ExitCode::from(code),
        None => {
            let signal = status.signal().unwrap_or_default();
            eprintln!("stop-test: it was ended by signal {signal}; {cleaned}");
            // Exit: nothing is known of the target.
            ExitCode::from(KILLED)
        }
    })
}

/// Waits for the end of the process that works, and hands it the signals that ask this one to end.
async fn waited(child: &mut Child) -> io::Result<std::process::ExitStatus> {
    let kinds = [
        (SignalKind::interrupt(), Signal::INT),
        (SignalKind::terminate(), Signal::TERM),
        (SignalKind::hangup(), Signal::HUP),
    ];
    let [mut interrupt, mut terminate, mut hangup] = kinds.map(|(kind, _)| signal(kind));
    let next = async |heard: &mut io::Result<tokio::signal::unix::Signal>| match heard {
        Ok(heard) => drop(heard.recv().await),
        // It ends this process as it always does, and the one that works sees that.
        Err(_) => std::future::pending().await,
    };
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    loop {
        // Biased: where it has ended there is nothing to hand on. A signal that loses is heard at the next turn.
        let got = tokio::select! {
            biased;
            status = child.wait() => return status,
            () = next(&mut interrupt) => Signal::INT,
            () = next(&mut terminate) => Signal::TERM,
            () = next(&mut hangup) => Signal::HUP,
        };
        if let Some(pid) = pid
            && kill_process(pid, got).is_err()
        {
            // It has ended: that is seen next.
        }
    }
}

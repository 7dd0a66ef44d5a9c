//! The process of a target, and the last words that it wrote for a reader.

use std::{
    collections::VecDeque,
    process::Stdio,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    io::AsyncReadExt as _,
    process::{Child, ChildStderr, Command},
};

use crate::stage::{StageError, TrialStage};

/// How much of its last words is kept.
const KEPT: usize = 300;

/// A process, and what it wrote to its standard error. Whatever it writes is read, so that it never waits for a reader.
pub(super) struct Process {
    pub(super) child: Child,
    /// The last of what it wrote. Held for one look or one addition; no other lock is taken under it.
    words: Arc<Mutex<VecDeque<u8>>>,
}

impl Process {
    /// Starts this command.
    ///
    /// # Errors
    /// Why this machine does not start it.
    pub(super) fn start(mut command: Command) -> Result<Self, StageError> {
        let spawned = command.stderr(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| StageError::NotStarted(error.to_string()))?;
        let words = Arc::<Mutex<VecDeque<u8>>>::default();
        let stderr = child.stderr.take().expect("it was asked for");
        tokio::spawn(read(stderr, Arc::clone(&words)));
        Ok(Self { child, words })
    }

    /// The last of what it wrote, in one line.
    pub(super) fn words(&self) -> String {
        let bytes: Vec<u8> = lock(&self.words).iter().copied().collect();
        let words: Vec<String> =
            String::from_utf8_lossy(&bytes).split_whitespace().map(ToOwned::to_owned).collect();
        words.join(" ")
    }
}

fn lock(words: &Mutex<VecDeque<u8>>) -> MutexGuard<'_, VecDeque<u8>> {
    words.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn read(mut stderr: ChildStderr, words: Arc<Mutex<VecDeque<u8>>>) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut bytes).await {
        let mut words = lock(&words);
        words.extend(&bytes[..count]);
        let beyond = words.len().saturating_sub(KEPT);
        words.drain(..beyond);
    }
}

/// The command of a target in its stage's folder: it replaces the shell that reads it, so that a signal reaches it, and is the first of
/// a group of processes, as a terminal would start it.
pub(super) fn command(line: &str, stage: &TrialStage) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &format!("exec {line} \"$@\""), "sh"]);
    command.current_dir(stage.work_folder()).envs(stage.variables().iter().cloned());
    command.kill_on_drop(true).process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

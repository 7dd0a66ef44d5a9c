//! The process of a target, and the last words that it wrote for a reader.

use std::{
    collections::VecDeque,
    process::Stdio,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::future::join_all;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::{Child, Command},
    task::JoinHandle,
    time::timeout,
};

use crate::stage::{StageError, TrialStage};

/// How much of its last words is kept.
const KEPT: usize = 4096;
/// How much of it is shown where it says why something failed, in letters.
const SHOWN: usize = 300;
/// How long what a process wrote before its end may take to be read, where others still hold its outputs.
const READING: Duration = Duration::from_millis(500);

/// A process, and what it wrote to the outputs that nothing else reads. Whatever it writes is read, so that it never waits for a reader.
pub(super) struct Process {
    pub(super) child: Child,
    /// The last of what it wrote. Held for one look or one addition; no other lock is taken under it.
    words: Arc<Mutex<VecDeque<u8>>>,
    readers: Vec<JoinHandle<()>>,
}

impl Process {
    /// Starts this command.
    ///
    /// # Errors
    /// Why this machine does not start it.
    pub(super) fn start(mut command: Command) -> Result<Self, StageError> {
        let spawned = command.stderr(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| StageError::NotStarted(error.to_string()))?;
        let stderr = child.stderr.take().expect("it was asked for");
        let mut process = Self { child, words: Arc::default(), readers: Vec::new() };
        process.hear(stderr);
        Ok(process)
    }

    /// Starts this command, whose output is for a reader, too.
    ///
    /// # Errors
    /// Why this machine does not start it.
    pub(super) fn start_heard(mut command: Command) -> Result<Self, StageError> {
        command.stdout(Stdio::piped());
        let mut process = Self::start(command)?;
        let stdout = process.child.stdout.take().expect("it was asked for");
        process.hear(stdout);
        Ok(process)
    }

    fn hear(&mut self, output: impl AsyncRead + Send + Unpin + 'static) {
        self.readers.push(tokio::spawn(read(output, Arc::clone(&self.words))));
    }

    /// The last of what it wrote, in one line.
    pub(super) fn words(&self) -> String {
        last(&self.text())
    }

    /// The last of what it wrote, as it wrote it.
    pub(super) fn text(&self) -> String {
        let bytes: Vec<u8> = lock(&self.words).iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// What it wrote so far is no part of its words any more.
    pub(super) fn forget_words(&self) {
        lock(&self.words).clear();
    }

    /// Waits until what it wrote before its end was read.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn is_heard(&mut self) {
        // A task that has ended is not asked again.
        let read = self.readers.iter_mut().filter(|reader| !reader.is_finished());
        if timeout(READING, join_all(read)).await.is_err() {
            // Others still hold its outputs: what came so far is what it said.
        }
    }
}

/// The last words of a text, in one line.
pub(super) fn last(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let letters = words.chars().count();
    words.chars().skip(letters.saturating_sub(SHOWN)).collect()
}

fn lock(words: &Mutex<VecDeque<u8>>) -> MutexGuard<'_, VecDeque<u8>> {
    words.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn read(mut output: impl AsyncRead + Unpin, words: Arc<Mutex<VecDeque<u8>>>) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = output.read(&mut bytes).await {
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
    command.args(shell(line)).process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
    staged(command, stage)
}

/// The same command as the first of a session whose terminal is its input.
pub(super) fn command_of_terminal(line: &str, stage: &TrialStage) -> Command {
    let mut command = Command::new("setsid");
    command.args(["--ctty", "/bin/sh"]).args(shell(line)).env("TERM", "xterm-256color");
    // It is a person's terminal, whatever runs the test.
    for other in ["CI", "COLUMNS", "LINES"] {
        command.env_remove(other);
    }
    staged(command, stage)
}

/// What a shell is told so that this line replaces it, with the arguments that follow.
fn shell(line: &str) -> [String; 3] {
    ["-c".to_owned(), format!("exec {line} \"$@\""), "sh".to_owned()]
}

fn staged(mut command: Command, stage: &TrialStage) -> Command {
    command.current_dir(stage.work_folder()).envs(stage.variables().iter().cloned()).kill_on_drop(true);
    command
}

//! A process that is spoken to in lines of JSON.

use std::{process::Stdio, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{ChildStdin, ChildStdout},
    time::timeout,
};

use super::process::{Process, command};
use crate::stage::{StageError, TrialStage};

/// The longest line that is read: whatever says more in one speaks no protocol.
const LONGEST: u64 = 16 << 20;
/// How long a process may take to die once its output is closed.
const DYING: Duration = Duration::from_secs(2);

/// The process, and both ends.
pub(super) struct JsonLines {
    process: Process,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// What of the next line was read.
    read: Vec<u8>,
}

impl JsonLines {
    pub(super) fn start(line: &str, stage: &TrialStage) -> Result<Self, StageError> {
        let mut command = command(line, stage);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Process::start(command)?;
        let (input, output) = (process.child.stdin.take(), process.child.stdout.take());
        let output = BufReader::new(output.expect("it was asked for"));
        Ok(Self { process, input, output, read: Vec::new() })
    }

    /// Writes a line, if the process still reads.
    pub(super) async fn say(&mut self, value: &Value) {
        let line = format!("{value}\n");
        if let Some(input) = &mut self.input
            && input.write_all(line.as_bytes()).await.is_err()
        {
            // It has ended: that is what is read next.
        }
    }

    /// Closes its input.
    pub(super) fn close(&mut self) {
        self.input = None;
    }

    /// The next line that holds an object; none once its output is closed, or a line has no end.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn hear(&mut self) -> Option<Value> {
        loop {
            let left = LONGEST.saturating_sub(self.read.len() as u64);
            let read = (&mut self.output).take(left).read_until(b'\n', &mut self.read).await;
            if !matches!(read, Ok(1..)) || self.read.last() != Some(&b'\n') {
                return None;
            }
            let line = std::mem::take(&mut self.read);
            // Whatever else it writes is for a reader.
            if let Ok(value @ Value::Object(_)) = serde_json::from_slice(&line) {
                return Some(value);
            }
        }
    }

    /// The last of what it wrote for a reader.
    pub(super) fn words(&self) -> String {
        self.process.words()
    }

    /// How it ended, once its output is closed; its words are whole then.
    pub(super) async fn end(&mut self) -> String {
        match timeout(DYING, self.process.child.wait()).await {
            Ok(Ok(status)) => {
                self.process.is_heard().await;
                status.to_string()
            }
            Ok(Err(error)) => error.to_string(),
            Err(_elapsed) => "its output is closed, or has a line without an end".to_owned(),
        }
    }
}

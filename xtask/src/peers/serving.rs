//! A peer's server as a process: started, asked what it was sent, ended when dropped.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdout, Command, Stdio},
};

use anyhow::{Context as _, bail};
use serde_json::Value;

/// A server that runs until it is dropped.
pub(super) struct Serving {
    child: Child,
    reported: BufReader<ChildStdout>,
    url: String,
}

impl Serving {
    /// Starts it; its first line is `{"url": …}`.
    pub(super) fn start(command: &mut Command) -> anyhow::Result<Self> {
        Self::saying(command, "url")
    }

    /// Starts our own scripted server, whose first line is `{"listening": …}`.
    pub(super) fn practice(command: &mut Command) -> anyhow::Result<Self> {
        Self::saying(command.stderr(Stdio::null()), "listening")
    }

    fn saying(command: &mut Command, field: &str) -> anyhow::Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the server could not be started")?;
        let reported = BufReader::new(child.stdout.take().expect("it was piped above"));
        let mut serving = Self { child, reported, url: String::new() };
        let first = serving.line()?;
        let url = first[field].as_str().context("the server did not say where it listens")?;
        url.clone_into(&mut serving.url);
        Ok(serving)
    }

    /// The base URL of a wire.
    pub(super) fn base_url(&self, wire: &str) -> String {
        let version = if wire == "gemini" { "v1beta" } else { "v1" };
        format!("{}/{version}", self.url)
    }

    /// An address below it.
    pub(super) fn at(&self, path: &str) -> String {
        format!("{}/{path}", self.url)
    }

    /// The requests that it was sent: `{path, body, status}` each.
    pub(super) fn requests(&mut self) -> anyhow::Result<Vec<Value>> {
        let stdin = self.child.stdin.as_mut().expect("it was piped at the start");
        stdin.write_all(b"requests\n").context("the server is gone")?;
        match self.line()? {
            Value::Array(requests) => Ok(requests),
            other => bail!("the server wrote {other}"),
        }
    }

    fn line(&mut self) -> anyhow::Result<Value> {
        let mut line = String::new();
        self.reported.read_line(&mut line).context("the server cannot be read")?;
        serde_json::from_str(&line).with_context(|| format!("the server wrote {line:?}"))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if self.child.kill().and_then(|()| self.child.wait()).is_err() {
            // It ended by itself.
        }
    }
}

//! What goes over the socket: one request, then replies, each a line of JSON.
//!
//! **Invariants**: no line is longer than [`LONGEST`]; a reply with `last` is the last one.

use std::{io, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};

use crate::args::control::{OrArg, PolicyArg, ScopeArg};
use crate::exit::{Usage, code};

/// The version of these lines.
pub(crate) const VERSION: u32 = 1;
/// How long the owner of a session may take to acknowledge a request.
pub(super) const ACK_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest line that is read: 1 MiB.
const LONGEST: u64 = 1 << 20;

/// A request: one of a connection.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) v: u32,
    pub(crate) ask: Ask,
}

/// What is asked. Exhaustive: a session answers each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Ask {
    Show,
    /// The store of this session has changed: read it now.
    Look,
    Push(PushAsk),
    Withdraw {
        item: String,
    },
    Stop(StopAsk),
}

impl Ask {
    /// What is waited for.
    pub(crate) fn wait(&self) -> Wait {
        match self {
            Self::Push(push) => push.wait,
            Self::Stop(stop) => stop.wait,
            Self::Show | Self::Look | Self::Withdraw { .. } => Wait::No,
        }
    }
}

/// A message on its way in.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PushAsk {
    pub(crate) text: String,
    pub(crate) policy: PolicyArg,
    /// Safe points for a preempt; none: now.
    pub(crate) at: Option<String>,
    pub(crate) within_ms: Option<u64>,
    pub(crate) delay_ms: Option<u64>,
    pub(crate) turn: Option<String>,
    pub(crate) client_id: Option<String>,
    pub(crate) or: OrArg,
    pub(crate) wait: Wait,
}

/// What is waited for. Exhaustive: nothing, the outcome, or that nothing is alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Wait {
    #[default]
    No,
    Settled,
    Quiet,
}

/// A stop as the command line asks it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StopAsk {
    pub(crate) mode: ModeArg,
    /// Milliseconds of grace; none waits without limit.
    pub(crate) within_ms: Option<u64>,
    pub(crate) scope: ScopeArg,
    pub(crate) run: Option<String>,
    pub(crate) call: Option<String>,
    pub(crate) cleanup_cap_ms: Option<u64>,
    pub(crate) afterwards: Afterwards,
    pub(crate) because: Option<String>,
    pub(crate) wait: Wait,
}

/// Exhaustive: the modes of `stop`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ModeArg {
    Now,
    TurnEnd,
    Points(String),
    WhenIdle { ms: u64 },
}

/// Exhaustive: the turn may be resumed, or it is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Afterwards {
    Resumable,
    Abandoned,
}

/// One answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Reply {
    pub(crate) v: u32,
    /// The exit code of the calling command.
    pub(crate) code: u8,
    pub(crate) status: String,
    pub(crate) session: String,
    /// For people.
    pub(crate) message: String,
    pub(crate) detail: Value,
    pub(crate) last: bool,
}

impl Reply {
    pub(crate) fn new(code: u8, status: &str, message: impl Into<String>) -> Self {
        let (status, session) = (status.to_owned(), String::new());
        Self { v: VERSION, code, status, session, message: message.into(), detail: json!({}), last: true }
    }

    /// What was asked for failed, or cannot be asked for.
    pub(crate) fn failed(error: &anyhow::Error) -> Self {
        let is_usage = error.is::<Usage>();
        let (number, status) = if is_usage { (code::USAGE, "refused") } else { (code::OTHER, "failed") };
        Self::new(number, status, format!("{error:#}"))
    }

    /// The caller waits no longer.
    pub(crate) fn timed_out() -> Self {
        Self::new(code::TIMED_OUT, "timed_out", "requested; the end was not seen in time")
    }

    /// Adds a note.
    pub(crate) fn but(mut self, what: Option<String>) -> Self {
        if let Some(what) = what {
            self.message = format!("{}; {what}", self.message);
        }
        self
    }

    /// As a line of `--json` has them.
    pub(crate) fn fields(&self) -> Value {
        let mut fields = json!({"code": self.code, "status": self.status, "message": self.message,
            "detail": self.detail, "last": self.last});
        if let Some(run) = self.detail.get("run") {
            fields["run"] = run.clone();
        }
        fields
    }

    pub(crate) fn detail(mut self, detail: Value) -> Self {
        self.detail = detail;
        self
    }
}

/// Writes a value as a line.
///
/// # Errors
/// If the other end is gone.
pub(crate) async fn write(out: &mut (impl AsyncWrite + Unpin), value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    out.write_all(&line).await?;
    out.flush().await
}

/// Reads a line; none at the end.
///
/// # Errors
/// If the line is too long, is cut, or the other end is gone.
pub(crate) async fn read_line<R: AsyncRead + Unpin>(
    reader: &mut BufReader<R>,
) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let count = reader.take(LONGEST).read_until(b'\n', &mut line).await?;
    match line.pop() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(line)),
        Some(_) if count as u64 >= LONGEST => {
            Err(io::Error::new(io::ErrorKind::InvalidData, format!("a line is longer than {LONGEST} bytes")))
        }
        Some(_) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a line has no end")),
    }
}

#[cfg(test)]
mod tests;

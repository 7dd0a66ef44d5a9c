//! The audit log: who asked what of which session, with which token and by which door, as one JSON line for each request.
//!
//! **Invariants**: a line is written when its request is answered, also where it is refused; no secret and no content is in it; a log
//! that cannot be written is known: the server is not ready.

use std::{
    fmt,
    fs::OpenOptions,
    io::{self, Write},
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use jiff::Timestamp;
use serde::Serialize;

/// Where the lines are written. Clones write to the same place.
///
/// ```no_run
/// # fn main() -> std::io::Result<()> {
/// use safepoint_server::{Access, AuditLog};
/// let access = Access::tokens("tokens.toml").audited(AuditLog::file("/var/log/agents/audit.jsonl")?);
/// # drop(access);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct AuditLog {
    sink: Arc<AuditSink>,
}

struct AuditSink {
    /// Held for one line; no other lock is taken under it.
    writer: Mutex<Box<dyn Write + Send>>,
    is_broken: AtomicBool,
}

/// One line.
#[derive(Debug, Serialize)]
pub(crate) struct AuditLine<'a> {
    pub(crate) v: u32,
    pub(crate) at: Timestamp,
    /// Null: the request had no valid token.
    pub(crate) who: Option<&'a str>,
    /// The id of the token; null where a login of one's own named the principal.
    pub(crate) token: Option<&'a str>,
    /// `v1`, or the name of a protocol.
    pub(crate) door: &'a str,
    pub(crate) method: &'a str,
    pub(crate) route: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<&'a str>,
    /// The item, approval, stop or turn that is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) of: Option<&'a str>,
    pub(crate) status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<&'a str>,
}

/// What a protocol says of a request that its path does not: the method that was called, and the session.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuditNote {
    pub(crate) session: Option<String>,
    pub(crate) of: Option<String>,
}

impl AuditLog {
    /// At the end of this file, which its owner alone may read.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn file(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            const OWNER_ALONE: u32 = 0o600;
            options.mode(OWNER_ALONE);
        }
        Ok(Self::to(options.open(path)?))
    }

    /// To a writer of your own, a line at a time.
    pub fn to(writer: impl Write + Send + 'static) -> Self {
        let sink = AuditSink { writer: Mutex::new(Box::new(writer)), is_broken: AtomicBool::new(false) };
        Self { sink: Arc::new(sink) }
    }

    pub(crate) fn write(&self, line: &AuditLine<'_>) {
        let mut text = serde_json::to_vec(line).expect("a line is JSON");
        text.push(b'\n');
        let mut writer = self.sink.writer.lock().expect("no code under this lock panics");
        // In one write: a line that another process appends stands beside it and not in it.
        let written = writer.write_all(&text).and_then(|()| writer.flush());
        // Relaxed: nothing is ordered by it.
        self.sink.is_broken.store(written.is_err(), Ordering::Relaxed);
    }

    /// Whether the last line was not written.
    pub(crate) fn is_broken(&self) -> bool {
        // Relaxed: as above.
        self.sink.is_broken.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S7.6, S13.23: the golden line: programs read it, so a later release writes the same.
    #[test]
    fn its_line_is_as_it_was() {
        let line = AuditLine {
            v: 1,
            at: Timestamp::UNIX_EPOCH,
            who: Some("anna"),
            token: Some("0a"),
            door: "v1",
            method: "POST",
            route: "/v1/sessions/{session}/stop",
            session: Some("ses_1"),
            of: None,
            status: 202,
            code: None,
        };
        let text = r#"{"v":1,"at":"1970-01-01T00:00:00Z","who":"anna","token":"0a","door":"v1","method":"POST","route":"/v1/sessions/{session}/stop","session":"ses_1","status":202}"#;
        assert_eq!(serde_json::to_string(&line).unwrap(), text);
        let refused =
            AuditLine { who: None, token: None, session: None, status: 401, code: Some("no_token"), ..line };
        let text = r#"{"v":1,"at":"1970-01-01T00:00:00Z","who":null,"token":null,"door":"v1","method":"POST","route":"/v1/sessions/{session}/stop","status":401,"code":"no_token"}"#;
        assert_eq!(serde_json::to_string(&refused).unwrap(), text);
    }
}

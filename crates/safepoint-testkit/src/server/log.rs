//! Where a server tells of what it saw.
//!
//! **Invariants**: a line is written before what it tells of can be seen by the peer's next step: a request's line
//! before its answer begins.

use std::{fmt, sync::Arc};

use serde_json::{Value, json};

/// What is called with each line.
type Sink = dyn Fn(Value) + Send + Sync;

/// A reader of a server's log: a JSON value with `type`, `id` and `at` for each request, first byte, close
/// and end. The server logs a request before it answers: a client that has the answer finds the request in
/// the log.
#[derive(Clone)]
pub struct ServerLog(Arc<Sink>);

impl ServerLog {
    /// Gives each line to `sink`, in order, on the task that serves: it must be quick, and not panic.
    pub fn to(sink: impl Fn(Value) + Send + Sync + 'static) -> Self {
        Self(Arc::new(sink))
    }

    pub(super) fn tell(&self, mut line: Value) {
        line["at"] = json!(jiff::Timestamp::now());
        (self.0)(line);
    }
}

impl fmt::Debug for ServerLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}

//! Messages over the pipes of a process: a line each, bounded, and whatever is no message passed over.
//!
//! **Invariants** Memory does not grow beyond one message. A message that is too large, or that is an answer and yet no
//! valid one, ends its own call and nothing else.

use std::{io, sync::Arc};

use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage},
    transport::Transport,
};
use safepoint::raw::json;
use serde_json::error::Category;
use tokio::{
    io::AsyncWriteExt as _,
    net::unix::pipe::{Receiver, Sender},
    sync::Mutex,
};

use super::{depth, own};
use crate::{
    limits,
    lines::{Lines, Scan, TextLine},
};

/// The two pipes of a server.
pub(super) struct Pipes {
    lines: Lines,
    /// Held across the write of one message, so that messages stay whole; it is asynchronous. Only `close` takes it too,
    /// and does not wait for it.
    write: Arc<Mutex<Option<Sender>>>,
}

impl Pipes {
    pub(super) fn new(stdin: Sender, stdout: Receiver) -> Self {
        let lines = Lines::new(stdout, limits::MCP_MESSAGE_BYTES);
        Self { lines, write: Arc::new(Mutex::new(Some(stdin))) }
    }
}

/// What a line says, if it says anything.
fn message(line: &TextLine) -> Option<ServerJsonRpcMessage> {
    match line {
        TextLine::Whole(line) => read(line),
        TextLine::TooLong(scan) => {
            let (limit, values) = (limits::MCP_MESSAGE_BYTES, json::MOST_VALUES);
            failed(
                scan,
                format!("answered with more than {limit} bytes or {values} values, which were not read"),
            )
        }
    }
}

fn read(line: &[u8]) -> Option<ServerJsonRpcMessage> {
    if line.trim_ascii().is_empty() {
        return None;
    }
    let whole = serde_json::from_slice(line);
    // A reader of JSON refuses all of a text that is nested deeply somewhere: the rest of it costs that nothing.
    let read = whole.or_else(|error| match depth::cut(line, limits::MCP_DEPTH) {
        Some(kept) => serde_json::from_slice(&kept),
        None => Err(error),
    });
    match read {
        Ok(message) => Some(message),
        Err(error) => {
            let mut scan = Scan::default();
            scan.feed(line);
            tracing::debug!(%error, bytes = line.len(), "a line of an MCP server is no message");
            // The error may quote the server; where it is quoted it stands in the log alone.
            failed(&scan, format!("answered, but its answer is no valid message ({})", flaw(&error)))
        }
    }
}

/// The end of the call that a line answers, where that can be seen.
fn failed(scan: &Scan, why: String) -> Option<ServerJsonRpcMessage> {
    let id = scan.answers()?;
    Some(ServerJsonRpcMessage::error(own::unread(why), Some(RequestId::Number(id))))
}

/// What is wrong with a line, without its words.
fn flaw(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        Category::Data => "it is not as the protocol says",
        Category::Syntax | Category::Eof | Category::Io => "it is not JSON",
    };
    format!("{what}, at its byte {}", error.column())
}

impl Transport<RoleClient> for Pipes {
    type Error = io::Error;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let write = Arc::clone(&self.write);
        async move {
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            // The lock is asynchronous, fair, and held for one message: messages stay whole and in order.
            match &mut *write.lock().await {
                Some(pipe) => pipe.write_all(&line).await,
                None => Err(io::ErrorKind::BrokenPipe.into()),
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let line = self.lines.next().await?;
            if let Some(message) = message(&line) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        // A writer that is stuck keeps it; it is dropped with the connection.
        if let Ok(mut write) = self.write.try_lock() {
            *write = None;
        }
        Ok(())
    }
}

//! Messages over the pipes of a process: a line each, bounded, and whatever is no message passed over.
//!
//! **Invariants** Memory does not grow beyond one message. A message that is too large, or that is an answer and yet no
//! valid one, ends its own call and nothing else.

use std::{io, sync::Arc};

use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ErrorData, RequestId, ServerJsonRpcMessage},
    transport::Transport,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::unix::pipe::{Receiver, Sender},
    sync::Mutex,
};

use crate::limits;

mod scan;

use scan::Scan;

/// A buffer that grew beyond this is given back after its message.
const KEPT_BYTES: usize = 1 << 20;

/// The two pipes of a server.
pub(super) struct Pipes {
    read: BufReader<Receiver>,
    line: Vec<u8>,
    /// Set while the rest of a line that is too long is passed over.
    oversized: Option<Scan>,
    write: Arc<Mutex<Option<Sender>>>,
}

impl Pipes {
    pub(super) fn new(stdin: Sender, stdout: Receiver) -> Self {
        Self {
            read: BufReader::with_capacity(limits::CHUNK_BYTES, stdout),
            line: Vec::new(),
            oversized: None,
            write: Arc::new(Mutex::new(Some(stdin))),
        }
    }

    /// Takes a part of a line. Nothing is awaited here, so that a read that is dropped has taken nothing.
    fn take(&mut self, part: &[u8]) {
        if let Some(scan) = &mut self.oversized {
            return scan.feed(part);
        }
        if self.line.len() + part.len() <= limits::MCP_MESSAGE_BYTES {
            return self.line.extend_from_slice(part);
        }
        let mut scan = Scan::default();
        scan.feed(&self.line);
        scan.feed(part);
        self.line = Vec::new();
        self.oversized = Some(scan);
    }

    /// The line is whole: what it says, if it says anything.
    fn end_of_line(&mut self) -> Option<ServerJsonRpcMessage> {
        if let Some(scan) = self.oversized.take() {
            let limit = limits::MCP_MESSAGE_BYTES;
            return failed(&scan, format!("its answer is larger than {limit} bytes and was not read"));
        }
        let message = read(&self.line);
        self.line.clear();
        self.line.shrink_to(KEPT_BYTES);
        message
    }
}

fn read(line: &[u8]) -> Option<ServerJsonRpcMessage> {
    if line.trim_ascii().is_empty() {
        return None;
    }
    match serde_json::from_slice(line) {
        Ok(message) => Some(message),
        Err(error) => {
            let mut scan = Scan::default();
            scan.feed(line);
            tracing::debug!(%error, bytes = line.len(), "a line of an MCP server is no message");
            failed(&scan, format!("its answer is no valid message: {error}"))
        }
    }
}

/// The end of the call that a line answers, where that can be seen.
fn failed(scan: &Scan, why: String) -> Option<ServerJsonRpcMessage> {
    let id = scan.answers()?;
    Some(ServerJsonRpcMessage::error(ErrorData::internal_error(why, None), Some(RequestId::Number(id))))
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
            let available = self.read.fill_buf().await.ok()?;
            if available.is_empty() {
                return None;
            }
            let newline = available.iter().position(|byte| *byte == b'\n');
            let part = available[..newline.unwrap_or(available.len())].to_vec();
            self.read.consume(newline.map_or(part.len(), |at| at + 1));
            self.take(&part);
            if newline.is_some()
                && let Some(message) = self.end_of_line()
            {
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

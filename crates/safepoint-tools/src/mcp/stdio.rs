//! Messages over the pipes of a process: a line each, bounded, and whatever is no message passed over.
//!
//! **Invariants** Memory does not grow beyond one message. A message that is too large, or that is an answer and yet no
//! valid one, ends its own call and nothing else.

use std::{io, sync::Arc};

use futures_util::FutureExt as _;
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::Transport,
};
use tokio::{
    io::AsyncWriteExt as _,
    net::unix::pipe::{Receiver, Sender},
    sync::Mutex,
    task::unconstrained,
};

use super::message;
use crate::{
    limits,
    lines::{Lines, Scan, TextLine},
};

/// The two pipes of a server.
pub(super) struct Pipes {
    lines: Lines,
    /// Held across the write of one message, so that messages stay whole; it is asynchronous, and fair, so they stay in order.
    /// Only `close` takes it too, and does not wait for it.
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
        TextLine::Whole(line) if line.trim_ascii().is_empty() => None,
        TextLine::Whole(line) => match message::read(line) {
            Ok(read) => Some(read.message),
            Err(why) => message::failed(&Scan::of(line), why),
        },
        TextLine::TooLong(scan) => message::failed(scan, message::too_large()),
    }
}

impl Transport<RoleClient> for Pipes {
    type Error = io::Error;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        // Each send is a task of the caller, and tasks may be polled in any order. So the wait for the lock, which is fair,
        // begins here: one poll, whatever is left of the task's budget. Otherwise a notice could be written before the call
        // that it is about. A send that is dropped leaves the queue.
        let mut turn = Box::pin(unconstrained(Arc::clone(&self.write).lock_owned()));
        let got = (&mut turn).now_or_never();
        async move {
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            let mut write = match got {
                Some(write) => write,
                None => turn.await,
            };
            match &mut *write {
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

#[cfg(test)]
mod tests {
    use futures_util::future::join;
    use safepoint_testkit::wait::InTime as _;
    use serde_json::json;
    use tokio::{
        io::{AsyncBufReadExt as _, BufReader},
        net::unix::pipe::pipe,
    };

    use super::*;

    fn cancel(of: u64) -> ClientJsonRpcMessage {
        let params = json!({"requestId": of});
        let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        serde_json::from_value(message).unwrap()
    }

    /// S3.6: a notice does not overtake the call that it is about, in whatever order the sends are polled; and one that is
    /// dropped holds no other back.
    #[tokio::test]
    async fn messages_are_written_in_the_order_in_which_they_were_sent() {
        let ((stdin, theirs), (_theirs, stdout)) = (pipe().unwrap(), pipe().unwrap());
        let mut pipes = Pipes::new(stdin, stdout);
        let (one, dropped, three) = (pipes.send(cancel(1)), pipes.send(cancel(2)), pipes.send(cancel(3)));
        drop(dropped);
        let written = join(three, one).in_time("both are written").await;
        assert!(matches!(written, (Ok(()), Ok(()))));
        let mut lines = BufReader::new(theirs).lines();
        for of in [1, 3] {
            let line = lines.next_line().in_time("a line is read").await.unwrap().unwrap();
            assert!(line.contains(&format!("\"requestId\":{of}")), "{line}");
        }
    }
}

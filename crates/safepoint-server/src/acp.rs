//! ACP: an editor drives sessions over a stream of bytes in each direction, as the protocol's agents do.
//!
//! **Invariants**: one prompt is one item and gets one answer, behind the last update of its turn (S13.17); a line is read only once
//! the prompt before it is recorded, so that a cancel finds it; what writes to the editor never holds up what reads.

mod asking;
mod content;
mod desk;
mod lines;
mod message;
mod opening;
mod outbox;
mod prompt;
mod update;

use std::{
    convert::Infallible, future::poll_fn, path::PathBuf, pin::pin, sync::Arc, task::Poll, time::Duration,
};

use futures_core::future::BoxFuture;
use futures_util::{
    StreamExt as _,
    future::{Either, join3, select},
    stream::FuturesUnordered,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, BufReader},
    sync::mpsc,
    time::sleep,
};

use self::{
    desk::Desk,
    lines::ReadLine,
    message::{Message, Refusal},
    outbox::Outbox,
    prompt::Prompt,
};
use crate::{
    access::{AccessScope, Principal},
    caller::{Caller, left},
    host::Host,
};

/// How long the work that runs may take to its next safe point after a cancel, unless it is said.
const GRACE: Duration = Duration::from_secs(5);
/// How long what a closed input stops may take to settle, beyond its grace.
const SETTLES: Duration = Duration::from_secs(3);
/// Who acts: the user whose editor it is.
const LOCAL: &str = "local";

/// What is done for one message beside the reading.
type Job = BoxFuture<'static, ()>;

/// An agent of a host, for one editor.
///
/// ```
/// use safepoint_server::{AcpServer, Host};
/// async fn serve(host: &Host) {
///     AcpServer::new(host, "helper").serve(tokio::io::empty(), tokio::io::sink()).await;
/// }
/// ```
#[derive(Debug)]
#[must_use = "it answers once it serves"]
pub struct AcpServer {
    host: Host,
    agent: String,
    folder: Option<PathBuf>,
    grace: Duration,
}

impl AcpServer {
    /// The agent of this name. The editor sees the sessions of the local user with it.
    pub fn new(host: &Host, agent: impl Into<String>) -> Self {
        Self { host: host.clone(), agent: agent.into(), folder: None, grace: GRACE }
    }

    /// Sets the folder that the agent works in: a session for another one is refused. Default: any is taken.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Sets how long the work that runs may take to its next safe point after a cancel; a second cancel is at once. Default 5 s;
    /// zero: at once.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Serves until the editor has closed the input, and what it began has settled: it is stopped within 2 s, with the reason
    /// `disconnect`. Open questions stay open.
    ///
    /// # Cancel safety
    /// The editor is not served any more; what it began runs on in the host.
    pub async fn serve(self, input: impl AsyncRead + Unpin, output: impl AsyncWrite + Unpin) {
        let (outbox, said) = Outbox::new();
        let who = Principal::new(LOCAL, AccessScope::ALL).only_agents([self.agent.clone()]);
        let by = Caller { host: Arc::clone(&self.host.inner), load: Arc::default(), who, trace: None };
        let desk = Arc::new(Desk::new(by, outbox, self));
        let mut left = desk.left();
        let (begin, begun) = mpsc::unbounded_channel::<Job>();
        let reads = read(desk, input, begin);
        // It ends when the last of what can say something is gone, or when nothing can be written any more.
        let writes = async { drop(lines::write(said, output).await) };
        let all = pin!(join3(reads, done(begun), writes));
        let over = pin!(async {
            if left.wait_for(|is_left| *is_left).await.is_ok() {
                sleep(left::LEAVES + SETTLES).await;
            } else {
                std::future::pending::<()>().await;
            }
        });
        // First: all is said and done. Else its time is over: what is not settled by then runs on in the host, and is drained.
        match select(all, over).await {
            Either::Left(_) | Either::Right(_) => {}
        }
    }
}

/// Does what is begun, all at once, until nothing is and nothing more will be.
async fn done(mut begun: mpsc::UnboundedReceiver<Job>) {
    let mut jobs = FuturesUnordered::new();
    poll_fn(move |cx| {
        let is_over = loop {
            match begun.poll_recv(cx) {
                Poll::Ready(Some(job)) => jobs.push(job),
                Poll::Ready(None) => break true,
                Poll::Pending => break false,
            }
        };
        while jobs.poll_next_unpin(cx) == Poll::Ready(Some(())) {}
        if is_over && jobs.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Reads until the end of the input, or until nothing can be said any more; then what was begun is stopped.
async fn read(desk: Arc<Desk>, input: impl AsyncRead + Unpin, begin: mpsc::UnboundedSender<Job>) {
    let mut input = BufReader::new(input);
    {
        let reads = pin!(async {
            loop {
                // It is dropped once the next line may be read.
                let (holds, mut held) = mpsc::channel::<Infallible>(1);
                let job = match lines::next(&mut input).await {
                    Ok(ReadLine::Whole(line)) if line.trim_ascii().is_empty() => continue,
                    Ok(ReadLine::Whole(line)) => heard(&desk, &line, holds),
                    Ok(ReadLine::TooLong) => {
                        drop(holds);
                        Some(refused(&desk, Refusal::params("the line is too long")))
                    }
                    Ok(ReadLine::End) | Err(_) => return,
                };
                if job.is_some_and(|job| begin.send(job).is_err()) {
                    return;
                }
                held.recv().await;
            }
        });
        // Either way it is over; a line that is half read is none, and a prompt that is being recorded has its job.
        match select(reads, pin!(desk.outbox.closed())).await {
            Either::Left(_) | Either::Right(_) => {}
        }
    }
    for stop in desk.leave() {
        if begin.send(stop).is_err() {
            // The jobs are gone: all of it is over.
        }
    }
}

/// What a line asks for; which prompts a cancel means is known by now. A prompt holds the next line until it is recorded.
fn heard(desk: &Arc<Desk>, line: &[u8], holds: mpsc::Sender<Infallible>) -> Option<Job> {
    let message = match Message::read(line) {
        Ok(message) => message,
        Err(refusal) => return Some(refused(desk, refusal)),
    };
    match message {
        Message::Answer { id, result } => {
            desk.outbox.answered(id, result);
            None
        }
        Message::Notice { method, params } => match method.as_str() {
            "session/cancel" => Some(desk.cancel_session(params["sessionId"].as_str()?)),
            "$/cancel_request" => desk.cancel_request(&params["requestId"]),
            _ => None,
        },
        Message::Request { id, method, params } if method == "session/prompt" => {
            Some(Box::pin(Prompt::answer(Arc::clone(desk), (id, params), holds)))
        }
        Message::Request { id, method, params } => {
            let desk = Arc::clone(desk);
            Some(Box::pin(async move {
                let answered = opening::answer(&desk, &method, &params).await;
                desk.outbox.answer(&id, answered).await;
            }))
        }
    }
}

fn refused(desk: &Arc<Desk>, refusal: Refusal) -> Job {
    let desk = Arc::clone(desk);
    Box::pin(async move { desk.outbox.answer(&serde_json::Value::Null, Err(refusal)).await })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program may serve an editor in a task of its own.
    #[test]
    fn serving_is_sent_between_threads() {
        fn is_sent(_: impl Send) {}
        let _checked = |server: AcpServer| is_sent(server.serve(tokio::io::empty(), tokio::io::sink()));
    }
}

//! A server's connections: its card, JSON-RPC, and streams of events.

use std::{
    io,
    sync::{Arc, PoisonError},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{
    Mind, OnCancel, Seen, Streams, Tells, card,
    task::{Event, State, Task},
    wire,
};
use crate::request::{self, Request};

const NOT_FOUND: i64 = -32001;
const NOT_CANCELABLE: i64 = -32002;
const UNSUPPORTED: i64 = -32004;
const NO_METHOD: i64 = -32601;
const INTERNAL: i64 = -32603;
/// From this status on the work has begun when a message is answered with it.
const BEGUN: u16 = 500;

const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// Serves one connection to its end.
pub(super) async fn serve(mut socket: TcpStream, mind: &Arc<Mind>) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut buffer = Vec::new();
    while let Some(Request { method, authorization, body, .. }) =
        request::read(&mut socket, &mut buffer).await?
    {
        mind.bearers.lock().unwrap_or_else(PoisonError::into_inner).extend(authorization);
        if method == "GET" {
            card::show(&mut socket, mind).await?;
            continue;
        }
        let Ok(asked) = serde_json::from_slice::<Value>(&body) else {
            plain(&mut socket, "400 Bad Request", "text/plain", "no JSON").await?;
            continue;
        };
        Exchange { socket: &mut socket, mind, id: asked["id"].clone() }.answer(&asked).await?;
    }
    Ok(())
}

pub(super) async fn plain(socket: &mut TcpStream, status: &str, kind: &str, body: &str) -> io::Result<()> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", body.len());
    socket.write_all((head + body).as_bytes()).await
}

/// Waits until the client gives up.
pub(super) async fn gave_up(socket: &mut TcpStream, mind: &Mind, method: &str) -> io::Result<()> {
    let ended = socket.read(&mut [0; 1]).await;
    mind.note(Seen::GaveUp(method.to_owned()));
    ended.and(Err(io::ErrorKind::ConnectionAborted.into()))
}

/// A request that is being answered.
struct Exchange<'a> {
    socket: &'a mut TcpStream,
    mind: &'a Arc<Mind>,
    id: Value,
}

impl Exchange<'_> {
    async fn answer(mut self, asked: &Value) -> io::Result<()> {
        let name = asked["method"].as_str().unwrap_or_default();
        let method = wire::method(name);
        self.mind.note(Seen::Asked(method.to_owned(), asked["params"].clone()));
        if !wire::knows(self.mind.manners.wire, name) {
            return self.error(NO_METHOD, "no such method").await;
        }
        if self.mind.manners.streams == Streams::CutAndGone && method != "SendStreamingMessage" {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        match method {
            "SendMessage" if matches!(self.mind.manners.streams, Streams::Status(_)) => {
                self.send(&asked["params"]).await
            }
            "SendMessage" => {
                let task = self.take(&asked["params"]);
                let first = self.mind.manners.wire.first(&task);
                self.result(&first).await
            }
            "SendStreamingMessage" => self.send(&asked["params"]).await,
            "GetTask" if self.is_busy() => {
                plain(self.socket, "429 Too Many Requests", "text/plain", "later").await
            }
            "GetTask" => match (self.named(asked), self.mind.manners.on_cancel) {
                (_, OnCancel::Unwritten) => self.unwritten().await,
                (Some(task), _) => self.told(&task).await,
                (None, _) => self.error(NOT_FOUND, "no such task").await,
            },
            "SubscribeToTask" => self.subscribe(asked).await,
            "CancelTask" => match self.named(asked) {
                Some(task) => self.cancel(&task).await,
                None => self.error(NOT_FOUND, "no such task").await,
            },
            _ => self.error(NO_METHOD, "no such method").await,
        }
    }

    /// Whether whoever looks is to come again later; each of them is counted before it is answered.
    fn is_busy(&self) -> bool {
        let seen = self.mind.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let looks =
            seen.iter().filter(|seen| matches!(seen, Seen::Asked(name, _) if name == "GetTask")).count();
        looks <= self.mind.manners.busy
    }

    fn named(&self, asked: &Value) -> Option<Arc<Task>> {
        self.mind.task(asked["params"]["id"].as_str()?)
    }

    /// A message: a new task, or the answer to what one asked.
    fn take(&self, params: &Value) -> Arc<Task> {
        let message = &params["message"];
        let named = message["taskId"].as_str().and_then(|id| self.mind.task(id));
        match named {
            Some(task) => {
                task.answer(wire::text_of(message));
                task
            }
            None => self.mind.begin(message["contextId"].as_str()),
        }
    }

    async fn send(&mut self, params: &Value) -> io::Result<()> {
        match self.mind.manners.streams {
            Streams::Garbage => return self.whole_stream(b"data: {\"result\": {\"tas\n\n").await,
            Streams::Binary => return self.whole_stream(b"data: \xff\xfe\xfd\n\n").await,
            Streams::Page => {
                return plain(self.socket, "200 OK", "text/html", "<h1>please sign in</h1>").await;
            }
            Streams::Silent => {
                self.socket.write_all(STREAM.as_bytes()).await?;
                return gave_up(self.socket, self.mind, "SendStreamingMessage").await;
            }
            Streams::Huge(bytes) => return self.huge(bytes).await,
            Streams::Status(status) => {
                if status >= BEGUN {
                    self.take(params);
                }
                return plain(self.socket, &format!("{status} Odd"), "text/html", "<h1>sorry</h1>").await;
            }
            Streams::Well
            | Streams::CutAfter(_)
            | Streams::CutForGood(_)
            | Streams::CutAndGone
            | Streams::CutEach => {}
        }
        let wire = self.mind.manners.wire;
        if self.mind.manners.tells == Tells::Message {
            self.socket.write_all(STREAM.as_bytes()).await?;
            let text: String = self.mind.manners.plan.iter().map(super::Step::text).collect();
            self.event(&wire.only(&text)).await?;
            return self.socket.write_all(b"0\r\n\r\n").await;
        }
        let is_new = params["message"]["taskId"].is_null();
        let task = self.take(params);
        self.socket.write_all(STREAM.as_bytes()).await?;
        // An answer's stream begins where the task stands.
        let from = if is_new { 0 } else { task.events().len() };
        match self.mind.manners.tells {
            Tells::Status => self.event(&wire.echo(&task, &params["message"])).await?,
            _ if is_new => self.event(&wire.first(&Task::new(task.id.clone(), task.context.clone()))).await?,
            _ => self.event(&wire.first(&task)).await?,
        }
        self.tell(&task, from).await
    }

    /// Streams what is told of a task, from an event on.
    async fn tell(&mut self, task: &Task, mut from: usize) -> io::Result<()> {
        let mut count = task.looks_on();
        let mut written = 1;
        loop {
            let events = task.events();
            for (at, event) in events.iter().enumerate().skip(from) {
                if self.cuts(written) {
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
                let before = events[..at].iter().any(|event| matches!(event, Event::Part(_)));
                self.event(&self.mind.manners.wire.event(task, event, before)).await?;
                written += 1;
                if let Event::Status(state, _) = event
                    && state.ends_streams()
                {
                    return self.socket.write_all(b"0\r\n\r\n").await;
                }
            }
            from = events.len();
            let mut byte = [0; 1];
            tokio::select! {
                biased;
                // Whichever loses has taken nothing: a change is seen by the count, and a client says nothing more.
                changed = count.wait_for(|count| *count > from) => drop(changed),
                ended = self.socket.read(&mut byte) => {
                    self.mind.note(Seen::GaveUp("SendStreamingMessage".into()));
                    return ended.and(Err(io::ErrorKind::ConnectionAborted.into()));
                }
            }
        }
    }

    /// Whether this stream is to be cut behind so many events.
    fn cuts(&self, written: usize) -> bool {
        let cut = *self.mind.cuts.borrow();
        let cuts = match self.mind.manners.streams {
            Streams::CutAfter(events) | Streams::CutForGood(events) => cut == 0 && written >= events,
            Streams::CutAndGone | Streams::CutEach => true,
            _ => false,
        };
        if cuts {
            self.mind.cuts.send_modify(|cuts| *cuts += 1);
        }
        cuts
    }

    async fn subscribe(&mut self, asked: &Value) -> io::Result<()> {
        let unsupported = matches!(self.mind.manners.streams, Streams::CutForGood(_))
            || self.mind.manners.tells == Tells::Looks;
        let Some(task) = self.named(asked).filter(|_| !unsupported) else {
            return self.error(UNSUPPORTED, "this is not supported").await;
        };
        if task.state().is_terminal() {
            return self.error(UNSUPPORTED, "the task is over").await;
        }
        self.socket.write_all(STREAM.as_bytes()).await?;
        let from = task.events().len();
        self.event(&self.mind.manners.wire.first(&task)).await?;
        if self.mind.manners.streams == Streams::CutEach {
            return self.socket.write_all(b"0\r\n\r\n").await;
        }
        self.tell(&task, from).await
    }

    async fn cancel(&mut self, task: &Arc<Task>) -> io::Result<()> {
        let on_cancel = self.mind.manners.on_cancel;
        if task.state().is_terminal() && on_cancel != OnCancel::Unwritten {
            return self.error(NOT_CANCELABLE, "the task is over").await;
        }
        let canceled = Event::Status(State::Canceled, None);
        match on_cancel {
            OnCancel::Ends => {
                task.tear_down();
                self.mind.yard.idle().await;
                task.tell(canceled);
                self.told(task).await
            }
            OnCancel::Says | OnCancel::SaysAndCompletes => {
                task.tell(canceled);
                self.told(task).await
            }
            OnCancel::Nods => self.told(task).await,
            OnCancel::Refuses => self.error(NOT_CANCELABLE, "Cancellation is not supported").await,
            OnCancel::RefusesAndSays => {
                task.tell(canceled);
                self.error(NOT_CANCELABLE, "Cancellation is not supported").await
            }
            OnCancel::SaysOfAnother => {
                let another = Task::new("task-of-another".into(), task.context.clone());
                another.tell(canceled);
                self.told(&another).await
            }
            OnCancel::Unwritten => self.unwritten().await,
            OnCancel::EndsWithAnError => {
                task.tear_down();
                self.mind.yard.idle().await;
                task.tell(Event::Status(State::Failed, None));
                self.error(INTERNAL, "cancellation is not supported").await
            }
            OnCancel::Deaf => gave_up(self.socket, self.mind, "CancelTask").await,
            OnCancel::HangsUp => Err(io::ErrorKind::ConnectionReset.into()),
        }
    }

    /// What a framework answers where its method was left unwritten.
    async fn unwritten(&mut self) -> io::Result<()> {
        let page = json!({"status": 500, "error": "Internal Server Error", "path": "/a2a"}).to_string();
        plain(self.socket, "500 Internal Server Error", "application/json", &page).await
    }

    /// Answers with the task as it stands.
    async fn told(&mut self, task: &Task) -> io::Result<()> {
        let task = self.mind.manners.wire.task(task);
        self.result(&task).await
    }

    async fn result(&mut self, result: &Value) -> io::Result<()> {
        let body = json!({"jsonrpc": "2.0", "id": self.id, "result": result}).to_string();
        plain(self.socket, "200 OK", "application/json", &body).await
    }

    async fn error(&mut self, code: i64, message: &str) -> io::Result<()> {
        let error = json!({"code": code, "message": message});
        let body = json!({"jsonrpc": "2.0", "id": self.id, "error": error}).to_string();
        plain(self.socket, "200 OK", "application/json", &body).await
    }

    async fn event(&mut self, result: &Value) -> io::Result<()> {
        let event = json!({"jsonrpc": "2.0", "id": self.id, "result": result});
        self.chunk(format!("data: {event}\r\n\r\n").as_bytes()).await
    }

    async fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(format!("{:x}\r\n", bytes.len()).as_bytes()).await?;
        self.socket.write_all(bytes).await?;
        self.socket.write_all(b"\r\n").await
    }

    async fn whole_stream(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(STREAM.as_bytes()).await?;
        self.chunk(bytes).await?;
        self.socket.write_all(b"0\r\n\r\n").await
    }

    async fn huge(&mut self, bytes: usize) -> io::Result<()> {
        const PIECE: usize = 1 << 16;
        self.socket.write_all(STREAM.as_bytes()).await?;
        self.chunk(b"data: {\"result\": \"").await?;
        let piece = [b'x'; PIECE];
        let mut left = bytes;
        while left > 0 {
            self.chunk(&piece[..left.min(PIECE)]).await?;
            left = left.saturating_sub(PIECE);
        }
        self.chunk(b"\"}\n\n").await?;
        self.socket.write_all(b"0\r\n\r\n").await
    }
}

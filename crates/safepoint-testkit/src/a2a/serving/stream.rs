//! Streams of events, and what is wrong with them.

use std::io;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{Exchange, INTERNAL, gave_up, plain};
use crate::a2a::{
    A2aSeen, A2aWire, Streams, Tells, WorkStep,
    task::{Event, Task},
};

const UNSUPPORTED: i64 = -32004;
/// From this status on the work has begun when a message is answered with it.
const BEGUN: u16 = 500;

const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const END: &[u8] = b"0\r\n\r\n";

/// A stream, by its number, and how many events were written on it.
#[derive(Clone, Copy)]
struct Told {
    number: usize,
    written: usize,
}

impl Exchange<'_> {
    pub(super) async fn send(&mut self, params: &Value) -> io::Result<()> {
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
            Streams::Refused => return self.error(INTERNAL, "it went wrong").await,
            Streams::Status(status) => {
                if status >= BEGUN {
                    self.take(params);
                }
                return plain(self.socket, &format!("{status} Odd"), "text/html", "<h1>sorry</h1>").await;
            }
            Streams::NamedLate => {
                self.socket.write_all(STREAM.as_bytes()).await?;
                if let Ok(permit) = self.mind.names.acquire().await {
                    permit.forget();
                }
            }
            Streams::Well
            | Streams::CutAfter(_)
            | Streams::CutForGood(_)
            | Streams::CutAndGone
            | Streams::CutEach
            | Streams::EmptyAfter(_)
            | Streams::DeafAfter(_)
            | Streams::UnansweredAfter(_)
            | Streams::HushAfter(_)
            | Streams::TellTwice
            | Streams::ByRequestId => {}
        }
        let wire = self.mind.manners.wire;
        if self.mind.manners.tells == Tells::Message {
            self.socket.write_all(STREAM.as_bytes()).await?;
            let text: String = self.mind.manners.plan.iter().map(WorkStep::text).collect();
            self.event(&wire.only(&text)).await?;
            return self.socket.write_all(END).await;
        }
        let is_new = params["message"]["taskId"].is_null();
        let number = self.mind.opened(&self.id);
        let task = self.take(params);
        if self.mind.manners.streams != Streams::NamedLate {
            self.socket.write_all(STREAM.as_bytes()).await?;
        }
        // An answer's stream begins where the task stands.
        let from = if is_new { 0 } else { task.events().len() };
        match self.mind.manners.tells {
            Tells::Status => self.event(&wire.echo(&task, &params["message"])).await?,
            _ if is_new => self.event(&wire.first(&Task::new(task.id.clone(), task.context.clone()))).await?,
            _ => self.event(&wire.first(&task)).await?,
        }
        self.tell(&task, from, Told { number, written: 1 }).await
    }

    /// Streams what is told of a task, from an event on.
    async fn tell(&mut self, task: &Task, mut from: usize, mut told: Told) -> io::Result<()> {
        let mut count = task.looks_on();
        loop {
            let events = task.events();
            for (at, event) in events.iter().enumerate().skip(from) {
                if self.cuts(told) {
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
                if self.is_hushed(told) {
                    return gave_up(self.socket, self.mind, "SendStreamingMessage").await;
                }
                let artifact = event.artifact();
                let before =
                    artifact.is_some() && events[..at].iter().any(|event| event.artifact() == artifact);
                self.event(&self.mind.manners.wire.event(task, event, before)).await?;
                if matches!((event, self.mind.manners.streams), (Event::Part { .. }, Streams::TellTwice)) {
                    self.event(&self.mind.manners.wire.event(task, event, before)).await?;
                }
                told.written += 1;
                if let Event::Status(state, _) = event
                    && state.ends_streams()
                {
                    return self.socket.write_all(END).await;
                }
            }
            from = events.len();
            let mut byte = [0; 1];
            tokio::select! {
                biased;
                // Whichever loses has taken nothing: a change is seen by the count, and a client says nothing more.
                changed = count.wait_for(|count| *count > from) => drop(changed),
                ended = self.socket.read(&mut byte) => {
                    self.mind.note(A2aSeen::GaveUp("SendStreamingMessage".into()));
                    return ended.and(Err(io::ErrorKind::ConnectionAborted.into()));
                }
            }
        }
    }

    /// Whether nothing more comes on this stream, which stays open.
    fn is_hushed(&self, told: Told) -> bool {
        match self.mind.manners.streams {
            Streams::HushAfter(events) => told.number == 0 && told.written >= events,
            _ => !self.mind.is_heard(&self.id, told.number),
        }
    }

    /// Whether this stream is to be cut behind what was told on it.
    fn cuts(&self, told: Told) -> bool {
        let cuts = match self.mind.manners.streams {
            Streams::CutAfter(events)
            | Streams::CutForGood(events)
            | Streams::EmptyAfter(events)
            | Streams::DeafAfter(events)
            | Streams::UnansweredAfter(events) => told.number == 0 && told.written >= events,
            Streams::CutAndGone | Streams::CutEach => true,
            _ => self.mind.manners.cuts.get(told.number).is_some_and(|events| told.written >= *events),
        };
        if cuts {
            self.mind.cuts.send_modify(|cuts| *cuts += 1);
        }
        cuts
    }

    pub(super) async fn subscribe(&mut self, asked: &Value) -> io::Result<()> {
        let unsupported = matches!(self.mind.manners.streams, Streams::CutForGood(_))
            || self.mind.manners.tells == Tells::Looks;
        let Some(task) = self.named(asked).filter(|_| !unsupported) else {
            return self.error(UNSUPPORTED, "this is not supported").await;
        };
        let wire = self.mind.manners.wire;
        if task.state().is_terminal() && wire == A2aWire::V1 {
            return self.error(UNSUPPORTED, "the task is over").await;
        }
        if matches!(self.mind.manners.streams, Streams::UnansweredAfter(_)) {
            return gave_up(self.socket, self.mind, "SubscribeToTask").await;
        }
        let number = self.mind.opened(&self.id);
        self.socket.write_all(STREAM.as_bytes()).await?;
        match self.mind.manners.streams {
            Streams::EmptyAfter(_) => return self.socket.write_all(END).await,
            Streams::DeafAfter(_) => return gave_up(self.socket, self.mind, "SubscribeToTask").await,
            // What is over has no stream any more.
            _ if task.state().is_terminal() => return self.socket.write_all(END).await,
            _ => {}
        }
        let mut from = task.events().len();
        let mut told = Told { number, written: 0 };
        if wire == A2aWire::V1 {
            self.event(&wire.first(&task)).await?;
            told.written = 1;
        } else {
            task.is_written_twice();
        }
        from = from.saturating_sub(self.mind.manners.repeats);
        if self.mind.manners.streams == Streams::CutEach {
            return self.socket.write_all(END).await;
        }
        self.tell(&task, from, told).await
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
        self.socket.write_all(END).await
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
        self.socket.write_all(END).await
    }
}

//! Streams of events, and what is wrong with them.

use std::io;

use serde_json::{Value, json};

use super::{INTERNAL, RpcExchange};
use crate::{
    a2a::{
        A2aWire, Streams, Tells, WorkStep,
        task::{Task, TaskEvent},
    },
    http::response::{EVENT_STREAM, LAST_CHUNK},
};

const UNSUPPORTED: i64 = -32004;
/// From this status on the work has begun when a message is answered with it.
const BEGUN: u16 = 500;

/// A stream, by its number, and how many events were written on it.
#[derive(Clone, Copy)]
struct Sent {
    number: usize,
    written: usize,
}

impl RpcExchange<'_> {
    pub(super) async fn send(&mut self, params: &Value) -> io::Result<()> {
        match self.mind.manners.streams {
            Streams::Garbage => return self.whole_stream(b"data: {\"result\": {\"tas\n\n").await,
            Streams::Binary => return self.whole_stream(b"data: \xff\xfe\xfd\n\n").await,
            Streams::Page => {
                return self.connection.respond("200 OK", "text/html", "<h1>please sign in</h1>").await;
            }
            Streams::Silent => {
                self.connection.write(EVENT_STREAM).await?;
                return self.mind.gave_up(self.connection, "SendStreamingMessage").await;
            }
            Streams::Huge(bytes) => return self.huge(bytes).await,
            Streams::Refused => return self.error(INTERNAL, "it went wrong").await,
            Streams::Status(status) => {
                if status >= BEGUN {
                    self.take(params);
                }
                let status = format!("{status} Odd");
                return self.connection.respond(&status, "text/html", "<h1>sorry</h1>").await;
            }
            Streams::NamedLate => {
                self.connection.write(EVENT_STREAM).await?;
                self.mind.names.pass().await;
            }
            // The others begin as they should.
            _ => {}
        }
        if self.mind.manners.tells == Tells::Message {
            let wire = self.mind.manners.wire;
            self.connection.write(EVENT_STREAM).await?;
            let said = self.mind.manners.plan.iter().filter_map(|step| match step {
                WorkStep::Say(text) => Some(text.as_str()),
                _ => None,
            });
            let text: String = said.collect();
            self.event(&wire.only(&text)).await?;
            return self.connection.write(LAST_CHUNK).await;
        }
        self.work(params).await
    }

    /// Begins or continues the work, and streams its task.
    async fn work(&mut self, params: &Value) -> io::Result<()> {
        let wire = self.mind.manners.wire;
        let is_new = params["message"]["taskId"].is_null();
        let number = self.mind.opened(&self.id);
        let task = self.take(params);
        if self.mind.manners.streams != Streams::NamedLate {
            self.connection.write(EVENT_STREAM).await?;
        }
        // An answer's stream begins where the task stands.
        let from = match self.mind.manners.streams {
            Streams::BeginAfter(events) => {
                task.has(events).await;
                events
            }
            _ if is_new => 0,
            _ => task.events().len(),
        };
        match self.mind.manners.tells {
            Tells::Status => self.event(&wire.echo(&task, &params["message"])).await?,
            _ => self.event(&wire.first(&task.after(from))).await?,
        }
        self.tell(&task, from, Sent { number, written: 1 }).await
    }

    /// Streams the task's events, from this one on.
    async fn tell(&mut self, task: &Task, mut from: usize, mut sent: Sent) -> io::Result<()> {
        let mut count = task.looks_on();
        loop {
            let events = task.events();
            for (at, event) in events.iter().enumerate().skip(from) {
                if self.cuts(sent) {
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
                if self.lags(sent) {
                    self.mind.names.pass().await;
                }
                if self.is_hushed(sent) {
                    return self.mind.gave_up(self.connection, "SendStreamingMessage").await;
                }
                let artifact = event.artifact();
                let before =
                    artifact.is_some() && events[..at].iter().any(|event| event.artifact() == artifact);
                self.event(&self.mind.manners.wire.event(task, event, before)).await?;
                if matches!((event, self.mind.manners.streams), (TaskEvent::Part { .. }, Streams::TellTwice))
                {
                    self.event(&self.mind.manners.wire.event(task, event, before)).await?;
                }
                sent.written += 1;
                if let TaskEvent::Status(state, _) = event
                    && state.ends_streams()
                {
                    return self.connection.write(LAST_CHUNK).await;
                }
            }
            from = events.len();
            tokio::select! {
                biased;
                // Events first: they are written before the client is looked at. Whichever loses has taken nothing: a
                // change is seen by the count, and bytes are in the buffer.
                changed = count.wait_for(|count| *count > from) => drop(changed),
                ended = self.mind.gave_up(self.connection, "SendStreamingMessage") => return ended,
            }
        }
    }

    /// Whether nothing more comes on this stream, which stays open.
    fn is_hushed(&self, sent: Sent) -> bool {
        match self.mind.manners.streams {
            Streams::HushAfter(events) => sent.number == 0 && sent.written >= events,
            _ => !self.mind.is_delivered(&self.id, sent.number),
        }
    }

    /// Whether this stream waits with its next event.
    fn lags(&self, sent: Sent) -> bool {
        self.mind.manners.streams == Streams::LagAfter(sent.written) && sent.number == 0
    }

    /// Whether the server cuts this stream after what it sent.
    fn cuts(&self, sent: Sent) -> bool {
        let cuts = match self.mind.manners.streams {
            Streams::CutAfter(events)
            | Streams::CutForGood(events)
            | Streams::EmptyAfter(events)
            | Streams::DeafAfter(events)
            | Streams::UnansweredAfter(events) => sent.number == 0 && sent.written >= events,
            Streams::CutAndGone | Streams::CutEach => true,
            _ => self.mind.manners.cuts.get(sent.number).is_some_and(|events| sent.written >= *events),
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
            return self.mind.gave_up(self.connection, "SubscribeToTask").await;
        }
        let number = self.mind.opened(&self.id);
        self.connection.write(EVENT_STREAM).await?;
        match self.mind.manners.streams {
            Streams::EmptyAfter(_) => return self.connection.write(LAST_CHUNK).await,
            Streams::DeafAfter(_) => return self.mind.gave_up(self.connection, "SubscribeToTask").await,
            // What is over has no stream any more.
            _ if task.state().is_terminal() => return self.connection.write(LAST_CHUNK).await,
            _ => {}
        }
        let mut from = task.events().len();
        let mut sent = Sent { number, written: 0 };
        if wire == A2aWire::V1 {
            self.event(&wire.first(&task)).await?;
            sent.written = 1;
        } else {
            task.is_written_twice();
        }
        from = from.saturating_sub(self.mind.manners.repeats);
        if self.mind.manners.streams == Streams::CutEach {
            return self.connection.write(LAST_CHUNK).await;
        }
        self.tell(&task, from, sent).await
    }

    async fn event(&mut self, result: &Value) -> io::Result<()> {
        let event = json!({"jsonrpc": "2.0", "id": self.id, "result": result});
        self.connection.chunk(format!("data: {event}\r\n\r\n").as_bytes()).await
    }

    async fn whole_stream(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.connection.write(EVENT_STREAM).await?;
        self.connection.chunk(bytes).await?;
        self.connection.write(LAST_CHUNK).await
    }

    async fn huge(&mut self, bytes: usize) -> io::Result<()> {
        const PIECE: usize = 1 << 16;
        self.connection.write(EVENT_STREAM).await?;
        self.connection.chunk(b"data: {\"result\": \"").await?;
        let piece = [b'x'; PIECE];
        let mut left = bytes;
        while left > 0 {
            self.connection.chunk(&piece[..left.min(PIECE)]).await?;
            left = left.saturating_sub(PIECE);
        }
        self.connection.chunk(b"\"}\n\n").await?;
        self.connection.write(LAST_CHUNK).await
    }
}

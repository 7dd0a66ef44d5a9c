//! One connection: requests read, answered step by step, and its peer watched all the while.

use std::{io, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::watch,
    time::{Instant, sleep},
};

use super::{
    exchange::Fate,
    http::{Incoming, ServedWire, read},
    render::{self, Step},
    shared::{Answer, Noted, Shared},
};

/// Serves until either side closes.
pub(super) async fn serve(mut socket: TcpStream, shared: &Shared) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut buffer = Vec::new();
    let mut answered: Option<Noted> = None;
    loop {
        let incoming = read(&mut socket, &mut buffer).await;
        if let (Some(noted), Ok(Incoming::End) | Err(_)) = (&answered, &incoming) {
            noted.peer_closed(shared);
        }
        let request = match incoming? {
            Incoming::End => return Ok(()),
            Incoming::Unknown { method, path } => {
                let why = format!("Unknown request URL: {method} {path}.");
                refuse(&mut socket, 404, &openai_error(&why, "unknown_url")).await?;
                continue;
            }
            Incoming::Kept(ask, by) => {
                socket.write_all(&shared.kept(&ask, by.as_deref())).await?;
                continue;
            }
            Incoming::Request(request) => request,
        };
        let wire = request.wire;
        let (noted, answer) = match shared.take(request) {
            Ok(taken) => taken,
            Err(error) => {
                refuse(&mut socket, 400, &not_json(wire, &error)).await?;
                continue;
            }
        };
        let mut line = Line { socket: &mut socket, buffer: &mut buffer, noted, shared };
        match line.answer(answer).await? {
            Next::Request => answered = Some(line.noted),
            Next::Close => return Ok(()),
        }
    }
}

async fn refuse(socket: &mut TcpStream, status: u16, body: &Value) -> io::Result<()> {
    socket.write_all(&render::json(status, body)).await
}

fn openai_error(message: &str, code: &str) -> Value {
    json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": code}})
}

/// What each provider says of a body that is not JSON.
fn not_json(wire: ServedWire, error: &serde_json::Error) -> Value {
    match wire {
        ServedWire::OpenAi | ServedWire::Responses => openai_error(
            &format!("We could not parse the JSON body of your request: {error}."),
            "invalid_json",
        ),
        ServedWire::Gemini => json!({"error": {"code": 400, "status": "INVALID_ARGUMENT",
            "message": format!("Invalid JSON payload received. {error}")}}),
        ServedWire::Anthropic => json!({"type": "error", "error": {"type": "invalid_request_error",
            "message": format!("The request body is not valid JSON: {error}")}}),
    }
}

impl Noted {
    fn peer_closed(&self, shared: &Shared) {
        self.fate.send_modify(|fate| {
            fate.peer_closed.get_or_insert_with(Instant::now);
        });
        let answered = self.fate.borrow().completed.is_some();
        shared.tell(|| json!({"type": "peer_closed", "id": self.id, "answered": answered}));
    }

    /// The first byte of an answer with this status is written.
    fn sent(&self, status: u16, shared: &Shared) {
        self.fate.send_modify(|fate| {
            fate.status = status;
            fate.first_byte = Some(Instant::now());
        });
        shared.tell(|| json!({"type": "sent", "id": self.id, "status": status}));
    }

    fn completed(&self, shared: &Shared) {
        self.fate.send_modify(|fate| fate.completed = Some(Instant::now()));
        shared.tell(|| json!({"type": "completed", "id": self.id}));
    }
}

/// What follows an answer.
enum Next {
    Request,
    Close,
}

/// A connection while it answers one request.
struct Line<'c> {
    socket: &'c mut TcpStream,
    buffer: &'c mut Vec<u8>,
    noted: Noted,
    shared: &'c Shared,
}

impl Line<'_> {
    async fn answer(&mut self, answer: Answer) -> io::Result<Next> {
        match answer {
            Answer::Steps(steps) => {
                for step in steps {
                    if let Some(next) = self.step(step).await? {
                        return Ok(next);
                    }
                }
                Ok(Next::Request)
            }
            Answer::Gated(mut gate) => {
                gate.arrived(self.noted.id);
                loop {
                    let step = tokio::select! {
                        biased;
                        // Losing this branch loses nothing: the step stays in the channel.
                        step = gate.next() => step,
                        // Losing this one loses nothing: what was read is in the buffer.
                        () = closed(self.socket, self.buffer, &self.noted.fate) => {
                            self.noted.peer_closed(self.shared);
                            return Ok(Next::Close);
                        }
                    };
                    // A gate that was dropped closes the connection.
                    if let Some(next) = self.step(step.unwrap_or(Step::Close)).await? {
                        return Ok(next);
                    }
                }
            }
        }
    }

    /// Does one step; says what follows when it was the last.
    async fn step(&mut self, step: Step) -> io::Result<Option<Next>> {
        match step {
            Step::Head(status, bytes) => {
                let written = self.write(&bytes).await;
                if written.is_none() {
                    self.noted.sent(status, self.shared);
                }
                Ok(written)
            }
            Step::Write(bytes) => Ok(self.write(&bytes).await),
            Step::Pause(time) => Ok(self.watched(Some(time)).await),
            Step::Silence => Ok(self.watched(None).await),
            Step::Close => Ok(Some(Next::Close)),
            Step::Reset => {
                self.socket.set_zero_linger()?;
                Ok(Some(Next::Close))
            }
            Step::Whole(status, bytes) => {
                let written = self.write(&bytes).await;
                if written.is_none() {
                    self.noted.sent(status, self.shared);
                    self.noted.completed(self.shared);
                }
                Ok(Some(written.unwrap_or(Next::Request)))
            }
            Step::Finish(bytes) => {
                let written = self.write(&bytes).await;
                if written.is_none() {
                    self.noted.completed(self.shared);
                }
                Ok(Some(written.unwrap_or(Next::Request)))
            }
        }
    }

    /// A write that fails is a peer that closed.
    async fn write(&mut self, bytes: &[u8]) -> Option<Next> {
        if self.socket.write_all(bytes).await.is_ok() {
            return None;
        }
        self.noted.peer_closed(self.shared);
        Some(Next::Close)
    }

    /// Waits, for ever if no time is given, with an eye on the peer.
    async fn watched(&mut self, time: Option<Duration>) -> Option<Next> {
        let over = async {
            match time {
                Some(time) => sleep(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            // Losing this branch loses nothing: what was read is in the buffer.
            () = closed(self.socket, self.buffer, &self.noted.fate) => {
                self.noted.peer_closed(self.shared);
                Some(Next::Close)
            }
            // Losing this one loses a timer.
            () = over => None,
        }
    }
}

/// Resolves when the peer has closed its side; anything it sends meanwhile is counted.
async fn closed(socket: &mut TcpStream, buffer: &mut Vec<u8>, fate: &watch::Sender<Fate>) {
    loop {
        match socket.read_buf(buffer).await {
            Ok(0) | Err(_) => return,
            Ok(bytes) => fate.send_modify(|fate| fate.bytes_after += bytes),
        }
    }
}

//! One connection: requests read, answered step by step, and its peer watched all the while.

use std::{io, time::Duration};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    render::{self, WireStep},
    route::{self, Route, ServedWire, WireRequest},
    shared::{Noted, ServerAnswer, Shared},
};
use crate::http::{Connection, Request};

/// How a request is noted and answered.
type Take = fn(&Shared, WireRequest) -> Result<(Noted, ServerAnswer), serde_json::Error>;

/// Serves until either side closes.
pub(super) async fn serve(mut connection: Connection, shared: &Shared) -> io::Result<()> {
    let mut answered: Option<Noted> = None;
    loop {
        let request = connection.request().await;
        if let (Some(noted), Ok(None) | Err(_)) = (&answered, &request) {
            noted.peer_closed(shared);
        }
        let Some(request) = request? else { return Ok(()) };
        let request = match Route::of(request) {
            Route::Unknown(Request { method, path, .. }) => {
                let why = format!("Unknown request URL: {method} {path}.");
                refuse(&mut connection, 404, &openai_error(&why, "unknown_url")).await?;
                continue;
            }
            Route::Kept(ask, by) => {
                connection.write(&shared.kept(&ask, by.as_deref())).await?;
                continue;
            }
            Route::Models(wire) => {
                connection.write(&render::json(200, &route::models(wire))).await?;
                continue;
            }
            Route::Wire(request) => (request, Shared::take as Take),
            Route::Embeddings(request) => (request, Shared::take_embeddings as Take),
        };
        let (request, take) = request;
        let wire = request.wire;
        let (noted, answer) = match take(shared, request) {
            Ok(taken) => taken,
            Err(error) => {
                refuse(&mut connection, 400, &not_json(wire, &error)).await?;
                continue;
            }
        };
        let mut line = Answering { connection: &mut connection, noted, shared };
        match line.answer(answer).await? {
            Next::Request => answered = Some(line.noted),
            Next::Close => return Ok(()),
        }
    }
}

async fn refuse(connection: &mut Connection, status: u16, body: &Value) -> io::Result<()> {
    connection.write(&render::json(status, body)).await
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
struct Answering<'c> {
    connection: &'c mut Connection,
    noted: Noted,
    shared: &'c Shared,
}

impl Answering<'_> {
    async fn answer(&mut self, answer: ServerAnswer) -> io::Result<Next> {
        match answer {
            ServerAnswer::Steps(steps) => {
                for step in steps {
                    if let Some(next) = self.step(step).await? {
                        return Ok(next);
                    }
                }
                Ok(Next::Request)
            }
            ServerAnswer::Gated(mut gate) => {
                gate.arrived(self.noted.id);
                loop {
                    let step = tokio::select! {
                        biased;
                        // First: a step that the test gave is taken before the end of the peer is seen. Losing this
                        // branch loses nothing: the step stays in the channel.
                        step = gate.next() => step,
                        // Losing this one loses nothing: what was read is in the buffer.
                        () = closed(self.connection, &self.noted) => {
                            self.noted.peer_closed(self.shared);
                            return Ok(Next::Close);
                        }
                    };
                    // A gate that was dropped closes the connection.
                    if let Some(next) = self.step(step.unwrap_or(WireStep::Close)).await? {
                        return Ok(next);
                    }
                }
            }
        }
    }

    /// Does one step; says what follows when it was the last.
    async fn step(&mut self, step: WireStep) -> io::Result<Option<Next>> {
        let (bytes, status, is_last) = match &step {
            WireStep::Head(status, bytes) => (&bytes[..], Some(*status), false),
            WireStep::Write(bytes) => (&bytes[..], None, false),
            WireStep::Whole(status, bytes) => (&bytes[..], Some(*status), true),
            WireStep::Finish(bytes) => (&bytes[..], None, true),
            WireStep::Pause(time) => return Ok(self.watched(Some(*time)).await),
            WireStep::Silence => return Ok(self.watched(None).await),
            WireStep::Close => return Ok(Some(Next::Close)),
            WireStep::Reset => {
                self.connection.reset_on_drop()?;
                return Ok(Some(Next::Close));
            }
        };
        // A write that fails is a peer that closed.
        if self.connection.write(bytes).await.is_err() {
            self.noted.peer_closed(self.shared);
            return Ok(Some(Next::Close));
        }
        if let Some(status) = status {
            self.noted.sent(status, self.shared);
        }
        if is_last {
            self.noted.completed(self.shared);
        }
        Ok(is_last.then_some(Next::Request))
    }

    /// Waits, without limit if no time is given, and watches the peer.
    async fn watched(&mut self, time: Option<Duration>) -> Option<Next> {
        let over = async {
            match time {
                Some(time) => sleep(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            // First: a peer that has gone is noted, also at the end of the time. Losing this branch loses nothing: what was
            // read is in the buffer.
            () = closed(self.connection, &self.noted) => {
                self.noted.peer_closed(self.shared);
                Some(Next::Close)
            }
            // Losing this one loses a timer.
            () = over => None,
        }
    }
}

/// Resolves when the peer has closed its side; anything it sends meanwhile is counted.
async fn closed(connection: &mut Connection, noted: &Noted) {
    connection.closed_counting(|bytes| noted.fate.send_modify(|fate| fate.bytes_after += bytes)).await;
}

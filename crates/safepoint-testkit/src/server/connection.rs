//! One connection: requests read, answered step by step, and its peer watched all the while.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::watch,
    time::{Instant, sleep},
};

use super::{
    Answer, Fate, Shared,
    http::{Incoming, Wire, read},
    render::{self, Step},
};

/// Serves until either side closes.
pub(super) async fn serve(mut socket: TcpStream, shared: &Shared) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut buffer = Vec::new();
    loop {
        match read(&mut socket, &mut buffer).await? {
            Incoming::End => return Ok(()),
            Incoming::Unknown(path) => {
                let body = serde_json::json!({"error": {"message": format!("Unknown request URL: POST {path}."),
                    "type": "invalid_request_error", "param": null, "code": "unknown_url"}});
                socket.write_all(&render::whole(404, &body)).await?;
            }
            Incoming::NotJson => {
                let body = serde_json::json!({"error": {"message": "We could not parse the JSON body of your request.",
                    "type": "invalid_request_error", "param": null, "code": null}});
                socket.write_all(&render::whole(400, &body)).await?;
            }
            Incoming::Request(request) => {
                let wire = request.wire;
                let (id, fate, body) = shared.arrived(request);
                let line = Line { socket: &mut socket, buffer: &mut buffer, fate, shared, id };
                match line.answer(shared.answer(wire, &body), wire).await? {
                    Next::Request => {}
                    Next::Close => return Ok(()),
                }
            }
        }
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
    fate: watch::Sender<Fate>,
    shared: &'c Shared,
    id: usize,
}

impl Line<'_> {
    async fn answer(mut self, answer: Answer, wire: Wire) -> io::Result<Next> {
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
                gate.arrived(self.id, wire);
                loop {
                    let step = tokio::select! {
                        biased;
                        // Losing this branch loses nothing: the step stays in the channel.
                        step = gate.next() => step,
                        // Losing this one loses nothing: what was read is in the buffer.
                        () = closed(self.socket, self.buffer, &self.fate) => {
                            self.tell_closed();
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
            Step::Write(bytes) => self.write(&bytes).await,
            Step::Head(status, bytes) => {
                self.fate.send_modify(|fate| fate.status = status);
                self.write(&bytes).await
            }
            Step::Pause(time) => self.watched(Some(time)).await,
            Step::Silence => self.watched(None).await,
            Step::Close => Ok(Some(Next::Close)),
            Step::Reset => {
                self.socket.set_zero_linger()?;
                Ok(Some(Next::Close))
            }
            Step::Finish(bytes) => {
                if let Some(next) = self.write(&bytes).await? {
                    return Ok(Some(next));
                }
                self.fate.send_modify(|fate| fate.completed = Some(Instant::now()));
                self.shared.tell(|| serde_json::json!({"type": "completed", "id": self.id}));
                Ok(Some(Next::Request))
            }
        }
    }

    /// A write that fails is a peer that closed.
    async fn write(&mut self, bytes: &[u8]) -> io::Result<Option<Next>> {
        if self.socket.write_all(bytes).await.is_ok() {
            return Ok(None);
        }
        self.fate.send_modify(|fate| {
            fate.peer_closed.get_or_insert_with(Instant::now);
        });
        self.tell_closed();
        Ok(Some(Next::Close))
    }

    /// Waits, for ever if no time is given, with an eye on the peer.
    async fn watched(&mut self, time: Option<Duration>) -> io::Result<Option<Next>> {
        let over = async {
            match time {
                Some(time) => sleep(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            // Losing this branch loses nothing: what was read is in the buffer.
            () = closed(self.socket, self.buffer, &self.fate) => {
                self.tell_closed();
                Ok(Some(Next::Close))
            }
            // Losing this one loses a timer.
            () = over => Ok(None),
        }
    }

    fn tell_closed(&self) {
        self.shared.tell(|| serde_json::json!({"type": "peer_closed", "id": self.id}));
    }
}

/// Resolves when the peer has closed its side, and notes when; anything it sends meanwhile is counted.
async fn closed(socket: &mut TcpStream, buffer: &mut Vec<u8>, fate: &watch::Sender<Fate>) {
    loop {
        match socket.read_buf(buffer).await {
            Ok(0) | Err(_) => break,
            Ok(bytes) => fate.send_modify(|fate| fate.bytes_after += bytes),
        }
    }
    fate.send_modify(|fate| {
        fate.peer_closed.get_or_insert_with(Instant::now);
    });
}

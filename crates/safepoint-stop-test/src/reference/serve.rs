//! The agent as a server on the port in `$PORT`: OpenAI's Responses at `/v1`, and `/chat`, an endpoint of no protocol that streams lines.
//!
//! The Responses are written by the API's reference: `response.created`, and a last event whose response has a status; a cancel answers
//! with the response. They were checked by the same door against `safepoint serve`, which OpenAI's own client drives in that server's tests.

use std::{
    cell::Cell,
    env,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use serde_json::{Value, json};

use crate::{Manner, agent::Agent, stop};

/// The server.
struct ServedAgent {
    agent: Arc<Agent>,
    manner: Manner,
    /// What it has streamed. Held for one look or one change; no other lock is taken under it.
    answers: Mutex<ServedAnswers>,
}

#[derive(Default)]
struct ServedAnswers {
    /// How many there were.
    count: usize,
    /// The conversation at `/chat`.
    thread: Value,
    now: Option<Streamed>,
}

/// The answer that is streamed now.
struct Streamed {
    number: usize,
    to: TcpStream,
    wire: Wire,
    /// It continues without a reader.
    is_background: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wire {
    Responses,
    Lines,
}

/// Serves until the process is ended.
pub(crate) fn serve(agent: &Arc<Agent>, manner: Manner) {
    let port = env::var("PORT").ok().and_then(|port| port.parse::<u16>().ok());
    let bound = port.and_then(|port| TcpListener::bind(("127.0.0.1", port)).ok());
    let Some(listener) = bound else {
        eprintln!("`$PORT` is no port that is free");
        return;
    };
    let server = Arc::new(ServedAgent { agent: Arc::clone(agent), manner, answers: Mutex::default() });
    for connection in listener.incoming().map_while(Result::ok) {
        let server = Arc::clone(&server);
        drop(thread::spawn(move || server.answer(connection)));
    }
}

impl ServedAgent {
    fn answers(&self) -> MutexGuard<'_, ServedAnswers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(self: Arc<Self>, mut connection: TcpStream) {
        let Some((path, body)) = asked(&connection) else { return };
        match path.as_str() {
            "/v1/models" => reply(&mut connection, "200 OK", &json!({"data": [{"id": "reference"}]})),
            "/v1/responses" => {
                let id = &body["previous_response_id"];
                let is_same = *id == json!(response_id(self.answers().count));
                self.stream(connection, (Wire::Responses, is_same), &body);
            }
            "/chat" => {
                let is_same =
                    std::mem::replace(&mut self.answers().thread, body["thread"].clone()) == body["thread"];
                self.stream(connection, (Wire::Lines, is_same), &body);
            }
            path if path.ends_with("/cancel") => self.cancel(connection),
            path if path.ends_with("/cancel-later") => {
                reply(&mut connection, "202 Accepted", &json!({}));
                let number = self.answers().count;
                stop(&self.agent, self.manner, &|_, _| self.end(number, None));
            }
            _ => reply(&mut connection, "404 Not Found", &json!({"error": "there is no such path"})),
        }
    }

    /// Answers a message, in a new conversation or in the same one.
    fn stream(self: Arc<Self>, mut connection: TcpStream, (wire, is_same): (Wire, bool), body: &Value) {
        if !is_same {
            self.agent.forget();
        }
        let text = [&body["input"], &body["message"]].into_iter().find_map(Value::as_str);
        let turn = self.agent.begin(text.unwrap_or_default());
        let (Ok(to), Ok(reader)) = (connection.try_clone(), connection.try_clone()) else { return };
        let number = {
            let mut answers = self.answers();
            answers.count += 1;
            let number = answers.count;
            let is_background = body["background"] == true;
            answers.now = Some(Streamed { number, to, wire, is_background });
            number
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\nx-run-id: {number}\r\n\r\n"
        );
        let first = match wire {
            Wire::Responses => event("response.created", &response(number, "in_progress", &[])),
            Wire::Lines => format!("{}\n", json!({"run": {"id": number}})),
        };
        write(&mut connection, &(head + &first));
        let server = Arc::clone(&self);
        drop(thread::spawn(move || server.watch(reader, number)));
        match self.agent.finish(turn) {
            Some(true) => self.end(number, Some(("completed", &[]))),
            Some(false) => self.end(number, Some(("failed", &[]))),
            // What has stopped it says so.
            None => {}
        }
    }

    /// Waits until the reader is gone: a stop, but in the background.
    fn watch(&self, mut reader: TcpStream, number: usize) {
        while matches!(reader.read(&mut [0; 64]), Ok(1..)) {}
        let is_stop =
            self.answers().now.as_ref().is_some_and(|now| now.number == number && !now.is_background);
        if is_stop {
            stop(&self.agent, self.manner, &|_, _| {});
        }
    }

    fn cancel(&self, mut connection: TcpStream) {
        let (number, wire) = {
            let answers = self.answers();
            (answers.count, answers.now.as_ref().map_or(Wire::Lines, |now| now.wire))
        };
        let is_answered = Cell::new(false);
        stop(&self.agent, self.manner, &|says, running| {
            is_answered.set(true);
            let mut status = "cancelled";
            if wire == Wire::Responses {
                // Two say less by the answer: one says it by the stream, and one by nothing but the stream's end.
                if matches!(self.manner, Manner::SaysSo | Manner::LetsGo) {
                    status = "in_progress";
                }
                self.end(number, (says == "stopped").then_some(("cancelled", running)));
            }
            let Ok(mut connection) = connection.try_clone() else { return };
            reply(&mut connection, "200 OK", &response(number, status, running));
        });
        match self.manner {
            _ if is_answered.get() => {}
            Manner::Hangs => loop {
                thread::park();
            },
            Manner::GoesOn => reply(&mut connection, "200 OK", &response(number, "in_progress", &[])),
            _ => reply(&mut connection, "400 Bad Request", &json!({"error": "there is nothing to cancel"})),
        }
    }

    /// Ends the answer of this number, with this status; or without a word.
    fn end(&self, number: usize, last: Option<(&str, &[String])>) {
        let Some(mut now) = self.answers().now.take_if(|now| now.number == number) else { return };
        if let (Some((status, running)), Wire::Responses) = (last, now.wire) {
            let kind = if status == "cancelled" { "incomplete" } else { status };
            write(&mut now.to, &event(&format!("response.{kind}"), &response(number, status, running)));
        }
        if now.to.shutdown(Shutdown::Both).is_err() {
            // Its reader has closed it.
        }
    }
}

fn response_id(number: usize) -> String {
    format!("resp_{number}")
}

fn response(number: usize, status: &str, running: &[String]) -> Value {
    json!({
        "id": response_id(number), "object": "response", "status": status, "metadata": {"running": running.join(", ")},
    })
}

fn event(kind: &str, response: &Value) -> String {
    format!("event: {kind}\ndata: {}\n\n", json!({"type": kind, "response": response}))
}

/// The path and the body of a request.
fn asked(connection: &TcpStream) -> Option<(String, Value)> {
    let mut reader = BufReader::new(connection.try_clone().ok()?);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((path, serde_json::from_slice(&body).unwrap_or_default()))
}

fn reply(connection: &mut TcpStream, status: &str, body: &Value) {
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    write(connection, &(head + &body));
}

fn write(connection: &mut TcpStream, text: &str) {
    if connection.write_all(text.as_bytes()).is_err() {
        // Its reader is gone, which the watcher sees.
    }
}

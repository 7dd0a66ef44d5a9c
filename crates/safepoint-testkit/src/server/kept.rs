//! Responses in the background: kept when their peer goes, read on from any event, called off by id.
//!
//! It is only for those who show the same authorization as the request that made it.
//!
//! **Invariants**: a kept response has all its events from the start, whatever became of the stream that asked for it.

use std::collections::HashMap;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    ask::{Ask, What},
    exchange::Fate,
    render,
};

#[derive(Debug, Default)]
pub(super) struct KeptResponses {
    responses: HashMap<String, Response>,
    asked: Vec<Ask>,
}

#[derive(Debug)]
struct Response {
    events: Vec<Vec<u8>>,
    fate: watch::Receiver<Fate>,
    state: KeptState,
    by: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeptState {
    Running,
    Completed,
    Cancelled,
}

impl KeptResponses {
    /// Keeps a response, by the id that its first event names.
    pub(super) fn keep(&mut self, events: Vec<Vec<u8>>, fate: watch::Receiver<Fate>, by: Option<String>) {
        let id = events.first().and_then(|event| id_of(event));
        let response = Response { events, fate, state: KeptState::Running, by };
        if self.responses.insert(id.unwrap_or_default(), response).is_some() {
            unreachable!("each kept response has its own id");
        }
    }

    pub(super) fn asked(&self) -> Vec<Ask> {
        self.asked.clone()
    }

    pub(super) fn answer(&mut self, ask: &Ask, by: Option<&str>) -> Vec<u8> {
        self.asked.push(ask.clone());
        let id = &ask.response;
        let Some(response) = self.responses.get_mut(id) else {
            return refused(404, &format!("Response with id '{id}' not found."));
        };
        if response.by.as_deref() != by {
            return refused(401, "Incorrect API key provided.");
        }
        if response.state == KeptState::Running && response.fate.borrow().completed.is_some() {
            response.state = KeptState::Completed;
        }
        match ask.what {
            What::Cancel => response.cancel(id),
            What::Rest { after } => response.rest(id, after),
        }
    }
}

impl Response {
    /// A second cancel changes nothing, nor does one after the end.
    fn cancel(&mut self, id: &str) -> Vec<u8> {
        if self.state == KeptState::Running {
            self.state = KeptState::Cancelled;
        }
        let status = if self.state == KeptState::Completed { "completed" } else { "cancelled" };
        render::json(200, &json!({"id": id, "object": "response", "status": status, "background": true}))
    }

    fn rest(&mut self, id: &str, after: Option<usize>) -> Vec<u8> {
        if self.state == KeptState::Cancelled {
            let event = json!({"type": "response.cancelled", "sequence_number": self.events.len(),
                "response": {"id": id, "object": "response", "status": "cancelled"}});
            return render::stream(&[render::named(&event)]);
        }
        self.state = KeptState::Completed;
        let from = after.map_or(0, |after| after + 1).min(self.events.len());
        render::stream(&self.events[from..])
    }
}

fn refused(status: u16, message: &str) -> Vec<u8> {
    let error = json!({"message": message, "type": "invalid_request_error", "param": null, "code": null});
    render::json(status, &json!({ "error": error }))
}

fn id_of(event: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(event).ok()?;
    let data = text.lines().find_map(|line| line.strip_prefix("data: "))?;
    let event: Value = serde_json::from_str(data).ok()?;
    event["response"]["id"].as_str().map(ToOwned::to_owned)
}

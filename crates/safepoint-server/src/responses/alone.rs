//! A response that is not kept: one run, which the client holds. It is stopped when the client is gone (S13.3).

use axum::{http::StatusCode, response::Response};
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use jiff::Timestamp;
use safepoint::ids::RunId;
use serde_json::{Value, json};

use super::{
    event::{Numbered, ResponseEvent},
    fold::Fold,
    id::ResponsePart,
    object::{ResponseError, ResponseHead},
    request::AnswerForm,
    stream::frame,
};
use crate::{
    caller::alone::AloneRun,
    follow::ShownEvent,
    host::setup::EarlierMessage,
    problem::{Answered, Problem},
    routes::{Call, json},
    sse,
};

/// A response and the run that makes it.
struct AloneResponse {
    head: ResponseHead,
    fold: Fold,
    run: AloneRun,
    error: Option<ResponseError>,
    is_begun: bool,
}

/// # Errors
/// `blank`, and `no_such_agent`.
///
/// # Cancel safety
/// The run is stopped.
pub(super) async fn create(
    call: &Call,
    agent: &str,
    (earlier, text): (Vec<EarlierMessage>, String),
    answer: AnswerForm,
) -> Answered<Response> {
    let run = call.by.run_alone(agent, (&earlier, text))?;
    let name = RunId::fresh().to_string();
    let head = ResponseHead {
        id: format!("resp_{name}"),
        agent: agent.to_owned(),
        created: Timestamp::now().as_second(),
        kept: None,
    };
    let fold = Fold::of(&name, agent, ResponsePart::Item(1), None).without_questions();
    let mut response = AloneResponse { head, fold, run, error: None, is_begun: false };
    if answer == AnswerForm::Stream {
        let pieces = stream::unfold(response, |mut all| async move { Some((all.piece().await?, all)) });
        return Ok(sse::streamed(pieces));
    }
    while let Some(event) = response.run.next().await {
        drop(response.step(&event));
    }
    if !response.fold.facts.status.is_over() {
        return Err(Problem::draining());
    }
    json(StatusCode::OK, &response.object())
}

impl AloneResponse {
    fn step(&mut self, event: &ShownEvent) -> Vec<Numbered> {
        let error = &event.data["error"];
        if event.kind == "turn_ended"
            && let (Some(code), Some(message)) = (error["code"].as_str(), error["message"].as_str())
        {
            self.error = Some(ResponseError { code: code.to_owned(), message: message.to_owned() });
        }
        self.fold.step(event)
    }

    fn object(&self) -> Value {
        self.head.object(&self.fold, self.error.as_ref())
    }

    async fn piece(&mut self) -> Option<Bytes> {
        let mut events = Vec::new();
        if !std::mem::replace(&mut self.is_begun, true) {
            events = self.fold.begin();
        }
        while events.is_empty() {
            let event = self.run.next().await?;
            events = self.step(&event);
        }
        let mut piece = BytesMut::new();
        for Numbered { number, event } in events {
            let event = match event {
                ResponseEvent::Output(event) => event,
                ResponseEvent::Whole(kind) => json!({"type": kind, "response": self.object()}),
            };
            piece.extend_from_slice(frame(number, event).as_bytes());
        }
        Some(piece.freeze())
    }
}

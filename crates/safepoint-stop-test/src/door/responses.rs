//! A server of OpenAI's Responses: the command starts it, on the port in `$PORT`.
//!
//! The API is found at `/v1` or at `/openai/v1`, where its models are listed, and the first of these is asked. A server that lists none
//! is asked at `/v1`, for the model `stop-test`.

use std::collections::BTreeSet;

use futures_util::future::BoxFuture;
use http::Method;
use serde_json::{Value, json};
use tokio::time::timeout;
use url::Url;

use super::{
    FIRST, NEXT, Started, Told,
    http::{Headers, answered, get, request},
    no_such_way,
    server::{PATIENCE, ServerProcess},
    turn::{Heard, ServedTurn, TurnReader},
};
use crate::{
    claims::Said,
    stage::{StageError, TrialStage},
};

/// `cancel` as the API has it, for a response in the background. Where a recipe says so, also the connection of a stream closed that is
/// not in the background, as by a client that is gone.
pub(super) const WAYS: [&str; 1] = [CANCEL];
const CANCEL: &str = "cancel";
const GONE: &str = "reader-gone";

/// Where servers have the API, below their address.
const PLACES: [&str; 2] = ["v1/", "openai/v1/"];
/// What is asked where no model is listed.
const MODEL: &str = "stop-test";

/// A server that answers.
pub(super) struct Responses {
    server: ServerProcess,
    /// Where its API is, with a slash at its end.
    base: Url,
    model: String,
    headers: Vec<(String, String)>,
    /// A response that is cancelled is one in the background: the API has it so.
    is_background: bool,
    turn: ServedTurn,
    seen: SeenResponse,
}

/// What its stream said.
#[derive(Default)]
struct SeenResponse {
    id: Option<String>,
    /// What the server says beyond the protocol: there is where work that is left can be named.
    beyond: BTreeSet<String>,
    refusal: String,
}

impl Responses {
    pub(super) async fn start(
        (line, way): (&str, &str),
        stage: &TrialStage,
        headers: &Headers,
    ) -> Result<Self, StageError> {
        let mut server = ServerProcess::start(line, stage)?;
        server.listens().await?;
        let (base, model) = api(&server.address(), headers).await?;
        let mut responses = Self {
            server,
            base,
            model,
            headers: headers.to_vec(),
            is_background: way != GONE,
            turn: ServedTurn::default(),
            seen: SeenResponse::default(),
        };
        responses.send(FIRST).map_err(StageError::NotStarted)?;
        Ok(responses)
    }

    /// Asks this, behind the response before it. A response that can be cancelled is one that the server keeps, so its id is all that
    /// the next message needs; a server that keeps nothing is one for the door `http`.
    fn send(&mut self, text: &str) -> Result<(), String> {
        let mut body =
            json!({"model": self.model, "input": text, "stream": true, "background": self.is_background});
        if let Some(id) = &self.seen.id {
            body["previous_response_id"] = json!(id);
        }
        let address = self.base.join("responses").expect("it is a path");
        let request = request((&Method::POST, &address), &self.headers, body.to_string())?;
        self.seen = SeenResponse::default();
        self.turn = ServedTurn::begin(request);
        Ok(())
    }
}

/// Where the API is, and which model is asked.
async fn api(address: &Url, headers: &Headers) -> Result<(Url, String), StageError> {
    for place in PLACES {
        let base = address.join(place).expect("it is a path");
        let list = base.join("models").expect("it is a path");
        match timeout(PATIENCE, get(&list, headers)).await {
            Ok(Ok(models)) => {
                let model = models["data"][0]["id"].as_str().unwrap_or(MODEL);
                return Ok((base, model.to_owned()));
            }
            Ok(Err(error)) if error.contains("answered 401") || error.contains("answered 403") => {
                return Err(StageError::NotStarted(format!("{error}; say `--header`")));
            }
            // It has no such list there.
            Ok(Err(_)) => {}
            Err(_elapsed) => {
                return Err(StageError::NotStarted("it listens, and answers nothing".to_owned()));
            }
        }
    }
    Ok((address.join(PLACES[0]).expect("it is a path"), MODEL.to_owned()))
}

impl TurnReader for SeenResponse {
    fn read(&mut self, heard: Heard) -> Option<Told> {
        let event = match heard {
            Heard::Begun(_) => return None,
            Heard::Event(event) => event,
            // Of a stream without a last event nothing is known.
            Heard::Whole | Heard::Cut => return Some(Told::now(Said::Nothing)),
            Heard::Refused(words) => {
                self.refusal = words;
                return Some(Told::now(Said::Failed));
            }
        };
        if event["type"] == "error" {
            self.refusal = event.to_string();
            return Some(Told::now(Said::Failed));
        }
        let response = &event["response"];
        self.id = self.id.take().or_else(|| Some(response["id"].as_str()?.to_owned()));
        self.beyond.extend(beyond(response));
        end(response).map(Told::now)
    }
}

impl Started for Responses {
    fn stop<'a>(&'a mut self, way: &'a str) -> BoxFuture<'a, Result<(), StageError>> {
        Box::pin(async move {
            self.seen.beyond.clear();
            match way {
                GONE => self.turn.close(),
                CANCEL => {
                    let named = self.turn.read_until(&mut self.seen, |seen| seen.id.is_some());
                    if timeout(PATIENCE, named).await.is_err() {
                        // Then there is no id, as in a stream that is over.
                    }
                    let why = "its stream names no response, and without one nothing can be cancelled";
                    let id = self.seen.id.clone().ok_or_else(|| StageError::NotExpressed(why.to_owned()))?;
                    let address = self.base.join(&format!("responses/{id}/cancel"));
                    let address =
                        address.map_err(|error| StageError::NotExpressed(format!("`{id}`: {error}")))?;
                    let headers = self.headers.clone();
                    self.turn.cancel(async move { cancelled(&address, &headers).await });
                }
                way => return Err(no_such_way(way)),
            }
            Ok(())
        })
    }

    fn told(&mut self) -> BoxFuture<'_, Told> {
        Box::pin(async move {
            let mut told = self.turn.told(&mut self.seen).await;
            told.named.extend(self.seen.beyond.iter().cloned());
            told
        })
    }

    fn next(&mut self) -> BoxFuture<'_, Result<bool, String>> {
        Box::pin(async move {
            self.send(NEXT)?;
            let told = timeout(PATIENCE, self.turn.told(&mut self.seen)).await;
            Ok(told.is_ok_and(|told| told.says == Said::Done))
        })
    }

    fn crash(&mut self) -> Option<String> {
        self.server.end()
    }

    fn words(&self) -> String {
        format!("{} {}", self.seen.refusal, self.server.words()).trim().to_owned()
    }
}

/// What the answer to a cancel says, if that is an end.
async fn cancelled(address: &Url, headers: &Headers) -> Option<Told> {
    let request = request((&Method::POST, address), headers, String::new()).ok()?;
    let mut answer = answered(request.send().await).await.ok()?;
    let response = answer.next().await?;
    let says = end(&response)?;
    Some(Told { named: beyond(&response).into_iter().collect(), ..Told::now(says) })
}

/// What a response says beyond the protocol.
fn beyond(response: &Value) -> Option<String> {
    let metadata = response["metadata"].as_object()?;
    (!metadata.is_empty()).then(|| response["metadata"].to_string())
}

/// What a response says of an end, if it does.
fn end(response: &Value) -> Option<Said> {
    match response["status"].as_str()? {
        "cancelled" => Some(Said::Stopped),
        "completed" => Some(Said::Done),
        "failed" | "incomplete" => Some(Said::Failed),
        _ => None,
    }
}

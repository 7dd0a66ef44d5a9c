//! Any endpoint that streams: the command starts its server, on the port in `$PORT`, and a file says how it is asked.

use futures_util::future::BoxFuture;
use http::Method;
use safepoint_http::Request;
use serde_json::Value;
use tokio::time::timeout;
use url::Url;

use super::{
    FIRST, NEXT, Started, Told,
    http::{Headers, answered, request},
    no_such_way,
    request_file::{CancelAnswer, Filled, Filling, IdPlace, RequestFile},
    server::{PATIENCE, ServerProcess},
    turn::{Heard, ServedTurn, TurnReader},
};
use crate::{
    claims::Said,
    stage::{StageError, TrialStage},
};

/// The connection closed, as by a client that is gone: an endpoint without a route to cancel has no other stop.
const CLOSED: &str = "closed";
/// The route that the file names.
const CANCEL: &str = "cancel";

/// What an answer says that was taken, and not done yet.
const TAKEN: u16 = 202;

/// The ways that an endpoint has by this file.
pub(super) fn ways(file: Option<&RequestFile>) -> Vec<String> {
    let cancel = file.and_then(|file| file.cancel.as_ref()).map(|_| CANCEL);
    [CLOSED].into_iter().chain(cancel).map(ToOwned::to_owned).collect()
}

/// A server that answers.
pub(super) struct Endpoint {
    server: ServerProcess,
    address: Url,
    file: RequestFile,
    headers: Vec<(String, String)>,
    /// A name for the conversation, which no other trial has.
    conversation: String,
    turn: ServedTurn,
    seen: SeenAnswer,
}

/// What its answer said.
struct SeenAnswer {
    place: Option<IdPlace>,
    id: Option<String>,
    refusal: String,
}

impl Endpoint {
    pub(super) async fn start(
        line: &str,
        stage: &TrialStage,
        (file, headers): (Option<&RequestFile>, &Headers),
    ) -> Result<Self, StageError> {
        let why = "the door `http` wants `--request FILE`, which says how the endpoint is asked";
        let file = file.ok_or_else(|| StageError::NotStarted(why.to_owned()))?.clone();
        let mut server = ServerProcess::start(line, stage)?;
        server.listens().await?;
        let mut endpoint = Self {
            address: server.address(),
            server,
            headers: file.headers().chain(headers.iter().cloned()).collect(),
            conversation: stage.name(),
            turn: ServedTurn::default(),
            seen: SeenAnswer { place: file.id.clone(), id: None, refusal: String::new() },
            file,
        };
        let first = endpoint.file.first(endpoint.filling(FIRST));
        let first = first.and_then(|first| endpoint.request(first)).map_err(StageError::NotStarted)?;
        endpoint.turn = ServedTurn::begin(first);
        Ok(endpoint)
    }

    fn filling<'a>(&'a self, text: &'a str) -> Filling<'a> {
        Filling { text, conversation: &self.conversation, id: self.seen.id.as_deref() }
    }

    fn request(&self, filled: Filled) -> Result<Request, String> {
        let Filled { method, path, body } = filled;
        let address = self.address.join(&path).map_err(|error| format!("`{path}`: {error}"))?;
        let body = if method == Method::GET { String::new() } else { body };
        request((&method, &address), &self.headers, body)
    }
}

impl TurnReader for SeenAnswer {
    fn read(&mut self, heard: Heard) -> Option<Told> {
        let id = match (heard, &self.place) {
            (Heard::Begun(headers), Some(IdPlace::Header(name))) => {
                headers.get(name).and_then(|id| Some(id.to_str().ok()?.to_owned()))
            }
            (Heard::Event(event), Some(IdPlace::Field(names))) => field(&event, names),
            (Heard::Begun(_) | Heard::Event(_), _) => None,
            // An answer that is whole is what was asked for, by all that HTTP says.
            (Heard::Whole, _) => return Some(Told::now(Said::Done)),
            (Heard::Cut, _) => return Some(Told::now(Said::Nothing)),
            (Heard::Refused(words), _) => {
                self.refusal = words;
                return Some(Told::now(Said::Failed));
            }
        };
        self.id = self.id.take().or(id);
        None
    }
}

/// A text or a number in an event.
fn field(event: &Value, names: &str) -> Option<String> {
    let found = names.split('.').try_fold(event, |inner, name| inner.get(name))?;
    match found {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

impl Started for Endpoint {
    fn stop<'a>(&'a mut self, way: &'a str) -> BoxFuture<'a, Result<(), StageError>> {
        Box::pin(async move {
            match way {
                CLOSED => self.turn.close(),
                CANCEL => {
                    let is_known = |seen: &SeenAnswer| seen.place.is_none() || seen.id.is_some();
                    if timeout(PATIENCE, self.turn.read_until(&mut self.seen, is_known)).await.is_err() {
                        // Then it is not known, and that is said next.
                    }
                    let cancel =
                        self.file.cancelled(self.filling("")).and_then(|cancel| self.request(cancel));
                    let cancel = cancel.map_err(StageError::NotExpressed)?;
                    let says = self.file.cancel.as_ref().map(|route| route.says).unwrap_or_default();
                    self.turn.cancel(cancelled(cancel, says));
                }
                way => return Err(no_such_way(way)),
            }
            Ok(())
        })
    }

    fn told(&mut self) -> BoxFuture<'_, Told> {
        Box::pin(self.turn.told(&mut self.seen))
    }

    fn next(&mut self) -> BoxFuture<'_, Result<bool, String>> {
        Box::pin(async move {
            let next = self.file.next(self.filling(NEXT)).and_then(|next| self.request(next))?;
            self.turn = ServedTurn::begin(next);
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

/// What the answer to a cancel says: by its status that the stop is done, or only taken; then the stream says when it is over, as it does
/// where the cancel is refused.
async fn cancelled(cancel: Request, says: CancelAnswer) -> Option<Told> {
    let mut answer = answered(cancel.send().await).await.ok()?;
    if answer.status().as_u16() == TAKEN {
        return None;
    }
    // Where work that is left can be named.
    let named = answer.next().await.map(|body| body.to_string()).into_iter().collect();
    let says = match says {
        CancelAnswer::Stopped => Said::Stopped,
        CancelAnswer::Nothing => Said::Nothing,
    };
    Some(Told { named, ..Told::now(says) })
}

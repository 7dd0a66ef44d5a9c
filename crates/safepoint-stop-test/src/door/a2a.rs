//! A server of the Agent2Agent protocol, 0.3 or 1.0, over its JSON-RPC: the command starts it, on the port in `$PORT`.

use futures_util::future::{BoxFuture, Either, select};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use url::Url;

use super::{
    FIRST, NEXT, Started, Told,
    http::{Events, Headers, get, post},
    no_such_way,
    server::{LOOK, PATIENCE, ServerProcess},
};
use crate::{
    claims::Said,
    stage::{StageError, TrialStage},
};

/// `tasks/cancel` as the protocol has it. Where a recipe says so, also the connection of the stream closed, as by a client that is gone: the
/// protocol has the task continue then.
pub(super) const WAYS: [&str; 1] = [CANCEL];
const CANCEL: &str = "tasks/cancel";
const GONE: &str = "reader-gone";

/// A server that answers a message.
pub(super) struct A2a {
    server: ServerProcess,
    address: Url,
    headers: Vec<(String, String)>,
    is_one: bool,
    /// The stream of the message, until its reader is gone.
    stream: Option<Events>,
    task: Option<String>,
    context: Option<String>,
    /// What an answer to a stop says, until it is there.
    cancel: Option<BoxFuture<'static, Result<Value, String>>>,
    gone: Option<Instant>,
    /// What the stream said last, if that is an end.
    end: Option<Told>,
    said: Vec<String>,
}

impl A2a {
    pub(super) async fn start(line: &str, stage: &TrialStage, headers: &Headers) -> Result<Self, StageError> {
        let server = ServerProcess::start(line, stage)?;
        let base = server.address();
        let mut a2a = Self {
            server,
            address: base.clone(),
            headers: headers.to_vec(),
            is_one: false,
            stream: None,
            task: None,
            context: None,
            cancel: None,
            gone: None,
            end: None,
            said: Vec::new(),
        };
        let mut seen = String::new();
        let card = timeout(PATIENCE, a2a.card(&base, &mut seen)).await;
        let card =
            card.map_err(|_elapsed| StageError::NotStarted(format!("it shows no agent card: {seen}")))??;
        a2a.read(&card);
        let sent = timeout(PATIENCE, a2a.send(FIRST)).await;
        let sent = sent.unwrap_or_else(|_elapsed| Err("it began no answer to a message".to_owned()));
        sent.map_err(StageError::NotStarted)?;
        Ok(a2a)
    }

    /// Waits for the agent's card; `seen` is why there is none yet. One that listens and refuses is not waited for.
    async fn card(&mut self, base: &Url, seen: &mut String) -> Result<Value, StageError> {
        loop {
            for path in ["/.well-known/agent-card.json", "/.well-known/agent.json"] {
                let address = base.join(path).expect("it is a path");
                match get(&address, &self.headers).await {
                    Ok(card) => return Ok(card),
                    Err(error) if error.contains("answered 401") || error.contains("answered 403") => {
                        return Err(StageError::NotStarted(format!("{error}; say `--header`")));
                    }
                    Err(error) => *seen = error,
                }
            }
            self.server.is_alive().await?;
            sleep(LOOK).await;
        }
    }

    /// Where and how it wants to be spoken to: its host is the one that was started, whatever it calls itself.
    fn read(&mut self, card: &Value) {
        let offered = card["supportedInterfaces"].as_array().into_iter().flatten();
        let of_rpc = |offered: &&Value| offered["protocolBinding"] == "JSONRPC";
        let (named, version) = match offered.clone().find(of_rpc) {
            Some(one) => (&one["url"], &one["protocolVersion"]),
            None => (&card["url"], &card["protocolVersion"]),
        };
        let named = named.as_str().and_then(|url| url.parse::<Url>().ok());
        self.address.set_path(named.as_ref().map_or("/", Url::path));
        self.is_one = version.as_str().is_some_and(|version| version.starts_with('1'));
    }

    fn rpc(&self, [old, new]: [&str; 2], params: &Value) -> (Value, Vec<(String, String)>) {
        let method = if self.is_one { new } else { old };
        let version = self.is_one.then(|| ("a2a-version".to_owned(), "1.0".to_owned()));
        let headers = self.headers.iter().cloned().chain(version).collect();
        (json!({"jsonrpc": "2.0", "id": "1", "method": method, "params": params}), headers)
    }

    async fn send(&mut self, text: &str) -> Result<(), String> {
        let id = format!("m-{text}");
        let mut message = if self.is_one {
            json!({"role": "ROLE_USER", "parts": [{"text": text}], "messageId": id})
        } else {
            json!({"kind": "message", "role": "user", "parts": [{"kind": "text", "text": text}], "messageId": id})
        };
        if let Some(context) = &self.context {
            message["contextId"] = json!(context);
        }
        let (body, headers) =
            self.rpc(["message/stream", "SendStreamingMessage"], &json!({"message": message}));
        self.stream = Some(post(&self.address, &headers, &body).await?);
        (self.task, self.end) = (None, None);
        Ok(())
    }

    /// Reads the stream until it says that the turn is over, or ends.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    async fn over(&mut self) -> Told {
        if let Some(told) = self.end.clone() {
            return told;
        }
        let Some(stream) = self.stream.as_mut() else { return std::future::pending().await };
        let told = loop {
            let Some(event) = stream.next().await else { break Told::now(Said::Nothing) };
            if event.get("error").is_some() {
                break Told::now(Said::Failed);
            }
            note(&mut self.task, &mut self.context, &event["result"]);
            self.said.extend(beyond(&event["result"]));
            if let Some(says) = end(&event["result"]) {
                break Told::now(says);
            }
        };
        self.end.insert(told).clone()
    }

    /// Waits until a task is named.
    async fn named(&mut self) -> Option<String> {
        while self.task.is_none() && self.end.is_none() {
            let event = self.stream.as_mut()?.next().await?;
            note(&mut self.task, &mut self.context, &event["result"]);
            self.end = end(&event["result"]).map(Told::now);
        }
        self.task.clone()
    }
}

impl Started for A2a {
    fn stop<'a>(&'a mut self, way: &'a str) -> BoxFuture<'a, Result<(), StageError>> {
        Box::pin(async move {
            self.said.clear();
            match way {
                GONE => {
                    self.stream = None;
                    self.gone = Some(Instant::now());
                }
                CANCEL => {
                    let named = timeout(PATIENCE, self.named()).await.ok().flatten();
                    let why = "its stream names no task, and without one nothing can be cancelled";
                    let task = named.ok_or_else(|| StageError::NotExpressed(why.to_owned()))?;
                    let (body, headers) = self.rpc(["tasks/cancel", "CancelTask"], &json!({"id": task}));
                    let address = self.address.clone();
                    let asked = async move { cancelled(&address, &headers, &body).await };
                    let asked = tokio::spawn(asked);
                    let asked =
                        Box::pin(async move { asked.await.unwrap_or_else(|error| Err(error.to_string())) });
                    self.cancel.get_or_insert(asked);
                }
                way => return Err(no_such_way(way)),
            }
            Ok(())
        })
    }

    fn told(&mut self) -> BoxFuture<'_, Told> {
        Box::pin(async move {
            if let Some(at) = self.gone {
                return Told { at, ..Told::now(Said::Nothing) };
            }
            let mut cancel = self.cancel.take();
            let first = match &mut cancel {
                None => return self.over().await,
                // Whichever comes first gives its caller control.
                Some(asked) => match select(asked, Box::pin(self.over())).await {
                    Either::Left((answer, _)) => Either::Left(answer),
                    Either::Right((told, _)) => Either::Right(told),
                },
            };
            match first {
                Either::Right(told) => Told { named: self.said.clone(), ..told },
                Either::Left(answer) => {
                    match answer.ok().as_ref().and_then(|task| Some((task, end(task)?))) {
                        Some((task, says)) => {
                            let named = self.said.iter().cloned().chain(beyond(task)).collect();
                            Told { named, ..Told::now(says) }
                        }
                        // It was refused, or says of no end: the stream says when there is one.
                        None => self.over().await,
                    }
                }
            }
        })
    }

    fn next(&mut self) -> BoxFuture<'_, Result<bool, String>> {
        Box::pin(async move {
            (self.gone, self.cancel) = (None, None);
            let answered = timeout(PATIENCE, async {
                self.send(NEXT).await.is_ok() && self.over().await.says == Said::Done
            });
            Ok(answered.await.unwrap_or(false))
        })
    }

    fn crash(&mut self) -> Option<String> {
        self.server.end()
    }

    fn words(&self) -> String {
        self.server.words()
    }
}

async fn cancelled(address: &Url, headers: &Headers, body: &Value) -> Result<Value, String> {
    let mut answer = post(address, headers, body).await?;
    let answer = answer.next().await.ok_or_else(|| "no JSON".to_owned())?;
    answer.get("result").cloned().ok_or_else(|| answer["error"].to_string())
}

/// What of an event, of either version, names the task and its context.
fn note(task: &mut Option<String>, context: &mut Option<String>, result: &Value) {
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    let inner =
        [&result["task"], &result["statusUpdate"], &result["artifactUpdate"], &result["message"], result];
    for part in inner {
        let id = if part["kind"] == "task" || part["status"].is_object() { text(&part["id"]) } else { None };
        *task = task.take().or_else(|| text(&part["taskId"])).or(id);
        *context = context.take().or_else(|| text(&part["contextId"]));
    }
}

/// What an event or a task says beyond the protocol: there is where work that is left can be named.
fn beyond(result: &Value) -> impl Iterator<Item = String> {
    let inner = [&result["task"], &result["statusUpdate"], &result["status"]["message"], result];
    inner
        .map(|part| &part["metadata"])
        .into_iter()
        .filter(|meta| meta.is_object())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .into_iter()
}

/// What an event or a task, of either version, says of an end, if it does.
fn end(result: &Value) -> Option<Said> {
    if result["kind"] == "message" || result["message"].is_object() {
        return Some(Said::Done);
    }
    let inner = [&result["task"], &result["statusUpdate"], result];
    let state = inner.into_iter().find_map(|part| part["status"]["state"].as_str())?;
    match state.trim_start_matches("TASK_STATE_").to_ascii_lowercase().as_str() {
        "canceled" => Some(Said::Stopped),
        "completed" => Some(Said::Done),
        "failed" | "rejected" => Some(Said::Failed),
        "input-required" | "input_required" => Some(Said::Done),
        _ => None,
    }
}

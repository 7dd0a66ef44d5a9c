//! An agent of the Agent Client Protocol, version 1, over its standard input and output.
//!
//! It is a client without files and without terminals of its own, so that the agent's own tools work; what the agent asks to be allowed
//! is allowed, unless the question itself is the moment; a cancel answers each question with `cancelled`, as the protocol asks of a client.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::{FIRST, NEXT, Started, Told, lines::JsonLines, no_such_way, wrote};
use crate::{
    claims::Said,
    stage::{StageError, TrialStage},
};

/// How long an agent may take to open a session, and to answer the next message.
const PATIENCE: Duration = Duration::from_secs(60);

/// `session/cancel` as the protocol has it; the end of its input, as an editor that is closed or killed.
pub(super) const WAYS: [&str; 2] = [CANCEL, CLOSED];
const CANCEL: &str = "session/cancel";
const CLOSED: &str = "input-closed";

/// An agent in whose session a prompt is answered.
pub(super) struct Acp {
    lines: JsonLines,
    session: String,
    /// The number of the last request.
    asked: u64,
    /// Whether a question is left open.
    leaves_questions: bool,
    /// The questions that are open.
    questions: Vec<Value>,
    /// Whether the prompt was cancelled: the protocol has its client answer each question so.
    is_cancelled: bool,
    /// When its input was closed.
    closed: Option<Instant>,
    /// What named work, since the stop.
    named: Vec<String>,
    crash: Option<String>,
}

impl Acp {
    pub(super) async fn start(
        line: &str,
        stage: &TrialStage,
        leaves_questions: bool,
    ) -> Result<Self, StageError> {
        let mut acp = Self {
            lines: JsonLines::start(line, stage)?,
            session: String::new(),
            asked: 0,
            leaves_questions,
            questions: Vec::new(),
            is_cancelled: false,
            closed: None,
            named: Vec::new(),
            crash: None,
        };
        let opened = timeout(PATIENCE, acp.open(stage)).await;
        opened
            .map_err(|_elapsed| StageError::NotStarted("it opened no session for too long".to_owned()))??;
        acp.prompt(FIRST).await;
        Ok(acp)
    }

    async fn open(&mut self, stage: &TrialStage) -> Result<(), StageError> {
        let client = json!({"name": "stop-test", "version": env!("CARGO_PKG_VERSION")});
        let none = json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false});
        let hello = json!({"protocolVersion": 1, "clientCapabilities": none, "clientInfo": client});
        self.call("initialize", hello).await?;
        let session = json!({"cwd": stage.work_folder(), "mcpServers": []});
        let opened = self.call("session/new", session).await?;
        let id = opened["sessionId"].as_str().ok_or_else(|| refused("session/new", &opened))?;
        id.clone_into(&mut self.session);
        Ok(())
    }

    /// Asks, and waits for the result.
    async fn call(&mut self, method: &str, params: Value) -> Result<Value, StageError> {
        self.request(method, params).await;
        let Some(answer) = self.answer().await else {
            let end = self.lines.end().await;
            let wrote = wrote(&self.lines.words());
            return Err(StageError::NotStarted(format!(
                "it ended before it answered `{method}`: {end}{wrote}"
            )));
        };
        match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(refused(method, &answer["error"])),
        }
    }

    async fn request(&mut self, method: &str, params: Value) {
        self.asked += 1;
        let id = self.asked;
        self.lines.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
    }

    async fn prompt(&mut self, text: &str) {
        let prompt = json!({"sessionId": self.session, "prompt": [{"type": "text", "text": text}]});
        self.request("session/prompt", prompt).await;
    }

    /// Reads until the last request is answered; none once the agent has ended.
    ///
    /// # Cancel safety
    /// Nothing is lost but an answer that was being written to a question of the agent.
    async fn answer(&mut self) -> Option<Value> {
        loop {
            let message = self.lines.hear().await?;
            if message.get("method").is_none() {
                if message["id"] == self.asked {
                    return Some(message);
                }
            } else if message.get("id").is_some() {
                self.asked_by_agent(&message).await;
            } else {
                self.named.extend(beyond(&message["params"]["update"]));
            }
            if !self.questions.is_empty() {
                std::future::pending::<()>().await;
            }
        }
    }

    async fn asked_by_agent(&mut self, message: &Value) {
        let id = &message["id"];
        if message["method"] != "session/request_permission" {
            let error = json!({"code": -32601, "message": "this client has no such method"});
            self.lines.say(&json!({"jsonrpc": "2.0", "id": id, "error": error})).await;
            return;
        }
        if self.is_cancelled {
            return self.decide(id, &json!({"outcome": "cancelled"})).await;
        }
        if self.leaves_questions {
            return self.questions.push(id.clone());
        }
        let options = message["params"]["options"].as_array();
        let of_kind = |kind| options?.iter().find(|option| option["kind"] == kind);
        let allowed =
            of_kind("allow_once").or_else(|| of_kind("allow_always")).map(|option| &option["optionId"]);
        self.decide(id, &json!({"outcome": "selected", "optionId": allowed})).await;
    }

    async fn decide(&mut self, id: &Value, outcome: &Value) {
        let result = json!({ "outcome": outcome });
        self.lines.say(&json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
    }
}

impl Started for Acp {
    fn stop<'a>(&'a mut self, way: &'a str) -> BoxFuture<'a, Result<(), StageError>> {
        Box::pin(async move {
            // What it said of its work before the stop says nothing of what is left.
            self.named.clear();
            self.leaves_questions = false;
            let questions = std::mem::take(&mut self.questions);
            match way {
                CANCEL => {
                    let params = json!({"sessionId": self.session});
                    self.lines.say(&json!({"jsonrpc": "2.0", "method": CANCEL, "params": params})).await;
                    self.is_cancelled = true;
                    for id in &questions {
                        self.decide(id, &json!({"outcome": "cancelled"})).await;
                    }
                }
                CLOSED => {
                    self.lines.close();
                    self.closed = Some(Instant::now());
                }
                way => return Err(no_such_way(way)),
            }
            Ok(())
        })
    }

    fn told(&mut self) -> BoxFuture<'_, Told> {
        Box::pin(async move {
            if let Some(at) = self.closed {
                return Told { at, ..Told::now(Said::Nothing) };
            }
            let Some(answer) = self.answer().await else {
                self.crash = Some(self.lines.end().await);
                return Told::now(Said::Nothing);
            };
            let named = self.named.drain(..).chain(beyond(&answer["result"])).collect();
            Told { named, ..Told::now(said(&answer)) }
        })
    }

    fn questioned(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            while self.questions.is_empty() {
                let Some(message) = self.lines.hear().await else { return std::future::pending().await };
                if message.get("method").is_some() && message.get("id").is_some() {
                    self.asked_by_agent(&message).await;
                }
            }
        })
    }

    fn next(&mut self) -> BoxFuture<'_, Result<bool, String>> {
        Box::pin(async move {
            if self.closed.is_some() {
                return Err("its input is closed".to_owned());
            }
            self.is_cancelled = false;
            self.prompt(NEXT).await;
            let answer = timeout(PATIENCE, self.answer()).await;
            Ok(matches!(answer, Ok(Some(answer)) if said(&answer) == Said::Done))
        })
    }

    fn crash(&mut self) -> Option<String> {
        self.crash.clone()
    }

    fn words(&self) -> String {
        self.lines.words()
    }
}

/// What a message says beyond the protocol: there is where work that is left can be named.
fn beyond(message: &Value) -> Option<String> {
    message.get("_meta").map(ToString::to_string)
}

/// What an answer to a prompt says.
fn said(answer: &Value) -> Said {
    match answer["result"]["stopReason"].as_str() {
        Some("cancelled") => Said::Stopped,
        Some("end_turn") => Said::Done,
        _ => Said::Failed,
    }
}

fn refused(method: &str, words: &Value) -> StageError {
    StageError::NotStarted(format!("it answered `{method}` with {words}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::Setting;

    /// It asks once when it is prompted, and once more when it is cancelled; what it was answered is what it says at the end.
    const ASKS: &str = r#"sh -c '
        say() { printf "%s\n" "$1"; }
        ask() { say "{\"jsonrpc\":\"2.0\",\"id\":$1,\"method\":\"session/request_permission\",\"params\":{}}"; }
        n=0; while read -r line; do case $line in
            *initialize*|*session/new*) n=$((n+1)); say "{\"jsonrpc\":\"2.0\",\"id\":$n,\"result\":{\"sessionId\":\"s\"}}";;
            *session/prompt*) ask 70;;
            *session/cancel*) ask 71;;
            *71*cancelled*|*cancelled*71*) say "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"stopReason\":\"$first\"}}";;
            *70*cancelled*|*cancelled*70*) first=cancelled;;
        esac; done' sh"#;

    /// S15.22
    #[tokio::test]
    async fn a_cancel_answers_each_question() {
        let stage = TrialStage::build(&Setting::default()).await.unwrap();
        let mut acp = Acp::start(ASKS, &stage, true).await.unwrap();
        timeout(PATIENCE, acp.questioned()).await.unwrap();
        acp.stop(CANCEL).await.unwrap();
        let told = timeout(PATIENCE, acp.told()).await.unwrap();
        assert_eq!(told.says, Said::Stopped);
    }
}

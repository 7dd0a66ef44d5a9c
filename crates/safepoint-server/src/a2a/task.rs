//! A task: one item of a session, as A2A shows it.

use axum::http::StatusCode;
use jiff::Timestamp;
use safepoint::{approval::ApprovalRequest, raw::decode_row};
use serde_json::{Map, Value, json};

use super::message::{HistoryLength, code};
use crate::{
    answer::{CRASHED, ItemAnswer, ItemState, StopState, TurnAnswer, crashed_words},
    caller::{Caller, Kept, KeptItem, items::ReadItems, named::ItemName},
    host::read::{self, TurnRead},
    problem::Answered,
};

/// The id of the artifact that holds what the agent said last: its answer, once the task is completed.
const ANSWER: &str = "answer";

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskState {
    Submitted,
    Working,
    InputRequired,
    Completed,
    Failed,
    Rejected,
    Canceled,
}

/// A task as it is now.
pub(super) struct TaskView {
    name: ItemName,
    context: String,
    pub(super) state: TaskState,
    since: Option<Timestamp>,
    outcome: Option<&'static str>,
    /// What the client has said to it, in order.
    said: Vec<String>,
    pub(super) text: Option<String>,
    pub(super) questions: Vec<ApprovalRequest>,
    word: Option<String>,
    turn: Option<TurnAnswer>,
    stop: Option<StopState>,
}

impl TaskState {
    pub(super) const ALL: [Self; 7] = [
        Self::Submitted,
        Self::Working,
        Self::InputRequired,
        Self::Completed,
        Self::Failed,
        Self::Rejected,
        Self::Canceled,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "TASK_STATE_SUBMITTED",
            Self::Working => "TASK_STATE_WORKING",
            Self::InputRequired => "TASK_STATE_INPUT_REQUIRED",
            Self::Completed => "TASK_STATE_COMPLETED",
            Self::Failed => "TASK_STATE_FAILED",
            Self::Rejected => "TASK_STATE_REJECTED",
            Self::Canceled => "TASK_STATE_CANCELED",
        }
    }

    /// Whether no other state follows.
    pub(super) fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Rejected | Self::Canceled)
    }

    /// Where an item is, as the state of a task. A turn that was stopped is at rest once it has settled, and so is its task.
    pub(super) fn of(item: &ItemAnswer) -> Self {
        match (item.state, item.outcome) {
            // No other state follows it.
            _ if item.stopped_by.is_some() => Self::Canceled,
            // A turn that was decided, and waits for its place, has begun.
            (ItemState::Accepted, _) if item.turn.is_none() => Self::Submitted,
            (ItemState::Accepted | ItemState::Running, _) => Self::Working,
            (ItemState::Rest, Some("completed")) => Self::Completed,
            (ItemState::Rest, Some("suspended")) => Self::InputRequired,
            (ItemState::Rest, Some("interrupted" | "preempted" | "rolled_back" | "withdrawn")) => {
                Self::Canceled
            }
            (ItemState::Rest, Some("returned" | "dropped")) => Self::Rejected,
            (ItemState::Rest, _) => Self::Failed,
        }
    }
}

impl TaskView {
    /// The task as it is now.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn of(by: &Caller, task: &KeptItem) -> Answered<Self> {
        Self::among(by, task, &ReadItems::of(&by.host, task.kept.id()).await?).await
    }

    /// The task, by what was read of its session.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn among(by: &Caller, task: &KeptItem, all: &ReadItems) -> Answered<Self> {
        let item = all.answer(task.number);
        let row = all.inbox.iter().find(|row| row.number == task.number);
        let found = read::turn_of(&all.turns, task.number);
        let state = TaskState::of(&item);
        let questions = match state {
            TaskState::InputRequired => by.questions(task.kept.id()).await?,
            _ => Vec::new(),
        };
        let mut view = Self {
            name: task.name(),
            context: context(&task.kept),
            state,
            since: row.map(|row| row.at),
            outcome: item.outcome,
            said: Vec::from_iter(row.and_then(|row| Some(decode_row::<String>(row).ok()?.0))),
            text: None,
            questions,
            word: item.returned.map(str::to_owned),
            turn: None,
            stop: None,
        };
        if let Some((turn, read)) = found {
            view.of_turn(read);
            view.turn = Some(read.answer(turn));
            view.stop = by.stop_under_way(task.kept.id(), (turn, read));
        }
        Ok(view)
    }

    fn of_turn(&mut self, read: &TurnRead) {
        self.since = read.changed.or(self.since);
        self.text = read.text().filter(|text| !text.is_empty()).map(str::to_owned);
        if let Some(asked) = read.asked(self.name.number) {
            self.said = vec![asked.to_owned()];
        }
        self.said.extend(read.said.iter().cloned());
        if self.state == TaskState::Failed {
            self.word = match self.outcome {
                Some(CRASHED) => Some(crashed_words(&self.name.session)),
                _ => read.error.as_ref().map(|error| format!("{}: {}", error.code, error.message)),
            };
        }
    }

    /// Since when it is as it is.
    pub(super) fn since(&self) -> Option<Timestamp> {
        self.since
    }

    /// Whether it is known what of it is alive.
    pub(super) fn is_quiet_known(&self) -> bool {
        self.turn.as_ref().is_none_or(|turn| turn.quiet.is_some())
    }

    /// The task.
    pub(super) fn value(&self, history: HistoryLength) -> Value {
        let mut task = self.outline();
        let from = match history {
            HistoryLength::All => 0,
            HistoryLength::Most(most) => self.said.len().saturating_sub(most),
        };
        let said = self.said.iter().enumerate().skip(from);
        let said: Vec<Value> = said.map(|(number, text)| self.said(number + 1, text)).collect();
        if !said.is_empty() {
            task["history"] = said.into();
        }
        if let Some(text) = &self.text {
            task["artifacts"] = json!([artifact(text)]);
        }
        task
    }

    /// The task without its history and its artifacts.
    pub(super) fn outline(&self) -> Value {
        json!({
            "id": self.name.to_string(), "contextId": self.context,
            "status": self.status(), "metadata": self.metadata(),
        })
    }

    /// A change of the task to the state that it has.
    pub(super) fn update(&self) -> Value {
        json!({"statusUpdate": {
            "taskId": self.name.to_string(), "contextId": self.context,
            "status": self.status(), "metadata": self.metadata(),
        }})
    }

    /// A change of the task to work, by which it came to be as it is now.
    pub(super) fn worked(&self) -> Value {
        let ItemName { session, number } = &self.name;
        json!({"statusUpdate": {
            "taskId": self.name.to_string(), "contextId": self.context,
            "status": {"state": TaskState::Working.as_str()},
            "metadata": {"safepoint": {"session": session, "item": format!("item-{number}")}},
        }})
    }

    /// What it asks.
    pub(super) fn questions(&self) -> &[ApprovalRequest] {
        &self.questions
    }

    fn status(&self) -> Value {
        let mut status = json!({"state": self.state.as_str()});
        if let Some(since) = self.since {
            status["timestamp"] = timestamp(since).into();
        }
        let parts: Vec<Value> = if self.questions.is_empty() {
            self.word.iter().map(|word| json!({"text": word})).collect()
        } else {
            self.questions.iter().flat_map(question).collect()
        };
        if !parts.is_empty() {
            status["message"] = json!({
                "messageId": format!("{}-status", self.name), "role": "ROLE_AGENT",
                "taskId": self.name.to_string(), "contextId": self.context, "parts": parts,
            });
        }
        status
    }

    /// A message of the client. The store does not keep its id.
    fn said(&self, number: usize, text: &str) -> Value {
        json!({
            "messageId": format!("{}-said-{number}", self.name), "role": "ROLE_USER", "parts": [{"text": text}],
            "taskId": self.name.to_string(), "contextId": self.context,
        })
    }

    /// What the session's own API says of it.
    fn metadata(&self) -> Value {
        let ItemName { session, number } = &self.name;
        let mut of = Map::new();
        of.insert("session".into(), json!(session));
        of.insert("item".into(), json!(format!("item-{number}")));
        if let Some(outcome) = self.outcome {
            of.insert("outcome".into(), json!(outcome));
        }
        if let Some(turn) = &self.turn {
            of.insert("receipt".into(), json!(format!("/v1/sessions/{session}/turns/{}", turn.id)));
        }
        if let Some(stop) = self.stop {
            of.insert("stop".into(), json!(stop));
        }
        if self.state.is_terminal() {
            let (quiet, survivors) = match &self.turn {
                Some(turn) => (turn.quiet, turn.survivors.as_slice()),
                // Nothing of it has run.
                None => (Some(true), &[][..]),
            };
            of.insert("quiet".into(), json!(quiet));
            of.insert("survivors".into(), json!(survivors));
        }
        json!({"safepoint": of})
    }
}

/// The name of a session's context, as its client has it.
pub(super) fn context(kept: &Kept) -> String {
    kept.setup.named.clone().unwrap_or_else(|| kept.id().to_string())
}

/// The key of the session whose context its client has named so.
pub(super) fn context_key(agent: &str, context: &str) -> String {
    format!("a2a:context:{agent}:{context}")
}

/// The agent's session with this id, if the caller sees it: its context has the same name.
///
/// # Errors
/// The store's.
///
/// # Cancel safety
/// Nothing is lost.
pub(super) async fn session_named(by: &Caller, agent: &str, id: &str) -> Answered<Option<Kept>> {
    match by.session(id).await {
        Ok(kept) => Ok(Some(kept).filter(|kept| kept.setup.agent == agent)),
        Err(problem) if problem.status() == StatusCode::NOT_FOUND => Ok(None),
        Err(problem) => Err(problem),
    }
}

/// The artifact with this text.
pub(super) fn artifact(text: &str) -> Value {
    json!({"artifactId": ANSWER, "parts": [{"text": text}]})
}

/// A time, as the protocol writes it.
fn timestamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// A question: for a person, and as data for a program.
fn question(asked: &ApprovalRequest) -> [Value; 2] {
    let data = json!({
        "approval": asked.id.to_string(), "digest": asked.digest, "question": asked.question,
        "tool": asked.tool, "args": asked.args, "expiresAt": asked.expires_at.to_string(),
    });
    let code = code(&asked.id);
    let text =
        format!("`{}` needs an approval. Answer `approve {code}`; any other text is a no.", asked.tool);
    [json!({"text": text}), json!({"data": data, "mediaType": "application/json"})]
}

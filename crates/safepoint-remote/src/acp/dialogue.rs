//! The messages of an exchange with an agent and their meaning, from the handshake to the end of the turn.
//! Pure, so that tests can try every order of messages.
//!
//! **Invariants**
//! - At most one prompt is sent, and at most one end is reported.
//! - The agent's updates are reported until its turn has ended, also after a stop; from then on every
//!   question gets `cancelled`.
//! - A turn that the adapter asked to end, and that ends in any other way than `cancelled`, is not called
//!   finished: the agent may mean either.

use std::{collections::HashMap, path::PathBuf};

use safepoint::{
    approval::Decision,
    raw::{
        json::MOST_VALUES,
        remote::{RemoteEnd, RemoteEvent, RemoteTask},
    },
    stop::Failure,
};
use safepoint_tools::lines::{Scan, TextLine};
use serde_json::{Value, json};

use super::{
    answer::Asked,
    limits,
    message::{self, AUTH_REQUIRED, CANCELLED, Message, NO_METHOD, Refusal},
    update::{Titles, shown},
};

mod earlier;
mod opening;

/// What is the same for each process of an agent.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) folder: PathBuf,
    pub(super) method: Option<String>,
}

/// An action for the task of the process.
#[derive(Debug)]
pub(super) enum Act {
    /// Write this.
    Send(Value),
    /// Report this.
    Tell(RemoteEvent),
    /// The agent's session of the conversation.
    Note(String),
    /// The turn was asked to end, and has ended.
    Answered(Answered),
}

/// How a turn ended that was asked to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// No work was requested.
    Unasked,
    /// With `cancelled`.
    AsAsked(String),
    /// With this.
    Otherwise(String),
}

/// How far it is.
#[derive(Debug, PartialEq, Eq)]
enum Stage {
    /// Not begun.
    Fresh,
    Initialize,
    Authenticate,
    /// The session is being made, or found again.
    Session(How),
    /// The turn: the answer to this question is its end.
    Prompt,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    New,
    Load,
    Resume,
}

/// One process's talk, of one piece of work.
#[derive(Debug)]
pub(super) struct Dialogue {
    setting: Setting,
    brief: RemoteTask,
    stage: Stage,
    /// Whether the turn is to end.
    is_stopping: bool,
    /// The number of the pending question.
    number: u64,
    /// The agent's name of the session that the conversation had so far.
    earlier: Option<String>,
    /// Whether the agent has lost the earlier messages.
    has_forgotten: bool,
    session: String,
    /// What the agent reported about itself.
    agent: Value,
    titles: Titles,
    asked: HashMap<String, Asked>,
}

impl Dialogue {
    pub(super) fn new(setting: Setting, brief: RemoteTask) -> Self {
        Self {
            setting,
            brief,
            stage: Stage::Fresh,
            is_stopping: false,
            number: 0,
            earlier: None,
            has_forgotten: false,
            session: String::new(),
            agent: Value::Null,
            titles: Titles::default(),
            asked: HashMap::new(),
        }
    }

    /// Whether the agent was asked to do the work, so that it may have done some of it.
    pub(super) fn has_begun(&self) -> bool {
        self.stage == Stage::Prompt
    }

    /// Whether it can still become ready; when it is not in time, it never is.
    pub(super) fn is_opening(&self) -> bool {
        matches!(self.stage, Stage::Fresh | Stage::Initialize | Stage::Authenticate | Stage::Session(_))
    }

    /// Whether the end was reported.
    pub(super) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    pub(super) fn handle(&mut self, line: &TextLine) -> Vec<Act> {
        let message = match line {
            TextLine::Whole(line) => Message::read(line),
            TextLine::TooLong(scan) => return self.too_long(scan),
        };
        match message {
            None => Vec::new(),
            Some(Message::Answer { id, result }) => self.answered(id, result),
            Some(Message::Question { id, method, params }) => self.asked(id, &method, &params),
            Some(Message::Notice { method, params }) => self.noticed(&method, &params),
        }
    }

    fn too_long(&mut self, scan: &Scan) -> Vec<Act> {
        let limit = limits::MESSAGE_BYTES;
        if let Some(id) = scan.answers().and_then(|id| u64::try_from(id).ok()) {
            let broken =
                format!("its answer is larger than {limit} bytes or {MOST_VALUES} values and was not read");
            return self.answered(id, Err(Refusal::broken(broken)));
        }
        if let Some(id) = scan.asks() {
            return vec![Act::Send(message::refusal(&json!(id), NO_METHOD, "larger than what is read"))];
        }
        if self.is_reported() {
            let note = format!(
                "[it said more than {limit} bytes or {MOST_VALUES} values at once, which were not read]\n"
            );
            return vec![Act::Tell(RemoteEvent::Progress(note))];
        }
        Vec::new()
    }

    /// Whether the agent's updates are reported: also while it has not answered a stop (S10.45).
    fn is_reported(&self) -> bool {
        self.stage == Stage::Prompt
    }

    fn noticed(&mut self, method: &str, params: &Value) -> Vec<Act> {
        match method {
            "session/update" if self.is_reported() && params["sessionId"] == *self.session => {
                self.titles.event(&params["update"]).map(Act::Tell).into_iter().collect()
            }
            "$/cancel_request" => {
                let id = params["requestId"].to_string();
                let Some(asked) = self.asked.remove(&id) else { return Vec::new() };
                let refused = message::refusal(&asked.id, CANCELLED, "taken back");
                vec![Act::Send(refused), Act::Tell(RemoteEvent::Withdrawn { question: id })]
            }
            _ => Vec::new(),
        }
    }

    fn asked(&mut self, id: Value, method: &str, params: &Value) -> Vec<Act> {
        if method != "session/request_permission" {
            return vec![Act::Send(message::refusal(&id, NO_METHOD, "this client offers no such method"))];
        }
        self.titles.note(&params["toolCall"]);
        let (asked, question) = Asked::read(id, params, &self.titles);
        if self.asked.len() >= limits::QUESTIONS || self.asked.contains_key(&question.id) {
            let refused = message::refusal(&asked.id, message::BAD_PARAMS, "too many open questions");
            return vec![Act::Send(refused)];
        }
        if !self.is_reported() || self.is_stopping {
            return vec![Act::Send(asked.cancelled())];
        }
        self.asked.insert(question.id.clone(), asked);
        vec![Act::Tell(RemoteEvent::Question(question))]
    }

    /// Answers with a person's decision; nothing where the question is no longer open.
    pub(super) fn decide(&mut self, question: &str, decision: &Decision) -> Vec<Act> {
        let asked = self.asked.remove(question);
        asked.map(|asked| Act::Send(asked.answer(decision))).into_iter().collect()
    }

    /// The work is to end. The notice first, and then the answers to open questions, as the protocol says.
    pub(super) fn stop(&mut self) -> Vec<Act> {
        let was_stopping = std::mem::replace(&mut self.is_stopping, true);
        match self.stage {
            _ if was_stopping => Vec::new(),
            Stage::Prompt => {
                let notice = message::notice("session/cancel", &json!({ "sessionId": self.session }));
                let open = self.asked.drain().map(|(_, asked)| Act::Send(asked.cancelled()));
                [Act::Send(notice)].into_iter().chain(open).collect()
            }
            Stage::Over => Vec::new(),
            Stage::Fresh | Stage::Initialize | Stage::Authenticate | Stage::Session(_) => {
                self.stage = Stage::Over;
                vec![Act::Answered(Answered::Unasked)]
            }
        }
    }

    fn answered(&mut self, id: u64, result: Result<Value, Refusal>) -> Vec<Act> {
        // Another number: an answer without a question, or a second answer.
        if id != self.number {
            return Vec::new();
        }
        match (&self.stage, result) {
            (Stage::Initialize, Ok(agent)) => self.initialized(agent),
            (Stage::Authenticate, Ok(_)) => self.open_session(),
            (Stage::Session(How::New), Ok(made)) => self.made(&made),
            (Stage::Session(_), Ok(_)) => self.prompt(),
            // Some agents offer a method that they do not have.
            (Stage::Session(How::Resume), Err(refusal)) if refusal.code != AUTH_REQUIRED && self.loads() => {
                vec![self.resume(How::Load)]
            }
            (Stage::Session(How::Load | How::Resume), Err(refusal)) if refusal.code != AUTH_REQUIRED => {
                self.begin_anew(&refusal)
            }
            (Stage::Initialize | Stage::Authenticate | Stage::Session(_), Err(refusal)) => {
                self.refused(&refusal)
            }
            (Stage::Prompt, result) => self.ended(result),
            (Stage::Fresh | Stage::Over, _) => Vec::new(),
        }
    }

    /// The turn is over.
    fn ended(&mut self, result: Result<Value, Refusal>) -> Vec<Act> {
        self.stage = Stage::Over;
        let reason = match &result {
            Ok(result) => result["stopReason"].as_str().map(shown),
            Err(refusal) => Some(format!("an error: {}", shown(&refusal.message))),
        };
        let reason = reason.unwrap_or_else(|| "no reason".to_owned());
        if self.is_stopping {
            let is_asked = result.is_ok() && reason == "cancelled";
            return vec![Act::Answered(match is_asked {
                true => Answered::AsAsked("it said `cancelled`".into()),
                false => Answered::Otherwise(format!("it answered `{reason}`, not `cancelled`")),
            })];
        }
        let failed = |what: String| RemoteEvent::Failed(Failure::new(what));
        let said = match (result, reason.as_str()) {
            (Err(refusal), _) => failed(format!("{} ({})", refusal.message, refusal.code)),
            (Ok(_), "end_turn") => RemoteEvent::Done(None, RemoteEnd::Reported),
            (Ok(_), "max_tokens" | "max_turn_requests") => {
                let cut = RemoteEvent::Text(format!("\n[it ended here: `{reason}`]"));
                return vec![Act::Tell(cut), Act::Tell(RemoteEvent::Done(None, RemoteEnd::Reported))];
            }
            (Ok(_), "cancelled") => {
                RemoteEvent::Ended { word: "it says `cancelled`, and we did not ask".into() }
            }
            (Ok(_), "refusal") => failed("it refuses to continue (`refusal`)".into()),
            (Ok(_), other) => failed(format!("it ended for a reason that is not known: `{other}`")),
        };
        vec![Act::Tell(said)]
    }
}

//! A conversation as the next model call will see it, and how its open ends are closed (S5).
//!
//! **Invariants**: in `entries` every assistant message with calls is followed by its results, complete and
//! in the order of the calls. Anything else is in `tail`, and only there.

use std::{collections::HashSet, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::value::{
    ids::CallId,
    message::{AssistantMessage, CallResult, ResultStatus, UserMessage},
};

mod close;
mod earlier;
mod omit;
mod repair;

pub use earlier::Earlier;
pub use omit::{Omission, OmissionKind, Omitted};
pub(crate) use omit::{View, bytes, bytes_of, said_from, tokens_of};
pub use repair::Repair;

/// One step of a conversation. Exhaustive: every wire must place each of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// A person's message.
    User(UserMessage),
    /// A model's message; shared, not copied.
    Assistant(Arc<AssistantMessage>),
    /// The results of all calls of the message before, in their order.
    Results {
        /// One result a call.
        results: Vec<CallResult>,
    },
}

/// A conversation: cheap to clone, growing at its end, with at most one open end.
///
/// Obtained from [`Outcome::history`](crate::Outcome::history), stored by you if you like (it is `serde`), and handed
/// to [`Agent::run_on`](crate::Agent::run_on), which closes the open end before it adds the new input.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    entries: Vec<Arc<Message>>,
    #[serde(default)]
    tail: OpenEnd,
    #[serde(default, skip_serializing_if = "View::is_all")]
    view: View,
}

/// The open end of a conversation: what a stop, a limit or a failure left. Exhaustive: closing must handle each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "tail", rename_all = "snake_case")]
pub enum OpenEnd {
    /// Nothing is open.
    #[default]
    Whole,
    /// The model's message was cut while it streamed.
    Cut {
        /// What had arrived: its complete calls never started.
        message: Arc<AssistantMessage>,
    },
    /// The message is whole, some of its calls have no result.
    Open {
        /// The message.
        message: Arc<AssistantMessage>,
        /// What became of its calls, in their order.
        calls: Vec<OpenCall>,
    },
}

/// What is known of one call of an open round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenCall {
    /// What the model will see if a new turn closes it.
    pub result: CallResult,
}

impl History {
    /// An empty conversation.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The closed part, oldest first, what is [left out](History::omitted) of what a model is sent included.
    #[must_use]
    pub fn entries(&self) -> &[Arc<Message>] {
        &self.entries
    }

    /// The open end.
    #[must_use]
    pub fn tail(&self) -> &OpenEnd {
        &self.tail
    }

    /// Adds an entry to the closed part.
    ///
    /// Building a history by hand is allowed; [`History::repair`] corrects what does not fit before use.
    pub fn push(&mut self, entry: Message) {
        self.entries.push(Arc::new(entry));
    }

    /// Adds an entry that is shared with another history.
    pub(crate) fn push_shared(&mut self, entry: Arc<Message>) {
        self.entries.push(entry);
    }

    /// Sets the open end.
    pub(crate) fn leave_open(&mut self, tail: OpenEnd) {
        self.tail = tail;
    }

    /// The ids of all calls in the closed part.
    pub(crate) fn call_ids(&self) -> HashSet<CallId> {
        self.entries
            .iter()
            .filter_map(|entry| match &**entry {
                Message::Assistant(message) => Some(message),
                Message::User(_) | Message::Results { .. } => None,
            })
            .flat_map(|message| message.calls())
            .map(|call| call.id.clone())
            .collect()
    }

    /// The result of the last call, if nothing came after it and it is not an error.
    pub(crate) fn last_result(&self) -> Option<Arc<String>> {
        let last = match (&self.tail, self.entries.last().map(|last| &**last)) {
            (OpenEnd::Open { calls, .. }, _) => &calls.last()?.result,
            (OpenEnd::Whole, Some(Message::Results { results })) => results.last()?,
            (OpenEnd::Whole | OpenEnd::Cut { .. }, _) => return None,
        };
        (last.verdict == ResultStatus::Ok).then(|| Arc::clone(&last.text))
    }

    /// The last text that the model said, if any.
    #[must_use]
    pub fn last_text(&self) -> Option<String> {
        self.last_message().map(|message| message.text().into_owned())
    }

    /// The last message of the model in the closed part.
    pub(crate) fn last_message(&self) -> Option<&Arc<AssistantMessage>> {
        self.entries.iter().rev().find_map(|entry| match &**entry {
            Message::Assistant(message) => Some(message),
            Message::User(_) | Message::Results { .. } => None,
        })
    }
}

/// What a model sees for calls without a result. Neutral, short, the same bytes every time.
pub mod note {
    /// Nothing of it ran.
    pub const NOT_STARTED: &str =
        "[not started: the run was stopped before this call began. Nothing was done.]";
    /// Nothing of it ran, because a newer message came first.
    pub const OVERTAKEN: &str =
        "[not started: a newer message arrived before this call began. Nothing was done.]";
    /// It ran and was stopped; how far it came is unknown.
    pub const STOPPED_UNKNOWN: &str =
        "[stopped while running: its effects are unknown and may have happened. Check before repeating it.]";
    /// It was begun, and its end was not seen: it was not stopped either.
    pub const CUT_OFF: &str = "[cut off: no end of this call is recorded, as when its process is killed. Its effects are unknown and may have happened. Check before repeating it.]";
    /// It only read, and was stopped.
    pub const STOPPED_HARMLESS: &str = "[stopped while running: it only reads, so nothing was changed.]";
    /// It was a run of another agent, and had changed nothing.
    pub const CHILD_STOPPED_HARMLESS: &str =
        "[stopped while at work: this agent was ended early. It had not changed anything.]";
    /// It was a run of another agent; every call that it made has a known end.
    pub const CHILD_STOPPED: &str =
        "[stopped while at work: this agent was ended early. What it did stands; the rest was not done.]";
    /// Its time limit passed.
    pub const TIMED_OUT: &str =
        "[timed out: its effects are unknown and may have happened. Check before repeating it.]";
    /// Its time limit passed, and it could not be ended.
    pub const TIMED_OUT_STILL_RUNNING: &str =
        "[timed out and still running: this call could not be ended. Its effects may yet happen.]";
    /// It could not be stopped and continues.
    pub const STILL_RUNNING: &str =
        "[still running: the run was stopped and this call could not be. Its effects may yet happen.]";
    /// It was not allowed.
    pub const DENIED: &str = "[denied: this call was not allowed to run. Nothing was done.]";
    /// Its question expired.
    pub const EXPIRED: &str = "[expired: nobody decided about this call in time. Nothing was done.]";
    /// A person stopped this one call.
    pub const STOPPED_ALONE: &str =
        "[stopped by request: this call was ended early. Its effects are unknown and may have happened.]";
    /// Marks a message that was cut.
    pub const INTERRUPTED: &str = "[interrupted: this message was cut here.]";
    /// Calls beyond the limit of one message: they are not part of it, and the note follows its last result.
    pub(crate) fn calls_left_out(more: u64) -> String {
        format!(
            "\n[{more} more calls of this message were left out: a message may not have so many. Nothing of them was done.]"
        )
    }
    /// A result that a stored history lacks.
    pub const MISSING: &str =
        "[no result is recorded for this call: its effects are unknown and may have happened.]";
}

//! Questions of a remote agent to a person, and the answers.

use safepoint::{
    approval::Decision,
    raw::remote::{RemoteEvent, RemoteQuestion},
};
use serde_json::json;

use super::{
    call::{Feed, TaskCall},
    wire::{State, Status},
};

/// The remote agent's questions so far.
#[derive(Default)]
pub(super) struct Asking {
    /// The open question: its id, and its status.
    pub(super) open: Option<(String, Status)>,
    /// The status that was answered last, until the task continues.
    pub(super) answered: Option<Status>,
    asked: u32,
}

impl Asking {
    /// Whether the remote agent has asked a question.
    pub(super) fn has_asked(&self) -> bool {
        self.asked > 0
    }

    /// Marks the open question of this id as answered; false if there is none.
    pub(super) fn answers(&mut self, question: &str) -> bool {
        let taken = self.open.take_if(|(id, _)| id == question);
        let was_open = taken.is_some();
        self.answered = taken.map(|(_, asked)| asked).or(self.answered.take());
        was_open
    }
}

impl TaskCall {
    /// The remote agent asks a person a question.
    pub(super) fn asks(&mut self, status: Status) {
        if self.asking.open.is_none() {
            self.asking.asked += 1;
            let id = self.asking.asked.to_string();
            let (tool, standing) = match status.state {
                State::AuthRequired => ("sign_in", "it needs a person to sign in"),
                _ => ("input", "it needs an answer"),
            };
            let args = json!({"asks": or(status.word.clone(), standing)});
            self.asking.open = Some((id.clone(), status));
            self.events.push_back(RemoteEvent::Question(RemoteQuestion { id, tool: tool.into(), args }));
        }
        if !matches!(self.feed, Feed::Reading(..)) {
            self.wait();
        }
    }

    /// Waits for a person. They may sign in elsewhere, without a message of ours; nothing else happens by
    /// itself.
    pub(super) fn wait(&mut self) {
        match &self.asking.open {
            Some((_, Status { state: State::AuthRequired, .. })) => {
                self.watch.want(self.peer.http.bounds.look_every);
            }
            _ => self.watch.off(),
        }
        self.feed = Feed::Closed;
    }

    /// The remote agent continues without an answer.
    pub(super) fn withdraw(&mut self) {
        if let Some((question, _)) = self.asking.open.take() {
            self.events.push_back(RemoteEvent::Withdrawn { question });
        }
    }
}

/// A person's decision, as a message to the remote agent.
pub(super) fn words(decision: Decision) -> String {
    match decision {
        Decision::Approve | Decision::ApproveAlways { .. } => "Yes.".into(),
        Decision::ApproveWith { args } => match args["answer"].as_str() {
            Some(answer) => answer.to_owned(),
            None => args.to_string(),
        },
        Decision::Respond { result } => result,
        Decision::Deny { message } => or(message, "No: this was denied."),
    }
}

pub(super) fn or(word: String, standing: &str) -> String {
    if word.is_empty() { standing.to_owned() } else { word }
}

//! Questions of a remote agent to a person, and the answers.

use safepoint::{
    approval::Decision,
    raw::remote::{RemoteEvent, RemoteQuestion},
};
use serde_json::json;

use super::{
    state::{Feed, TaskCall},
    wire::{State, Status},
};

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
        Decision::ApproveWith { args, .. } => match args["answer"].as_str() {
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

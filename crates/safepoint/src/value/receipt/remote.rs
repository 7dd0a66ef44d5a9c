//! A call's remote work in a receipt: who does it, which stop was sent, and what the reply was (S10.3).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::value::{is_default, text::head};

/// What a stop does to work, as its backend declares and the contract suite measures (S10.1). Exhaustive: the
/// three grades.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopSupport {
    /// The work is torn down.
    Hard,
    /// The caller is unblocked; the work may continue to its end.
    CallerSide,
    /// A stop is not supported: the work continues to its end.
    None,
}

impl StopSupport {
    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hard => "hard",
            Self::CallerSide => "caller-side",
            Self::None => "none",
        }
    }
}

/// What is known of a stop that a remote agent was asked for: its reply, and no more (S10.3). Exhaustive:
/// five states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RemoteStopState {
    /// The stop was sent; there was no reply yet.
    Requested,
    /// It acknowledged the stop, and has not said that the work has ended.
    Acknowledged,
    /// It confirmed that the work has ended, or its process is gone, and no process that it worked with is
    /// known to continue.
    Confirmed,
    /// It will not stop, or cannot.
    Refused,
    /// The stop could not be delivered.
    Unreachable,
}

impl RemoteStopState {
    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Acknowledged => "acknowledged",
            Self::Confirmed => "confirmed",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
        }
    }
}

/// Processes of this machine that are not ours and that a remote agent's processes worked with: they may
/// continue its work after it has ended (S10.60). Exhaustive: what cannot be inspected is not reported as
/// nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outside {
    /// Not inspected: the remote agent is no process of ours, or was not asked to stop.
    #[default]
    Unasked,
    /// There was none.
    #[serde(rename = "nobody")]
    None,
    /// The inspection failed, or was incomplete.
    Unseen,
    /// These.
    Named(Vec<String>),
}

impl Outside {
    /// The names of the processes.
    #[must_use]
    pub fn names(&self) -> &[String] {
        match self {
            Self::Named(names) => names,
            Self::Unasked | Self::None | Self::Unseen => &[],
        }
    }
}

/// A call's work that a remote agent does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RemoteReport {
    /// Who does it, such as `a2a:http://localhost:9000`.
    pub peer: String,
    /// The remote agent's name for the work, once it has given one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// What a stop does there, as declared.
    pub grade: StopSupport,
    /// What is known of the stop; `None` if none was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<RemoteStopState>,
    /// The remote agent's own words about it; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub word: String,
    /// How many bytes of its answer arrived.
    #[serde(default, skip_serializing_if = "is_default")]
    pub said_bytes: u64,
    /// The first of them, at most a kilobyte; the history has all of them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub said: String,
    /// How long it had to end the work before the run continued without it, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_ms: Option<u64>,
    /// When the stop was sent; `None` if it could not be delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<Timestamp>,
    /// When its last reply arrived.
    #[serde(rename = "heard_at", default, skip_serializing_if = "Option::is_none")]
    pub replied_at: Option<Timestamp>,
    /// When it was known to have ended by itself: with an answer, by a failure, or because it never began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// When it said, in answer to a stop that is not known to end its work, that the work was over: nothing shows that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<Timestamp>,
    /// When the connection to it broke, so that what became of it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_at: Option<Timestamp>,
    /// Processes that are not ours and that its processes worked with, if those are ours.
    #[serde(default, skip_serializing_if = "is_default")]
    pub outside: Outside,
}

impl RemoteReport {
    /// Work that `peer` is about to begin.
    #[must_use]
    pub fn of(peer: impl Into<String>, grade: StopSupport) -> Self {
        Self {
            peer: peer.into(),
            task: None,
            grade,
            stop: None,
            word: String::new(),
            said_bytes: 0,
            said: String::new(),
            within_ms: None,
            asked_at: None,
            replied_at: None,
            ended_at: None,
            claimed_at: None,
            lost_at: None,
            outside: Outside::Unasked,
        }
    }

    /// Counts more of its answer.
    pub(crate) fn says(&mut self, text: &str) {
        const KEPT: usize = 1024;
        // Text behind a piece that did not fit is not part of the beginning.
        if self.said_bytes == self.said.len() as u64 {
            self.said.push_str(head(text, KEPT.saturating_sub(self.said.len())));
        }
        self.said_bytes += text.len() as u64;
    }

    /// How many bytes of its answer were reported.
    pub(crate) fn text_len(&self) -> usize {
        usize::try_from(self.said_bytes).unwrap_or(usize::MAX)
    }

    /// Whether the work may continue although its call has ended: a stop was sent and its end is not
    /// confirmed, or the connection broke. A confirmation counts only from a remote agent whose stops are
    /// hard.
    #[must_use]
    pub fn may_go_on(&self) -> bool {
        match self.stop {
            _ if self.ended_at.is_some() => false,
            None => self.lost_at.is_some() || self.claimed_at.is_some(),
            Some(RemoteStopState::Confirmed) => {
                self.grade != StopSupport::Hard || !self.outside.names().is_empty()
            }
            Some(
                RemoteStopState::Requested
                | RemoteStopState::Acknowledged
                | RemoteStopState::Refused
                | RemoteStopState::Unreachable,
            ) => true,
        }
    }

    /// What of it may be alive, by name.
    #[must_use]
    pub fn survivors(&self) -> Vec<String> {
        match self.outside.names() {
            _ if !self.may_go_on() => Vec::new(),
            [] => vec![self.label()],
            names => names.iter().map(|name| format!("{name}, which {} worked with", self.peer)).collect(),
        }
    }

    /// Its name in lists of what is alive.
    #[must_use]
    pub fn label(&self) -> String {
        match &self.task {
            Some(task) => format!("remote work {task} at {}", self.peer),
            None => format!("remote work at {}", self.peer),
        }
    }
}

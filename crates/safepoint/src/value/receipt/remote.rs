//! What a receipt says of work in a call that others do: who, what they were told of a stop, and what they said (S10.3).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What a stop does to work, as whoever does it declares, and the contract suite measures (S10.1). Exhaustive: the
/// three grades.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopSupport {
    /// The work is torn down.
    Hard,
    /// The caller is unblocked; the work may go on to its end.
    CallerSide,
    /// A stop is not supported: the work goes on to its end.
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

/// What is known of a stop that a peer was asked for: its own word, and no more (S10.3). Exhaustive: the five of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemoteStopState {
    /// It was told; it has said nothing yet.
    Requested,
    /// It took note; that the work has ended is not said.
    Acknowledged,
    /// It said that the work has ended, or its process is gone, and nobody that it worked with is known to go on.
    Confirmed,
    /// It will not stop, or cannot.
    Refused,
    /// It could not be told.
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

/// What is known of processes of this machine that are not ours, and that those of a peer worked with: they may go on with
/// its work when it has ended (S10.60). Exhaustive: what cannot be looked at is not said to be nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outside {
    /// Nobody looked: the peer is no process of ours, or was not asked to stop.
    #[default]
    Unasked,
    /// There was none.
    Nobody,
    /// It could not be looked, or not everywhere.
    Unseen,
    /// These.
    Named(Vec<String>),
}

impl Outside {
    fn is_unasked(&self) -> bool {
        *self == Self::Unasked
    }

    /// The processes, by name.
    #[must_use]
    pub fn names(&self) -> &[String] {
        match self {
            Self::Named(names) => names,
            Self::Unasked | Self::Nobody | Self::Unseen => &[],
        }
    }
}

/// Work in a call that a peer does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteReport {
    /// Who does it, such as `a2a:http://localhost:9000`.
    pub peer: String,
    /// The peer's own name for the work, once it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// What a stop does there, as declared.
    pub grade: StopSupport,
    /// What is known of the stop; none if the peer was not asked for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<RemoteStopState>,
    /// What the peer said of it, in its words; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub word: String,
    /// How many bytes of its answer came.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub said_bytes: u64,
    /// The first of them, at most a kilobyte; all of them stand in the history.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub said: String,
    /// How long it had to end the work before the run went on without it, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_ms: Option<u64>,
    /// When it was asked to stop; none if it could not be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<Timestamp>,
    /// When it said what it said last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_at: Option<Timestamp>,
    /// When it was known to have ended by itself: with an answer, by a failure of its own, or because it never began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// When the line to it broke, so that nobody knows what became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_at: Option<Timestamp>,
    /// Whom its processes worked with that are not ours, where they are processes of ours.
    #[serde(default, skip_serializing_if = "Outside::is_unasked")]
    pub outside: Outside,
}

fn is_nothing(bytes: &u64) -> bool {
    *bytes == 0
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
            heard_at: None,
            ended_at: None,
            lost_at: None,
            outside: Outside::Unasked,
        }
    }

    /// Counts more of its answer.
    pub(crate) fn says(&mut self, text: &str) {
        const KEPT: usize = 1024;
        let mut end = text.len().min(KEPT.saturating_sub(self.said.len()));
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        // What comes behind a piece that did not fit whole is no part of the first.
        if self.said_bytes == self.said.len() as u64 {
            self.said.push_str(&text[..end]);
        }
        self.said_bytes += text.len() as u64;
    }

    /// How many bytes of its answer were told.
    pub(crate) fn told(&self) -> usize {
        usize::try_from(self.said_bytes).unwrap_or(usize::MAX)
    }

    /// Whether the work may go on although its call has ended: it was asked to stop and has not said that it did, or
    /// the line broke. A peer whose stops are not hard is not believed when it says that its work was stopped.
    #[must_use]
    pub fn may_go_on(&self) -> bool {
        match self.stop {
            _ if self.ended_at.is_some() => false,
            None => self.lost_at.is_some(),
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

    /// What it is called among what is alive.
    #[must_use]
    pub fn label(&self) -> String {
        match &self.task {
            Some(task) => format!("remote work {task} at {}", self.peer),
            None => format!("remote work at {}", self.peer),
        }
    }
}

//! What was so, whatever anybody says of it.
//!
//! ```
//! use safepoint_stop_test::{Work, WorkEnd, WorkKind};
//! let shell = Work { kind: WorkKind::Process, name: "sh, 41".into(), words: vec!["41".into()], end: WorkEnd::Never };
//! assert!(shell.is_named_in("1 process is alive: 41 (sh)"));
//! assert!(!shell.is_named_in("waited 410 ms"), "a part of a word names nothing");
//! ```

use std::{fmt, time::Duration};

use serde::Serialize;

/// What was observed of one stop. Each time counts from the moment in which the stop was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Facts {
    /// Each piece of work that was under way at the stop, or began after it.
    pub work: Vec<Work>,
    /// How many more requests the model got after the stop, before the next message.
    pub asked_again: usize,
    /// How many more pieces the model sent after the stop, of an answer that comes a piece at a time.
    pub pieces_after: usize,
    /// What became of the message after the stop.
    pub next: Next,
    /// How the target itself ended without being asked to, if it did.
    pub crash: Option<String>,
    /// How long it was watched after the stop.
    pub watched: Duration,
}

/// One piece of work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Work {
    /// What it is.
    pub kind: WorkKind,
    /// Which one, for a reader.
    pub name: String,
    /// The words by one of which a target would name it: the number of a process, the name of a tool; none of a model, where
    /// it is named in free text.
    pub words: Vec<String>,
    /// How it ended.
    pub end: WorkEnd,
}

/// What is at work for a target. Exhaustive: these can be observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WorkKind {
    /// A model whose connection is open.
    Model,
    /// A tool that counts.
    Tool,
    /// A process.
    Process,
}

/// How a piece of work ended. Exhaustive: there is no other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WorkEnd {
    /// It was cut then.
    Cut(Duration),
    /// It did all that it had to do, as if nobody had stopped it; then.
    Whole(Duration),
    /// It still went on when the observation ended.
    Never,
}

/// What became of the message after a stop. Exhaustive: the judge looks at each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Next {
    /// None was sent, for this reason.
    NotSent(String),
    /// The model got it with a history that a strict server accepts, and the caller got the answer.
    #[default]
    Accepted,
    /// A strict server refused the history; with these words.
    Refused(String),
    /// No answer came to it.
    Silent,
    /// It is continued, but the model does not learn of what ran before the stop; in words.
    CallLost(String),
}

impl Work {
    /// Whether a text names it, by one of its words.
    #[must_use]
    pub fn is_named_in(&self, text: &str) -> bool {
        let mut found =
            text.split(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != '-');
        found.any(|word| self.words.iter().any(|ours| ours.eq_ignore_ascii_case(word)))
    }

    /// Until when it went on; none: longer than it was watched.
    #[must_use]
    pub fn until(&self) -> Option<Duration> {
        match self.end {
            WorkEnd::Cut(at) | WorkEnd::Whole(at) => Some(at),
            WorkEnd::Never => None,
        }
    }
}

impl Facts {
    /// What went on for longer than this.
    pub fn beyond(&self, at: Duration) -> impl Iterator<Item = &Work> {
        self.work.iter().filter(move |work| work.until().is_none_or(|until| until > at))
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            WorkKind::Model => write!(f, "the model's answer {}", self.name),
            WorkKind::Tool => write!(f, "the tool `{}`", self.name),
            WorkKind::Process => write!(f, "the process `{}`", self.name),
        }
    }
}

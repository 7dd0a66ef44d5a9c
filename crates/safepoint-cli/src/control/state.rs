//! How a session stands, as lists say it.

use serde::Serialize;
use serde_json::json;

/// How a session stands, by its name in JSON. Exhaustive: what a person does next depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// Its process lives and does not answer.
    #[serde(rename = "not answering")]
    NotAnswering,
    /// A turn is running.
    Running,
    /// A process has the session open, and no turn is running.
    Open,
    /// A turn was running when its process ended.
    Crashed,
    Suspended,
    Stopped,
    Failed,
    Idle,
}

impl State {
    /// For people.
    pub(crate) fn shown(self) -> String {
        match self {
            Self::Open => "idle".into(),
            Self::Crashed => "interrupted".into(),
            _ => json!(self).as_str().unwrap_or_default().to_owned(),
        }
    }
}

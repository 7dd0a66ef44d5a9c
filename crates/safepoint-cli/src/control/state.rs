//! How a session stands, as lists say it.

/// How a session stands. Exhaustive: what a person does next depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Its process lives and does not answer.
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
    pub(crate) fn shown(self) -> &'static str {
        match self {
            Self::Open => "idle",
            Self::Crashed => "interrupted",
            _ => self.name(),
        }
    }

    /// In JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NotAnswering => "not answering",
            Self::Running => "running",
            Self::Open => "open",
            Self::Crashed => "crashed",
            Self::Suspended => "suspended",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Idle => "idle",
        }
    }
}

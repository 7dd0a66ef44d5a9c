//! Whatever executes a run, in this process or elsewhere: one trait, one handle (S10.1).

use crate::{
    run::RunHandle,
    value::{history::History, message::UserMessage, receipt::StopSupport},
};

mod report;
mod state;
mod watch;
mod wrap;

pub use wrap::{ActiveWork, PendingWork, TooLate, WrappedEnd, wrap, wrap_finished};

/// Executes runs. An [`Agent`](crate::Agent) is a backend, so is an agent [over](crate::Agent::remote) a
/// remote agent, and so is a runtime that you wrap yourself: see [`wrap`] and [`wrap_finished`].
pub trait Backend: Send + Sync + 'static {
    /// What it is; the same for its whole life.
    fn spec(&self) -> BackendSpec;

    /// Begins the task, and returns at once.
    fn start(&self, task: RunInput) -> RunHandle;
}

/// What a backend is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendSpec {
    /// Its name, for people.
    pub name: String,
    /// What a stop does to its work. The testkit's suite measures whether that is true.
    pub grade: StopSupport,
}

/// What a backend is asked to do.
#[derive(Clone, Debug)]
pub struct RunInput {
    /// The conversation that the task continues.
    pub history: History,
    /// The input.
    pub input: UserMessage,
}

impl RunInput {
    /// A task without an earlier conversation.
    #[must_use]
    pub fn new(input: impl Into<UserMessage>) -> Self {
        Self { history: History::new(), input: input.into() }
    }
}

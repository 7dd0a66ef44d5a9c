//! A task as a server shows it: its state, its events and its readers.
//!
//! **Invariants**: events are never removed. The server drops events after the end of a task, unless it
//! completes cancelled tasks.

use std::sync::Mutex;

use tokio::sync::{Notify, watch};

use crate::sync::{lock, until};

/// A task's state. Exhaustive: those that the servers here have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskState {
    Submitted,
    Working,
    InputRequired,
    AuthRequired,
    Completed,
    Failed,
    Canceled,
}

impl TaskState {
    pub(super) fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled)
    }

    /// Whether a stream about it is over.
    pub(super) fn ends_streams(self) -> bool {
        self.is_terminal() || matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

/// An event of a task.
#[derive(Clone, Debug)]
pub(super) enum TaskEvent {
    Status(TaskState, Option<String>),
    /// More of an artifact.
    Part {
        artifact: String,
        text: String,
    },
    /// The answer from its beginning.
    Anew(String),
}

/// The artifact that the answer is, where nothing else is said.
const ANSWER: &str = "answer";

impl TaskEvent {
    /// More of the answer.
    pub(super) fn part(text: &str) -> Self {
        Self::Part { artifact: ANSWER.into(), text: text.into() }
    }

    /// The artifact that it tells of.
    pub(super) fn artifact(&self) -> Option<&str> {
        match self {
            Self::Status(..) => None,
            Self::Part { artifact, .. } => Some(artifact),
            Self::Anew(_) => Some(ANSWER),
        }
    }
}

/// A task.
#[derive(Debug, Default)]
pub(super) struct Task {
    pub(super) id: String,
    pub(super) context: String,
    /// Held for one event, and its count, or for one look: readers see events in this order. Nothing is
    /// awaited under it.
    events: Mutex<Vec<TaskEvent>>,
    /// After each of these numbers of events, the task keeps the next part twice. Never held together with `events`.
    listened: Mutex<Vec<usize>>,
    /// How many events there are.
    count: watch::Sender<usize>,
    /// Held to add or to take one answer. `answered` keeps one notification, and one waits: none is missed.
    answers: Mutex<Vec<String>>,
    answered: Notify,
    torn: watch::Sender<bool>,
}

impl Task {
    pub(super) fn new(id: String, context: String) -> Self {
        Self { id, context, ..Self::default() }
    }

    /// The task as it stood after this many of its events.
    pub(super) fn after(&self, events: usize) -> Self {
        let task = Self::new(self.id.clone(), self.context.clone());
        self.events().into_iter().take(events).for_each(|event| task.tell_anyway(event));
        task
    }

    pub(super) fn events(&self) -> Vec<TaskEvent> {
        lock(&self.events).clone()
    }

    pub(super) fn state(&self) -> TaskState {
        state_of(&lock(&self.events))
    }

    /// What the newest status says.
    pub(super) fn word(&self) -> Option<String> {
        self.events().into_iter().rev().find_map(|event| match event {
            TaskEvent::Status(_, word) => Some(word),
            TaskEvent::Part { .. } | TaskEvent::Anew(_) => None,
        })?
    }

    /// The artifacts so far, each with its parts.
    pub(super) fn artifacts(&self) -> Vec<(String, Vec<String>)> {
        let mut artifacts: Vec<(String, Vec<String>)> = Vec::new();
        let listened = lock(&self.listened).clone();
        for (place, event) in self.events().into_iter().enumerate() {
            let Some(name) = event.artifact() else { continue };
            let at = artifacts.iter().position(|(id, _)| id == name).unwrap_or_else(|| {
                artifacts.push((name.to_owned(), Vec::new()));
                artifacts.len() - 1
            });
            let parts = &mut artifacts[at].1;
            match event {
                TaskEvent::Part { text, .. } if listened.contains(&place) => {
                    parts.extend([text.clone(), text])
                }
                TaskEvent::Part { text, .. } => parts.push(text),
                TaskEvent::Anew(text) => *parts = vec![text],
                TaskEvent::Status(..) => {}
            }
        }
        artifacts
    }

    /// Sends it to the readers; false if the task is over.
    pub(super) fn tell(&self, event: TaskEvent) -> bool {
        let mut events = lock(&self.events);
        // Looked at under the lock: of two ends at once one is recorded.
        let is_open = !state_of(&events).is_terminal();
        if is_open {
            self.push(&mut events, event);
        }
        is_open
    }

    /// Tells it also behind the end.
    pub(super) fn tell_anyway(&self, event: TaskEvent) {
        self.push(&mut lock(&self.events), event);
    }

    fn push(&self, events: &mut Vec<TaskEvent>, event: TaskEvent) {
        events.push(event);
        self.count.send_replace(events.len());
    }

    /// A second listener is a second writer, as in a2a-java 0.3: the event that comes next is kept twice in
    /// the task.
    pub(super) fn is_written_twice(&self) {
        let next = self.events().len();
        lock(&self.listened).push(next);
    }

    /// Waits until it has this many events.
    pub(super) async fn has(&self, events: usize) {
        until(&self.count, |count| *count >= events).await;
    }

    pub(super) fn looks_on(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    /// A person's answer.
    pub(super) fn answer(&self, text: String) {
        lock(&self.answers).push(text);
        self.answered.notify_one();
    }

    /// Waits for a person's answer.
    pub(super) async fn asked(&self) -> String {
        loop {
            let answer = lock(&self.answers).pop();
            if let Some(answer) = answer {
                return answer;
            }
            self.answered.notified().await;
        }
    }

    pub(super) fn tear_down(&self) {
        self.torn.send_replace(true);
    }

    /// Waits until the work is to be torn down.
    pub(super) async fn torn(&self) {
        until(&self.torn, |torn| *torn).await;
    }
}

fn state_of(events: &[TaskEvent]) -> TaskState {
    let newest = events.iter().rev().find_map(|event| match event {
        TaskEvent::Status(state, _) => Some(*state),
        TaskEvent::Part { .. } | TaskEvent::Anew(_) => None,
    });
    newest.unwrap_or(TaskState::Submitted)
}

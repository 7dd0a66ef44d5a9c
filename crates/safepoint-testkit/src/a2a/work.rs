//! What a server's work really does, and the record of it.
//!
//! **Invariants**: a work that has begun counts as running until it has recorded its end.

use std::sync::{Arc, Mutex};

use tokio::sync::{Semaphore, watch};

use super::{
    Mind, OnCancel, WorkStep,
    task::{Task, TaskEvent, TaskState},
};
use crate::sync::{lock, until};

/// Where the works are.
#[derive(Debug, Default)]
pub(super) struct Yard {
    /// Held for one deed or one copy, so deeds have one order. No other lock is taken under it.
    deeds: Mutex<Vec<String>>,
    running: watch::Sender<usize>,
    came: watch::Sender<usize>,
    gate: Passes,
}

/// Passes that the test gives: each lets one work, or one stream, continue, in the order in which they wait.
#[derive(Debug)]
pub(super) struct Passes(Semaphore);

impl Default for Passes {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

impl Passes {
    pub(super) fn give(&self, count: usize) {
        self.0.add_permits(count);
    }

    /// Waits for a pass, and uses it up.
    pub(super) async fn pass(&self) {
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
    }
}

impl Yard {
    fn note(&self, deed: impl Into<String>) {
        lock(&self.deeds).push(deed.into());
    }

    pub(super) fn deeds(&self) -> Vec<String> {
        lock(&self.deeds).clone()
    }

    pub(super) fn running(&self) -> usize {
        *self.running.borrow()
    }

    pub(super) async fn came(&self, works: usize) {
        until(&self.came, |came| *came >= works).await;
    }

    pub(super) async fn idle(&self) {
        until(&self.running, |running| *running == 0).await;
    }

    pub(super) fn let_on(&self, works: usize) {
        self.gate.give(works);
    }
}

/// Begins a task's work; it has begun when this returns.
pub(super) fn begin(mind: Arc<Mind>, task: Arc<Task>) {
    mind.yard.note("began");
    mind.yard.running.send_modify(|works| *works += 1);
    tokio::spawn(async move {
        tokio::select! {
            biased;
            // First: work that was torn down does not end by itself. What loses is the work itself, wherever it waits.
            () = task.torn() => mind.yard.note("torn down"),
            () = work(&mind, &task) => mind.yard.note("ended"),
        }
        mind.yard.running.send_modify(|works| *works -= 1);
    });
}

async fn work(mind: &Mind, task: &Task) {
    task.tell(TaskEvent::Status(TaskState::Working, None));
    for step in &mind.manners.plan {
        match step {
            WorkStep::Say(text) => say(mind, task, text, TaskEvent::part(text)),
            WorkStep::SayIn(artifact, text) => {
                say(mind, task, text, TaskEvent::Part { artifact: artifact.clone(), text: text.clone() });
            }
            WorkStep::Anew(text) => {
                task.tell(TaskEvent::Anew(text.clone()));
            }
            WorkStep::Note(text) => {
                task.tell(TaskEvent::Status(TaskState::Working, Some(text.clone())));
            }
            WorkStep::Wait => {
                mind.yard.came.send_modify(|came| *came += 1);
                mind.yard.gate.pass().await;
            }
            WorkStep::Ask(text) => ask(mind, task, TaskState::InputRequired, text).await,
            WorkStep::SignIn(text) => ask(mind, task, TaskState::AuthRequired, text).await,
            WorkStep::Fail(text) => {
                task.tell(TaskEvent::Status(TaskState::Failed, Some(text.clone())));
                return;
            }
        }
    }
    let completed = TaskEvent::Status(TaskState::Completed, None);
    match mind.manners.on_cancel {
        OnCancel::SaysAndCompletes => task.tell_anyway(completed),
        _ => {
            task.tell(completed);
        }
    }
}

fn say(mind: &Mind, task: &Task, text: &str, part: TaskEvent) {
    let is_sent = task.tell(part);
    mind.yard.note(if is_sent { format!("said {text}") } else { format!("unheard {text}") });
}

async fn ask(mind: &Mind, task: &Task, state: TaskState, text: &str) {
    task.tell(TaskEvent::Status(state, Some(text.to_owned())));
    mind.yard.came.send_modify(|came| *came += 1);
    let answer = task.asked().await;
    mind.yard.note(format!("got {answer}"));
    task.tell(TaskEvent::Status(TaskState::Working, None));
}

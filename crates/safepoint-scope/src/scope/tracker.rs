//! What is alive under a run, by name: the run is quiet when nothing is.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::Notify;

/// A name for something that is alive, as a receipt shows it. Cheap to make and to clone: it is written out only for a
/// list of what is alive.
///
/// ```
/// use safepoint_scope::Label;
/// assert_eq!(Label::of("tool ", "search").to_string(), "tool search");
/// assert_eq!(Label::from("driver").to_string(), "driver");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    kind: &'static str,
    name: Option<Arc<str>>,
}

impl Label {
    /// What it is, and its name directly behind that.
    pub fn of(kind: &'static str, name: impl Into<Arc<str>>) -> Self {
        Self { kind, name: Some(name.into()) }
    }
}

impl From<&'static str> for Label {
    fn from(kind: &'static str) -> Self {
        Self { kind, name: None }
    }
}

impl From<String> for Label {
    fn from(name: String) -> Self {
        Self::of("", name)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind)?;
        f.write_str(self.name.as_deref().unwrap_or_default())
    }
}

/// Names of live things, by slot.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    /// Held to enter, to leave, or to look. No other lock is taken under it. The idle notification is sent
    /// after it is released; a task that enters in between is seen by the look of the woken waiter.
    alive: Mutex<Slots>,
    idle: Notify,
}

#[derive(Debug, Default)]
struct Slots {
    labels: Vec<Option<Label>>,
    free: Vec<usize>,
}

impl Tracker {
    pub(crate) fn enter(&self, label: Label) -> usize {
        let mut slots = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        match slots.free.pop() {
            Some(slot) => {
                slots.labels[slot] = Some(label);
                slot
            }
            None => {
                // Most runs have one thing alive at a time, and wait with it.
                if slots.labels.is_empty() {
                    slots.labels.reserve_exact(1);
                    slots.free.reserve_exact(1);
                }
                slots.labels.push(Some(label));
                slots.labels.len() - 1
            }
        }
    }

    pub(crate) fn leave(&self, slot: usize) {
        let mut slots = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        slots.labels[slot] = None;
        slots.free.push(slot);
        let idle = slots.free.len() == slots.labels.len();
        drop(slots);
        if idle {
            self.idle.notify_waiters();
        }
    }

    pub(crate) fn alive(&self) -> Vec<String> {
        let slots = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        slots.labels.iter().flatten().map(Label::to_string).collect()
    }

    fn is_idle(&self) -> bool {
        let slots = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        slots.free.len() == slots.labels.len()
    }

    /// Registers, then looks, so that the last one leaving in between is not missed.
    pub(crate) async fn idle(&self) {
        loop {
            let idle = self.idle.notified();
            if self.is_idle() {
                return;
            }
            idle.await;
        }
    }
}

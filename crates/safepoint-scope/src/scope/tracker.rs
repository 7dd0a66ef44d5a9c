//! What is alive under a run, by name: the run is quiet when nothing is.

use std::{
    borrow::Cow,
    sync::{Mutex, PoisonError},
};

use tokio::sync::Notify;

/// A name for something that is alive, as a receipt shows it.
pub type Label = Cow<'static, str>;

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
        slots.labels.iter().flatten().map(|label| label.clone().into_owned()).collect()
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

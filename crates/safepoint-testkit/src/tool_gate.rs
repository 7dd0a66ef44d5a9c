//! A gate for tools: a call waits at it until the test lets one pass. No sleeps, no luck.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::sync::lock;

/// A gate. Clones are the same gate. One that is open for all stays so.
#[derive(Clone, Debug, Default)]
pub struct ToolGate {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Held to count, or to take a pass, which is one step: no pass is taken twice. Waiters are woken after
    /// it is released, and look again.
    state: Mutex<GateState>,
    moved: Notify,
    opened: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    passes: usize,
    is_open_for_all: bool,
    came: usize,
}

impl ToolGate {
    /// A closed gate.
    #[must_use]
    pub fn shut() -> Self {
        Self::default()
    }

    /// A gate that everybody passes.
    #[must_use]
    pub fn open() -> Self {
        let gate = Self::default();
        gate.open_for_all();
        gate
    }

    /// Lets this many more pass.
    pub fn let_pass(&self, count: usize) {
        lock(&self.inner.state).passes += count;
        self.moved();
    }

    /// Lets everybody pass from now on.
    pub fn open_for_all(&self) {
        lock(&self.inner.state).is_open_for_all = true;
        self.moved();
    }

    /// Waits until this many calls have reached the gate, with those that have passed or gone away.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn came(&self, count: usize) {
        self.until(|state| (state.came >= count).then_some(())).await;
    }

    /// Comes to the gate, and waits for a pass.
    ///
    /// # Cancel safety
    /// No pass is lost.
    pub async fn pass(&self) {
        lock(&self.inner.state).came += 1;
        self.moved();
        self.until(GateState::take).await;
    }

    /// The same on a thread that may block. Nothing but a pass ends it: let it pass before the test ends.
    pub fn pass_blocking(&self) {
        lock(&self.inner.state).came += 1;
        self.moved();
        let mut state = lock(&self.inner.state);
        while state.take().is_none() {
            state = self.inner.opened.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether a pass could be had now; takes none.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let state = lock(&self.inner.state);
        state.is_open_for_all || state.passes > 0
    }

    async fn until<T>(&self, mut what: impl FnMut(&mut GateState) -> Option<T>) -> T {
        loop {
            // Made before the look, so that a move in between wakes it.
            let moved = self.inner.moved.notified();
            if let Some(found) = what(&mut lock(&self.inner.state)) {
                return found;
            }
            moved.await;
        }
    }

    fn moved(&self) {
        self.inner.moved.notify_waiters();
        self.inner.opened.notify_all();
    }
}

impl GateState {
    fn take(&mut self) -> Option<()> {
        if self.is_open_for_all {
            return Some(());
        }
        self.passes = self.passes.checked_sub(1)?;
        Some(())
    }
}

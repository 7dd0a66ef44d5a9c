//! What tools wrote down themselves, outside the engine: the second account against which a receipt is held
//! (I4).

use std::sync::{Arc, Mutex};

use safepoint::ids::CallId;

use crate::sync::lock;

/// A ledger. Clones share it; it outlives runs and attempts.
///
/// ```
/// use safepoint_testkit::ledger::Ledger;
/// let ledger = Ledger::new();
/// let call = "call_1".into();
/// ledger.enter(&call);
/// assert!(ledger.has_entered(&call) && !ledger.has_committed(&call));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Held for one line or one look, so lines have one order. No other lock is taken under it.
    lines: Arc<Mutex<Vec<LedgerLine>>>,
}

/// One line of a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerLine {
    /// Which call wrote it.
    pub call: CallId,
    /// What it says.
    pub mark: Mark,
}

/// What a line says. Exhaustive: a call begins, changes the world, and cleans up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The call's body began.
    Entry,
    /// The call did what it is for.
    Commit,
    /// The call's clean-up ran.
    Cleanup,
}

impl Ledger {
    /// An empty ledger.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes that the call's body began.
    pub fn enter(&self, call: &CallId) {
        self.write(call, Mark::Entry);
    }

    /// Writes that the call did what it is for.
    pub fn commit(&self, call: &CallId) {
        self.write(call, Mark::Commit);
    }

    /// Writes a line.
    pub fn write(&self, call: &CallId, mark: Mark) {
        lock(&self.lines).push(LedgerLine { call: call.clone(), mark });
    }

    /// Every line, in its order.
    #[must_use]
    pub fn lines(&self) -> Vec<LedgerLine> {
        lock(&self.lines).clone()
    }

    /// How many lines say `mark`.
    #[must_use]
    pub fn count(&self, mark: Mark) -> usize {
        lock(&self.lines).iter().filter(|line| line.mark == mark).count()
    }

    /// Whether the call's body began.
    #[must_use]
    pub fn has_entered(&self, call: &CallId) -> bool {
        self.has(call, Mark::Entry)
    }

    /// Whether the call did what it is for.
    #[must_use]
    pub fn has_committed(&self, call: &CallId) -> bool {
        self.has(call, Mark::Commit)
    }

    fn has(&self, call: &CallId, mark: Mark) -> bool {
        lock(&self.lines).iter().any(|line| line.call == *call && line.mark == mark)
    }
}

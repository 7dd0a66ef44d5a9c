//! The requests of one client that wait for their answer.
//!
//! **Invariants**: no two of them have one id; what is kept of those that were cancelled is bounded.

use std::collections::{HashSet, VecDeque};

use rmcp::model::RequestId;

/// The code of a request whose id is not its own, and what is wrong with it.
pub(super) const IN_USE: &str = "id_in_use";
pub(super) const IN_USE_DETAIL: &str =
    "`id` is that of a request that has no answer yet, or was cancelled: each request has its own";

/// How many requests that were cancelled keep their ids: what such a request began may still end, under its id.
pub(super) const MOST_CANCELLED: usize = 64;

/// Their ids.
#[derive(Default)]
pub(super) struct AskedIds {
    waiting: HashSet<RequestId>,
    /// Those that were cancelled meanwhile: they get no answer.
    cancelled: VecDeque<RequestId>,
}

impl AskedIds {
    /// A request begins; returns whether its id is its own: no other one with it waits, or was cancelled a short while ago.
    pub(super) fn begin(&mut self, id: RequestId) -> bool {
        !self.cancelled.contains(&id) && self.waiting.insert(id)
    }

    /// It has its answer, or it gets none and began nothing.
    pub(super) fn end(&mut self, id: &RequestId) {
        self.waiting.remove(id);
    }

    /// The client cancels it: it gets no answer, and what it began ends later.
    pub(super) fn cancel(&mut self, id: &RequestId) {
        if self.waiting.remove(id) {
            self.cancelled.push_back(id.clone());
        }
        if self.cancelled.len() > MOST_CANCELLED {
            self.cancelled.pop_front();
        }
    }
}

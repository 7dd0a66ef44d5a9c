//! The right to ask, and to say that the work is over: handed out when a scope is made, to the code that may stop it, and not
//! to who works in it. It cannot see inside, and cannot act.

use std::sync::Arc;

use tokio::time::Instant;

use crate::{
    reason::Reason,
    request::StopRequest,
    scope::{
        logged::{LoggedRequest, StopAck},
        node::Node,
    },
};

/// May ask a scope to stop, fix its end, and wait for it. Cheap to clone, usable from any thread and from inside the work.
#[derive(Clone, Debug)]
pub struct StopHandle {
    node: Arc<Node>,
}

impl StopHandle {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self { node }
    }

    /// Asks. Never blocks, never fails; the answer says what the request added. A part of a run that has ended answers
    /// that it came too late, as the run is.
    ///
    /// ```
    /// use safepoint_scope::{StopAck, SafePoints, Scope, StopRequest};
    /// let (_scope, handle) = Scope::root();
    /// assert_eq!(handle.stop(StopRequest::at(SafePoints::AFTER_MODEL)), StopAck::First);
    /// assert_eq!(handle.stop(StopRequest::now()), StopAck::Strengthened);
    /// assert_eq!(handle.stop(StopRequest::at(SafePoints::ANY)), StopAck::Unchanged);
    /// handle.settle();
    /// assert_eq!(handle.stop(StopRequest::now()), StopAck::TooLate);
    /// ```
    pub fn stop(&self, request: StopRequest) -> StopAck {
        if self.node.is_closed_over() {
            return StopAck::TooLate;
        }
        let asked = self.node.core.ask(request, Instant::now);
        match asked {
            // After the request is in the log: a waiter that registers later looks after this, and finds it.
            StopAck::First | StopAck::Strengthened => self.node.run.wake(),
            StopAck::Unchanged | StopAck::TooLate => {}
        }
        asked
    }

    /// The first reason that reaches the scope, if anybody asked.
    #[must_use]
    pub fn stop_requested(&self) -> Option<Reason> {
        self.node.reason()
    }

    /// Every request that reaches the scope, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<LoggedRequest> {
        self.node.requests()
    }

    /// Fixes the end of the scope: later requests get the answer that they came too late. True the first time.
    pub fn settle(&self) -> bool {
        let first = self.node.core.settle();
        self.node.run.ended.notify_waiters();
        first
    }

    /// Whether the end is fixed.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.node.is_settled()
    }

    /// Waits until the end is fixed.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn settled(&self) {
        loop {
            // Registered before the look: a settling between the two wakes this waiter.
            let woken = self.node.run.ended.notified();
            if self.is_settled() {
                return;
            }
            woken.await;
        }
    }

    /// Waits until the end is fixed and nothing that the scope's run started is alive.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn quiet(&self) {
        self.settled().await;
        self.node.run.tracker.idle().await;
    }

    /// Waits until nothing that the scope's run has started is alive, whether its end is fixed or not: more may start.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn idle(&self) {
        self.node.run.tracker.idle().await;
    }

    /// What of the scope's run is alive, by name.
    #[must_use]
    pub fn alive(&self) -> Vec<String> {
        self.node.run.tracker.alive()
    }
}

//! The tree of scopes, pulled: a node knows its parent, a check walks up with loads, and no node keeps lists of
//! children.
//!
//! **Invariants**: a check that finds every word on its path silent touches neither clock nor lock. There is one
//! notification per *run* and [`WakeOrder`]; a waiter registers on that of each run on its path, so a request anywhere on
//! the path wakes it, and a request elsewhere does not.

use std::sync::Arc;

use tokio::{sync::Notify, time::Instant};

use crate::{
    reason::Reason,
    request::{
        check_time::CheckTime,
        demand::{Demand, Mode},
        points::SafePoints,
    },
    scope::{
        Link,
        core::{Core, Filter},
        fired::Fired,
        logged::LoggedRequest,
        tracker::{Label, Tracker},
    },
};

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) core: Core,
    pub(crate) run: Arc<RunPart>,
    parent: Parent,
}

/// What all nodes of one run share. Ends are kept apart from requests: in a wide run a call's end would otherwise wake
/// every other call for nothing.
#[derive(Debug, Default)]
pub(crate) struct RunPart {
    ending: Arc<Notify>,
    following: Arc<Notify>,
    pub(crate) ended: Notify,
    pub(crate) tracker: Tracker,
}

/// When a request wakes a waiter. Exhaustive: at once, because it may have to end; or after all of those, because it
/// follows what is asked, and what they come to. In a wide tree the last that must end is then not behind the work of
/// those that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeOrder {
    Ending,
    Following,
}

impl RunPart {
    pub(crate) fn waiters(&self, order: WakeOrder) -> &Arc<Notify> {
        match order {
            WakeOrder::Ending => &self.ending,
            WakeOrder::Following => &self.following,
        }
    }

    /// Wakes all that wait for a request.
    pub(crate) fn wake(&self) {
        self.ending.notify_waiters();
        self.following.notify_waiters();
    }
}

/// Keeps a run from being quiet while it lives.
#[must_use = "the run may be called quiet as soon as this is dropped"]
#[derive(Debug)]
pub struct QuietGuard {
    run: Arc<RunPart>,
    slot: usize,
}

impl QuietGuard {
    pub(crate) fn new(run: &Arc<RunPart>, label: Label) -> Self {
        Self { run: Arc::clone(run), slot: run.tracker.enter(label) }
    }
}

impl Drop for QuietGuard {
    fn drop(&mut self) {
        self.run.tracker.leave(self.slot);
    }
}

/// Whose demand takes effect, and why.
pub(crate) struct Firing<'n> {
    pub(crate) origin: &'n Arc<Node>,
    pub(crate) reason: Reason,
}

#[derive(Debug)]
enum Parent {
    None,
    SameRun(Arc<Node>),
    OtherRun(Arc<Node>, Link),
}

impl Node {
    pub(crate) fn root() -> Arc<Self> {
        Arc::new(Self { core: Core::new(), run: Arc::default(), parent: Parent::None })
    }

    pub(crate) fn child(self: &Arc<Self>) -> Arc<Self> {
        Arc::new(Self {
            core: Core::new(),
            run: Arc::clone(&self.run),
            parent: Parent::SameRun(Arc::clone(self)),
        })
    }

    pub(crate) fn child_run(self: &Arc<Self>, link: Link) -> Arc<Self> {
        Arc::new(Self {
            core: Core::new(),
            run: Arc::default(),
            parent: Parent::OtherRun(Arc::clone(self), link),
        })
    }

    /// This node and those that enclose it, each with what reaches down to here from it.
    fn path(self: &Arc<Self>) -> impl Iterator<Item = (&Arc<Self>, Filter)> {
        std::iter::successors(Some((self, Filter::Everything)), |(node, filter)| match &node.parent {
            Parent::None => None,
            Parent::SameRun(parent) => Some((parent, *filter)),
            Parent::OtherRun(parent, link) => Some((parent, link.filter().max(*filter))),
        })
    }

    /// Whether there is no request on the whole path.
    #[inline]
    pub(crate) fn is_silent(self: &Arc<Self>) -> bool {
        let mut node = self;
        loop {
            if node.core.is_asked() {
                return false;
            }
            match &node.parent {
                Parent::None => return true,
                Parent::SameRun(parent) | Parent::OtherRun(parent, _) => node = parent,
            }
        }
    }

    /// What reaches this node at the time of a check, from the inside out.
    fn reaching<'n, 'c>(
        self: &'n Arc<Self>,
        check: &'c CheckTime,
    ) -> impl Iterator<Item = (&'n Arc<Self>, Demand)> + use<'n, 'c> {
        self.path().filter_map(move |(node, filter)| {
            let demand = node.core.demand()?.at(check);
            filter.lets_through(&demand).then_some((node, demand))
        })
    }

    /// The join of all that reaches this node.
    pub(crate) fn demand(self: &Arc<Self>) -> Option<Demand> {
        if self.is_silent() {
            return None;
        }
        self.reaching(&CheckTime::default()).map(|(_, demand)| demand).reduce(Demand::join)
    }

    /// The join of what reaches this node from `outer` and from beyond it; none if `outer` does not enclose it.
    pub(crate) fn demand_from(self: &Arc<Self>, outer: &Arc<Self>) -> Option<Demand> {
        if self.is_silent() {
            return None;
        }
        let check = CheckTime::default();
        self.path()
            .skip_while(|(node, _)| !Arc::ptr_eq(node, outer))
            .filter_map(|(node, filter)| node.core.demand().map(|demand| (filter, demand.at(&check))))
            .filter_map(|(filter, demand)| filter.lets_through(&demand).then_some(demand))
            .reduce(Demand::join)
    }

    pub(crate) fn is_now(self: &Arc<Self>) -> bool {
        // The common answer without the clock: nothing asked.
        !self.is_silent() && self.reaching(&CheckTime::default()).any(|(_, demand)| demand.mode == Mode::Now)
    }

    /// The outermost node whose demand takes effect here: an enclosing stop outranks an inner one.
    #[inline]
    pub(crate) fn firing(self: &Arc<Self>, gate: Option<SafePoints>) -> Option<Firing<'_>> {
        if self.is_silent() { None } else { self.firing_of_asked(gate) }
    }

    /// Apart, so that the silent path is small enough to stand where it is used.
    #[cold]
    fn firing_of_asked(self: &Arc<Self>, gate: Option<SafePoints>) -> Option<Firing<'_>> {
        let check = CheckTime::default();
        let origin = self
            .reaching(&check)
            .filter(|(_, demand)| match gate {
                Some(gate) => demand.fires_at(gate),
                None => demand.mode == Mode::Now,
            })
            .map(|(node, _)| node)
            .last()?;
        Some(Firing { origin, reason: origin.core.reason(gate, &check)? })
    }

    /// The request that takes effect here, if one does: under this gate, or without one only what is `Now`.
    pub(crate) fn fired(self: &Arc<Self>, gate: Option<SafePoints>) -> Option<Fired> {
        if self.is_silent() {
            return None;
        }
        let check = CheckTime::default();
        let firsts = self.reaching(&check).filter_map(|(node, _)| node.core.first_to_fire(gate, &check));
        // From the inside out, and of several that are alike the last: an enclosing stop outranks an inner one.
        firsts.reduce(|inner, outer| if outer.0 <= inner.0 { outer } else { inner }).map(|(_, fired)| fired)
    }

    /// When the next deadline on the path may change what reaches this node.
    pub(crate) fn next_deadline(self: &Arc<Self>) -> Option<Instant> {
        let check = CheckTime::default();
        self.path()
            .filter_map(|(node, filter)| node.core.demand().filter(|demand| filter.may_let_through(demand)))
            .filter_map(|demand| demand.deadline)
            .filter(|deadline| *deadline > check.now())
            .min()
    }

    /// The requests that reach this node, oldest first.
    pub(crate) fn requests(self: &Arc<Self>) -> Vec<LoggedRequest> {
        if self.is_silent() {
            return Vec::new();
        }
        let (mut all, mut logs) = (Vec::new(), 0);
        for (node, _) in self.reaching(&CheckTime::default()) {
            node.core.add_log_to(&mut all);
            logs += 1;
        }
        // One log is in order.
        if logs > 1 {
            all.sort_by_key(|logged: &LoggedRequest| (logged.at, logged.seq));
        }
        all
    }

    /// The reason of the first request that reaches this node.
    pub(crate) fn reason(self: &Arc<Self>) -> Option<Reason> {
        if self.is_silent() {
            return None;
        }
        self.requests().into_iter().next().map(|first| first.reason)
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.core.is_settled()
    }

    /// Whether the end of what encloses this node within its run is fixed, so that nothing can be asked of a part.
    ///
    /// A request that overtakes the settling of an enclosing node came first, as if it had been made before.
    pub(crate) fn is_closed_over(&self) -> bool {
        let mut node = self;
        while let Parent::SameRun(parent) = &node.parent {
            if parent.is_settled() {
                return true;
            }
            node = parent;
        }
        false
    }

    /// The notifications that a waiter on this node must hear: one per run on the path.
    pub(crate) fn wakes(self: &Arc<Self>, order: WakeOrder) -> impl Iterator<Item = &Arc<Notify>> {
        let mut last: Option<*const RunPart> = None;
        self.path().filter_map(move |(node, _)| {
            let run = Arc::as_ptr(&node.run);
            (last.replace(run) != Some(run)).then(|| node.run.waiters(order))
        })
    }
}

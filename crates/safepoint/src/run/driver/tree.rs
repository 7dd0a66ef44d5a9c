//! A run's place in its tree: the run above it, and those below.

use std::time::Duration;

use safepoint_scope::{Demand, Scope};

use super::{
    children::Children,
    parent::{ChildStart, Parent},
};
use crate::{run::shared::Activity, value::receipt::CallKind};

/// The runs above and below.
#[derive(Default)]
pub(super) struct TreeLinks {
    /// `None` for a run that no call has begun.
    pub(super) parent: Option<Box<Parent>>,
    pub(super) children: Children,
}

impl TreeLinks {
    /// How long this run may take to reach a safe point, if a demand from above asks for one (S9.5).
    pub(super) fn grace(&self, scope: &Scope) -> Option<Duration> {
        self.parent.as_ref().and_then(|up| up.grace(scope))
    }

    /// The demand on this run from above.
    pub(super) fn demand_above(&self, scope: &Scope) -> Option<Demand> {
        self.parent.as_ref().and_then(|up| up.demand(scope))
    }

    /// The scope of the run above, whose stops are this run's too. A background run outlives it, and accounts for its own stop.
    pub(super) fn above(&self) -> Option<&Scope> {
        let attached = self.parent.as_ref().filter(|up| up.child.kind() == CallKind::Child);
        attached.map(|up| &up.above.scope)
    }

    /// The time limit of the call whose work this run is.
    pub(super) fn call_limit(&self) -> Option<Duration> {
        self.parent.as_ref().and_then(|up| up.limit)
    }

    /// Whether this run is new; a run that no call has begun is.
    pub(super) fn entry(&self) -> ChildStart {
        self.parent.as_ref().map_or(ChildStart::Anew, |up| up.entry)
    }

    /// Whether the call ended once this run had begun: no run above waits for it or resumes it.
    pub(super) fn is_background(&self) -> bool {
        self.parent.as_ref().is_some_and(|up| up.child.kind() == CallKind::Background)
    }

    /// Notifies the parent when it changes whether this run only waits.
    pub(super) fn report_activity(&mut self, activity: Activity) {
        if let Some(up) = &mut self.parent {
            up.report_activity(activity);
        }
    }

    /// Whether the parent lets this run suspend itself, or there is none.
    pub(super) fn lets_suspend(&self) -> bool {
        self.parent.as_ref().is_none_or(|up| up.confirmed == Activity::Waits)
    }

    /// The parent confirms that all runs wait. Ignored by a run that works again: it has reported that since.
    pub(super) fn confirm(&mut self) {
        if let Some(up) = &mut self.parent {
            up.confirmed = up.reported;
        }
    }
}

//! Child runs: begun as the work of a call, observed by messages, and accounted for when they end (S9).
//!
//! **Invariants**: a child run reports its end to its parent exactly once, and its quiet once after that.
//! Until then it keeps its parent (or, in the background, the family) from being quiet.

use std::{collections::HashMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use safepoint_scope::{Link, Permit, QuietGuard};

use super::{
    Driver, LogFailure, Start,
    parent::{Above, ChildStart, Parent},
};
use crate::{
    contract::model::OnModelStop,
    definition::{Definition, settings::RunSettings, subagent::Subagent},
    run::{
        executor::{self, CallEnd, RunCall},
        machine::{Call, CallState, SharedCall},
        shared::{Activity, Reply, RunMessage},
    },
    sync::callback,
    value::{
        approval::{ApprovalRequest, Ruled},
        effect::SideEffect,
        event::Fact,
        history::note,
        ids::{ApprovalId, CallId},
        message::ToolCall,
        receipt::{CallKind, CallStatus, ChildReport, QuietReport, Receipt, StopSource},
        usage::{TotalCost, Usage},
    },
};

/// The child runs that a run knows.
#[derive(Default)]
pub(super) struct Children {
    /// The calls whose runs only wait for a person, without an approver or while one is asked.
    waiting: HashMap<CallId, Activity>,
    /// The last report of each run that settled in this attempt.
    settled: HashMap<CallId, ChildReport>,
    quiets: HashMap<CallId, QuietReport>,
    /// Whether the extra wait for their quiet is used up.
    is_patience_spent: bool,
}

impl Children {
    /// How many calls have runs that only a person's decision can continue.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Records whether the run of a call works, asks, or waits.
    pub(super) fn set_activity(&mut self, call_id: CallId, activity: Activity) {
        match activity {
            Activity::Waits | Activity::Asks => self.waiting.insert(call_id, activity),
            Activity::Works => self.waiting.remove(&call_id),
        };
    }

    /// The calls whose runs only wait for a person, without an approver.
    fn parked_calls(&self) -> impl Iterator<Item = &CallId> {
        self.waiting.iter().filter(|(_, activity)| **activity == Activity::Waits).map(|(call, _)| call)
    }

    /// How many they are.
    pub(super) fn parked(&self) -> usize {
        self.parked_calls().count()
    }

    /// Keeps the report of a run that has settled.
    pub(super) fn settle(&mut self, call_id: CallId, child: ChildReport) {
        self.settled.insert(call_id, child);
    }

    /// A settled run has reported whether it is quiet.
    pub(super) fn quiet(&mut self, call_id: CallId, quiet: QuietReport) {
        if let Some(child) = self.settled.get_mut(&call_id) {
            child.receipt = Some(Arc::clone(quiet.receipt()));
        }
        self.quiets.insert(call_id, quiet);
    }

    /// Fills the receipt with the current reports of child runs and their usage; returns what they cost.
    pub(super) fn account(&self, receipt: &mut Receipt) -> TotalCost {
        for call in &mut receipt.calls {
            if let (Some(child), Some(known)) = (&mut call.child, self.settled.get(&call.call_id)) {
                *child = known.clone();
            }
        }
        for child in &mut receipt.waiting {
            if let Some(known) = child.path.calls().last().and_then(|call| self.settled.get(call)) {
                *child = known.clone();
            }
        }
        let mut cost = TotalCost::default();
        for child in self.settled.values().filter_map(|child| child.receipt.as_deref()) {
            receipt.usage_total.add(&child.usage_total);
            cost.add(&child.usage_total, child.cost_total);
        }
        cost
    }

    /// The cost of the settled child runs, by their prices.
    fn cost(&self) -> f64 {
        self.settled.values().map(|child| child.cost).sum()
    }

    /// The extra time that child runs may take to be quiet, if one has not reported yet. Granted once.
    pub(super) fn patience(&mut self, def: &Definition) -> Option<Duration> {
        let is_awaited = |(call, child): (&CallId, &ChildReport)| {
            child.work == CallKind::Child && !self.quiets.contains_key(call)
        };
        let is_granted = !self.is_patience_spent && self.settled.iter().any(is_awaited);
        self.is_patience_spent |= is_granted;
        is_granted.then(|| patience_with(def))
    }

    /// What child runs named as alive when their time was over; `None` if all were quiet.
    pub(super) fn survivors(&self) -> Option<Vec<String>> {
        let is_late = |quiet: &&QuietReport| matches!(quiet, QuietReport::NotQuiet(_));
        let mut late = self.quiets.values().filter(is_late).peekable();
        late.peek()?;
        Some(late.flat_map(|quiet| quiet.receipt().survivors.clone()).collect())
    }
}

/// A child run that is about to begin or to resume.
pub(super) struct Begin {
    pub(super) permit: Permit<RunCall>,
    pub(super) child: Arc<Subagent>,
    pub(super) call: SharedCall,
    pub(super) args: Arc<serde_json::Value>,
    pub(super) entry: ChildStart,
    pub(super) started_at: Timestamp,
}

impl Driver {
    pub(super) async fn start_child(&mut self, begin: Begin) -> Result<(), LogFailure> {
        let Begin { permit, child, call, args, entry, started_at } = begin;
        let input = match callback::call(|| child.input_of(&args)) {
            Ok(input) => input,
            Err(panic) => {
                // Nothing of the run has begun.
                let said = format!("error: what makes the child's input panicked: {}", panic.0);
                let ending = executor::not_begun(CallStatus::Failed, said, None);
                return self.end_call(&call, ending).await;
            }
        };
        let hooks =
            self.result_hooks(&call, &args, permit.scope()).filter(|_| child.link() == Link::Attached);
        let (shared, mailbox) = self.cx.shared.nest(&call.id, permit.scope(), &child);
        let limit = child.spec().timeout.or(self.cx.def.limits.call_timeout);
        let up = Parent {
            call_id: call.id.clone(),
            above: Above {
                mailbox: self.cx.shared.mailbox.clone(),
                scope: self.cx.scope.clone(),
                limits: Arc::clone(&self.cx.def.limits),
            },
            _hold: self.hold_for(&child, &call),
            path: shared.path.clone(),
            hooks,
            is_end_reported: false,
            limit,
            entry,
            started_at,
            reported: Activity::Works,
            confirmed: Activity::Works,
            child: Arc::clone(&child),
        };
        // The permit is spent: from here on the run exists.
        drop(permit.into_scope());
        self.calls.run_begins(&call.id);
        let path = shared.path.clone();
        let log = Arc::clone(self.recorder.log());
        let def = Arc::clone(child.def()).for_attempt(&shared.run, RunSettings::default(), &shared.values());
        Driver::new(shared, def, log, mailbox).under(up).spawn(Start::Child(input));
        if child.link() == Link::Background {
            let text = note::in_background(&path);
            let report = ChildReport { path, work: CallKind::Background, receipt: None, cost: 0.0 };
            let mut ending = executor::ended_as_run(CallStatus::Completed, text, SideEffect::Done, report);
            ending.started_at = Some(started_at);
            self.end_call(&call, ending).await?;
        }
        Ok(())
    }

    fn hold_for(&self, child: &Subagent, call: &ToolCall) -> QuietGuard {
        let path = self.cx.shared.path.of(&call.id);
        match child.link() {
            Link::Attached => self.cx.scope.hold(format!("child run {} at {path}", call.name)),
            Link::Background => {
                self.cx.shared.tree.family.hold(format!("background run {} at {path}", call.name))
            }
        }
    }

    /// The end of an open call that does not begin, or does not resume.
    pub(super) fn unbegun(
        &self,
        call: &Call,
        entry: ChildStart,
        stop: (safepoint_scope::Reason, StopSource),
    ) -> CallEnd {
        let (child, effect) = match (&call.step, entry) {
            (CallState::Suspended { child, .. }, _) => {
                (child.clone(), child.receipt.as_deref().map_or(SideEffect::Unknown, effect_of))
            }
            (_, ChildStart::Again { .. }) => {
                let path = self.cx.shared.path.of(&call.call.id);
                let child = ChildReport { path, work: CallKind::Child, receipt: None, cost: 0.0 };
                (child, SideEffect::Unknown)
            }
            (_, ChildStart::Anew) if call.is_in_doubt() => {
                return executor::stopped_unknown(stop, self.unseen_at(&call.call));
            }
            (_, ChildStart::Anew) => return executor::not_begun(CallStatus::NotStarted, "", Some(stop)),
        };
        let mut ending = executor::ended_as_run(CallStatus::Stopped, String::new(), effect, child);
        (ending.reason, ending.stopped_by) = (Some(stop.0), Some(stop.1));
        ending.finish_text("");
        ending
    }

    /// An attached child run has ended, and its call with it.
    pub(super) fn child_ended(&mut self, id: &CallId, ending: &CallEnd) {
        if let Some(child) = &ending.child {
            self.tree.children.set_activity(id.clone(), Activity::Works);
            self.tree.children.settle(id.clone(), child.clone());
            self.stops.closed_at(ending.fired);
        }
    }

    pub(super) async fn child_suspended(
        &mut self,
        call_id: CallId,
        child: ChildReport,
        approvals: Vec<ApprovalRequest>,
    ) -> Result<(), LogFailure> {
        self.tree.children.set_activity(call_id.clone(), Activity::Works);
        self.tree.children.settle(call_id.clone(), child.clone());
        drop(self.calls.settle(&call_id));
        for request in &approvals {
            self.cx.shared.tree.asks(request, &self.cx.shared);
        }
        self.record(Fact::ChildSuspended { call_id, child, approvals }).await?;
        Ok(())
    }

    /// Passes a decision to the suspended child run that asked, by resuming that run.
    pub(super) fn decide_inside(
        &mut self,
        id: &ApprovalId,
        (ruled, reply): (Ruled, Reply),
    ) -> Result<(), (Ruled, Reply)> {
        let Some(call) = self.machine.suspended_on(id) else { return Err((ruled, reply)) };
        self.cx.shared.tree.leave(id.clone(), (ruled, Some(reply)));
        self.machine.resume_child(&call);
        Ok(())
    }

    /// No step is due: if everything that runs waits for a person inside, so does this run.
    pub(super) fn report_idle(&mut self) {
        if self.approvals.is_asking() || !self.machine.is_resting(self.tree.children.parked()) {
            let activity = if self.waits_for_a_person() { Activity::Asks } else { Activity::Works };
            self.tree.report_activity(activity);
            return;
        }
        if self.may_suspend() {
            let children = self.tree.children.parked_calls().filter_map(|call| self.cx.shared.child_at(call));
            children.for_each(|child| child.post(RunMessage::Suspend));
        }
    }

    /// Whether this run may suspend itself now. A child run first reports to its parent, and waits until all
    /// runs wait.
    pub(super) fn may_suspend(&mut self) -> bool {
        if self.approvals.is_asking() {
            self.tree.report_activity(Activity::Asks);
            return false;
        }
        self.tree.report_activity(Activity::Waits);
        self.cx.scope.demand().is_some() || self.tree.lets_suspend()
    }

    /// Fills the receipt with the current reports of child runs and the total usage.
    pub(super) fn account_for_children(&self, receipt: &mut Receipt) {
        receipt.usage_total = receipt.usage.clone();
        receipt.usage_total.add(&self.machine.unreported().usage);
        let mut cost = self.machine.unreported().known;
        cost.add(&receipt.usage, receipt.cost);
        cost.add_all(self.tree.children.account(receipt));
        receipt.cost_total = cost.sum();
    }

    /// The cost of this attempt, its child runs, and attempts without a receipt, by their prices.
    pub(super) fn cost(&self, own: &Usage) -> f64 {
        let own = self.cx.def.price.as_ref().map_or(0.0, |price| price.of(own));
        own + self.tree.children.cost() + self.machine.unreported().cost
    }
}

/// The longest extra time that an agent's child runs may take to be quiet, beyond the clean-up cap.
fn patience_with(def: &Definition) -> Duration {
    let longest = def.tools.children().map(|child| {
        let (def, limits) = (child.def(), &child.def().limits);
        let drain = if def.on_cut == OnModelStop::Drain { limits.drain_timeout } else { Duration::ZERO };
        limits.quiet_timeout + drain + patience_with(def)
    });
    longest.max().unwrap_or_default()
}

/// The combined effect of all calls of an attempt.
fn effect_of(receipt: &Receipt) -> SideEffect {
    receipt.calls.iter().map(|call| call.effect).fold(SideEffect::None, SideEffect::and)
}

//! Child runs: begun as the work of a call, heard of by mail, and accounted for when they end (S9).
//!
//! **Invariants**: a child run reports its end to its parent exactly once, and its quiet once after that; it keeps
//! its parent (or, in the background, the family) from being quiet until then.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use safepoint_scope::{Link, Permit, QuietGuard, SafePoints, Scope};
use tracing::Instrument as _;

use super::{
    Driver, LogFailure, Start,
    parent::{End, Parent},
};
use crate::{
    contract::{log::Log, model::OnModelStop},
    definition::{Definition, child::Subagent},
    run::{
        executor::{self, CallEnd, RunCall},
        machine::{ApprovalReuse, Call, CallState},
        shared::{Activity, Decided, RunMessage, Shared},
        spans,
    },
    sync::{callback, mailbox::Received},
    value::{
        approval::ApprovalRequest,
        effect::SideEffect,
        event::Fact,
        ids::{ApprovalId, CallId},
        message::{ToolCall, UserMessage},
        receipt::{CallKind, CallStatus, ChildReport, QuietReport, Receipt, StopSource},
        usage::Usage,
    },
};

/// What a run knows of its child runs.
#[derive(Default)]
pub(super) struct Children {
    /// Calls whose runs do nothing but wait for a person, with nobody to ask.
    parked: HashSet<CallId>,
    /// The same, where somebody is being asked.
    asking: HashSet<CallId>,
    /// The last account of each run that settled in this attempt.
    settled: HashMap<CallId, ChildReport>,
    quiets: HashMap<CallId, QuietReport>,
    patience: Patience,
    /// The safe points at which this run's stop has ended child runs.
    pub(super) closing: Option<SafePoints>,
}

/// Whether this run has waited longer to be quiet, for its child runs. Exhaustive: once or not yet.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Patience {
    #[default]
    Left,
    Spent,
}

impl Children {
    /// How many calls have runs that could only go on by a person's decision.
    pub(super) fn waiting(&self) -> usize {
        self.parked.len() + self.asking.len()
    }

    fn park(&mut self, call_id: CallId, parking: Activity) {
        self.parked.remove(&call_id);
        self.asking.remove(&call_id);
        match parking {
            Activity::Waits => self.parked.insert(call_id),
            Activity::Asks => self.asking.insert(call_id),
            Activity::Works => false,
        };
    }
}

/// A child run that is about to begin, or to go on.
pub(super) struct Begin {
    pub(super) permit: Permit<RunCall>,
    pub(super) child: Arc<Subagent>,
    pub(super) call: ToolCall,
    pub(super) args: serde_json::Value,
    pub(super) entry: Entry,
    pub(super) started_at: Timestamp,
}

/// Whether a call's run is new. Exhaustive: it is, or it was begun before and goes on inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Anew,
    Again(ApprovalReuse),
}

impl Children {
    /// How many calls' runs do nothing but wait for a person.
    pub(super) fn parked(&self) -> usize {
        self.parked.len()
    }
}

impl Driver {
    pub(super) async fn start_child(&mut self, begin: Begin) -> Result<(), LogFailure> {
        let Begin { permit, child, call, args, entry, started_at } = begin;
        let input = match callback::call(|| child.input_of(&args)) {
            Ok(input) => input,
            Err(panic) => {
                // Nothing of it has begun.
                let said = format!("error: what makes the child's input panicked: {}", panic.0);
                let ending = executor::not_begun(CallStatus::Failed, said, None);
                return self.end_call(&call, ending).await;
            }
        };
        let (shared, mailbox) = self.cx.shared.nest(&call.id, permit.scope(), &child);
        let limit = child.spec().timeout.or(self.cx.def.limits.call_timeout);
        let up = Parent {
            call_id: call.id.clone(),
            parent: self.cx.shared.mailbox.clone(),
            run: self.cx.scope.clone(),
            limits: Arc::clone(&self.cx.def.limits),
            _hold: self.hold_for(&child, &call),
            path: shared.path.clone(),
            end: End::Unreported,
            limit,
            entry,
            started_at,
            said: Activity::Works,
            told: Activity::Works,
            child: Arc::clone(&child),
        };
        // The permit is spent: from here on the run exists.
        drop(permit.into_scope());
        let path = shared.path.clone();
        launch(shared, Arc::clone(self.recorder.log()), mailbox, up, input);
        if child.link() == Link::Background {
            let said = format!("[started in the background as {path}: it goes on by itself]");
            let report = ChildReport { path, work: CallKind::Background, receipt: None, cost: 0.0 };
            let mut ending = executor::worked(CallStatus::Completed, said, SideEffect::Done, report);
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

    /// The ending of an open call that does not begin, or does not go on.
    pub(super) fn unbegun(
        &self,
        call: &Call,
        entry: Entry,
        stop: (safepoint_scope::Reason, StopSource),
    ) -> CallEnd {
        let (child, effect) = match (&call.step, entry) {
            (CallState::Suspended { child, .. }, _) => {
                (child.clone(), child.receipt.as_deref().map_or(SideEffect::Unknown, effect_of))
            }
            (_, Entry::Again(_)) => {
                let path = self.cx.shared.path.of(&call.call.id);
                let child = ChildReport { path, work: CallKind::Child, receipt: None, cost: 0.0 };
                (child, SideEffect::Unknown)
            }
            (_, Entry::Anew) if call.is_in_doubt() => {
                return executor::doubted(stop, self.unseen_at(&call.call));
            }
            (_, Entry::Anew) => return executor::not_begun(CallStatus::NotStarted, "", Some(stop)),
        };
        let mut ending = executor::worked(CallStatus::Stopped, String::new(), effect, child);
        (ending.reason, ending.stopped_by) = (Some(stop.0), Some(stop.1));
        ending.finish_text("");
        ending
    }

    /// An attached child run has ended, and its call with it.
    pub(super) fn child_ended(&mut self, id: &CallId, ending: &CallEnd) {
        if let Some(child) = &ending.child {
            self.tree.children.park(id.clone(), Activity::Works);
            self.tree.children.settled.insert(id.clone(), child.clone());
            self.tree.children.closing = or(self.tree.children.closing, ending.fired);
        }
    }

    pub(super) async fn child_suspended(
        &mut self,
        call_id: CallId,
        child: ChildReport,
        approvals: Vec<ApprovalRequest>,
    ) -> Result<(), LogFailure> {
        self.tree.children.park(call_id.clone(), Activity::Works);
        self.tree.children.settled.insert(call_id.clone(), child.clone());
        if let Some(site) = self.calls.remove(&call_id) {
            site.stop.settle();
        }
        for request in &approvals {
            self.cx.shared.tree.asks(request, &self.cx.shared);
        }
        self.record(Fact::ChildSuspended { call_id, child, approvals }).await?;
        Ok(())
    }

    pub(super) fn parked(&mut self, call_id: CallId, parking: Activity) {
        self.tree.children.park(call_id, parking);
    }

    pub(super) fn child_quiet(&mut self, call_id: CallId, quiet: QuietReport) {
        if let Some(child) = self.tree.children.settled.get_mut(&call_id) {
            child.receipt = Some(Arc::clone(quiet.receipt()));
        }
        self.tree.children.quiets.insert(call_id, quiet);
    }

    pub(super) fn child_settled(&mut self, call_id: CallId, child: ChildReport) {
        self.tree.children.settled.insert(call_id, child);
    }

    /// Hands a decision to the suspended child run that asked, by taking the run up again.
    pub(super) fn decide_inside(&mut self, id: &ApprovalId, decided: Decided) -> Result<(), Decided> {
        let Some(call) = self.machine.suspended_on(id) else { return Err(decided) };
        self.cx.shared.tree.leave(id.clone(), decided);
        self.machine.wake(&call);
        Ok(())
    }

    /// Nothing is due: if all that runs waits for a person inside, then so does this run.
    pub(super) fn rest(&mut self) {
        if !self.approvals.asking.is_empty() || !self.machine.is_resting(self.tree.children.parked.len()) {
            let parking = if self.waits_for_a_person() { Activity::Asks } else { Activity::Works };
            self.say(parking);
            return;
        }
        if self.may_suspend() {
            let children = self.cx.shared.children_of(&self.tree.children.parked);
            children.iter().for_each(|child| child.post(RunMessage::Suspend));
        }
    }

    /// Whether this run may suspend itself now: a child run first tells its parent, and waits until all wait.
    pub(super) fn may_suspend(&mut self) -> bool {
        if !self.approvals.asking.is_empty() {
            self.say(Activity::Asks);
            return false;
        }
        self.say(Activity::Waits);
        self.cx.scope.demand().is_some() || self.tree.parent.as_ref().is_none_or(Parent::lets_suspend)
    }

    /// Tells the parent whether this run does nothing but wait, when that has changed.
    pub(super) fn say(&mut self, parking: Activity) {
        if let Some(up) = &mut self.tree.parent {
            up.say(parking);
        }
    }

    /// Fills in the accounts of child runs as they stand.
    pub(super) fn account_for_kin(&self, receipt: &mut Receipt) {
        for call in &mut receipt.calls {
            if let (Some(child), Some(known)) =
                (&mut call.child, self.tree.children.settled.get(&call.call_id))
            {
                *child = known.clone();
            }
        }
        for child in &mut receipt.waiting {
            let known = child.path.calls().last().and_then(|call| self.tree.children.settled.get(call));
            if let Some(known) = known {
                *child = known.clone();
            }
        }
        receipt.usage_total = receipt.usage.clone();
        receipt.usage_total.add(&self.machine.untold().usage);
        for used in self.tree.children.settled.values().filter_map(total) {
            receipt.usage_total.add(used);
        }
    }

    /// What this attempt and its child runs cost, and attempts of which no receipt tells, as their prices say.
    pub(super) fn cost(&self, own: &Usage) -> f64 {
        let below: f64 = self.tree.children.settled.values().map(|child| child.cost).sum();
        self.cx.def.price.as_ref().map_or(0.0, |price| price.of(own)) + below + self.machine.untold().cost
    }

    /// How much longer than this run itself its child runs may take to be quiet, where one has not said that it is:
    /// granted once.
    pub(super) fn patience_with_kin(&mut self) -> Option<Duration> {
        let kin = &mut self.tree.children;
        let awaited = kin
            .settled
            .iter()
            .any(|(call, child)| child.work == CallKind::Child && !kin.quiets.contains_key(call));
        (awaited && std::mem::replace(&mut kin.patience, Patience::Spent) == Patience::Left)
            .then(|| patience_with(&self.cx.def))
    }

    /// What child runs that were not quiet in time named as alive.
    pub(super) fn surviving_kin(&self) -> Option<Vec<String>> {
        let mut late = self
            .tree
            .children
            .quiets
            .values()
            .filter(|quiet| matches!(quiet, QuietReport::NotQuiet(_)))
            .peekable();
        late.peek()?;
        Some(late.flat_map(|quiet| quiet.receipt().survivors.clone()).collect())
    }
}

/// Both together.
pub(super) fn or(one: Option<SafePoints>, other: Option<SafePoints>) -> Option<SafePoints> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one | other),
        (one, other) => one.or(other),
    }
}

/// The longest that child runs of an agent take to be quiet, beyond the clean-up cap.
fn patience_with(def: &Definition) -> Duration {
    let longest = def.tools.children().map(|child| {
        let (def, limits) = (child.def(), &child.def().limits);
        let drain = if def.on_cut == OnModelStop::Drain { limits.drain } else { Duration::ZERO };
        limits.quiet + drain + patience_with(def)
    });
    longest.max().unwrap_or_default()
}

/// What all calls of an attempt did.
fn effect_of(receipt: &Receipt) -> SideEffect {
    receipt.calls.iter().map(|call| call.effect).fold(SideEffect::None, SideEffect::and)
}

fn total(child: &ChildReport) -> Option<&Usage> {
    child.receipt.as_ref().map(|receipt| &receipt.usage_total)
}

/// Starts a child run's conductor, which belongs to no scope that is stopped. Not an async function: that would make
/// a conductor's future hold its child's.
fn launch(
    shared: Arc<Shared>,
    log: Arc<dyn Log>,
    mailbox: Received<RunMessage>,
    up: Parent,
    input: UserMessage,
) {
    let def = Arc::clone(up.child.def());
    let span = spans::run(shared.run.as_str(), def.model.name());
    let (engine, _nobody_stops_it) = Scope::root();
    let work = async move {
        let conductor = Driver::new(shared, def, log, mailbox).under(up);
        Box::new(conductor).conduct(Start::Child(input)).await;
    };
    drop(engine.spawn("conductor", Box::pin(work).instrument(span)));
}

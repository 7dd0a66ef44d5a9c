//! The session loop as a pure machine: inputs in, actions out. No clock, no tasks, no items, only their
//! numbers. What others guard with locks is the order of a list here (S6.13).
//!
//! **Invariants**: every accepted item is waiting, in the turn, on its way into it, left open by a turn that
//! ended early, or settled; at most one turn runs; a stop is never weakened; a preempt never outlives its
//! turn.

use std::collections::{HashSet, VecDeque};

use crate::{
    run::steer::SteerTiming,
    session::outcome::{IfUndelivered, ItemOutcome, PreemptOutcome},
    value::ids::{ItemId, TurnId},
};

#[cfg(test)]
mod explored;
mod io;
mod preempt;
mod push;
mod stop;
mod turn;

pub(crate) use io::{
    Action, ExitKind, Input, Moment, PlanResult, PreemptSpec, PushKind, RequestAnswer, Rules, StartFrom,
    StopWhy, Strength, TurnEnd,
};
pub use io::{OnTurnFailure, PlanRequest, PreemptedItems, QueueAfterStop};

use preempt::Preempt;
use stop::Idleness;

/// A session's state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Machine {
    rules: Rules,
    phase: SessionPhase,
    /// In the order of their positions.
    waiting: VecDeque<ItemId>,
    /// Items before this one begin no turn by themselves: a turn ended early after they came (S5.3).
    barrier: Option<ItemId>,
    next_item: ItemId,
    /// The items of the running turn.
    items: Vec<ItemId>,
    /// Steers on their way into the running turn, or held for the turn that waits for a decision.
    steering: Vec<(ItemId, SteerTiming, IfUndelivered)>,
    preempts: Vec<Preempt>,
    /// How many turns or plans in a row were preempted.
    streak: u32,
    /// The turn that ended early and can be resumed.
    left: Option<Box<EarlyTurn>>,
    /// What `left` and `barrier` were before the turn started, until it has ended: it may turn out that it could not
    /// be begun.
    before_turn: (Option<Box<EarlyTurn>>, Option<ItemId>),
    want: PendingStart,
    turns: u64,
    plans: u64,
    stop: Option<Strength>,
    idleness: Idleness,
    /// Whether user code failed: the session must end.
    is_broken: bool,
    /// Whether a background run is alive.
    has_background: bool,
    inheritance: Inheritance,
    /// Whether a store keeps it: what waits for a decision waits there too.
    is_stored: bool,
}

/// What another owner left. Exhaustive: it has arrived; or it arrives, and nothing begins before; and then it begins nothing by itself,
/// whatever is said of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Inheritance {
    Here,
    Arriving,
    Held,
}

/// What the session is doing. Exhaustive: between turns, before one, in one, after one, or over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SessionPhase {
    Idle,
    Planning {
        plan: u64,
        wanted: PlanRequest,
        /// Before which item the planner has seen everything. `None`: it is not asked yet, because items accepted
        /// before the plan are still arriving.
        asked_before: Option<ItemId>,
    },
    Running(Running),
    /// The turn is settled; the next one waits until it is quiet and its reader has returned.
    Ending {
        turn: TurnId,
        is_quiet: bool,
        is_read: bool,
    },
    Over,
}

/// The running turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "four facts of a turn, each independent of the others")]
pub(crate) struct Running {
    pub(crate) turn: TurnId,
    /// Whether a preempt must wait for the turn's end (S6.12).
    is_protected: bool,
    /// Whether a stop of the session was asked of its run.
    has_session_stop: bool,
    /// What had arrived when a stop of this turn alone was requested.
    stopped_at: Option<ItemId>,
    /// Whether its history is forgotten when a preempt stops it.
    forgets: bool,
    /// What it started from.
    from: StartFrom,
    /// Whether its reader has returned already.
    is_read: bool,
}

/// A turn that ended early.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct EarlyTurn {
    turn: TurnId,
    items: Vec<ItemId>,
    /// Whether it waits for a decision.
    is_suspended: bool,
}

/// What is wanted of the turn that ended early, as soon as the session is between turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum PendingStart {
    Nothing,
    Resume,
    Decision,
    /// And what had come when it was asked.
    Withdrawal(StopWhy, ItemId),
}

impl Machine {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            phase: SessionPhase::Idle,
            waiting: VecDeque::new(),
            barrier: None,
            next_item: ItemId::new(0),
            items: Vec::new(),
            steering: Vec::new(),
            preempts: Vec::new(),
            streak: 0,
            left: None,
            before_turn: (None, None),
            want: PendingStart::Nothing,
            turns: 0,
            plans: 0,
            stop: None,
            idleness: Idleness::default(),
            is_broken: false,
            has_background: false,
            inheritance: Inheritance::Here,
            is_stored: false,
        }
    }

    /// A session as another owner left it: this many turns, and one that can be resumed.
    pub(crate) fn recovered(rules: Rules, turns: u64, left: Option<(TurnId, Vec<ItemId>, bool)>) -> Self {
        let left = left.map(|(turn, items, is_suspended)| Box::new(EarlyTurn { turn, items, is_suspended }));
        // Items from before keep waiting: a turn that ended early is resumed by a person, or by a newer item.
        let barrier = left.as_ref().map(|_| ItemId::new(u64::MAX));
        let inheritance = Inheritance::Arriving;
        Self { turns, left, barrier, inheritance, is_stored: true, ..Self::new(rules) }
    }

    /// What waits from before begins nothing by itself, whether a turn was left or not.
    pub(crate) fn hold_left(&mut self) {
        self.barrier = Some(ItemId::new(u64::MAX));
        self.inheritance = Inheritance::Held;
    }

    /// What waits from before waits for no turn that was left: that one is stopped, by a stop which holds nothing back.
    pub(crate) fn release_left(&mut self) {
        if self.inheritance == Inheritance::Arriving {
            self.barrier = None;
        }
    }

    fn inherited(&mut self) {
        self.inheritance = Inheritance::Here;
        if self.barrier.is_some() {
            self.barrier = Some(self.next_item);
        }
    }

    /// Takes an input, and appends the actions to `out`. Total: no input is illegal, only too late.
    pub(crate) fn step(&mut self, now: Moment, input: Input, out: &mut Vec<Action>) {
        self.pass_time(now, out);
        match input {
            Input::Push(item, how) => self.push(now, item, how, out),
            Input::Withdraw(item) => self.withdraw(item, out),
            Input::SteerReturned(item) => self.steer_returned(item, out),
            Input::StopTurn(turn) => self.stop_turn(turn, out),
            Input::StopItem(item, queue) => self.stop_item(item, queue, out),
            Input::Stop(strength) => self.stop(strength, out),
            Input::StopWhenIdle(micros) => self.stop_when_idle(now, micros, out),
            Input::WithdrawIdleStop => self.idleness.forget(),
            Input::Resume => self.resume(out),
            Input::Decided => self.decided(out),
            Input::Gathered(plan) => self.gathered(plan, out),
            Input::Planned(plan, made) => self.planned(plan, &made, out),
            Input::SteerTaken(turn, item) => self.steer_taken(turn, item),
            Input::Settled(turn, end) => self.settled(turn, end, out),
            Input::Quiet(turn) => self.quiet(turn),
            Input::Read(turn) => self.read(turn),
            Input::Unstarted(turn) => self.unstarted(turn),
            Input::Background { is_alive } => self.has_background = is_alive,
            Input::Inherited => self.inherited(),
            Input::Broke => self.broke(out),
            Input::Tick => {}
        }
        self.advance(now, out);
    }

    /// The next moment at which time alone changes something.
    pub(crate) fn deadline(&self) -> Option<Moment> {
        let preempts = self.preempts.iter().filter_map(Preempt::due_at);
        self.idleness.over_at().into_iter().chain(preempts).min()
    }

    fn pass_time(&mut self, now: Moment, out: &mut Vec<Action>) {
        self.pass_preempts(now, out);
        if self.idleness.over_at().is_some_and(|over| over <= now) {
            self.idleness.expire();
        }
    }

    /// Does what the phase between turns allows: end, resume, plan, or be idle.
    fn advance(&mut self, now: Moment, out: &mut Vec<Action>) {
        if let SessionPhase::Ending { is_quiet: true, is_read: true, .. } = self.phase {
            self.phase = SessionPhase::Idle;
        }
        if self.phase != SessionPhase::Idle {
            self.idleness.busy();
            return;
        }
        if let Some(exit) = self.exit() {
            self.end(exit, out);
        } else if self.inheritance != Inheritance::Here || self.resume_if_wanted(out) || self.plan(out) {
            self.idleness.busy();
        } else {
            self.idleness.idle(self.is_idle().then_some(now));
            if self.idleness.over_at().is_some_and(|over| over <= now) {
                self.idleness.expire();
                self.end(ExitKind::Idle, out);
            }
        }
    }

    /// Whether, between turns, nothing is to be done here. A turn that waits for a decision waits in a store without its owner, and
    /// so does what waits behind it.
    pub(crate) fn is_idle(&self) -> bool {
        let is_at_rest = if self.is_suspended() { self.is_stored } else { self.waiting.is_empty() };
        is_at_rest && !self.has_background
    }

    /// Settles everything that has no place any more: the session is over.
    fn end(&mut self, exit: ExitKind, out: &mut Vec<Action>) {
        for preempt in self.preempts.drain(..) {
            out.push(preempt.resolved(PreemptOutcome::SupersededByStop));
        }
        // Only a turn that waits for a decision holds any, and it waits on.
        self.return_steers(out);
        for item in self.waiting.drain(..) {
            out.push(Action::Settle(item, ItemOutcome::Unhandled));
        }
        self.phase = SessionPhase::Over;
        self.want = PendingStart::Nothing;
        self.idleness.forget();
        out.push(Action::End(exit));
    }

    /// Items before this one begin no turn by themselves, if some wait so.
    pub(crate) fn barrier(&self) -> Option<ItemId> {
        self.barrier
    }

    /// Whether a stop was requested for when the session is idle.
    pub(crate) fn may_end_when_idle(&self) -> bool {
        self.idleness.allowed.is_some()
    }

    /// Whether the session was asked to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.is_some()
    }

    pub(crate) fn phase(&self) -> SessionPhase {
        self.phase
    }

    /// The number of the turn that is planned next.
    pub(crate) fn next_turn(&self) -> TurnId {
        TurnId::new(self.turns + 1)
    }

    /// How many items wait.
    pub(crate) fn waiting(&self) -> &VecDeque<ItemId> {
        &self.waiting
    }

    pub(crate) fn is_waiting(&self, item: ItemId) -> bool {
        self.waiting.binary_search(&item).is_ok()
    }

    /// How many items have been accepted, and no turn has them yet.
    pub(crate) fn room_taken(&self) -> usize {
        self.waiting.len() + self.steering.len()
    }

    /// The items of the running turn.
    pub(crate) fn items(&self) -> &[ItemId] {
        &self.items
    }

    /// Whether a preempt that came with this item is not answered yet.
    pub(crate) fn is_preempting(&self, item: ItemId) -> bool {
        self.preempts.iter().any(|preempt| preempt.item == item)
    }

    /// Whether this item was sent to the running turn, which has not taken it yet.
    pub(crate) fn is_steering(&self, item: ItemId) -> bool {
        self.steering.iter().any(|(steered, ..)| *steered == item)
    }

    /// Whether a turn that ended early is about to be resumed: by a planned resume, or by a decision.
    pub(crate) fn is_about_to_resume(&self) -> bool {
        let plans = matches!(self.phase, SessionPhase::Planning { wanted: PlanRequest::Resume, .. });
        plans || matches!(self.want, PendingStart::Resume | PendingStart::Decision)
    }

    /// Whether the running turn is a resumed one.
    pub(crate) fn has_resumed(&self) -> bool {
        matches!(
            self.phase,
            SessionPhase::Running(Running { from: StartFrom::Resume | StartFrom::Decision, .. })
        )
    }

    /// An item that a plan names and that does not wait, or that it names twice.
    pub(crate) fn wrong_item(&self, made: &PlanResult) -> Option<ItemId> {
        let PlanResult::Turn { take, drop } = made else { return None };
        let mut named = HashSet::with_capacity(take.len() + drop.len());
        let is_strange = |item: &&ItemId| !self.is_waiting(**item) || !named.insert(**item);
        take.iter().chain(drop).find(is_strange).copied()
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.left.as_ref().is_some_and(|left| left.is_suspended)
    }

    /// Whether a stop that a preempt requested first makes the turn a preempted one.
    pub(crate) fn would_be_preempted(&self) -> bool {
        let end = TurnEnd::Preempted(PreemptedItems::Drop);
        matches!(self.phase, SessionPhase::Running(running) if matches!(self.outcome_of(running, end), ItemOutcome::Preempted(_)))
    }

    /// The turn that can be resumed.
    pub(crate) fn left(&self) -> Option<TurnId> {
        self.left.as_ref().map(|left| left.turn)
    }
}

//! The inputs of the session's machine, and its actions.

use safepoint_scope::SafePoints;
use serde::{Deserialize, Serialize};

use crate::{
    run::steer::SteerTiming,
    session::outcome::{IfUndelivered, ItemOutcome, PreemptOutcome, RejectReason},
    value::ids::{ItemId, TurnId},
};

/// Microseconds since the session began. The machine has no clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Moment(pub(crate) u64);

impl Moment {
    pub(crate) const fn after(self, micros: u64) -> Self {
        Self(self.0.saturating_add(micros))
    }
}

/// What is known of a session beside what happens to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rules {
    /// After this many preempted turns in a row one turn is protected (S6.12).
    pub(crate) max_preempted: u32,
    pub(crate) on_failure: OnTurnFailure,
}

/// What a failed turn does to the items that wait. Exhaustive: they wait on, or their turn comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnTurnFailure {
    /// They wait for a resume, or for an item pushed after the failure, so that one cause does not burn them all.
    #[default]
    Wait,
    /// Their turn comes at once.
    Continue,
}

/// How an item comes (S6.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PushKind {
    Enqueue,
    /// Not at all while a turn is running.
    Reject,
    /// Not at all.
    Refused(RejectReason),
    Preempt(PreemptSpec),
    Steer(SteerTiming, IfUndelivered),
    /// Into this turn alone.
    SteerTurn(TurnId, SteerTiming, IfUndelivered),
}

/// What a preempt asks of the running turn (S6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PreemptSpec {
    /// None: now.
    pub(crate) points: Option<SafePoints>,
    /// Microseconds until it is `Now`, on the tree.
    pub(crate) grace: Option<u64>,
    /// Microseconds until it is asked at all.
    pub(crate) delay: Option<u64>,
    /// The turn that it means.
    pub(crate) turn: Option<TurnId>,
    /// Whether the history of the turn that is stopped is forgotten (rollback).
    pub(crate) forgets: bool,
}

/// How strongly a session was asked to stop; a later one only strengthens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Strength {
    AtTurnEnd,
    Graceful,
    Now,
}

/// What happens to a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Input {
    Push(ItemId, PushKind),
    Withdraw(ItemId),
    /// The run returned a steer before it was delivered, because its sender withdrew it.
    SteerReturned(ItemId),
    /// Stop the running turn, or only this one if named; the session continues.
    StopTurn(Option<TurnId>),
    /// Withdraw this item, or stop the turn that has it.
    StopItem(ItemId, QueueAfterStop),
    Stop(Strength),
    /// Stop once the session was idle for this many microseconds.
    StopWhenIdle(u64),
    WithdrawIdleStop,
    /// Resume the turn that ended early.
    Resume,
    /// A person decided something that the suspended turn waits for.
    Decided,
    /// Everything that was accepted before this plan was wanted has been received.
    Gathered(u64),
    Planned(u64, PlanResult),
    SteerTaken(TurnId, ItemId),
    Settled(TurnId, TurnEnd),
    /// Nothing of the turn is alive, or what is has been named.
    Quiet(TurnId),
    /// The reader of the turn's events has returned.
    Read(TurnId),
    /// The turn could not be begun: what it was about waits again.
    Unstarted(TurnId),
    /// Background runs of turns are alive, whether they run or wait for a person; or none is.
    Background {
        is_alive: bool,
    },
    /// Everything that the last owner left has arrived: what arrives now is new.
    Inherited,
    /// User code failed: a planner, a strategy, a reader.
    Broke,
    /// Time has passed.
    Tick,
}

/// What a stop of one item does to the items that wait behind it. Exhaustive: they wait for a newer item or a resume, as behind
/// the stop of a turn, or their turn comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueAfterStop {
    /// They wait: what a person has stopped may have changed their mind about the rest (S5.3).
    #[default]
    Holds,
    /// Their turn comes: each is the request of another caller.
    Continues,
}

/// What a planner said.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PlanResult {
    Turn { take: Vec<ItemId>, drop: Vec<ItemId> },
    Resume,
    Wait,
}

/// How a turn's run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TurnEnd {
    Done,
    Failed,
    Suspended,
    Stopped,
    /// A preempt stopped it; and what becomes of the items.
    Preempted(PreemptedItems),
}

/// What happens to a preempted turn's items (S6.9). Exhaustive: they count as handled, or wait again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PreemptedItems {
    /// Their messages stay in the history, and that is all.
    #[default]
    Drop,
    /// They wait again, before what came after them.
    Requeue,
}

/// What the machine wants done, in this order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// Post [`Input::Gathered`] behind everything that is accepted by now.
    Gather(u64),
    /// Ask the planner.
    Plan {
        plan: u64,
        waiting: Vec<ItemId>,
        left: Option<TurnId>,
        wanted: PlanRequest,
    },
    /// Stop asking.
    DropPlan,
    Start {
        turn: TurnId,
        from: StartFrom,
        /// What it gets before its first model request: the steers from before it began to wait.
        steers: Vec<(ItemId, SteerTiming)>,
    },
    StopRun(TurnId, StopWhy),
    Steer(TurnId, ItemId, SteerTiming),
    /// A steer waits for the next request of the turn that waits for a decision.
    Held(TurnId, ItemId),
    /// The turn's history is to be forgotten.
    Forget(TurnId),
    /// The outcome of an item.
    Settle(ItemId, ItemOutcome),
    /// It waits again.
    Requeued(ItemId),
    /// What a preempt came to.
    Resolve(ItemId, PreemptOutcome),
    /// The turn is over.
    TurnEnded(TurnId, ItemOutcome),
    /// The answer to the request.
    RequestAnswer(RequestAnswer),
    /// The session is over.
    End(ExitKind),
}

/// What is asked of a planner. Exhaustive: whatever it likes, or a resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlanRequest {
    /// Whatever it likes.
    Any,
    /// The turn that ended early.
    Resume,
}

/// What a turn starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StartFrom {
    Plan,
    /// The turn that ended early, resumed.
    Resume,
    /// The suspended turn, with what was decided.
    Decision,
    /// The suspended turn, only to be ended: its questions are withdrawn.
    Withdrawal(StopWhy),
}

/// Why a run is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StopWhy {
    /// As the requester of this input said.
    Asked,
    Session(Strength),
    Preempt {
        points: Option<SafePoints>,
        grace: Option<u64>,
    },
    /// A preempt's grace is over.
    Escalated,
    /// The session cannot continue.
    Broken,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RequestAnswer {
    Withdrawn,
    /// It is not waiting: taken by a turn, or gone.
    Taken,
    StoppingTurn(TurnId),
    NoTurn,
    /// The next turn was planned: it does not begin, and what waits is held.
    Held,
    TurnMismatch(TurnId),
    First,
    Strengthened,
    NothingAdded,
    TooLate,
    Resuming,
    /// No turn was left; what was held is planned.
    Released,
    NothingToResume,
}

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ExitKind {
    Stopped,
    Idle,
    Broken,
}

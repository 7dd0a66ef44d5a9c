//! What the session's machine is told, and what it wants done.

use safepoint_scope::SafePoints;
use serde::{Deserialize, Serialize};

use crate::{
    run::steer::SteerTiming,
    session::words::{IfUndelivered, ItemOutcome, PreemptOutcome, RejectReason},
    value::ids::{ItemId, TurnId},
};

/// Microseconds since the session began. The machine has no clock of its own.
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
    /// After so many preempted turns in a row one turn is protected (S6.12).
    pub(crate) patience: u32,
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
    /// Not at all while a turn is at work.
    Reject,
    /// Not at all.
    Refused(RejectReason),
    Preempt(PreemptSpec),
    Steer {
        when: SteerTiming,
        or: IfUndelivered,
    },
}

/// What a preempt asks of the turn at work (S6.3).
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
    pub(crate) record: Record,
}

/// What becomes of the history of the turn that is stopped. Exhaustive: kept, or forgotten (rollback).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Record {
    Keep,
    Forget,
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
    Push {
        item: ItemId,
        how: PushKind,
    },
    Withdraw(ItemId),
    /// The run gave a steer back before it was delivered, since its sender wants it.
    TookBack(ItemId),
    /// Stop the turn at work, this one if named; the session goes on.
    StopTurn(Option<TurnId>),
    Stop(Strength),
    /// Stop once it was idle for so many microseconds.
    StopWhenIdle(u64),
    KeepOpen,
    /// Take the turn up again that ended early.
    Resume,
    /// A person decided something that the suspended turn waits for.
    Decided,
    /// Everything that was accepted before this plan was wanted has been heard.
    Gathered(u64),
    Planned {
        plan: u64,
        made: PlanResult,
    },
    SteerTaken {
        turn: TurnId,
        item: ItemId,
    },
    Settled {
        turn: TurnId,
        end: End,
    },
    /// Nothing of the turn is alive, or what is has been named.
    Quiet(TurnId),
    /// The reader of the turn's events has returned.
    Read(TurnId),
    /// The turn could not be begun: what it was about waits again.
    Unstarted(TurnId),
    /// Something that turns began in the background is alive, at work or waiting for a person; or nothing is.
    Aside {
        is_alive: bool,
    },
    /// All that the last owner left has come: what comes now is new.
    Adopted,
    /// Something of the user's failed: a planner, a strategy, a reader.
    Broke,
    /// Time has passed.
    Tick,
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
pub(crate) enum End {
    Done,
    Failed,
    Suspended,
    /// And whether it was a preempt that took effect; then what becomes of the items.
    Stopped {
        by: EndedBy,
        after: PreemptedItems,
    },
}

/// Whose request took effect on a run that a stop ended. Exhaustive: a preempt, or anybody else's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum EndedBy {
    Preempt,
    Other,
}

/// What becomes of a preempted turn's items (S6.9). Exhaustive: they were handled as far as they were, or wait again.
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
    /// Say [`Input::Gathered`] behind everything that is accepted by now.
    Gather(u64),
    /// Ask the planner.
    Plan {
        plan: u64,
        waiting: Vec<ItemId>,
        left: Option<TurnId>,
        wanted: Wanted,
    },
    /// Stop asking.
    DropPlan,
    Start {
        turn: TurnId,
        from: StartFrom,
        /// What it is handed before its first model request: what steered it before it began to wait.
        steers: Vec<(ItemId, SteerTiming)>,
    },
    StopRun {
        turn: TurnId,
        why: StopWhy,
    },
    Steer {
        turn: TurnId,
        item: ItemId,
        when: SteerTiming,
    },
    /// A steer waits for the next request of the turn that waits for a decision.
    Held {
        turn: TurnId,
        item: ItemId,
    },
    /// The turn's history is to be forgotten.
    Forget(TurnId),
    /// Where an item has come to rest.
    Fate {
        item: ItemId,
        fate: ItemOutcome,
    },
    /// It waits again.
    Requeued(ItemId),
    /// It goes back to whoever pushed it.
    Return {
        item: ItemId,
        why: RejectReason,
    },
    /// What a preempt came to.
    Resolve {
        item: ItemId,
        preempted: PreemptOutcome,
    },
    /// The turn is over.
    TurnEnded {
        turn: TurnId,
        fate: ItemOutcome,
    },
    /// What the asker is told.
    Answer(Answer),
    /// The session is over.
    End(ExitKind),
}

/// What is asked of a planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Wanted {
    Any,
    Resume,
}

/// What a turn starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StartFrom {
    Plan,
    /// The turn that ended early, taken up again.
    Resume,
    /// The suspended turn, with what was decided.
    Decision,
    /// The suspended turn, only to be ended: its questions are taken back.
    Withdrawal(StopWhy),
}

/// Why a run is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StopWhy {
    /// As the asker of the input at hand said.
    Asked,
    Session(Strength),
    Preempt {
        points: Option<SafePoints>,
        grace: Option<u64>,
    },
    /// A preempt's grace is over.
    Escalated,
    /// The session cannot go on.
    Broken,
}

/// What an asker is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    Withdrawn,
    /// It is not waiting: taken by a turn, or gone.
    Taken,
    StoppingTurn(TurnId),
    NoTurn,
    TurnMismatch(TurnId),
    First,
    Strengthened,
    NothingAdded,
    TooLate,
    Resuming,
    NothingToResume,
}

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ExitKind {
    Stopped,
    Idle,
    Broken,
}

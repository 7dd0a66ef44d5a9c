//! What a witness remembers of a session beside its items, by separate rules: what may stop what, how a turn
//! must end, what begins a turn, and what was promised.

use super::{
    Action, Input, ItemId, ItemOutcome, Moment, OnTurnFailure, PushKind, RequestAnswer, Rules, SessionPhase,
    StartFrom, StopWhy, Strength, TurnEnd, TurnId,
    world::{AskedPreempt, World},
};
use crate::session::machine::{ExitKind, PlanRequest};

mod starts;

/// What the session has promised to a caller. Exhaustive: nothing, a plan of a resume, or a decision's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Promise {
    Nothing,
    Resume,
    Decision,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "a witness notes what it saw, each for itself")]
pub(super) struct Witness {
    rules: Rules,
    /// Whether no preempt may stop the turn.
    is_protected: bool,
    /// How many turns or plans in a row were preempted.
    streak: u32,
    /// Whether a stop of the session, or its failure, was requested of the running turn.
    session_asked: bool,
    /// How many items there were when a stop of the turn alone was asked.
    pub(super) stopped_at: Option<ItemId>,
    /// Whether a preempt was bound to the turn that was just settled.
    was_wanted: bool,
    /// Items before this one begin no turn.
    barrier: Option<ItemId>,
    /// The running planner has seen all items before this one.
    seen: ItemId,
    /// Whether the suspended turn is only to be ended.
    withdrawn: bool,
    pub(super) promise: Promise,
    broken: bool,
    /// When it was asked to stop when idle, and for how long.
    idle_asked: Option<(Moment, u64)>,
    /// When it was last not idle, or something came.
    busy_at: Moment,
    /// How the turn that was just settled must end.
    expected: Option<ItemOutcome>,
    /// The answer that the stop just requested must get.
    pub(super) answer: Option<RequestAnswer>,
}

impl Witness {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            rules,
            is_protected: false,
            streak: 0,
            session_asked: false,
            stopped_at: None,
            was_wanted: false,
            barrier: None,
            seen: ItemId::new(0),
            withdrawn: false,
            promise: Promise::Nothing,
            broken: false,
            idle_asked: None,
            busy_at: Moment::default(),
            expected: None,
            answer: None,
        }
    }
}

impl World {
    /// What must follow from it, before it happens.
    pub(super) fn foresee(&mut self, input: &Input) {
        let count = self.seen_items();
        let is_preempt = matches!(input, Input::Push(_, PushKind::Preempt(_)));
        match input {
            Input::Push(..) => self.witness.busy_at = self.now,
            Input::Broke => self.witness.broken = true,
            Input::Inherited if self.witness.barrier.is_some() => self.witness.barrier = Some(count),
            Input::StopWhenIdle(micros) if self.stopped.is_none() && !self.ended => {
                self.witness.idle_asked.get_or_insert((self.now, *micros));
            }
            Input::WithdrawIdleStop => self.witness.idle_asked = None,
            Input::Stop(strength) => {
                self.witness.idle_asked = None;
                self.witness.answer = Some(match self.stopped {
                    None => RequestAnswer::First,
                    Some(before) if before < *strength => RequestAnswer::Strengthened,
                    Some(_) => RequestAnswer::NothingAdded,
                });
            }
            Input::StopTurn(wanted) => {
                let suspended = self.machine.left().filter(|_| self.machine.is_suspended());
                let target = self.run.or(suspended);
                if target.is_some() && (wanted.is_none() || *wanted == target) {
                    let before = self.witness.stopped_at.filter(|before| *before > ItemId::new(0));
                    self.witness.stopped_at = Some(before.unwrap_or(count));
                } else if (self.plan.is_some() || self.is_gathering()) && wanted.is_none() {
                    self.witness.barrier = Some(count);
                    self.witness.answer = Some(RequestAnswer::Held);
                }
            }
            Input::StopItem(item, queue) => self.foresee_item_stop(*item, *queue, count),
            Input::Settled(turn, end) if self.run == Some(*turn) => {
                self.witness.expected = Some(self.must_end(*turn, *end));
                let was_wanted = self.bound(*turn).next().is_some();
                self.witness.was_wanted = was_wanted;
            }
            _ => {}
        }
        let overtakes = is_preempt || matches!(input, Input::Stop(_) | Input::Broke | Input::StopTurn(_));
        let planned = matches!(input, Input::Planned(plan, _) if self.machine.is_planning(*plan));
        if overtakes || planned {
            self.witness.promise = Promise::Nothing;
        }
        if planned {
            // Unless a turn starts of it. What came while the planner thought has not been looked at.
            self.witness.barrier = Some(self.witness.seen);
        }
        if let Input::Planned(_, made) = input
            && planned
            && self.machine.wrong_item(made).is_some()
        {
            self.witness.broken = true;
        }
    }

    /// S6.11.
    fn must_end(&self, turn: TurnId, end: TurnEnd) -> ItemOutcome {
        match end {
            TurnEnd::Done => ItemOutcome::Completed(turn),
            TurnEnd::Failed => ItemOutcome::Failed(turn),
            TurnEnd::Suspended => ItemOutcome::Suspended(turn),
            TurnEnd::Preempted(_) if self.witness.session_asked => ItemOutcome::Interrupted(turn),
            TurnEnd::Preempted(_) if self.forgets(turn) => ItemOutcome::RolledBack(turn),
            TurnEnd::Preempted(_) => ItemOutcome::Preempted(turn),
            TurnEnd::Stopped => ItemOutcome::Interrupted(turn),
        }
    }

    fn forgets(&self, turn: TurnId) -> bool {
        let asked = |asked: &AskedPreempt| asked.due.0 <= self.now && !self.witness.is_protected;
        self.bound(turn).any(|preempt| preempt.forgets && asked(preempt))
    }

    /// The preempts that found this turn and are not answered.
    fn bound(&self, turn: TurnId) -> impl Iterator<Item = &AskedPreempt> {
        self.preempts.iter().filter(move |asked| asked.saw == Some(turn) && asked.answered.is_none())
    }

    /// A stop of a run has a cause that may request it.
    pub(super) fn is_bound(&self, turn: TurnId, why: StopWhy) {
        let mut bound = self.bound(turn);
        let is_open = !self.witness.is_protected;
        let may = match why {
            StopWhy::Preempt { .. } => is_open && bound.any(|asked| asked.due.0 <= self.now),
            StopWhy::Escalated => is_open && bound.any(|it| it.due.1.is_some_and(|due| due <= self.now)),
            StopWhy::Session(strength) => self.stopped >= Some(strength),
            StopWhy::Broken => self.witness.broken,
            StopWhy::Asked => self.witness.stopped_at.is_some(),
        };
        assert!(may, "{why:?} of {turn} without a cause: {:?}", self.witness);
    }

    pub(super) fn bear_witness(&mut self, action: &Action, input: &Input) {
        let (seen, ending) = (self.seen_items(), self.is_ending());
        let witness = &mut self.witness;
        match action {
            Action::Plan { waiting, wanted, .. } => {
                witness.seen = seen;
                assert!(!self.machine.is_suspended(), "a plan while a decision is waited for");
                assert!(!witness.broken, "a plan after something broke");
                let fresh = waiting.iter().any(|item| witness.barrier.is_none_or(|barrier| *item >= barrier));
                assert!(fresh || *wanted == PlanRequest::Resume, "an old item begins a turn, by {input:?}");
                assert!(
                    *wanted == PlanRequest::Resume || witness.promise != Promise::Resume,
                    "a resume is forgotten"
                );
            }
            Action::DropPlan if matches!(input, Input::Push(..)) => witness.streak += 1,
            Action::Start { from, .. } => witness.starts(*from),
            Action::StopRun(_, StopWhy::Session(_) | StopWhy::Broken) => witness.session_asked = true,
            Action::TurnEnded(_, fate) => self.turn_ended(*fate),
            // A stop that is in the mail overtakes it.
            Action::RequestAnswer(RequestAnswer::Resuming) if !ending => {
                assert!(self.stopped.is_none() && !witness.broken, "a promise that cannot be kept");
                assert!(!witness.withdrawn, "a decision for a turn that is to be ended");
                let is_decision = matches!(input, Input::Decided);
                witness.promise = if is_decision { Promise::Decision } else { Promise::Resume };
            }
            Action::RequestAnswer(RequestAnswer::Released) => {
                assert!(self.stopped.is_none() && !witness.broken, "what is released cannot begin");
                assert!(self.machine.left().is_none(), "a turn that was left is resumed first");
                witness.barrier = None;
            }
            Action::End(exit) => self.ends(*exit, input),
            _ => {}
        }
    }

    fn turn_ended(&mut self, fate: ItemOutcome) {
        let count = self.seen_items();
        let witness = &mut self.witness;
        assert_eq!(witness.expected.take(), Some(fate), "S6.11: {witness:?}");
        if matches!(fate, ItemOutcome::Suspended(_)) {
            return;
        }
        let preempted = matches!(fate, ItemOutcome::Preempted(_) | ItemOutcome::RolledBack(_));
        let counts = preempted && !witness.is_protected;
        witness.streak = if counts { witness.streak + 1 } else { 0 };
        let waits = match fate {
            ItemOutcome::Interrupted(_) => Some(witness.stopped_at.unwrap_or(count)),
            ItemOutcome::Failed(_) => (witness.rules.on_failure == OnTurnFailure::Wait).then_some(count),
            _ => None,
        };
        witness.barrier = waits.filter(|_| !witness.was_wanted);
        witness.stopped_at = None;
    }

    fn ends(&self, exit: ExitKind, input: &Input) {
        let witness = &self.witness;
        let fits = match exit {
            ExitKind::Broken => witness.broken,
            ExitKind::Stopped => self.stopped.is_some() && !witness.broken,
            ExitKind::Idle => {
                let over =
                    |(asked, micros): (Moment, u64)| asked.max(witness.busy_at).after(micros) <= self.now;
                witness.idle_asked.is_some_and(over)
            }
        };
        assert!(fits, "{exit:?} by {input:?}: {witness:?}");
        assert_eq!(witness.promise, Promise::Nothing, "ended with a promise to keep");
    }

    /// What must have followed.
    pub(super) fn look_back(&mut self, input: &Input, actions: &[Action]) {
        let asks = |wanted: fn(&StopWhy) -> bool| {
            actions.iter().any(|action| matches!(action, Action::StopRun(_, why) if wanted(why)))
        };
        let runs = matches!(self.machine.phase(), SessionPhase::Running(_));
        let begins = actions.iter().any(|action| matches!(action, Action::Start { .. }));
        if let Some(answer) = self.witness.answer.take().filter(|_| {
            matches!(input, Input::StopItem(..) | Input::StopTurn(_))
                || !actions.contains(&Action::RequestAnswer(RequestAnswer::TooLate))
        }) {
            assert!(actions.contains(&Action::RequestAnswer(answer)), "a stop that is weakened: {actions:?}");
        }
        match input {
            Input::Stop(strength) if runs && *strength > Strength::AtTurnEnd => {
                assert!(asks(|why| matches!(why, StopWhy::Session(_))), "a stop that does not reach the run");
            }
            Input::Broke if runs => {
                assert!(asks(|why| *why == StopWhy::Broken), "a run continues after a failure")
            }
            Input::Push(_, PushKind::Preempt(spec)) if runs && !begins && spec.delay.is_none() => {
                let is_back = actions
                    .iter()
                    .any(|action| matches!(action, Action::Settle(_, ItemOutcome::Returned(_))));
                let is_asked = asks(|why| matches!(why, StopWhy::Preempt { .. }));
                let is_open = !self.witness.is_protected;
                assert_eq!(
                    is_asked,
                    is_open && !is_back,
                    "a preempt of a turn that may be stopped, or may not"
                );
            }
            _ => {}
        }
        if self.machine.phase() == SessionPhase::Idle && !self.is_opening() {
            self.look_at_rest(input);
        }
        // What waits for a decision in a store waits there too.
        let (suspended, waiting) = (self.machine.is_suspended(), self.machine.waiting());
        let at_rest = self.machine.phase() == SessionPhase::Idle
            && !self.is_opening()
            && if suspended { self.is_stored } else { waiting.is_empty() }
            && !self.has_background;
        if !at_rest && !self.ended {
            self.witness.busy_at = self.now;
        }
        let over = |(asked, micros): (Moment, u64)| asked.max(self.witness.busy_at).after(micros) <= self.now;
        assert!(
            !(at_rest && self.witness.idle_asked.is_some_and(over)),
            "idle for too long, after {input:?}"
        );
        self.look_for_withdrawal(input, actions);
    }

    /// Between turns: what was promised has begun, and what waits is held.
    fn look_at_rest(&self, input: &Input) {
        let (left, waiting) = (self.machine.left(), self.machine.waiting());
        let is_held = *input == Input::Resume && left.is_none() && !waiting.is_empty();
        assert!(!is_held, "a resume that releases nothing");
        assert_eq!(self.witness.promise, Promise::Nothing, "idle with a promise to keep, after {input:?}");
        if !self.machine.is_suspended() {
            let barrier = self.witness.barrier.unwrap_or(ItemId::new(0));
            let fresh = waiting.iter().find(|item| **item >= barrier);
            assert_eq!(fresh, None, "it waits, and nothing comes of it, after {input:?}");
        }
    }

    /// Whether what waits for a person has been asked to stop.
    fn look_for_withdrawal(&mut self, input: &Input, actions: &[Action]) {
        let runs = matches!(self.machine.phase(), SessionPhase::Running(_));
        let suspended = self.machine.is_suspended() && !runs;
        let withdraws = matches!(input, Input::StopTurn(_) | Input::StopItem(..))
            && actions
                .iter()
                .any(|action| matches!(action, Action::RequestAnswer(RequestAnswer::StoppingTurn(_))));
        let asked = |due: Moment| due <= self.now;
        let target = self.machine.left();
        let preempted = self.preempts.iter().any(|preempt| {
            preempt.answered.is_none()
                && preempt.saw.is_some()
                && preempt.saw == target
                && asked(preempt.due.0)
        });
        self.witness.withdrawn = suspended
            && (self.witness.withdrawn || withdraws || preempted || self.witness.stopped_at.is_some());
    }
}

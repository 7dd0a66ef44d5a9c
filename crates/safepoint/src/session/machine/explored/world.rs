//! The world around the machine: what may happen next, and what must hold whatever did.

use std::collections::VecDeque;

use super::{
    Action, Input, ItemId, ItemOutcome, Machine, Moment, PlanResult, PreemptOutcome, PreemptedItems,
    PushKind, QueueAfterStop, RequestAnswer, Rules, StartFrom, SteerTiming, StopWhy, Strength, TurnEnd,
    TurnId, witness::Witness,
};
use crate::session::inbox::Count;

mod inputs;
mod mail;
mod seen;

use mail::Letter;
pub(super) use mail::WorldStep;

/// How often each thing may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Budget {
    pub(super) pushes: u8,
    pub(super) stops: u8,
    pub(super) stop_turns: u8,
    pub(super) stop_items: u8,
    pub(super) resumes: u8,
    pub(super) withdraws: u8,
    pub(super) ticks: u8,
    pub(super) breaks: u8,
    pub(super) turns: u8,
    /// How often a background run begins.
    pub(super) asides: u8,
}

/// Where the world believes an item to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ItemPlace {
    /// Accepted, and on its way to the owner.
    Coming,
    Waiting,
    /// On its way into this turn, or held for it while it waits for a decision.
    Steering(TurnId),
    InTurn(TurnId),
    /// In a turn that ended early: it may come back with it.
    Left(TurnId),
    AtRest,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct AskedPreempt {
    pub(super) item: ItemId,
    /// The turn that was running when it came.
    pub(super) saw: Option<TurnId>,
    /// When it may be asked, and when it may escalate.
    pub(super) due: (Moment, Option<Moment>),
    pub(super) forgets: bool,
    pub(super) answered: Option<PreemptOutcome>,
}

/// What is known of the running turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct AtWork {
    /// Whether a preempt has asked it to stop: that request, or any other, may be what takes action.
    is_preempted: bool,
    /// Whether the reader has returned before the turn ended.
    is_read: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a state of a search: facts that are independent of each other"
)]
pub(super) struct World {
    pub(super) machine: Machine,
    pub(super) now: Moment,
    budget: Budget,
    /// Whether the owner handles one message at a time, and not all at once, which keeps a search small.
    is_apart: bool,
    /// Whether a store keeps the session.
    pub(super) is_stored: bool,
    inbox: Count,
    mail: VecDeque<Letter>,
    /// The plan that waits for what came before it, and how many items had been accepted then.
    gathering: Option<(u64, usize)>,
    /// Whether a stop of the session was requested, delivered or not.
    is_ending: bool,
    pub(super) places: Vec<ItemPlace>,
    pub(super) preempts: Vec<AskedPreempt>,
    pub(super) plan: Option<(u64, Vec<ItemId>, Option<TurnId>)>,
    pub(super) run: Option<TurnId>,
    at_work: AtWork,
    /// The last turn, whether it is quiet, and whether its reader has returned.
    pub(super) winding: Option<(TurnId, bool, bool)>,
    /// Whether something of a turn that is over is alive.
    pub(super) has_background: bool,
    pub(super) stopped: Option<Strength>,
    pub(super) ended: bool,
    pub(super) witness: Witness,
}

impl World {
    pub(super) fn new(rules: Rules, budget: Budget) -> Self {
        Self {
            machine: Machine::new(rules),
            now: Moment::default(),
            budget,
            is_apart: false,
            is_stored: false,
            inbox: Count::new(usize::MAX),
            mail: VecDeque::new(),
            gathering: None,
            is_ending: false,
            places: Vec::new(),
            preempts: Vec::new(),
            plan: None,
            run: None,
            at_work: AtWork::default(),
            winding: None,
            has_background: false,
            stopped: None,
            ended: false,
            witness: Witness::new(rules),
        }
    }

    /// The same, but the owner handles one message at a time.
    pub(super) fn apart(self) -> Self {
        Self { is_apart: true, ..self }
    }

    /// A session as another owner left it: a turn, suspended or not, and what waits in the store, on its way.
    pub(super) fn opened(self, rules: Rules, left: Option<bool>, stored: &[PushKind]) -> Self {
        let mut world = Self { is_stored: true, ..self };
        let turn = TurnId::new(1);
        let own: Vec<ItemId> = left.iter().map(|_| world.inbox.next_position()).collect();
        world.places.extend(own.iter().map(|_| ItemPlace::Left(turn)));
        world.machine = Machine::recovered(rules, 1, left.map(|is_suspended| (turn, own, is_suspended)));
        if left.is_some() {
            world.witness.holds_all();
        }
        for how in stored {
            let item = world.inbox.next_position();
            world.accepted(item, *how);
        }
        world.mail.push_back(Letter::Adopted);
        world
    }

    /// Checks what the machine makes of it.
    fn happen(&mut self, input: &Input) {
        self.foresee(input);
        self.spend(input);
        let target = self.run.or_else(|| self.machine.left().filter(|_| self.machine.is_suspended()));
        match input {
            Input::Push(item, how) => {
                self.put(*item, ItemPlace::Waiting);
                if let (PushKind::Preempt(spec), false) = (how, self.ended) {
                    let from = self.now.after(spec.delay.unwrap_or(0));
                    let due = (from, spec.grace.map(|grace| from.after(grace)));
                    self.preempts.push(AskedPreempt {
                        item: *item,
                        saw: target,
                        due,
                        forgets: spec.forgets,
                        answered: None,
                    });
                }
            }
            Input::Planned(plan, _) => {
                self.plan.take_if(|(asked, ..)| asked == plan);
            }
            Input::SteerTaken(turn, item) => self.put(*item, ItemPlace::InTurn(*turn)),
            Input::Settled(turn, _) => {
                self.run = None;
                self.winding = Some((*turn, false, self.at_work.is_read));
                self.at_work = AtWork::default();
            }
            Input::Quiet(_) => self.winding = self.winding.map(|(turn, _, read)| (turn, true, read)),
            Input::Read(_) if self.run.is_some() => self.at_work.is_read = true,
            Input::Read(_) => self.winding = self.winding.map(|(turn, quiet, _)| (turn, quiet, true)),
            Input::Stop(strength) => self.stopped = self.stopped.max(Some(*strength)),
            Input::Background { is_alive } => self.has_background = *is_alive,
            Input::Tick => self.now = self.machine.deadline().unwrap_or(self.now),
            _ => {}
        }
        let mut actions = Vec::new();
        self.machine.step(self.now, input.clone(), &mut actions);
        self.hold_back(&mut actions);
        for action in &actions {
            self.see(action, input);
            self.bear_witness(action, input);
        }
        self.look_back(input, &actions);
        self.check(input);
    }

    /// As the driver does it: nothing begins once a stop was requested, delivered or not (S6.13).
    fn hold_back(&mut self, actions: &mut Vec<Action>) {
        let begun = actions.iter().find_map(|action| match action {
            Action::Start { turn, from, .. } if !matches!(from, StartFrom::Withdrawal(_)) => Some(*turn),
            _ => None,
        });
        if let Some(turn) = begun.filter(|_| self.is_ending()) {
            actions.retain(|action| !matches!(action, Action::Start { .. }));
            self.machine.step(self.now, Input::Unstarted(turn), actions);
            self.witness.held_back();
        }
    }

    fn spend(&mut self, input: &Input) {
        let purse = match input {
            Input::StopWhenIdle(_) | Input::WithdrawIdleStop => &mut self.budget.stops,
            Input::StopTurn(_) => &mut self.budget.stop_turns,
            Input::StopItem(..) => &mut self.budget.stop_items,
            Input::Resume | Input::Decided | Input::Planned(_, PlanResult::Resume) => {
                &mut self.budget.resumes
            }
            Input::Withdraw(_) | Input::SteerReturned(_) => &mut self.budget.withdraws,
            Input::Tick => &mut self.budget.ticks,
            Input::Broke => &mut self.budget.breaks,
            Input::Planned(_, made) if self.machine.wrong_item(made).is_some() => &mut self.budget.breaks,
            Input::Background { is_alive: true } => &mut self.budget.asides,
            _ => return,
        };
        *purse = purse.saturating_sub(1);
    }
}

//! The world around the machine: what may happen next, and what must hold whatever did.

use super::{
    Answer, Effect, End, EndedBy, Fate, From, How, Input, ItemId, Leftover, Machine, Made, Moment, Preempted,
    Record, Rules, Strength, TurnId, Why, Yet, witness::Witness,
};

/// How often each thing may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Budget {
    pub(super) pushes: u8,
    pub(super) stops: u8,
    pub(super) stop_turns: u8,
    pub(super) resumes: u8,
    pub(super) withdraws: u8,
    pub(super) ticks: u8,
    pub(super) breaks: u8,
    pub(super) turns: u8,
    /// How often something goes on in the background.
    pub(super) asides: u8,
}

/// Where the world believes an item to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Waiting,
    Steering(TurnId),
    InTurn(TurnId),
    /// In a turn that ended early: it may come back with it.
    Left(TurnId),
    AtRest,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    pub(super) item: ItemId,
    /// The turn that was at work when it came.
    pub(super) saw: Option<TurnId>,
    /// When it may be asked, and when it may escalate.
    pub(super) due: (Moment, Option<Moment>),
    pub(super) record: Record,
    pub(super) answered: Option<Preempted>,
}

/// Whether the reader has returned before its turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Early {
    No,
    Read,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) machine: Machine,
    pub(super) now: Moment,
    budget: Budget,
    pub(super) places: Vec<Place>,
    pub(super) preempts: Vec<Asked>,
    pub(super) plan: Option<(u64, Vec<ItemId>, Option<TurnId>)>,
    pub(super) run: Option<TurnId>,
    /// Whether a preempt has asked the run to stop: its request, or that of anybody else, may be what takes effect.
    preempting: Yet,
    /// The last turn, whether it is quiet, and whether its reader has returned.
    pub(super) winding: Option<(TurnId, bool, bool)>,
    early: Early,
    /// Whether something of a turn that is over is alive.
    pub(super) aside: Yet,
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
            places: Vec::new(),
            preempts: Vec::new(),
            plan: None,
            run: None,
            preempting: Yet::No,
            winding: None,
            early: Early::No,
            aside: Yet::No,
            stopped: None,
            ended: false,
            witness: Witness::new(rules),
        }
    }

    /// All that may happen next.
    pub(super) fn inputs(&self, pushes: &[How]) -> Vec<Input> {
        let mut all = Vec::new();
        if self.ended {
            return all;
        }
        let left = self.budget;
        if left.pushes > 0 {
            let item = ItemId::new(self.places.len() as u64);
            all.extend(pushes.iter().map(|how| Input::Push { item, how: *how }));
        }
        if left.stops > 0 {
            all.extend([Strength::AtTurnEnd, Strength::Graceful, Strength::Now].map(Input::Stop));
            all.extend([Input::StopWhenIdle(4), Input::KeepOpen]);
        }
        if left.stop_turns > 0 {
            all.extend([Input::StopTurn(None), Input::StopTurn(Some(TurnId::new(1)))]);
        }
        if left.resumes > 0 {
            all.extend([Input::Resume, Input::Decided]);
        }
        if left.withdraws > 0 {
            all.extend((0..self.places.len() as u64).map(|n| Input::Withdraw(ItemId::new(n))));
            let steered = (0..self.places.len()).filter(|n| matches!(self.places[*n], Place::Steering(_)));
            all.extend(steered.map(|n| Input::TookBack(ItemId::new(n as u64))));
        }
        if left.ticks > 0 && self.machine.deadline().is_some() {
            all.push(Input::Tick);
        }
        if left.breaks > 0 {
            all.push(Input::Broke);
        }
        if left.asides > 0 && self.run.is_some() && self.aside == Yet::No {
            all.push(Input::Aside(Yet::Yes));
        }
        if self.aside == Yet::Yes {
            all.push(Input::Aside(Yet::No));
        }
        self.add_answers(&mut all);
        all
    }

    /// What planner, run and reader may answer.
    fn add_answers(&self, all: &mut Vec<Input>) {
        if let Some((plan, waiting, left)) = &self.plan {
            let mades = [
                Made::Turn { take: waiting.clone(), drop: Vec::new() },
                Made::Turn {
                    take: waiting.iter().take(1).copied().collect(),
                    drop: waiting.iter().skip(1).copied().collect(),
                },
                Made::Wait,
            ];
            all.extend(mades.map(|made| Input::Planned { plan: *plan, made }));
            if left.is_some() && self.budget.resumes > 0 {
                all.push(Input::Planned { plan: *plan, made: Made::Resume });
            }
            // One that was dropped may still answer.
            all.push(Input::Planned { plan: plan - 1, made: Made::Wait });
        }
        if let Some(turn) = self.run {
            all.push(Input::Began(turn));
            all.extend((self.early == Early::No).then_some(Input::Read(turn)));
            let mut ends = vec![End::Done, End::Failed, End::Suspended];
            ends.push(End::Stopped { by: EndedBy::Other, after: Leftover::Drop });
            if self.preempting == Yet::Yes {
                let afters = [Leftover::Drop, Leftover::Requeue];
                ends.extend(afters.map(|after| End::Stopped { by: EndedBy::Preempt, after }));
            }
            all.extend(ends.into_iter().map(|end| Input::Settled { turn, end }));
            let steered = (0..self.places.len()).filter(|n| self.places[*n] == Place::Steering(turn));
            all.extend(steered.map(|n| Input::SteerTaken { turn, item: ItemId::new(n as u64) }));
        }
        if let Some((turn, quiet, read)) = self.winding {
            all.extend((!quiet).then_some(Input::Quiet(turn)));
            all.extend((!read).then_some(Input::Read(turn)));
        }
    }

    /// Lets it happen, and checks what the machine makes of it.
    pub(super) fn take(&mut self, input: &Input) {
        self.foresee(input);
        self.spend(input);
        let target = self.run.or_else(|| self.machine.left().filter(|_| self.machine.is_suspended()));
        match input {
            Input::Push { item, how } => {
                self.places.push(Place::Waiting);
                if let (How::Preempt(wish), false) = (how, self.ended) {
                    let from = self.now.after(wish.delay.unwrap_or(0));
                    let due = (from, wish.grace.map(|grace| from.after(grace)));
                    self.preempts.push(Asked {
                        item: *item,
                        saw: target,
                        due,
                        record: wish.record,
                        answered: None,
                    });
                }
            }
            Input::Planned { plan, .. } => {
                self.plan.take_if(|(asked, ..)| asked == plan);
            }
            Input::SteerTaken { turn, item } => self.put(*item, Place::InTurn(*turn)),
            Input::Settled { turn, .. } => {
                self.run = None;
                self.preempting = Yet::No;
                self.winding = Some((*turn, false, self.early == Early::Read));
                self.early = Early::No;
            }
            Input::Quiet(_) => self.winding = self.winding.map(|(turn, _, read)| (turn, true, read)),
            Input::Read(_) if self.run.is_some() => self.early = Early::Read,
            Input::Read(_) => self.winding = self.winding.map(|(turn, quiet, _)| (turn, quiet, true)),
            Input::Stop(strength) => self.stopped = self.stopped.max(Some(*strength)),
            Input::Aside(alive) => self.aside = *alive,
            Input::Tick => self.now = self.machine.deadline().unwrap_or(self.now),
            _ => {}
        }
        let mut effects = Vec::new();
        self.machine.step(self.now, input.clone(), &mut effects);
        for effect in &effects {
            self.see(effect, input);
            self.bear_witness(effect, input);
        }
        self.look_back(input, &effects);
        self.check(input);
    }

    fn spend(&mut self, input: &Input) {
        let purse = match input {
            Input::Push { .. } => &mut self.budget.pushes,
            Input::Stop(_) | Input::StopWhenIdle(_) | Input::KeepOpen => &mut self.budget.stops,
            Input::StopTurn(_) => &mut self.budget.stop_turns,
            Input::Resume | Input::Decided | Input::Planned { made: Made::Resume, .. } => {
                &mut self.budget.resumes
            }
            Input::Withdraw(_) | Input::TookBack(_) => &mut self.budget.withdraws,
            Input::Tick => &mut self.budget.ticks,
            Input::Broke => &mut self.budget.breaks,
            Input::Aside(Yet::Yes) => &mut self.budget.asides,
            _ => return,
        };
        *purse = purse.saturating_sub(1);
    }

    fn see(&mut self, effect: &Effect, input: &Input) {
        assert!(!self.ended, "{effect:?} after the end, by {input:?}");
        match effect {
            Effect::Plan { plan, waiting, left, .. } => {
                assert!(self.run.is_none() && self.plan.is_none(), "a plan beside a turn or a plan");
                assert!(self.stopped.is_none(), "a plan after a stop, by {input:?}");
                self.plan = Some((*plan, waiting.clone(), *left));
            }
            Effect::DropPlan => self.plan = None,
            Effect::Start { turn, from, .. } => self.started(*turn, *from),
            Effect::StopRun { turn, why } => {
                assert_eq!(self.run, Some(*turn), "a stop of a run that is not at work");
                self.is_bound(*turn, *why);
                if matches!(why, Why::Preempt { .. } | Why::Protected | Why::Escalated) {
                    self.preempting = Yet::Yes;
                }
            }
            Effect::Steer { turn, item, .. } => self.put(*item, Place::Steering(*turn)),
            Effect::Requeued(item) => self.put(*item, Place::Waiting),
            Effect::Return { item, .. } => self.rest(*item),
            Effect::Fate { item, fate } => match fate {
                Fate::Interrupted(turn)
                | Fate::Failed(turn)
                | Fate::Suspended(turn)
                | Fate::Preempted(turn) => {
                    self.put(*item, Place::Left(*turn));
                }
                _ => self.rest(*item),
            },
            Effect::Resolve { item, preempted } => self.resolved(*item, *preempted),
            Effect::End(_) => self.ended = true,
            Effect::Forget(_) | Effect::TurnEnded { .. } | Effect::Answer(_) => {}
        }
        if let (Effect::Answer(answer), Input::Stop(_)) = (effect, input) {
            assert!(matches!(answer, Answer::First | Answer::Strengthened | Answer::NothingAdded));
        }
    }

    fn started(&mut self, turn: TurnId, from: From) {
        assert!(self.run.is_none() && self.winding.is_none_or(|(_, quiet, read)| quiet && read), "two turns");
        assert!(self.stopped.is_none(), "a turn after a stop");
        assert!(self.machine_items_fit(turn, from), "an item is delivered twice");
        self.run = Some(turn);
        self.winding = None;
        let withdraws = matches!(from, From::Withdrawal(Why::Preempt { .. }));
        self.preempting = if withdraws { Yet::Yes } else { Yet::No };
        for item in self.machine.items().to_vec() {
            self.put(item, Place::InTurn(turn));
        }
        self.budget.turns = self.budget.turns.saturating_sub(1);
        if self.budget.turns == 0 {
            self.budget = Budget { pushes: 0, resumes: 0, ..self.budget };
        }
    }

    /// A new turn takes what waits, a resumed one what it had.
    fn machine_items_fit(&self, turn: TurnId, from: From) -> bool {
        self.machine.items().iter().all(|item| match (self.place(*item), from) {
            (Place::Waiting, From::Plan) => true,
            (Place::Left(left), From::Resume | From::Decision | From::Withdrawal(_)) => left == turn,
            _ => false,
        })
    }

    fn resolved(&mut self, item: ItemId, preempted: Preempted) {
        let asked =
            self.preempts.iter_mut().find(|asked| asked.item == item).expect("a preempt that nobody asked");
        assert_eq!(asked.answered.replace(preempted), None, "a preempt answered twice");
        match preempted {
            Preempted::StoppedTurn(turn) => assert_eq!(asked.saw, Some(turn), "the wrong turn"),
            Preempted::NoTarget => assert_eq!(asked.saw, None, "it had a target"),
            Preempted::TurnEndedFirst | Preempted::SupersededByStop => {}
        }
    }

    pub(super) fn place(&self, item: ItemId) -> Place {
        self.places[usize::try_from(item.number()).expect("small")]
    }
    fn put(&mut self, item: ItemId, place: Place) {
        assert_ne!(self.place(item), Place::AtRest, "{item} moves after it came to rest");
        self.places[usize::try_from(item.number()).expect("small")] = place;
    }
    fn rest(&mut self, item: ItemId) {
        self.put(item, Place::AtRest);
    }
}

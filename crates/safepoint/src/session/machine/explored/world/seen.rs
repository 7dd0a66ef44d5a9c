//! What a world sees of the machine's actions, and where it then believes items to be.

use super::{
    Action, Budget, Input, ItemId, ItemOutcome, ItemPlace, Letter, PreemptOutcome, RequestAnswer, StartFrom,
    SteerTiming, StopWhy, TurnId, World,
};

impl World {
    pub(super) fn see(&mut self, action: &Action, input: &Input) {
        let is_late = matches!(
            action,
            Action::Settle(_, ItemOutcome::Unhandled) | Action::RequestAnswer(RequestAnswer::TooLate)
        );
        assert!(!self.ended || is_late, "{action:?} after the end, by {input:?}");
        match action {
            Action::Gather(plan) => {
                assert!(self.run.is_none() && self.plan.is_none(), "a plan beside a turn or a plan");
                self.gathering = Some((*plan, self.places.len()));
                self.mail.push_back(Letter::Gathered(*plan));
            }
            Action::Plan { plan, waiting, left, .. } => {
                assert!(self.run.is_none() && self.plan.is_none(), "a plan beside a turn or a plan");
                assert!(self.stopped.is_none(), "a plan after a stop, by {input:?}");
                self.sees_all(*plan, waiting);
                self.plan = Some((*plan, waiting.clone(), *left));
            }
            Action::DropPlan => (self.plan, self.gathering) = (None, None),
            Action::Start { turn, from, steers } => {
                self.hands_over(*turn, steers);
                self.started(*turn, *from);
            }
            Action::StopRun(turn, why) => {
                assert_eq!(self.run, Some(*turn), "a stop of a run that is not active");
                self.is_bound(*turn, *why);
                if matches!(why, StopWhy::Preempt { .. } | StopWhy::Escalated) {
                    self.at_work.is_preempted = true;
                }
            }
            Action::Steer(turn, item, _) | Action::Held(turn, item) => {
                self.put(*item, ItemPlace::Steering(*turn));
            }
            Action::Requeued(item) => self.put(*item, ItemPlace::Waiting),
            Action::Settle(item, fate) => match fate {
                ItemOutcome::Interrupted(turn)
                | ItemOutcome::Failed(turn)
                | ItemOutcome::Suspended(turn)
                | ItemOutcome::Preempted(turn) => {
                    self.put(*item, ItemPlace::Left(*turn));
                }
                _ => self.rest(*item),
            },
            Action::Resolve(item, preempted) => self.resolved(*item, *preempted),
            Action::End(_) => self.ended = true,
            Action::Forget(_) | Action::TurnEnded(..) | Action::RequestAnswer(_) => {}
        }
        if let (Action::RequestAnswer(answer), Input::Stop(_), false) = (action, input, self.ended) {
            assert!(matches!(
                answer,
                RequestAnswer::First | RequestAnswer::Strengthened | RequestAnswer::NothingAdded
            ));
        }
    }

    /// A plan is about everything that was accepted before it was wanted, in the order of acceptance.
    pub(super) fn sees_all(&mut self, plan: u64, waiting: &[ItemId]) {
        let (gathered, accepted) = self.gathering.take().expect("a plan without a gathering");
        assert_eq!(gathered, plan);
        assert!(
            self.seen_items().number() >= accepted as u64,
            "accepted before the plan, and received after it"
        );
        let wait = |n: &usize| self.places[*n] == ItemPlace::Waiting;
        let all: Vec<ItemId> = (0..self.places.len()).filter(wait).map(|n| ItemId::new(n as u64)).collect();
        assert_eq!(waiting, all, "a plan that does not see all that waits, in its order");
    }

    /// A turn that is taken up is handed what steered it before it waited, in its order.
    pub(super) fn hands_over(&self, turn: TurnId, steers: &[(ItemId, SteerTiming)]) {
        let held = |n: &usize| self.places[*n] == ItemPlace::Steering(turn);
        let all: Vec<ItemId> = (0..self.places.len()).filter(held).map(|n| ItemId::new(n as u64)).collect();
        let handed: Vec<ItemId> = steers.iter().map(|(item, _)| *item).collect();
        assert_eq!(handed, all, "a steer that is not handed over");
    }

    pub(super) fn started(&mut self, turn: TurnId, from: StartFrom) {
        assert!(
            !self.is_ending() || matches!(from, StartFrom::Withdrawal(_)),
            "a turn begins after a stop was asked"
        );
        assert!(self.run.is_none() && self.winding.is_none_or(|(_, quiet, read)| quiet && read), "two turns");
        assert!(self.stopped.is_none(), "a turn after a stop");
        assert!(self.machine_items_fit(turn, from), "an item is delivered twice");
        self.run = Some(turn);
        self.winding = None;
        self.at_work.is_preempted = matches!(from, StartFrom::Withdrawal(StopWhy::Preempt { .. }));
        for item in self.machine.items().to_vec() {
            self.put(item, ItemPlace::InTurn(turn));
        }
        self.budget.turns = self.budget.turns.saturating_sub(1);
        if self.budget.turns == 0 {
            self.budget = Budget { pushes: 0, resumes: 0, ..self.budget };
        }
    }

    /// A new turn takes what waits, a resumed one what it had.
    pub(super) fn machine_items_fit(&self, turn: TurnId, from: StartFrom) -> bool {
        self.machine.items().iter().all(|item| match (self.place(*item), from) {
            (ItemPlace::Waiting, StartFrom::Plan) => true,
            (ItemPlace::Left(left), StartFrom::Resume | StartFrom::Decision | StartFrom::Withdrawal(_)) => {
                left == turn
            }
            _ => false,
        })
    }

    pub(super) fn resolved(&mut self, item: ItemId, preempted: PreemptOutcome) {
        let asked = self
            .preempts
            .iter_mut()
            .find(|asked| asked.item == item)
            .expect("a preempt that was not requested");
        assert_eq!(asked.answered.replace(preempted), None, "a preempt answered twice");
        match preempted {
            PreemptOutcome::StoppedTurn(turn) => assert_eq!(asked.saw, Some(turn), "the wrong turn"),
            PreemptOutcome::NoTurn => assert_eq!(asked.saw, None, "it had a target"),
            PreemptOutcome::TurnEndedFirst | PreemptOutcome::SupersededByStop => {}
        }
    }

    pub(in super::super) fn place(&self, item: ItemId) -> ItemPlace {
        self.places[usize::try_from(item.number()).expect("small")]
    }
    pub(super) fn put(&mut self, item: ItemId, place: ItemPlace) {
        assert_ne!(self.place(item), ItemPlace::AtRest, "{item} moves after it came to rest");
        self.places[usize::try_from(item.number()).expect("small")] = place;
    }
    pub(super) fn rest(&mut self, item: ItemId) {
        self.put(item, ItemPlace::AtRest);
    }
}

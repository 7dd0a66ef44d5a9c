//! What the driver asks of the machine, in each phase: whether it may end, what blocks, what waits and what
//! steers.

use super::*;
use crate::session::{
    machine::{ExitKind, PlanRequest},
    outcome::RejectReason,
};

/// Feeds inputs to a machine.
pub(super) struct Owner {
    pub(super) machine: Machine,
    pub(super) now: Moment,
}

impl Owner {
    pub(super) fn new() -> Self {
        Self::of(Machine::new(RULES))
    }

    pub(super) fn of(machine: Machine) -> Self {
        Self { machine, now: Moment::default() }
    }

    pub(super) fn tell(&mut self, input: Input) -> Vec<Action> {
        let mut out = Vec::new();
        self.machine.step(self.now, input, &mut out);
        out
    }

    pub(super) fn push(&mut self, item: u64, how: PushKind) -> Vec<Action> {
        self.tell(Input::Push(ItemId::new(item), how))
    }

    /// Plans all that waits, and begins it.
    pub(super) fn begin(&mut self, plan: u64) -> Vec<Action> {
        self.tell(Input::Gathered(plan));
        let take = self.machine.waiting().iter().copied().collect();
        self.tell(Input::Planned(plan, PlanResult::Turn { take, drop: Vec::new() }))
    }

    /// Settles it, and lets it be quiet and read.
    pub(super) fn settle(&mut self, turn: u64, end: TurnEnd) -> Vec<Action> {
        let turn = TurnId::new(turn);
        let inputs = [Input::Settled(turn, end), Input::Quiet(turn), Input::Read(turn)];
        inputs.into_iter().flat_map(|input| self.tell(input)).collect()
    }
}

pub(super) const STOPPED: TurnEnd = TurnEnd::Stopped;

pub(super) fn item(number: u64) -> ItemId {
    ItemId::new(number)
}

pub(super) fn turn(number: u64) -> TurnId {
    TurnId::new(number)
}

/// A session whose first turn runs with item 0.
pub(super) fn at_work() -> Owner {
    let mut owner = Owner::new();
    owner.push(0, PushKind::Enqueue);
    owner.begin(1);
    owner
}

/// One whose first turn waits for a decision.
pub(super) fn suspended() -> Owner {
    let mut owner = at_work();
    owner.settle(1, TurnEnd::Suspended);
    owner
}

pub(super) fn gathers(actions: &[Action]) -> bool {
    actions.iter().any(|action| matches!(action, Action::Gather(_)))
}

pub(super) fn stops(actions: &[Action]) -> Vec<StopWhy> {
    let why = |action: &Action| match action {
        Action::StopRun(_, why) => Some(*why),
        _ => None,
    };
    actions.iter().filter_map(why).collect()
}

/// S6.1, S6.7: an item waits until a turn takes it, a steer until the turn has it, and both take room until then.
#[test]
fn what_waits_and_what_steers_takes_room() {
    let mut asked = Owner::new();
    asked.push(0, PushKind::Enqueue);
    asked.push(1, PushKind::Enqueue);
    let waits = |asked: &Owner| [0, 1, 2].map(|n| asked.machine.is_waiting(item(n)));
    assert_eq!((waits(&asked), asked.machine.room_taken()), ([true, true, false], 2));
    asked.begin(1);
    assert_eq!((waits(&asked), asked.machine.room_taken()), ([false; 3], 0));
    assert_eq!(asked.machine.items(), [item(0), item(1)]);
    asked.push(2, STEER);
    asked.push(3, PushKind::Enqueue);
    let steers = |asked: &Owner| [1, 2, 3].map(|n| asked.machine.is_steering(item(n)));
    assert_eq!((steers(&asked), asked.machine.room_taken()), ([false, true, false], 2));
    asked.tell(Input::SteerTaken(TurnId::new(1), item(2)));
    assert_eq!((steers(&asked), asked.machine.items().len()), ([false; 3], 3));
}

/// S6.6: an item that may not wait is returned while anything is in the way, with what that is; otherwise it
/// waits like any.
#[test]
fn a_busy_session_says_what_is_in_the_way() {
    let mut asked = Owner::new();
    let busy = |turn| Action::Settle(item(9), ItemOutcome::Returned(RejectReason::Busy(turn)));
    let turn = Some(TurnId::new(1));
    assert!(
        !asked
            .push(0, PushKind::Reject)
            .iter()
            .any(|action| matches!(action, Action::Settle(_, ItemOutcome::Returned(_))))
    );
    assert_eq!(asked.push(9, PushKind::Reject), [busy(None)]);
    asked.begin(1);
    assert_eq!(asked.push(9, PushKind::Reject), [busy(turn)]);
    asked.tell(Input::Settled(TurnId::new(1), TurnEnd::Suspended));
    assert_eq!(asked.push(9, PushKind::Reject), [busy(turn)]);
    asked.tell(Input::Quiet(TurnId::new(1)));
    asked.tell(Input::Read(TurnId::new(1)));
    assert_eq!(asked.machine.phase(), SessionPhase::Idle);
    assert_eq!(asked.push(9, PushKind::Reject), [busy(turn)]);
}

/// S6.3: a preempt is open until its turn has ended, and a turn that ends by one is preempted unless a stop of the session came
/// with it.
#[test]
fn a_preempt_is_open_until_its_turn_ends() {
    let mut asked = Owner::new();
    asked.push(0, PushKind::Enqueue);
    asked.begin(1);
    assert!(!asked.machine.would_be_preempted());
    asked.push(1, PushKind::Preempt(LATER));
    let open = |asked: &Owner| [0, 1].map(|n| asked.machine.is_preempting(item(n)));
    assert_eq!((open(&asked), asked.machine.would_be_preempted()), ([false, true], false));
    assert_eq!(asked.machine.deadline(), Some(Moment(3)));
    asked.now = Moment(3);
    assert_eq!(asked.tell(Input::Tick).len(), 1);
    assert!(asked.machine.would_be_preempted());
    asked.settle(1, TurnEnd::Preempted(PreemptedItems::Drop));
    assert_eq!((open(&asked), asked.machine.would_be_preempted()), ([false; 2], false));
    let mut stopped = Owner::new();
    stopped.push(0, PushKind::Enqueue);
    stopped.begin(1);
    stopped.push(1, PushKind::Preempt(NOW));
    stopped.tell(Input::Stop(Strength::Now));
    assert!(stopped.machine.is_stopping() && !stopped.machine.would_be_preempted());
}

/// S5.3: a turn that ended early is known, is being taken up once a resume was promised, and then runs as one that was taken up.
#[test]
fn a_turn_that_is_taken_up_says_so() {
    let mut asked = Owner::new();
    asked.push(0, PushKind::Enqueue);
    asked.begin(1);
    let says = |asked: &Owner| {
        (asked.machine.left(), asked.machine.is_about_to_resume(), asked.machine.has_resumed())
    };
    assert_eq!(says(&asked), (None, false, false));
    asked.settle(1, STOPPED);
    assert_eq!(says(&asked), (Some(TurnId::new(1)), false, false));
    assert!(!asked.machine.is_suspended());
    asked.tell(Input::Resume);
    assert_eq!(says(&asked), (Some(TurnId::new(1)), true, false));
    let plan = asked.tell(Input::Gathered(2));
    assert!(matches!(plan[..], [Action::Plan { wanted: PlanRequest::Resume, .. }]));
    asked.tell(Input::Planned(2, PlanResult::Resume));
    assert_eq!(says(&asked), (None, false, true));
    asked.tell(Input::Settled(TurnId::new(1), TurnEnd::Suspended));
    assert!(asked.machine.is_suspended());
    asked.tell(Input::Decided);
    assert!(asked.machine.is_about_to_resume());
}

/// S6.8: a session may end when idle once that was requested, until it is kept open or stopped, and ends when
/// it was idle for long enough.
#[test]
fn an_idle_session_ends_only_when_asked() {
    let mut asked = Owner::new();
    assert!(!asked.machine.may_end_when_idle() && !asked.machine.is_stopping());
    asked.tell(Input::StopWhenIdle(4));
    assert!(asked.machine.may_end_when_idle() && !asked.machine.is_stopping());
    assert_eq!(asked.machine.deadline(), Some(Moment(4)));
    asked.tell(Input::WithdrawIdleStop);
    assert_eq!((asked.machine.may_end_when_idle(), asked.machine.deadline()), (false, None));
    asked.tell(Input::StopWhenIdle(4));
    asked.now = Moment(3);
    assert_eq!(asked.tell(Input::Tick), []);
    asked.now = Moment(4);
    assert_eq!(asked.tell(Input::Tick), [Action::End(ExitKind::Idle)]);
    assert_eq!(asked.machine.phase(), SessionPhase::Over);
}

/// S6.12: a planner is asked again for each preempt that finds it running, up to the limit and no further.
#[test]
fn a_planner_is_asked_anew_as_often_as_patience_allows() {
    let mut asked = Owner::new();
    asked.push(0, PushKind::Enqueue);
    asked.tell(Input::Gathered(1));
    let dropped = asked.push(1, PushKind::Preempt(NOW));
    assert!(dropped.contains(&Action::DropPlan) && dropped.contains(&Action::Gather(2)));
    asked.tell(Input::Gathered(2));
    let kept = asked.push(2, PushKind::Preempt(NOW));
    assert_eq!(kept, [Action::Resolve(item(2), PreemptOutcome::NoTurn)]);
    assert!(asked.machine.is_planning(2) && !asked.machine.is_planning(1));
}

/// S6.9, S6.1: items that wait again stand where they stood, before what came after them.
#[test]
fn what_waits_again_stands_where_it_stood() {
    let mut asked = Owner::new();
    asked.push(0, PushKind::Enqueue);
    asked.begin(1);
    asked.push(1, PushKind::Preempt(NOW));
    asked.settle(1, TurnEnd::Preempted(PreemptedItems::Requeue));
    assert!(asked.machine.waiting().iter().copied().eq([item(0), item(1)]));
    let made =
        |take: &[u64]| PlanResult::Turn { take: take.iter().map(|n| item(*n)).collect(), drop: Vec::new() };
    assert_eq!(asked.machine.wrong_item(&made(&[0, 1])), None);
    assert_eq!(asked.machine.wrong_item(&made(&[0, 2])), Some(item(2)));
    assert_eq!(asked.machine.wrong_item(&made(&[0, 0])), Some(item(0)));
}

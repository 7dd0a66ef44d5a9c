//! Short stories of one session each: what a stop, a preempt, an end and a new owner lead to.

use super::{
    asked::{Owner, STOPPED, at_work, gathers, item, stops, suspended, turn},
    *,
};
use crate::session::{machine::ExitKind, outcome::RejectReason};

const BY_PREEMPT: TurnEnd = TurnEnd::Preempted(PreemptedItems::Drop);
const REQUEUE: TurnEnd = TurnEnd::Preempted(PreemptedItems::Requeue);

fn resolved(actions: &[Action]) -> Vec<PreemptOutcome> {
    let to = |action: &Action| match action {
        Action::Resolve(_, preempted) => Some(*preempted),
        _ => None,
    };
    actions.iter().filter_map(to).collect()
}

fn asked(spec: PreemptSpec) -> StopWhy {
    StopWhy::Preempt { points: spec.points, grace: spec.grace }
}

/// S5.3, S6.13: nothing begins before all that the last owner left has come; what waits from before a turn that was left begins
/// nothing by itself, and what comes now does.
#[test]
fn a_new_owner_waits_for_what_was_left() {
    let left = Some((turn(1), vec![item(0)], false));
    let mut owner = Owner::of(Machine::recovered(RULES, 1, left));
    assert_eq!(owner.machine.left(), Some(turn(1)));
    assert!(!gathers(&owner.push(1, PushKind::Enqueue)) && !gathers(&owner.tell(Input::Inherited)));
    assert!(gathers(&owner.push(2, PushKind::Enqueue)));
    assert!(
        owner
            .begin(1)
            .iter()
            .any(|action| matches!(action, Action::Start { turn, .. } if turn.number() == 2))
    );
    let mut plain = Owner::of(Machine::recovered(RULES, 1, None));
    assert!(!gathers(&plain.push(0, PushKind::Enqueue)) && gathers(&plain.tell(Input::Inherited)));
    let mut held = Owner::of(Machine::recovered(RULES, 1, None));
    held.machine.hold_left();
    assert!(!gathers(&held.push(0, PushKind::Enqueue)) && !gathers(&held.tell(Input::Inherited)));
    assert!(gathers(&held.push(1, PushKind::Enqueue)));
}

/// S6.8, S6.21, S9.1: a session that waits for a person, keeps items or has something in the background is not idle; what comes begins the
/// time anew, and after it nothing is taken.
#[test]
fn idleness_is_to_have_nothing_to_do() {
    let mut keeps = at_work();
    keeps.push(1, PushKind::Enqueue);
    keeps.settle(1, STOPPED);
    let mut aside = at_work();
    aside.tell(Input::Background { is_alive: true });
    aside.settle(1, TurnEnd::Done);
    for mut owner in [suspended(), keeps, aside] {
        owner.tell(Input::StopWhenIdle(4));
        owner.now = Moment(100);
        assert_eq!(owner.tell(Input::Tick), []);
    }
    // In a store the question, and what waits behind it, wait without an owner (S6.21).
    let mut stored = Owner::of(Machine::recovered(RULES, 1, Some((turn(1), vec![item(0)], true))));
    stored.push(1, PushKind::Enqueue);
    stored.tell(Input::StopWhenIdle(4));
    stored.now = Moment(100);
    assert_eq!(stored.tell(Input::Tick), [], "not before all is here");
    stored.tell(Input::Inherited);
    stored.now = Moment(103);
    assert_eq!(stored.tell(Input::Tick), []);
    stored.now = Moment(104);
    let over = stored.tell(Input::Tick);
    assert_eq!(over, [Action::Settle(item(1), ItemOutcome::Unhandled), Action::End(ExitKind::Idle)]);
    let mut anew = Owner::new();
    anew.tell(Input::StopWhenIdle(4));
    anew.now = Moment(3);
    anew.push(0, PushKind::Enqueue);
    anew.begin(1);
    anew.settle(1, TurnEnd::Done);
    anew.now = Moment(4);
    assert_eq!(anew.tell(Input::Tick), []);
    anew.now = Moment(8);
    let late = anew.push(1, PushKind::Enqueue);
    assert!(late.contains(&Action::End(ExitKind::Idle)));
    assert!(late.contains(&Action::Settle(item(1), ItemOutcome::Unhandled)));
}

/// S6.3, S1.7: a preempt asks when its delay is over, and escalates when its grace is, once each.
#[test]
fn a_preempt_asks_and_escalates_in_its_time() {
    let mut owner = at_work();
    assert_eq!(owner.push(1, PushKind::Preempt(LATER)), []);
    let mut graceful = at_work();
    assert_eq!(stops(&graceful.push(1, PushKind::Preempt(WITHIN))), [asked(WITHIN)]);
    for (now, later, within) in [
        (2, None, None),
        (3, Some(asked(LATER)), None),
        (4, None, None),
        (5, None, Some(StopWhy::Escalated)),
        (6, None, None),
    ] {
        (owner.now, graceful.now) = (Moment(now), Moment(now));
        assert_eq!(stops(&owner.tell(Input::Tick)), Vec::from_iter(later), "at {now}");
        assert_eq!(stops(&graceful.tell(Input::Tick)), Vec::from_iter(within), "at {now}");
    }
}

/// S6.3: a preempt that names a turn means that one; of a turn that ended early there is nothing to preempt.
#[test]
fn a_preempt_means_the_turn_that_it_names() {
    let mut owner = Owner::new();
    let back = [Action::Settle(item(0), ItemOutcome::Returned(RejectReason::TurnMismatch))];
    assert_eq!(owner.push(0, PushKind::Preempt(NAMED)), back);
    assert_eq!(stops(&at_work().push(1, PushKind::Preempt(NAMED))), [asked(NAMED)]);
    let mut over = at_work();
    over.settle(1, STOPPED);
    assert_eq!(resolved(&over.push(1, PushKind::Preempt(NOW))), [PreemptOutcome::NoTurn]);
}

/// S6.5: a steer that names a turn is for that turn alone, running or suspended: it begins no turn, and goes into no other.
#[test]
fn a_steer_means_the_turn_that_it_names() {
    let back = |n| [Action::Settle(item(n), ItemOutcome::Returned(RejectReason::TurnMismatch))];
    assert_eq!(Owner::new().push(0, STEER_FIRST), back(0));
    let steered = [Action::Steer(TurnId::new(1), item(1), SteerTiming::NextRequest)];
    assert_eq!(at_work().push(1, STEER_FIRST), steered);
    assert_eq!(suspended().push(1, STEER_FIRST), [Action::Held(TurnId::new(1), item(1))]);
    let mut over = at_work();
    over.settle(1, STOPPED);
    assert_eq!(over.push(1, STEER_FIRST), back(1));
    over.push(2, PushKind::Enqueue);
    over.begin(2);
    assert_eq!(over.push(3, STEER_FIRST), back(3), "another turn runs");
}

/// S6.12, S8.3: a turn after a preempted one is protected to its end, unless it waits for a person: then it is taken back; one that
/// ended by itself protects nothing.
#[test]
fn a_turn_after_a_preempted_one_is_protected() {
    let protected = || {
        let mut owner = at_work();
        owner.push(1, PushKind::Preempt(NOW));
        owner.settle(1, BY_PREEMPT);
        owner.begin(2);
        owner
    };
    let mut owner = protected();
    assert_eq!(stops(&owner.push(2, PushKind::Preempt(NOW))), []);
    let actions = owner.settle(2, TurnEnd::Suspended);
    let from = |action: &Action| {
        matches!(action, Action::Start { from: StartFrom::Withdrawal(StopWhy::Preempt { .. }), .. })
    };
    assert!(actions.iter().any(from));
    assert_eq!(
        stops(&owner.push(3, PushKind::Preempt(NOW))),
        [asked(NOW)],
        "what is only to be ended is not protected"
    );
    let mut later = at_work();
    later.push(1, PushKind::Preempt(LATER));
    assert!(!later.settle(1, TurnEnd::Suspended).iter().any(from), "its time has not come");
    let mut done = protected();
    done.settle(2, TurnEnd::Done);
    done.push(2, PushKind::Enqueue);
    done.begin(3);
    assert_eq!(stops(&done.push(3, PushKind::Preempt(NOW))), [asked(NOW)]);
    let mut first = at_work();
    first.settle(1, TurnEnd::Done);
    first.push(1, PushKind::Enqueue);
    first.begin(2);
    assert_eq!(stops(&first.push(2, PushKind::Preempt(NOW))), [asked(NOW)]);
}

/// S6.3, S8.3: a turn that waits for a person is forgotten only if a preempt that has asked says so.
#[test]
fn a_waiting_turn_is_forgotten_if_that_was_asked() {
    let delayed = PreemptSpec { delay: Some(3), ..ROLLBACK };
    for (wishes, forgets) in [(&[ROLLBACK][..], true), (&[NOW], false), (&[delayed, NOW], false)] {
        let mut owner = suspended();
        for (n, spec) in (1..).zip(wishes) {
            owner.push(n, PushKind::Preempt(*spec));
        }
        let actions = owner.settle(1, BY_PREEMPT);
        assert_eq!(actions.contains(&Action::Forget(turn(1))), forgets, "{wishes:?}");
    }
}

/// S6.9, S6.11: a preempt gets its outcome, and the preempting item has the next turn; what waits after a
/// stop or a failure waits for more.
#[test]
fn an_end_says_what_a_preempt_came_to() {
    for (end, session_stop, expected) in [
        (BY_PREEMPT, false, PreemptOutcome::StoppedTurn(turn(1))),
        (STOPPED, false, PreemptOutcome::TurnEndedFirst),
        (TurnEnd::Done, false, PreemptOutcome::TurnEndedFirst),
        (STOPPED, true, PreemptOutcome::SupersededByStop),
        (REQUEUE, true, PreemptOutcome::SupersededByStop),
    ] {
        let mut owner = at_work();
        owner.push(1, PushKind::Preempt(NOW));
        if session_stop {
            owner.tell(Input::Stop(Strength::Now));
        }
        let actions = owner.settle(1, end);
        assert_eq!(resolved(&actions), [expected], "{end:?}");
        assert_eq!(gathers(&actions), !session_stop, "{end:?}");
        assert!(!session_stop || !actions.contains(&Action::Requeued(item(0))));
    }
    for (rules, end, begins) in [
        (RULES, STOPPED, false),
        (RULES, TurnEnd::Failed, false),
        (Rules { on_failure: OnTurnFailure::Continue, ..RULES }, TurnEnd::Failed, true),
        (RULES, TurnEnd::Done, true),
    ] {
        let mut owner = Owner::of(Machine::new(rules));
        owner.push(0, PushKind::Enqueue);
        owner.begin(1);
        owner.push(1, PushKind::Enqueue);
        assert_eq!(gathers(&owner.settle(1, end)), begins, "{end:?}");
        assert_eq!(owner.machine.left().is_some(), end != TurnEnd::Done);
    }
}

/// S6.4: what steers a turn and is not taken waits, or goes back; one that comes while a decision is waited for is held.
#[test]
fn a_steer_that_is_not_taken_waits_or_goes_back() {
    let mut owner = at_work();
    owner.push(1, STEER);
    owner.push(2, STEER_OR_QUEUE);
    let actions = owner.settle(1, TurnEnd::Done);
    assert!(actions.contains(&Action::Settle(item(1), ItemOutcome::Returned(RejectReason::NotDelivered))));
    assert!(actions.contains(&Action::Requeued(item(2))));
    assert_eq!(suspended().push(1, STEER_OR_QUEUE), [Action::Held(turn(1), item(1))]);
}

/// S5.3, S8.3: only a turn that ended early is resumed and only one that waits is decided, while the session
/// continues.
#[test]
fn a_promise_is_given_only_where_it_can_be_kept() {
    let answer = |owner: &mut Owner, input| match owner.tell(input).first() {
        Some(Action::RequestAnswer(answer)) => Some(*answer),
        _ => None,
    };
    let (no, late) = (Some(RequestAnswer::NothingToResume), Some(RequestAnswer::TooLate));
    let mut fresh = Owner::new();
    assert_eq!(fresh.tell(Input::Resume), [Action::RequestAnswer(RequestAnswer::NothingToResume)]);
    assert_eq!(fresh.tell(Input::Decided), [Action::RequestAnswer(RequestAnswer::NothingToResume)]);
    let mut waits = suspended();
    assert_eq!(answer(&mut waits, Input::Resume), no);
    assert_eq!(answer(&mut waits, Input::Decided), Some(RequestAnswer::Resuming));
    let mut early = at_work();
    early.settle(1, STOPPED);
    assert_eq!(
        (answer(&mut early, Input::Decided), answer(&mut early, Input::Resume)),
        (no, Some(RequestAnswer::Resuming))
    );
    let mut stopping = at_work();
    stopping.tell(Input::Settled(turn(1), TurnEnd::Suspended));
    stopping.tell(Input::Stop(Strength::AtTurnEnd));
    assert_eq!((answer(&mut stopping, Input::Decided), answer(&mut stopping, Input::Resume)), (late, no));
    let mut over = suspended();
    over.tell(Input::Stop(Strength::Now));
    assert_eq!((over.machine.phase(), answer(&mut over, Input::Decided)), (SessionPhase::Over, late));
}

/// S6.2, S6.13: a turn that could not be begun leaves all as it was, and only the turn that ended is waited for.
#[test]
fn a_turn_that_could_not_be_begun_leaves_all_as_it_was() {
    let mut owner = at_work();
    assert_eq!(owner.tell(Input::Unstarted(turn(2))), []);
    assert_eq!(owner.machine.items(), [item(0)]);
    let actions = owner.tell(Input::Unstarted(turn(1)));
    assert!(gathers(&actions) && owner.machine.is_waiting(item(0)) && owner.machine.items().is_empty());
    let mut resumed = at_work();
    resumed.settle(1, STOPPED);
    resumed.tell(Input::Resume);
    resumed.tell(Input::Gathered(2));
    resumed.tell(Input::Planned(2, PlanResult::Resume));
    resumed.tell(Input::Unstarted(turn(1)));
    assert_eq!((resumed.machine.left(), resumed.machine.is_suspended()), (Some(turn(1)), false));
    let mut ends = at_work();
    for input in [Input::Settled(turn(1), TurnEnd::Done), Input::Quiet(turn(1)), Input::Read(turn(7))] {
        ends.tell(input);
    }
    assert!(matches!(ends.machine.phase(), SessionPhase::Ending { .. }), "another's reader is not its own");
    ends.tell(Input::Read(turn(1)));
    assert_eq!(ends.machine.phase(), SessionPhase::Idle);
}

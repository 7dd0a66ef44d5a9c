//! What is taken back, and what is stopped: an item, a turn, the session.

use super::{
    asked::{Owner, STOPPED, at_work, gathers, item, stops, suspended, turn},
    *,
};
use crate::session::machine::ExitKind;

/// S6.7: what waits is taken back, what a turn has is not; a steer is taken back where no run has it, or when the run gave it back; a
/// plan that is about it is made anew.
#[test]
fn what_nobody_has_yet_is_taken_back() {
    let withdrawn = |n| {
        [Action::Settle(item(n), ItemOutcome::Withdrawn), Action::RequestAnswer(RequestAnswer::Withdrawn)]
    };
    let mut owner = at_work();
    owner.push(1, STEER);
    owner.push(2, STEER);
    assert_eq!(owner.tell(Input::Withdraw(item(0))), [Action::RequestAnswer(RequestAnswer::Taken)]);
    assert_eq!(owner.tell(Input::Withdraw(item(2))), [Action::RequestAnswer(RequestAnswer::Taken)]);
    assert_eq!(owner.tell(Input::SteerReturned(item(2))), withdrawn(2));
    assert!(owner.machine.is_steering(item(1)) && !owner.machine.is_steering(item(2)));
    owner.push(3, PushKind::Enqueue);
    assert_eq!(owner.tell(Input::SteerReturned(item(3))), withdrawn(3), "its turn has ended meanwhile");
    let mut waits = suspended();
    waits.push(1, STEER_OR_QUEUE);
    assert_eq!(waits.tell(Input::Withdraw(item(1))), withdrawn(1));
    let mut planning = Owner::new();
    planning.push(0, PushKind::Enqueue);
    planning.push(1, PushKind::Enqueue);
    let actions = planning.tell(Input::Withdraw(item(0)));
    assert_eq!(actions[..2], withdrawn(0));
    assert_eq!(actions[2..], [Action::DropPlan, Action::Gather(2)]);
}

/// S1.9, S6.11: a stop of the session reports what it added, and reaches the running turn unless it waits for
/// the turn's end.
#[test]
fn a_stop_of_a_session_only_strengthens() {
    let mut owner = at_work();
    for (strength, answer, asks) in [
        (Strength::AtTurnEnd, RequestAnswer::First, false),
        (Strength::Graceful, RequestAnswer::Strengthened, true),
        (Strength::Graceful, RequestAnswer::NothingAdded, true),
        (Strength::AtTurnEnd, RequestAnswer::NothingAdded, false),
        (Strength::Now, RequestAnswer::Strengthened, true),
    ] {
        let actions = owner.tell(Input::Stop(strength));
        assert_eq!(actions[0], Action::RequestAnswer(answer));
        assert_eq!(stops(&actions), Vec::from_iter(asks.then_some(StopWhy::Session(strength))));
    }
    assert!(owner.settle(1, STOPPED).contains(&Action::End(ExitKind::Stopped)));
    assert_eq!(owner.tell(Input::Stop(Strength::Now)), [Action::RequestAnswer(RequestAnswer::TooLate)]);
}

/// S6.7, S6.23: a stop of one turn means the running turn, or the one that is named; one that finds a plan holds what waits, until it is
/// resumed.
#[test]
fn a_stop_of_a_turn_means_that_turn() {
    let stop = [
        Action::StopRun(turn(1), StopWhy::Asked),
        Action::RequestAnswer(RequestAnswer::StoppingTurn(turn(1))),
    ];
    let mut owner = at_work();
    assert_eq!(owner.tell(Input::StopTurn(None)), stop);
    assert_eq!(owner.tell(Input::StopTurn(Some(turn(1)))), stop);
    assert_eq!(
        owner.tell(Input::StopTurn(Some(turn(2)))),
        [Action::RequestAnswer(RequestAnswer::TurnMismatch(turn(1)))]
    );
    let no = || Action::RequestAnswer(RequestAnswer::NoTurn);
    assert_eq!(Owner::new().tell(Input::StopTurn(None)), [no()]);
    let mut planning = Owner::new();
    planning.push(0, PushKind::Enqueue);
    assert_eq!(planning.tell(Input::StopTurn(Some(turn(7)))), [no()]);
    let held = [Action::DropPlan, Action::RequestAnswer(RequestAnswer::Held)];
    assert_eq!(planning.tell(Input::StopTurn(None)), held);
    assert!(planning.machine.is_waiting(item(0)) && planning.machine.is_holding());
    assert_eq!(planning.tell(Input::StopTurn(None)), [no()], "it holds already");
    let released = [Action::RequestAnswer(RequestAnswer::Released), Action::Gather(2)];
    assert_eq!(planning.tell(Input::Resume), released);
    assert!(!planning.machine.is_holding());
    let mut waits = suspended();
    waits.push(1, PushKind::Enqueue);
    waits.tell(Input::StopTurn(None));
    waits.push(2, PushKind::Enqueue);
    assert!(gathers(&waits.settle(1, STOPPED)), "what came after the stop begins a turn");
}

/// S6.9: where something of the user's fails, the turn is stopped and the session ends.
#[test]
fn what_breaks_ends_the_session() {
    let mut owner = at_work();
    assert_eq!(stops(&owner.tell(Input::Broke)), [StopWhy::Broken]);
    assert!(owner.settle(1, STOPPED).contains(&Action::End(ExitKind::Broken)));
    assert_eq!(owner.tell(Input::Broke), []);
    assert_eq!(Owner::new().tell(Input::Broke), [Action::End(ExitKind::Broken)]);
}

/// S6.19: an item that waits is withdrawn, also from under a plan; the turn that has it is stopped; what is over stays over; what is
/// behind it waits, or its turn comes.
#[test]
fn a_stop_of_an_item_reaches_it_wherever_it_is() {
    let stop = |n| Input::StopItem(item(n), QueueAfterStop::Continues);
    let stopping = [
        Action::StopRun(turn(1), StopWhy::Asked),
        Action::RequestAnswer(RequestAnswer::StoppingTurn(turn(1))),
    ];
    let mut owner = at_work();
    owner.push(1, PushKind::Enqueue);
    owner.push(2, PushKind::Enqueue);
    assert_eq!(owner.tell(stop(0)), stopping);
    assert_eq!(owner.tell(stop(0)), stopping, "again: the run knows that it is asked already");
    let withdrawn =
        [Action::Settle(item(1), ItemOutcome::Withdrawn), Action::RequestAnswer(RequestAnswer::Withdrawn)];
    assert_eq!(owner.tell(stop(1)), withdrawn);
    assert_eq!(owner.tell(stop(1)), [Action::RequestAnswer(RequestAnswer::TooLate)]);
    assert_eq!(owner.tell(stop(9)), [Action::RequestAnswer(RequestAnswer::TooLate)]);
    assert!(gathers(&owner.settle(1, STOPPED)), "what waits behind it runs");
    for (first, second) in [
        (stop(0), Input::StopItem(item(0), QueueAfterStop::Holds)),
        (Input::StopTurn(None), stop(0)),
        (stop(0), Input::StopTurn(None)),
    ] {
        let mut owner = at_work();
        owner.push(1, PushKind::Enqueue);
        owner.tell(first.clone());
        owner.tell(second.clone());
        assert!(
            !gathers(&owner.settle(1, STOPPED)),
            "{first:?}, {second:?}: a stop that holds the queue holds it"
        );
    }
    let mut planning = Owner::new();
    planning.push(0, PushKind::Enqueue);
    let actions = planning.tell(stop(0));
    assert!(actions.contains(&Action::DropPlan) && !gathers(&actions), "{actions:?}");
    let mut waits = suspended();
    waits.push(1, PushKind::Enqueue);
    let actions = waits.tell(stop(0));
    assert!(actions.contains(&Action::RequestAnswer(RequestAnswer::StoppingTurn(turn(1)))), "{actions:?}");
    assert!(
        actions.iter().any(|action| matches!(action, Action::Start { from: StartFrom::Withdrawal(_), .. }))
    );
    assert!(gathers(&waits.settle(1, STOPPED)));
}

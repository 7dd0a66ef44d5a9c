//! A session whose runtime is gone: it has an end, and nothing that was given to it is nowhere.

use safepoint::{
    SessionHandle,
    ids::TurnId,
    session::{ExitReason, ItemOutcome, Preempt, PushError},
};
use tokio::runtime::{Builder, Runtime};

use super::{
    desk::Desk,
    world::{seen, texts},
};

fn turn(number: u64) -> TurnId {
    number.to_string().parse().unwrap()
}

/// What is awaited when the session's own runtime is gone.
fn later() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn is_closed(handle: &SessionHandle<String>) {
    assert!(matches!(handle.push("late".to_owned()), Err(PushError::Closed(item)) if item == "late"));
    let exit = later().block_on(handle.done());
    let ExitReason::Failed(error) = exit.reason() else { panic!("{:?}", exit.reason()) };
    assert_eq!(error.code, "runtime");
}

/// S6.2, S6.10: the runtime goes while a turn runs and an item waits: both get a final outcome, every waiter
/// gets it, and what is pushed later goes back.
#[test]
fn a_runtime_that_goes_in_a_turn_leaves_no_item_nowhere() {
    let (desk, runtime) = (Desk::new([]), Runtime::new().unwrap());
    let mut gate = desk.model.gate();
    let (session, tickets) = runtime.block_on(async {
        let session = desk.chat().start();
        let first = session.push("a".to_owned()).unwrap();
        gate.request().await;
        let second = session.push("b".to_owned()).unwrap();
        seen(
            &session,
            |event| matches!(event, safepoint::session::SessionEvent::Accepted(id) if *id == second.id()),
        )
        .await;
        (session, [first, second])
    });
    drop(runtime);
    is_closed(&session);
    later().block_on(async {
        let [first, second] = tickets;
        assert_eq!(
            (first.outcome().await, second.outcome().await),
            (ItemOutcome::Interrupted(turn(1)), ItemOutcome::Unhandled)
        );
        assert_eq!((first.recorded().await, second.recorded().await), (Some(0), Some(1)));
        let exit = session.done().await;
        let open = exit.open().unwrap();
        assert_eq!((open.turn, open.items[0].1.as_str()), (turn(1), "a"));
        assert_eq!(texts(&exit), ["b"]);
        let mut events = session.events();
        while events.next().await.is_some() {}
    });
}

/// S6.2, S6.4: and while it is idle, before it was ever polled, and while a strategy is asked.
#[test]
fn a_runtime_that_goes_at_any_other_time_closes_the_session() {
    let idle = Runtime::new().unwrap();
    let desk = Desk::new([safepoint_testkit::script::Reply::text("done")]);
    let session = idle.block_on(async {
        let session = desk.chat().start();
        assert_eq!(session.push("a".to_owned()).unwrap().outcome().await, ItemOutcome::Completed(turn(1)));
        session
    });
    drop(idle);
    is_closed(&session);

    // A runtime that no thread drives polls nothing.
    let unpolled = later();
    let session = {
        let _entered = unpolled.enter();
        desk.chat().start()
    };
    let ticket = session.push(safepoint::session::Push::new("b".to_owned()).policy(Preempt::now())).unwrap();
    drop(unpolled);
    is_closed(&session);
    assert_eq!(later().block_on(ticket.outcome()), ItemOutcome::Unhandled);
    later().block_on(ticket.preempted());

    let asking = Runtime::new().unwrap();
    let (began, waits) = std::sync::mpsc::channel();
    let (go, gate) = std::sync::mpsc::channel::<()>();
    let (session, ticket) = asking.block_on(async {
        let session = desk.chat().strategy(std::time::Duration::MAX).start();
        let ticket = session
            .push_with("c".to_owned(), move |_| {
                began.send(()).unwrap();
                assert!(gate.recv().is_err());
                safepoint::session::Policy::Enqueue
            })
            .unwrap();
        (session, ticket)
    });
    waits.recv().unwrap();
    asking.shutdown_background();
    assert_eq!(later().block_on(ticket.outcome()), ItemOutcome::Unhandled);
    drop(go);
    is_closed(&session);
    assert_eq!(texts(&later().block_on(session.done())), ["c"]);
}

//! What a scope promises, on a controlled clock.

use std::{
    future::pending,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Wake, Waker},
    time::Duration,
};

use safepoint_scope::{
    Actor, Code, Demand, Effect, Failure, Grace, Halt, InvalidRequest, Link, Mode, Reach, Reason, SafePoints,
    Scope, StopAck, StopRequest, TaskEnd, secs,
};
use tokio::time::{Instant, sleep, timeout};

struct Step;
impl Effect for Step {
    type Announcement = ();
}

/// Longer than anything here lasts: a paused clock is there at once, where nothing else is due.
const LONG: Duration = Duration::from_secs(7200);
/// By when a wake that was not lost has come, on any machine.
const SOON: Duration = Duration::from_secs(20);

/// Its output on a paused clock, where an endless wait fails.
async fn at_last<F: Future>(what: F) -> F::Output {
    timeout(LONG, what).await.expect("it came to an end")
}

/// The same on a real clock.
async fn soon<F: Future>(what: F) -> F::Output {
    timeout(SOON, what).await.expect("it came to an end")
}

fn passes(scope: &Scope, gate: SafePoints) -> bool {
    scope.pass::<Step>(gate, &()).is_ok()
}

/// S1.3: a gate lets pass what does not name one of its points, and nothing once `Now` is asked.
#[tokio::test(start_paused = true)]
async fn a_gate_fires_for_its_own_points() {
    let points = [SafePoints::AFTER_MODEL, SafePoints::AFTER_STARTED_CALLS, SafePoints::AFTER_ALL_CALLS];
    for asked in points {
        for gate in points {
            let (scope, handle) = Scope::root();
            handle.stop(StopRequest::at(asked));
            assert_eq!(passes(&scope, gate), asked != gate);
            assert!(!passes(&scope, SafePoints::ANY) && !scope.is_stopping());
            handle.stop(StopRequest::now());
            assert!(!passes(&scope, gate) && scope.is_stopping());
        }
    }
}

/// S1.2: no mode implies a reach, no reach a mode.
#[tokio::test]
async fn mode_and_reach_are_independent() {
    for reach in [Reach::Root, Reach::Tree] {
        for request in [StopRequest::now(), StopRequest::at(SafePoints::ANY), StopRequest::graceful(secs(1))]
        {
            let (mode, grace) = (request.mode(), request.grace());
            let request = request.with_reach(reach);
            assert_eq!((request.mode(), request.grace(), request.reach()), (mode, grace, reach));
        }
    }
}

/// S1.6: an empty set, a zero grace: an error that says what to do.
#[test]
fn what_cannot_be_asked_says_why() {
    let zero: InvalidRequest = Grace::try_from(Duration::ZERO).unwrap_err();
    assert!(zero.to_string().contains("`now`"));
    for wrong in ["", ",", "after-lunch"] {
        let error = wrong.parse::<SafePoints>().unwrap_err();
        assert!(error.to_string().contains("after-model"), "{error}");
    }
    assert_eq!("any".parse::<SafePoints>(), Ok(SafePoints::ANY));
}

/// S1.5: a waiter parked on a safe-point request is woken by `Now`, without a poll of the clock.
#[tokio::test(start_paused = true)]
async fn a_later_request_wakes_at_once() {
    let (scope, handle) = Scope::root();
    handle.stop(StopRequest::graceful(secs(3600)));
    let waiting = scope.clone();
    let task = scope.spawn("waits", async move { waiting.run(pending::<()>()).await.is_err() });
    sleep(Duration::from_secs(1)).await;
    let asked = Instant::now();
    handle.stop(StopRequest::now());
    assert!(at_last(task).await.unwrap());
    assert_eq!(asked.elapsed(), Duration::ZERO);
}

/// S1.7: the grace counts from the moment of the request, not of its making.
#[tokio::test(start_paused = true)]
async fn a_grace_counts_from_the_asking() {
    let (scope, handle) = Scope::root();
    let request = StopRequest::graceful(secs(5));
    sleep(Duration::from_secs(60)).await;
    let asked = Instant::now();
    handle.stop(request);
    let stop = at_last(scope.run(pending::<()>())).await.unwrap_err();
    assert_eq!((asked.elapsed(), stop.reason().code()), (Duration::from_secs(5), &Code::USER));
}

/// S1.9: each answer of an ask, also after the end; the log keeps all that were in time.
#[tokio::test]
async fn an_ask_says_what_it_added() {
    let (scope, handle) = Scope::root();
    assert_eq!(handle.stop(StopRequest::at(SafePoints::AFTER_MODEL)), StopAck::First);
    assert_eq!(handle.stop(StopRequest::at(SafePoints::AFTER_ALL_CALLS)), StopAck::Strengthened);
    assert_eq!(handle.stop(StopRequest::at(SafePoints::AFTER_MODEL)), StopAck::Unchanged);
    assert_eq!(handle.stop(StopRequest::now().with_reach(Reach::Tree)), StopAck::Strengthened);
    assert_eq!(handle.stop(StopRequest::now()), StopAck::Unchanged);
    assert!(handle.settle() && !handle.settle());
    assert_eq!(handle.stop(StopRequest::now()), StopAck::TooLate);
    let log = handle.requests();
    assert_eq!(log.iter().map(|logged| logged.seq).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(scope.requests().len(), log.len());
}

/// S1.10: a reason keeps who asked, and the first of a cascade.
#[test]
fn a_reason_keeps_its_root() {
    let first = Reason::user("ctrl-c");
    let second = Reason::new(Code::PARENT).with_actor(Actor::Parent).caused_by(&first);
    let third = Reason::new(Code::from("leaf".to_owned())).caused_by(&second);
    assert_eq!((third.root().text(), third.root().actor()), ("ctrl-c", &Actor::Person));
    assert_eq!(first.root(), &first);
}

/// S2.10: a call stopped alone does not reach its siblings or its run.
#[tokio::test]
async fn a_part_is_stopped_alone() {
    let (run, stop_run) = Scope::root();
    let (one, stop_one) = run.child();
    let (two, _) = run.child();
    stop_one.stop(StopRequest::now());
    assert!(one.is_stopping() && !two.is_stopping() && !run.is_stopping());
    let own = soon(one.run(pending::<()>())).await.unwrap_err();
    assert!(one.absorb(own).is_ok());
    stop_run.stop(StopRequest::now());
    assert!(two.is_stopping());
    let outer = soon(one.run(pending::<()>())).await.unwrap_err();
    let outer = one.absorb(outer).expect_err("the run's stop is not the call's to absorb");
    assert!(run.absorb(outer).is_ok());
}

/// S1.5, S2.8: a waiter that a sibling's end woke for nothing still sees the next stop.
#[tokio::test]
async fn a_sibling_s_end_loses_no_wake() {
    let (run, handle) = Scope::root();
    let ((_one, stop_one), (two, _)) = (run.child(), run.child());
    let waits = two.clone();
    let task = run.spawn("waits", async move { waits.stopped().await.reason().code().clone() });
    tokio::task::yield_now().await;
    stop_one.settle();
    tokio::task::yield_now().await;
    stop_one.stop(StopRequest::now());
    tokio::task::yield_now().await;
    handle.stop(StopRequest::now());
    assert_eq!(soon(task).await.unwrap(), Code::USER);
}

/// S1.2: what reaches a nested run, by link, mode and reach.
#[tokio::test(start_paused = true)]
async fn links_let_through_what_they_say() {
    let safe = |reach| StopRequest::at(SafePoints::ANY).with_reach(reach);
    let now = |reach| StopRequest::now().with_reach(reach);
    for (link, request, reaches) in [
        (Link::Attached, now(Reach::Root), true),
        (Link::Attached, now(Reach::Tree), true),
        (Link::Attached, safe(Reach::Root), false),
        (Link::Attached, safe(Reach::Tree), true),
        (Link::Background, now(Reach::Root), false),
        (Link::Background, now(Reach::Tree), true),
        (Link::Background, safe(Reach::Root), false),
        (Link::Background, safe(Reach::Tree), true),
    ] {
        let (run, handle) = Scope::root();
        let (call, _) = run.child();
        let (child, _) = call.child_run(link);
        handle.stop(request.clone());
        assert_eq!(child.demand().is_some(), reaches, "{link:?} {request:?}");
        assert_eq!(passes(&child, SafePoints::ANY), !reaches);
    }
}

/// S9.4: whose stop it is: what was asked of the outer run, and not what was asked of the nested one alone.
#[tokio::test(start_paused = true)]
async fn what_comes_from_outside_is_distinct() {
    let (run, stop_run) = Scope::root();
    let (call, stop_call) = run.child();
    let (child, stop_child) = call.child_run(Link::Attached);
    stop_child.stop(StopRequest::now());
    stop_call.stop(StopRequest::now());
    stop_run.stop(StopRequest::at(SafePoints::AFTER_MODEL));
    assert_eq!(
        (child.demand_from(&run), child.demand_from(&call).map(|asked| asked.mode)),
        (None, Some(Mode::Now))
    );
    stop_run.stop(StopRequest::at(SafePoints::AFTER_MODEL).with_reach(Reach::Tree));
    let outer = child.demand_from(&run).expect("it reaches the tree now");
    assert_eq!(outer.mode, Mode::At(SafePoints::AFTER_MODEL));
    assert_eq!(child.demand_from(&Scope::root().0), None);
}

/// S1.7: a root-only request that a grace makes `Now` reaches a waiter in a nested run, which had no notice before.
#[tokio::test(start_paused = true)]
async fn a_deadline_above_wakes_a_nested_run() {
    let (run, handle) = Scope::root();
    let (child, _) = run.child_run(Link::Attached);
    let task = child.clone().spawn("waits", async move { child.stopped().await.reason().code().clone() });
    tokio::task::yield_now().await;
    handle.stop(StopRequest::at_within(SafePoints::ANY, secs(3)));
    let asked = Instant::now();
    assert_eq!(at_last(task).await.unwrap(), Code::USER);
    assert_eq!(asked.elapsed(), Duration::from_secs(3));
}

/// S2.14: work that is ready wins: its effect happened.
#[tokio::test]
async fn ready_work_wins() {
    let (scope, handle) = Scope::root();
    let (open, gate) = tokio::sync::oneshot::channel();
    let work = scope.clone();
    let task = scope.spawn("works", async move { work.run(gate).await });
    tokio::task::yield_now().await;
    handle.stop(StopRequest::now());
    open.send("done").unwrap();
    assert_eq!(soon(task).await.unwrap().unwrap(), Ok("done"));
}

/// S3.6: settled is not quiet: quiet waits for every task and every hold.
#[tokio::test(start_paused = true)]
async fn quiet_waits_for_tasks_and_holds() {
    let (scope, handle) = Scope::root();
    let task = scope.spawn("slow", sleep(Duration::from_secs(2)));
    let hold = scope.hold("socket");
    drop(task);
    handle.settle();
    at_last(handle.settled()).await;
    assert_eq!(handle.alive(), ["slow", "socket"]);
    let began = Instant::now();
    tokio::spawn(async move {
        sleep(Duration::from_secs(5)).await;
        drop(hold);
    });
    at_last(handle.quiet()).await;
    assert_eq!((began.elapsed(), handle.alive().len()), (Duration::from_secs(5), 0));
}

/// S4.7, S4.3: a panic is an end, and a dropped future is dropped inside its task.
#[tokio::test]
async fn tasks_end_in_their_own_ways() {
    struct Mark(Arc<AtomicBool>);
    impl Drop for Mark {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let (scope, _) = Scope::root();
    let panics = scope.spawn("panics", async { std::panic::panic_any("ouch") });
    let end: Result<(), TaskEnd> = soon(panics).await;
    assert_eq!(end, Err(TaskEnd::Panicked("ouch".into())));
    let dropped = Arc::new(AtomicBool::new(false));
    let mark = Mark(dropped.clone());
    let task = scope.spawn("pends", async move {
        let _mark = mark;
        pending::<()>().await;
    });
    tokio::task::yield_now().await;
    assert_eq!((task.label(), scope.alive()), (&"pends".into(), vec!["pends".to_owned()]));
    task.drop_now();
    assert_eq!(soon(task).await, Err(TaskEnd::Dropped));
    assert!(dropped.load(Ordering::SeqCst));
    let thread = scope.spawn_blocking("thread", || 7);
    assert_eq!(soon(thread).await, Ok(7));
}

/// S1.4: each change of the demand is reported, the deadline included.
#[tokio::test(start_paused = true)]
async fn changes_are_reported() {
    let (scope, handle) = Scope::root();
    handle.stop(StopRequest::at_within(SafePoints::AFTER_MODEL, secs(2)));
    let first: Demand = at_last(scope.changed(None)).await;
    assert_eq!(first.mode, Mode::At(SafePoints::AFTER_MODEL));
    let second = at_last(scope.changed(Some(first))).await;
    assert_eq!((second.mode, second.deadline), (Mode::Now, None));
}

/// Notes who is woken.
struct Woken(&'static str, Arc<Mutex<Vec<&'static str>>>);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.1.lock().expect("no panic").push(self.0);
    }
}

/// S9.6: a request wakes all that must end before those that follow it, in whatever order they wait and however deep.
#[test]
fn what_must_end_is_woken_before_what_follows() {
    let (outer, handle) = Scope::root();
    let (nested, _) = outer.child_run(Link::Attached);
    let woken = Arc::default();
    let wait = |name, future: &mut dyn FnMut(&mut Context<'_>) -> bool| {
        let waker = Waker::from(Arc::new(Woken(name, Arc::clone(&woken))));
        assert!(future(&mut Context::from_waker(&waker)), "{name} waits");
    };
    let mut followers = [pin!(outer.changed(None)), pin!(nested.changed(None))];
    let mut ends = [pin!(outer.stopped()), pin!(nested.stopped())];
    for follower in &mut followers {
        wait("follows", &mut |cx| follower.as_mut().poll(cx).is_pending());
    }
    for end in &mut ends {
        wait("ends", &mut |cx| end.as_mut().poll(cx).is_pending());
    }
    handle.stop(StopRequest::now());
    assert_eq!(*woken.lock().expect("no panic"), ["ends", "ends", "follows", "follows"]);
}

/// S3.1: `?` keeps a stop and a failure apart.
#[tokio::test]
async fn halts_keep_stops_and_failures_apart() {
    async fn work(scope: &Scope, fails: bool) -> Result<(), Halt> {
        if fails {
            std::fs::metadata("/no/such/file")?;
        }
        scope.run(pending::<()>()).await?;
        Ok(())
    }
    let (scope, handle) = Scope::root();
    handle.stop(StopRequest::now());
    assert!(matches!(soon(work(&scope, true)).await, Err(Halt::Failed(_))));
    assert!(matches!(soon(work(&scope, false)).await, Err(Halt::Stop(_))));
}

/// S2.11, S1.9: a request to a part of a run that has ended came too late; a nested run has its own end.
#[test]
fn a_part_of_an_ended_run_learns_that_it_is_late() {
    let (run, of_run) = Scope::root();
    let (call, of_call) = run.child();
    let (_part, of_part) = call.child();
    let (_nested, of_nested) = run.child_run(Link::Background);
    of_run.settle();
    for handle in [of_call, of_part] {
        assert_eq!(handle.stop(StopRequest::now()), StopAck::TooLate);
        assert!(handle.stop_requested().is_none());
    }
    assert_eq!(of_nested.stop(StopRequest::now()), StopAck::First);
}

/// S3.8, S4.6: a failure says what it left, what caused it, and what to do about it.
#[test]
fn a_failure_says_more_than_its_message() {
    let plain = Failure::new("no disk");
    assert_eq!((plain.is_by_time_limit(), plain.had_no_effect(), plain.hint()), (false, false, None));
    let full = Failure::new("no answer").without_effect().by_time_limit().with_hint("ask later");
    assert_eq!((full.is_by_time_limit(), full.had_no_effect(), full.hint()), (true, true, Some("ask later")));
    assert_eq!(full.to_string(), "no answer");
}

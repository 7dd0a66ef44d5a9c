//! Every interleaving of the node's operations, explored by loom.

use std::{sync::Arc, time::Duration};

use loom::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
};
use tokio::time::Instant;

use super::{Core, StopAck};
use crate::{
    reason::{Code, Reason},
    request::{StopRequest, demand::Mode, points::SafePoints},
    scope::{
        fired::{Fired, FiredBy},
        logged::LoggedRequest,
    },
};

fn at_model() -> StopRequest {
    StopRequest::at(SafePoints::AFTER_MODEL)
}

fn log_of(core: &Core) -> Vec<LoggedRequest> {
    let mut log = Vec::new();
    core.add_log_to(&mut log);
    log
}

/// S1.4, S1.9: two requests at once are both in the log, one is the first, and their join is in force.
#[test]
fn loom_two_requests_join_in_any_order() {
    let now = Instant::now();
    loom::model(move || {
        let core = Arc::new(Core::new());
        let other = Arc::clone(&core);
        let thread = thread::spawn(move || other.ask(StopRequest::now(), || now));
        let mine = core.ask(at_model(), || now);
        let theirs = thread.join().expect("no panic");
        assert!((mine == StopAck::First) != (theirs == StopAck::First));
        assert_eq!(log_of(&core).len(), 2);
        assert_eq!(core.demand().expect("asked").mode, Mode::Now);
    });
}

/// S2.11: a request and the end race, and exactly one wins.
#[test]
fn loom_a_request_and_the_end_have_one_winner() {
    let now = Instant::now();
    loom::model(move || {
        let core = Arc::new(Core::new());
        let other = Arc::clone(&core);
        let thread = thread::spawn(move || other.settle());
        let asked = core.ask(StopRequest::now(), || now);
        assert!(thread.join().expect("no panic"));
        assert_eq!(asked == StopAck::TooLate, core.demand().is_none());
        assert!(!core.settle());
        assert!(core.is_settled());
        assert_eq!(core.ask(at_model(), || now), StopAck::TooLate);
    });
}

/// S2.14: a reader that sees a request can read which.
#[test]
fn loom_a_seen_word_implies_a_readable_demand() {
    let now = Instant::now();
    loom::model(move || {
        let core = Arc::new(Core::new());
        let other = Arc::clone(&core);
        let thread = thread::spawn(move || other.ask(at_model(), || now));
        if core.is_asked() {
            assert!(core.demand().is_some());
            assert!(core.reason(None, &now.into()).is_some());
        }
        assert_eq!(thread.join().expect("no panic"), StopAck::First);
    });
}

/// S1.4, S1.7: two requests at once, one of them `Now`, and a clock that advances between any two looks: the log is in the
/// order of time, the last of it joins both, and what took effect is the `Now` that was asked, by request.
#[test]
fn loom_the_log_is_in_the_order_of_time() {
    let start = Instant::now();
    loom::model(move || {
        let core = Arc::new(Core::new());
        let ticks = Arc::new(AtomicU64::new(1));
        let clock = |ticks: Arc<AtomicU64>| {
            move || start + Duration::from_millis(ticks.fetch_add(1, Ordering::SeqCst))
        };
        let (other, theirs) = (Arc::clone(&core), clock(Arc::clone(&ticks)));
        let thread = thread::spawn(move || {
            other.ask(StopRequest::now().with_reason(Reason::new(Code::SHUTDOWN)), theirs);
        });
        core.ask(at_model(), clock(ticks));
        thread.join().expect("no panic");
        let log = log_of(&core);
        assert!(log.windows(2).all(|pair| pair[0].at < pair[1].at), "{log:?}");
        assert_eq!(log.last().map(|last| last.joined.mode), Some(Mode::Now));
        let now = start + Duration::from_secs(1);
        for gate in [None, Some(SafePoints::AFTER_MODEL), Some(SafePoints::AFTER_ALL_CALLS)] {
            let (_, fired) = Fired::first(log.iter(), gate, &now.into()).expect("something is asked");
            assert_eq!((fired.by, fired.request.reason.code()), (FiredBy::Request, &Code::SHUTDOWN));
        }
    });
}

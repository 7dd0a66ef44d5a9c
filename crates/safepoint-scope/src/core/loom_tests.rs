//! Every interleaving of the node's operations, explored by loom.

use std::sync::Arc;

use loom::thread;
use tokio::time::Instant;

use super::{ASKED, Asked, Core, NOW, SETTLED};
use crate::{demand::Mode, points::SafePoints, request::StopRequest};

fn at_model() -> StopRequest {
    StopRequest::at(SafePoints::AFTER_MODEL)
}

/// S1.4, S1.9: two requests at once are both in the log, one is the first, and their join is in force.
#[test]
fn loom_two_requests_join_in_any_order() {
    let now = Instant::now();
    loom::model(move || {
        let core = Arc::new(Core::new());
        let other = Arc::clone(&core);
        let thread = thread::spawn(move || other.ask(StopRequest::now(), now));
        let mine = core.ask(at_model(), now);
        let theirs = thread.join().expect("no panic");
        assert!((mine == Asked::First) != (theirs == Asked::First));
        assert_eq!(core.log().len(), 2);
        assert_eq!(core.demand().expect("asked").mode, Mode::Now);
        assert_ne!(core.word() & NOW, 0);
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
        let asked = core.ask(StopRequest::now(), now);
        assert!(thread.join().expect("no panic"));
        assert_eq!(asked == Asked::TooLate, core.demand().is_none());
        assert!(!core.settle());
        assert_ne!(core.word() & SETTLED, 0);
        assert_eq!(core.ask(at_model(), now), Asked::TooLate);
    });
}

/// S2.14: whoever sees that something was asked can read what.
#[test]
fn loom_a_seen_word_implies_a_readable_demand() {
    let now = Instant::now();
    loom::model(move || {
        let core = Arc::new(Core::new());
        let other = Arc::clone(&core);
        let thread = thread::spawn(move || other.ask(at_model(), now));
        if core.word() & ASKED != 0 {
            assert!(core.demand().is_some());
            assert!(core.first_reason().is_some());
        }
        assert_eq!(thread.join().expect("no panic"), Asked::First);
    });
}

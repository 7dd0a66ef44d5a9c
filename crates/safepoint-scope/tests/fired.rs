//! Which request took effect: every short sequence of requests, at every moment, against a clock that is walked by hand.

use std::time::Duration;

use safepoint_scope::{
    Code, FiredBy, Grace, Link, Onset, Reason, SafePoints, Scope, StopHandle, StopRequest,
};
use tokio::time::advance;

/// A kind of request: what it asks, and after how many seconds it is `Now`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Now,
    /// The end of a grace that was counted elsewhere.
    GraceOver,
    At(SafePoints),
    Within(SafePoints, u64),
}

const KINDS: [Kind; 6] = [
    Kind::Now,
    Kind::GraceOver,
    Kind::At(SafePoints::AFTER_MODEL),
    Kind::At(SafePoints::AFTER_ALL_CALLS),
    Kind::Within(SafePoints::AFTER_MODEL, 1),
    Kind::Within(SafePoints::AFTER_ALL_CALLS, 3),
];

const GATES: [Option<SafePoints>; 4] = [
    None,
    Some(SafePoints::AFTER_MODEL),
    Some(SafePoints::AFTER_STARTED_CALLS),
    Some(SafePoints::AFTER_ALL_CALLS),
];

/// How many seconds after the last request the test looks.
const LOOKS: u64 = 4;

impl Kind {
    fn request(self, number: usize) -> StopRequest {
        let request = match self {
            Self::Now => StopRequest::now(),
            Self::GraceOver => StopRequest::now().grace_over(),
            Self::At(points) => StopRequest::at(points),
            Self::Within(points, secs) => StopRequest::at_within(points, Grace::from_secs(secs)),
        };
        request.with_reason(Reason::new(Code::USER).with_text(number.to_string()))
    }
}

/// One request of a sequence: asked of which of two runs, the outer one or the one inside it, and at which second.
#[derive(Clone, Copy, Debug)]
struct Asked {
    kind: Kind,
    of_outer: bool,
    at: u64,
}

/// What must have taken effect by `now`: the seconds are walked from the first, and in each those whose grace is over come
/// before what is asked then.
fn must_fire(asked: &[Asked], gate: Option<SafePoints>, now: u64) -> Option<(usize, FiredBy)> {
    for second in 0..=now {
        for (number, asked) in asked.iter().enumerate() {
            if let Kind::Within(_, secs) = asked.kind
                && asked.at + secs == second
            {
                return Some((number, FiredBy::Deadline));
            }
        }
        for (number, asked) in asked.iter().enumerate().filter(|(_, asked)| asked.at == second) {
            match asked.kind {
                Kind::Now => return Some((number, FiredBy::Request)),
                Kind::GraceOver => return Some((number, FiredBy::Deadline)),
                Kind::At(_) | Kind::Within(..) => {}
            }
        }
    }
    let named = |asked: &&(usize, &Asked)| match asked.1.kind {
        // A request of the root alone does not reach a run inside it at a safe point.
        Kind::At(points) | Kind::Within(points, _) => {
            !asked.1.of_outer && gate.is_some_and(|gate| points.intersects(gate))
        }
        Kind::Now | Kind::GraceOver => false,
    };
    let asked: Vec<(usize, &Asked)> = asked.iter().enumerate().filter(|(_, asked)| asked.at <= now).collect();
    asked.iter().find(named).map(|(number, _)| (*number, FiredBy::SafePoint))
}

fn look(scope: &Scope, asked: &[Asked], now: u64) {
    for gate in GATES {
        let fired = gate.map_or_else(|| scope.fired(), |gate| scope.fired_at(gate));
        let seen = fired.map(|fired| (fired.request.reason.text().parse().unwrap_or(usize::MAX), fired.by));
        assert_eq!(seen, must_fire(asked, gate, now), "{asked:?} at {now} s under {gate:?}");
    }
    let (fired, reason) = (must_fire(asked, None, now), scope.reason());
    if let Some((number, _)) = fired {
        assert_eq!(reason.map(|reason| reason.text().to_owned()), Some(number.to_string()), "{asked:?}");
    }
}

/// Asks them one second after the other, and looks at every second.
async fn walk(scope: &Scope, ask: impl Fn(bool) -> StopHandle, sequence: &[(Kind, bool)]) {
    let mut asked = Vec::new();
    for (at, (kind, of_outer)) in (0..).zip(sequence) {
        asked.push(Asked { kind: *kind, of_outer: *of_outer, at });
        ask(*of_outer).stop(kind.request(asked.len() - 1));
        look(scope, &asked, at);
        advance(Duration::from_secs(1)).await;
    }
    let last = asked.len() as u64;
    for now in last..last + LOOKS {
        look(scope, &asked, now);
        advance(Duration::from_secs(1)).await;
    }
}

/// S1.4, S1.7: what is `Now` took effect when it became that, whatever was asked or ran out after it; else the first request
/// that names the boundary does.
#[tokio::test(start_paused = true)]
async fn the_request_that_took_effect_is_named_for_every_sequence() {
    for one in KINDS {
        for two in KINDS {
            for three in KINDS {
                let (scope, handle) = Scope::root();
                walk(&scope, |_| handle.clone(), &[one, two, three].map(|kind| (kind, false))).await;
            }
        }
    }
}

/// S1.4, S9.2: the same where some were asked of the run around it.
#[tokio::test(start_paused = true)]
async fn the_request_that_took_effect_is_named_across_runs() {
    for one in KINDS {
        for two in KINDS {
            for (first, second) in [(true, true), (true, false), (false, true)] {
                let (outer, of_outer) = Scope::root();
                let (inner, of_inner) = outer.child_run(Link::Attached);
                let ask = |outer: bool| if outer { of_outer.clone() } else { of_inner.clone() };
                walk(&inner, ask, &[(one, first), (two, second)]).await;
            }
        }
    }
}

/// S1.7: a request says whether it is an ask or the end of a grace.
#[test]
fn the_end_of_a_grace_differs_from_a_request() {
    assert_eq!(StopRequest::now().onset(), Onset::Asked);
    assert_eq!(StopRequest::now().grace_over().onset(), Onset::GraceOver);
}

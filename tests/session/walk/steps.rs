//! The steps of a walk: drawn without a look at the session, so that any of them can be dropped.

use proptest::{
    sample,
    strategy::{BoxedStrategy, Just, Strategy as _, Union},
};

/// What happens next. Exhaustive: both the session and the reference must take each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Enqueue,
    Reject,
    /// With the next request; else it waits.
    SteerOrQueue,
    /// With the next request; else it goes back.
    SteerOrReturn,
    PreemptNow,
    PreemptAtAny,
    /// At any safe point, and after an hour now.
    PreemptWithin,
    /// After an hour.
    PreemptLater,
    /// Of a turn that is not active.
    PreemptOther,
    Rollback,
    /// One of the items so far.
    Withdraw(usize),
    StopTurnNow,
    StopTurnAtAny,
    /// Of a turn that is not active.
    StopTurnOther,
    Resume,
    Approve,
    /// The model answers, and the turn ends by itself.
    Answer,
    Fail,
    /// The model asks for a call that is run, and is asked again.
    Round,
    /// The model asks for a call that a person must approve.
    Ask,
    StopAtTurnEnd,
    StopGraceful,
    StopNow,
    /// Once it was idle for an hour.
    StopWhenIdle,
    KeepOpen,
    /// Two hours pass.
    Wait,
}

/// How often each is drawn.
const WEIGHTS: [(u32, Step); 23] = [
    (13, Step::Enqueue),
    (3, Step::Reject),
    (5, Step::SteerOrQueue),
    (3, Step::SteerOrReturn),
    (6, Step::PreemptNow),
    (4, Step::PreemptAtAny),
    (2, Step::PreemptWithin),
    (3, Step::PreemptLater),
    (1, Step::PreemptOther),
    (3, Step::Rollback),
    (4, Step::Withdraw(0)),
    (4, Step::StopTurnNow),
    (3, Step::StopTurnAtAny),
    (1, Step::StopTurnOther),
    (7, Step::Resume),
    (7, Step::Approve),
    (12, Step::Answer),
    (3, Step::Fail),
    (9, Step::Round),
    (5, Step::Ask),
    (3, Step::KeepOpen),
    (1, Step::StopWhenIdle),
    (3, Step::Wait),
];
/// The end, which is to come late: see [`drawn`].
const ENDS: [Step; 3] = [Step::StopAtTurnEnd, Step::StopGraceful, Step::StopNow];
/// In the last tenth one step of this many is an end.
const ENDING: u32 = 4;

/// What the step of this number may be, of `count` steps.
pub(super) fn drawn(number: usize, count: usize) -> BoxedStrategy<Step> {
    thread_local! {
        static EARLY: BoxedStrategy<Step> = weighted(Ends::Not);
        static LATE: BoxedStrategy<Step> = weighted(Ends::Drawn);
    }
    if number > count - count / 10 { &LATE } else { &EARLY }.with(BoxedStrategy::clone)
}

/// Whether ends are drawn. Exhaustive: they are, one in [`ENDING`], or not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    Not,
    Drawn,
}

/// As they are weighted.
fn weighted(ends: Ends) -> BoxedStrategy<Step> {
    let sum: u32 = WEIGHTS.iter().map(|(weight, _)| weight).sum();
    let of = |step| match step {
        Step::Withdraw(_) => (0..1_usize << 16).prop_map(Step::Withdraw).boxed(),
        step => Just(step).boxed(),
    };
    let mut drawn: Vec<_> =
        WEIGHTS.into_iter().map(|(weight, step)| (weight * (ENDING - 1), of(step))).collect();
    if ends == Ends::Drawn {
        drawn.push((sum, sample::select(&ENDS[..]).boxed()));
    }
    Union::new_weighted(drawn).boxed()
}

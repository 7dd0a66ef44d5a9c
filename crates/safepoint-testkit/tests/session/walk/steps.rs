//! The steps of a walk: drawn without a look at the session, so that any of them can be dropped.

use crate::dice::Dice;

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
    /// Of a turn that is not at work.
    PreemptOther,
    Rollback,
    /// One of the items so far.
    Withdraw(usize),
    StopTurnNow,
    StopTurnAtAny,
    /// Of a turn that is not at work.
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
const WEIGHTS: [(u64, Step); 27] = [
    (12, Step::Enqueue),
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
    (1, Step::Enqueue),
    // The end, which is to come late: see `walk_of`.
    (0, Step::StopAtTurnEnd),
    (0, Step::StopGraceful),
    (0, Step::StopNow),
];

/// So many steps.
pub(super) fn walk_of(dice: &mut Dice, count: usize) -> Vec<Step> {
    let sum: u64 = WEIGHTS.iter().map(|(weight, _)| weight).sum();
    (0..count)
        .map(|n| {
            // In the last tenth the session may be stopped.
            if n > count - count / 10 && dice.below(4) == 0 {
                return [Step::StopAtTurnEnd, Step::StopGraceful, Step::StopNow][index(dice.below(3))];
            }
            let mut drawn = dice.below(sum);
            let hit = |(weight, step): &(u64, Step)| {
                let is_it = drawn < *weight;
                drawn = drawn.saturating_sub(*weight);
                is_it.then_some(*step)
            };
            match WEIGHTS.iter().find_map(hit).unwrap_or(Step::Enqueue) {
                Step::Withdraw(_) => Step::Withdraw(index(dice.below(1 << 16))),
                step => step,
            }
        })
        .collect()
}

fn index(drawn: u64) -> usize {
    usize::try_from(drawn).unwrap()
}

//! The context of a run's next step: the limits that are checked before a model call, and pending steers.

use safepoint_scope::{Code, SafePoints};

use super::{Machine, NextStep};
use crate::{
    definition::window::WindowMeter,
    value::{limits::Limits, receipt::Ending, usage::Price},
};

/// What is known beside the facts when the next step is chosen: the limits (S12.1), and whether a steer is
/// pending.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepContext<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) price: Option<&'a Price>,
    pub(crate) meter: Option<&'a WindowMeter>,
    pub(crate) steered: PendingSteer,
    /// Whether the model's request waits to be sent, or to be sent again.
    pub(crate) is_unsent: bool,
}

/// Whether a steer is not part of the history yet. Exhaustive: none, only a notice that causes no request, or
/// how urgent it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PendingSteer {
    No,
    Noticed,
    Waiting,
    AtOnce,
}

impl PendingSteer {
    /// Whether a final answer is followed by one more request.
    pub(super) fn asks(self) -> bool {
        matches!(self, Self::Waiting | Self::AtOnce)
    }
}

impl StepContext<'_> {
    /// The model call, or what must come before it so that the conversation fits its window (S12.2).
    pub(super) fn fitted(&self, machine: &Machine, gate: SafePoints) -> NextStep {
        let Some(meter) = self.meter else { return NextStep::CallModel { gate } };
        if meter.is_compacting() {
            let cut = meter.compaction(machine.history()).filter(|_| machine.summaries().is_empty());
            return cut.map_or(NextStep::Settle(Ending::Done), |cut| NextStep::Summarise { cut, gate });
        }
        let fit = match machine.is_too_long() {
            true => meter.fit_refused(machine.history()).map(Some),
            false => meter.fit(machine.history()),
        };
        match (fit, meter.summariser()) {
            (Ok(None), _) => NextStep::CallModel { gate },
            (Ok(Some(cut)), None) => NextStep::Shorten(cut),
            (Ok(Some(cut)), Some(_)) => NextStep::Summarise { cut, gate },
            (Err(why), _) => NextStep::Refuse(why),
        }
    }

    /// Whether the run only compacts its conversation: it takes no steer, since no model would answer it.
    pub(super) fn is_compacting(&self) -> bool {
        self.meter.is_some_and(WindowMeter::is_compacting)
    }

    /// The limit that is reached, over all attempts of the run (S12.6).
    pub(super) fn reached(&self, machine: &Machine) -> Option<NextStep> {
        let over = over_attempts(machine.attempt());
        let limit = |code, text| Some(NextStep::Limit { code, text });
        if machine.model_calls() >= self.limits.max_rounds {
            let text = format!("the limit of {} rounds is reached{over}", self.limits.max_rounds);
            return limit(Code::MAX_ROUNDS, text);
        }
        let tokens = machine.tokens();
        if let Some(max) = self.limits.max_tokens.filter(|max| tokens >= *max) {
            return limit(Code::MAX_TOKENS, format!("{tokens} of {max} tokens are used{over}"));
        }
        let cost = machine.cost(self.price);
        match self.limits.max_cost {
            Some(max) if (self.price.is_some() || cost > 0.0) && cost >= max => {
                limit(Code::MAX_COST, format!("{cost:.4} of {max:.4} is spent{over}"))
            }
            Some(_) | None => None,
        }
    }
}

/// A suffix for errors where more than one attempt has used up a limit.
pub(crate) fn over_attempts(attempt: u32) -> String {
    if attempt > 1 { format!(", over {attempt} attempts") } else { String::new() }
}

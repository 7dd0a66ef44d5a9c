//! What bounds a run's next act: the limits that are checked before a model call, and what it was steered with.

use safepoint_scope::{Code, SafePoints};

use super::{Due, Machine};
use crate::{
    definition::window::{Fit, Gauge},
    value::{limits::Limits, usage::Price},
};

/// What is known beside the facts when the next act is chosen: the limits (S12.1), and whether a steer waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) price: Option<&'a Price>,
    pub(crate) gauge: Option<&'a Gauge>,
    pub(crate) steered: Steered,
}

/// Whether the run was steered with something that is not part of its history yet. Exhaustive: no, by a notice alone that
/// asks for no request of its own, or how urgently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steered {
    No,
    Noticed,
    Waiting,
    AtOnce,
}

impl Steered {
    /// Whether a final answer is followed by one more request.
    pub(super) fn asks(self) -> bool {
        matches!(self, Self::Waiting | Self::AtOnce)
    }
}

impl Bounds<'_> {
    /// The model call, or what must come before it so that the conversation fits its window (S12.2).
    pub(super) fn fitted(&self, machine: &Machine, gate: SafePoints) -> Due {
        let Some(gauge) = self.gauge else { return Due::CallModel { gate } };
        match (gauge.fit(machine.history()), gauge.summariser()) {
            (Fit::Fits, _) => Due::CallModel { gate },
            (Fit::Shorten(cut), None) => Due::Shorten(cut),
            (Fit::Shorten(cut), Some(_)) => Due::Summarise { cut, gate },
            (Fit::Never(text), _) => Due::Refuse(text),
        }
    }

    /// The limit that is spent, over all attempts of the run (S12.6).
    pub(super) fn reached(&self, machine: &Machine) -> Option<Due> {
        let over = over_attempts(machine.attempt());
        let limit = |code, text| Some(Due::Limit { code, text });
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

/// Says so where more than one attempt has used up a limit.
pub(crate) fn over_attempts(attempt: u32) -> String {
    if attempt > 1 { format!(", over {attempt} attempts") } else { String::new() }
}

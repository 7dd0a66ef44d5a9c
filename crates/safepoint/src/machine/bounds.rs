//! What bounds a run's next act: the limits that are checked before a model call, and what it was steered with.

use safepoint_scope::{Code, SafePoints};

use super::{Due, Machine};
use crate::{
    limits::Limits,
    usage::Price,
    window::{Fit, Gauge},
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

    pub(super) fn reached(&self, machine: &Machine) -> Option<Due> {
        let limit = |code, text| Some(Due::Limit { code, text });
        let (used, below) = (machine.usage(), machine.below());
        let tokens = used.total().saturating_add(below.usage.total());
        if machine.rounds - machine.rounds_before >= self.limits.max_rounds {
            return limit(
                Code::MAX_ROUNDS,
                format!("the limit of {} rounds is reached", self.limits.max_rounds),
            );
        }
        if let Some(max) = self.limits.max_tokens.filter(|max| tokens >= *max) {
            return limit(Code::MAX_TOKENS, format!("{tokens} of {max} tokens are used"));
        }
        let cost = self.price.map_or(0.0, |price| price.of(used)) + below.cost;
        let is_priced = self.price.is_some() || below.cost > 0.0;
        match self.limits.max_cost {
            Some(max) if is_priced && cost >= max => {
                limit(Code::MAX_COST, format!("{cost:.4} of {max:.4} is spent"))
            }
            Some(_) | None => None,
        }
    }
}

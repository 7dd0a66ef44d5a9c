//! The limits that are checked before a model call.

use safepoint_scope::Code;

use super::{Due, Machine};
use crate::{limits::Limits, usage::Price};

/// The limits that are checked before a model call (S12.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) price: Option<&'a Price>,
}

impl Bounds<'_> {
    pub(super) fn reached(&self, machine: &Machine) -> Option<Due> {
        let limit = |code, text| Some(Due::Limit { code, text });
        let used = machine.usage();
        if machine.rounds - machine.rounds_before >= self.limits.max_rounds {
            return limit(
                Code::MAX_ROUNDS,
                format!("the limit of {} rounds is reached", self.limits.max_rounds),
            );
        }
        if let Some(max) = self.limits.max_tokens.filter(|max| used.total() >= *max) {
            return limit(Code::MAX_TOKENS, format!("{} of {max} tokens are used", used.total()));
        }
        if let (Some(max), Some(price)) = (self.limits.max_cost, self.price) {
            let cost = price.of(used);
            if cost >= max {
                return limit(Code::MAX_COST, format!("{cost:.4} of {max:.4} is spent"));
            }
        }
        None
    }
}

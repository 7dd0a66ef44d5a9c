//! The limits under which an attempt begins, as they are recorded: a later one that has others is seen (S12.8).

use serde::{Deserialize, Serialize};

use crate::value::{limits::Limits, usage::Price};

/// What a run may use up over all its attempts, from the attempt on that recorded it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunLimits {
    /// Model calls.
    pub max_rounds: u32,
    /// Tokens of the run and of its child runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// What they may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
    /// Milliseconds of work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_time_ms: Option<u64>,
    /// The prices by which the attempt's own model calls are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

impl RunLimits {
    pub(crate) fn of(limits: &Limits, price: Option<&Price>) -> Self {
        Self {
            max_rounds: limits.max_rounds,
            max_tokens: limits.max_tokens,
            max_cost: limits.max_cost,
            wall_time_ms: limits.wall_time.map(crate::value::limits::millis),
            price: price.copied(),
        }
    }
}

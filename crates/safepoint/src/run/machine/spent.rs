//! What a run has used over all its attempts: a limit applies to the run (S12.6).
//!
//! **Invariants**: everything here follows from recorded facts. The usage of an attempt that ended with its
//! process counts too, and is reported by the receipt of the next attempt that ends.

use std::time::Duration;

use super::{ChildUsage, Machine, RunStage};
use crate::value::{
    event::{Completion, RunLimits},
    receipt::{ModelReport, Receipt},
    usage::{ExtraBilling, Price, Usage, UsageSource},
};

/// What earlier attempts used, and the known time and price of this one.
#[derive(Debug, Default)]
pub(super) struct Spent {
    /// Model calls that were announced, and of which nothing left this machine.
    unsent: u32,
    /// Tokens of earlier attempts and of their child runs.
    tokens: u64,
    /// Their cost.
    cost: f64,
    /// How long earlier attempts worked.
    time: Duration,
    /// How long the newest attempt worked, as far as recorded.
    taken: Duration,
    /// The price of the newest attempt.
    price: Option<Price>,
    /// Whether the newest attempt has a recorded end; otherwise its process ended first.
    is_settled: bool,
    unreported: ChildUsage,
}

impl Spent {
    /// A model call ended. One that was cut or failed before anything left this machine used nothing.
    pub(super) fn model_ended(&mut self, whole: &Completion, report: &ModelReport) {
        if *whole != Completion::Complete && !report.was_sent() {
            self.unsent += 1;
        }
    }

    pub(super) fn take(&mut self, time: Duration) {
        self.taken = time;
    }

    /// The attempt has ended, and its receipt reports everything used until then.
    pub(super) fn settle(&mut self, receipt: &Receipt) {
        self.taken = Duration::from_millis(receipt.worked_ms);
        self.is_settled = true;
        self.unreported = ChildUsage::default();
    }

    fn add(&mut self, part: &ChildUsage) {
        self.tokens = self.tokens.saturating_add(part.usage.total());
        self.cost += part.cost;
    }
}

impl Machine {
    /// Adds up the attempt that is over, because another one begins under these limits.
    pub(super) fn add_up(&mut self, limits: Option<&RunLimits>) {
        let (own, below) = (std::mem::take(&mut self.usage), std::mem::take(&mut self.below));
        let price = self.spent.price;
        let own = ChildUsage::of(own, price.as_ref());
        let lost = ChildUsage::of(self.lost_call(), price.as_ref());
        let spent = &mut self.spent;
        for part in [&own, &below, &lost] {
            spent.add(part);
        }
        if !spent.is_settled {
            spent.unreported.add(&own);
            spent.unreported.add(&below);
        }
        spent.unreported.add(&lost);
        spent.time = spent.time.saturating_add(std::mem::take(&mut spent.taken));
        spent.is_settled = false;
        spent.price = limits.and_then(|limits| limits.price);
    }

    /// A model call without a recorded end may have been sent: its request is counted, as an estimate (S3.9).
    fn lost_call(&self) -> Usage {
        if !matches!(self.stage, RunStage::Streaming | RunStage::Summarising) {
            return Usage::default();
        }
        let sent = Usage::new(self.history.tokens(0).max(1), 0);
        sent.with_source(UsageSource::Estimated).with_billed_beyond(ExtraBilling::Unknown)
    }

    /// Model calls of all attempts, except those of which nothing left this machine.
    pub(super) fn model_calls(&self) -> u32 {
        self.rounds.saturating_sub(self.spent.unsent)
    }

    /// Tokens of all attempts, and of the child runs that have ended.
    pub(super) fn tokens(&self) -> u64 {
        let now = self.usage.total().saturating_add(self.below.usage.total());
        self.spent.tokens.saturating_add(now)
    }

    /// Their cost; `price` is that of this attempt.
    pub(super) fn cost(&self, price: Option<&Price>) -> f64 {
        self.spent.cost + price.map_or(0.0, |price| price.of(&self.usage)) + self.below.cost
    }

    /// How long earlier attempts worked.
    pub(crate) fn worked_before(&self) -> Duration {
        self.spent.time
    }

    /// Usage and cost without a receipt, child runs included: of attempts that ended with their process.
    pub(crate) fn unreported(&self) -> &ChildUsage {
        &self.spent.unreported
    }
}

//! The receipt of an attempt, as the driver knows it, and the bill that it learns after the end.

use super::Driver;
use crate::sync::clock;
use crate::value::{
    ids::ApprovalId,
    limits::millis,
    receipt::{Ending, Receipt},
    usage::{Usage, recorded},
};

impl Driver {
    pub(super) fn receipt(&self, ending: Ending, approvals_cancelled: Vec<ApprovalId>) -> Receipt {
        let mut receipt = Receipt {
            run: self.cx.shared.run.clone(),
            path: self.cx.shared.path.clone(),
            attempt: self.machine.attempt(),
            ending,
            stop: self.stop_report(),
            rounds: self.machine.rounds(),
            model: self.machine.model().cloned(),
            summaries: self.machine.summaries().to_vec(),
            provider_tools: self.machine.provider_tools().to_vec(),
            calls: self.call_rows(),
            approvals_cancelled,
            approvals_open: self.machine.questions().map(Into::into).collect(),
            waiting: self.machine.suspended().cloned().collect(),
            usage: self.machine.usage().clone(),
            cost: None,
            usage_total: Usage::default(),
            cost_total: None,
            worked_ms: millis(self.queue.clock.worked()),
            started_at: self.attempt.started_at,
            settled_at: clock::now(),
            quiet_at: None,
            survivors: Vec::new(),
            late: Vec::new(),
            unrecorded: self.recorder.lost().cloned(),
        };
        self.recorder.account_for_model(&mut receipt);
        receipt.cost = self.own_cost(&receipt.usage);
        self.account_for_children(&mut receipt);
        receipt
    }

    /// A call that was read for its bill: only its usage is corrected.
    pub(super) fn learn_the_bill(&mut self, receipt: &mut Receipt) {
        if let (Some((usage, state)), Some(model)) = (self.model.drained(), receipt.model.as_mut()) {
            receipt.usage = self.machine.usage_before().clone();
            receipt.usage.add(&usage);
            receipt.cost = self.own_cost(&receipt.usage);
            (model.usage, model.state) = (usage, state);
        }
    }

    /// What the attempt's own model calls cost, if they have a price.
    fn own_cost(&self, usage: &Usage) -> Option<f64> {
        self.cx.def.price.and_then(|price| recorded(price.of(usage)))
    }
}

//! Two facts with no effect between them are one append, so that the log is waited for once: the end of a model call with the
//! starts of the calls that follow, and the end of a round's last call with the start of the next model call.
//!
//! **Invariants**: what is chosen ahead is the next step that the machine would choose once the first fact is applied. It is chosen
//! only where nothing waits that could change it: no demand, no message, no elapsed timer, no hook. Nothing begins without
//! the record of that very start, and nothing is applied before it is recorded.

use std::sync::Arc;

use safepoint_scope::SafePoints;
use serde_json::Value;

use super::{
    Driver, LogFailure,
    parent::ChildStart,
    recorder::{apply, show},
};
use crate::{
    contract::{
        approver::{self, ApprovalMode, RuleAction},
        log::Recorded,
    },
    definition::toolset::Callable,
    run::{
        executor,
        machine::{SharedCall, StepContext, first_starts},
    },
    value::{
        event::Fact,
        message::AssistantMessage,
        receipt::{CallReport, CallStatus, ModelReport},
    },
};

/// A call of a new message that may begin without a question.
pub(super) struct ClearedCall {
    call: SharedCall,
    args: Arc<Value>,
    work: Callable,
}

/// Calls whose starts are recorded, and the gate that they must pass.
pub(super) struct BegunCalls {
    gate: SafePoints,
    calls: Vec<(SharedCall, Callable, Recorded)>,
}

impl Driver {
    /// Whether nothing waits that could change the next step.
    fn is_undisturbed(&self) -> bool {
        self.cx.def.hooks.is_empty()
            && !self.cx.def.is_remote
            && !self.queue.has_more()
            && self.cx.scope.demand().is_none()
            && self.machine.failure().is_none()
    }

    /// Whether a model call is next once this end of a call is recorded.
    pub(super) fn calls_model_after(&self, ended: &CallReport) -> bool {
        let def = &self.cx.def;
        let bounds = StepContext {
            limits: &def.limits,
            price: def.price.as_ref(),
            meter: def.meter.as_ref(),
            steered: self.steers.urgency(),
            is_unsent: false,
        };
        self.machine.calls_model_after(ended, &bounds) && self.is_undisturbed()
    }

    /// The calls of a whole message, if each may begin without a question. `None`: they are checked one by one once the
    /// message is recorded. A stop that comes meanwhile is noticed before the next call (S12.5).
    pub(super) fn starts_after(&mut self, message: &Arc<AssistantMessage>) -> Option<Vec<ClearedCall>> {
        let mut cleared = Vec::with_capacity(message.calls().count());
        for call in SharedCall::all(message) {
            cleared.push(self.is_undisturbed().then(|| self.cleared(call)).flatten()?);
        }
        (!cleared.is_empty() && self.is_undisturbed()).then_some(cleared)
    }

    fn cleared(&mut self, call: SharedCall) -> Option<ClearedCall> {
        if self.only_a_claim_allows(&call) {
            return None;
        }
        let (args, approval, _) = self.read_call(&call).ok()?;
        let ruling = approver::rule(&self.cx.def.rules, approval, &call.name, &args);
        let ruling = self.unless_panicked("a rule", ruling)?;
        let is_auto = matches!(self.cx.def.approvals, ApprovalMode::Auto);
        let may_begin = matches!(ruling, RuleAction::Allow) || matches!(ruling, RuleAction::Ask) && is_auto;
        let work = self.cx.def.tools.get(&call.name).filter(|_| may_begin)?.clone();
        Some(ClearedCall { call, args, work })
    }

    /// Records the end of a model call with the starts of the calls that are next.
    pub(super) async fn record_with_starts(
        &mut self,
        ended: Arc<Fact>,
        cleared: Vec<ClearedCall>,
    ) -> Result<BegunCalls, LogFailure> {
        let overlaps = cleared.iter().map(|cleared| cleared.work.spec().may_overlap());
        let starts = first_starts(overlaps, self.cx.def.limits.parallel_calls);
        let announced = cleared
            .iter()
            .take(starts)
            .map(|ClearedCall { call, args, work }| Arc::new(self.start_of(call, Arc::clone(args), work)));
        let facts = std::iter::once(ended).chain(announced).collect();
        let recorded = self.recorder.append(&self.cx, facts).await?;
        let mut each = recorded.iter();
        each.by_ref().take(1).for_each(|ended| apply(&mut self.machine, &self.cx, ended));
        for (index, ClearedCall { call, args, work }) in cleared.iter().enumerate() {
            self.calls.look_at(&self.cx, &call.id);
            self.machine.clear(index, Arc::clone(args), work.spec().may_overlap());
        }
        let gate = self.machine.call_gate().unwrap_or(SafePoints::ANY);
        each.for_each(|started| apply(&mut self.machine, &self.cx, started));
        show(&self.cx, &recorded);
        let calls = cleared.into_iter().zip(recorded.into_iter().skip(1));
        let calls = calls.map(|(cleared, started)| (cleared.call, cleared.work, started)).collect();
        Ok(BegunCalls { gate, calls })
    }

    /// The log did not take the end of a model call and the starts of its calls: they are in the account all the same.
    pub(super) fn keep_unrecorded_round(&mut self, message: &AssistantMessage, report: &ModelReport) {
        self.recorder.keep_unrecorded_model(report.clone(), message);
        let not_started =
            |call| executor::not_begun(CallStatus::NotStarted, "", None).into_parts(call, report.round).0;
        self.recorder.keep_unrecorded(message.calls().map(not_started));
    }

    /// Begins calls that were announced together.
    pub(super) async fn begin_calls(&mut self, begun: BegunCalls) -> Result<(), LogFailure> {
        for (call, work, announced) in begun.calls {
            self.begin_call(&call, (work, announced), begun.gate, (ChildStart::Anew, None)).await?;
        }
        Ok(())
    }
}

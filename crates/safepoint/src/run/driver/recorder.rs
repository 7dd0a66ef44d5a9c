//! The one place where a driver appends to its log.
//!
//! **Invariants**: what is recorded is applied to the machine and shown, in this order, before anything else
//! is recorded; nothing is applied or shown unrecorded.

use std::{collections::HashMap, sync::Arc};

use super::{LogFailure, RunContext};
use crate::{
    contract::log::{self, Log, LogError, Recorded, RunRecord},
    run::machine::Machine,
    value::{
        event::{EventKind, Fact},
        ids::Path,
        message::AssistantMessage,
        receipt::{CallReport, ModelReport, ProviderToolReport, Receipt},
    },
};

/// The run's log, and what it did not take.
pub(super) struct Recorder {
    log: Arc<dyn Log>,
    /// Ends of calls that the log did not take.
    unrecorded: Vec<CallReport>,
    /// The end of a model call that the log did not take.
    unrecorded_model: Option<Box<(ModelReport, Vec<ProviderToolReport>)>>,
    /// Why the log takes nothing more.
    lost: Option<String>,
}

impl Recorder {
    pub(super) fn new(log: Arc<dyn Log>) -> Self {
        Self { log, unrecorded: Vec::new(), unrecorded_model: None, lost: None }
    }

    /// Whether no record is waited for.
    pub(super) fn is_instant(&self) -> bool {
        self.log.is_instant()
    }

    /// Records a fact, applies it and shows it. State changes in no other way. The fact is shared, so that no
    /// future of a waiting run has room for facts.
    pub(super) async fn record(
        &mut self,
        machine: &mut Machine,
        cx: &RunContext,
        fact: Arc<Fact>,
    ) -> Result<Recorded, LogFailure> {
        let recording = log::record(&*self.log, &cx.shared.path, fact, cx.def.limits.append_timeout);
        let recorded = recording.await.map_err(LogFailure::Log)?;
        apply(machine, cx, &recorded);
        cx.shared.feed.push_recorded(shown(&recorded));
        Ok(recorded)
    }

    /// Records several facts in one append, if the log can do that: a stop does not wait for each. Then they are
    /// applied and shown, in their order. The last of them is returned.
    pub(super) async fn record_all(
        &mut self,
        machine: &mut Machine,
        cx: &RunContext,
        mut facts: Vec<Arc<Fact>>,
    ) -> Result<Option<Recorded>, LogFailure> {
        if facts.len() < 2 {
            let Some(fact) = facts.pop() else { return Ok(None) };
            return self.record(machine, cx, fact).await.map(Some);
        }
        let mut recorded = self.append(cx, facts).await?;
        for recorded in &recorded {
            apply(machine, cx, recorded);
        }
        show(cx, &recorded);
        Ok(recorded.pop())
    }

    /// Only appends: the caller applies the facts and shows them, in their order, before anything else.
    pub(super) async fn append(
        &mut self,
        cx: &RunContext,
        facts: Vec<Arc<Fact>>,
    ) -> Result<Vec<Recorded>, LogFailure> {
        let recording = log::record_all(&*self.log, &cx.shared.path, facts, cx.def.limits.append_timeout);
        recording.await.map_err(LogFailure::Log)
    }

    /// Records the fact that ends the attempt; it changes nothing, and is shown with the outcome.
    pub(super) async fn record_last(&self, cx: &RunContext, settled: &Arc<Fact>) -> Result<u64, LogError> {
        let record = RunRecord { path: cx.shared.path.clone(), fact: Arc::clone(settled) };
        log::append(&*self.log, record, cx.def.limits.append_timeout).await
    }

    /// Reads the records of the run and of the runs below it.
    pub(super) async fn replay(&self, cx: &RunContext) -> Result<HashMap<Path, Vec<Recorded>>, LogFailure> {
        log::replay(&*self.log, &cx.shared.path).await.map_err(LogFailure::Log)
    }

    /// Keeps the ends of calls that the log did not take, for the receipt.
    pub(super) fn keep_unrecorded(&mut self, reports: impl IntoIterator<Item = CallReport>) {
        self.unrecorded.extend(reports);
    }

    pub(super) fn unrecorded(&self) -> &[CallReport] {
        &self.unrecorded
    }

    /// Keeps the end of a model call that the log did not take, for the receipt.
    pub(super) fn keep_unrecorded_model(&mut self, report: ModelReport, message: &AssistantMessage) {
        let mut tools = Vec::new();
        ProviderToolReport::count(&mut tools, message);
        self.unrecorded_model = Some(Box::new((report, tools)));
    }

    /// Adds that end to the receipt: it was seen, and is billed, though the log does not have it (S3.9).
    pub(super) fn account_for_model(&self, receipt: &mut Receipt) {
        if let Some((model, tools)) = self.unrecorded_model.as_deref() {
            receipt.usage.add(&model.usage);
            receipt.model = Some(model.clone());
            // So were the calls that it asks for, and none of them has begun.
            let is_missing = |row: &&CallReport| receipt.calls.iter().all(|call| call.call_id != row.call_id);
            let missing: Vec<CallReport> = self.unrecorded.iter().filter(is_missing).cloned().collect();
            receipt.calls.extend(missing);
            tools.iter().for_each(|tool| tool.add_to(&mut receipt.provider_tools));
        }
    }

    /// The log takes nothing more; the first reason is kept.
    pub(super) fn lose(&mut self, error: &LogError) {
        self.lost.get_or_insert_with(|| error.to_string());
    }

    /// Why the log takes nothing more; `None` while it does.
    pub(super) fn lost(&self) -> Option<&String> {
        self.lost.as_ref()
    }

    pub(super) fn log(&self) -> &Arc<dyn Log> {
        &self.log
    }
}

pub(super) fn apply(machine: &mut Machine, cx: &RunContext, recorded: &Recorded) {
    machine.apply(recorded);
    cx.shared.tree.always.take(recorded.fact());
}

pub(super) fn show(cx: &RunContext, recorded: &[Recorded]) {
    cx.shared.feed.push_all(recorded.iter().map(shown));
}

fn shown(recorded: &Recorded) -> (EventKind, Option<u64>) {
    (EventKind::Fact(Arc::clone(recorded.fact())), recorded.position())
}

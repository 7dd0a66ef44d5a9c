//! Checks whether a call may run, against schema, rules and mode (S8). An approval is valid for what it was
//! given for, and for nothing else (S8.2, S8.8).

use std::sync::Arc;

use serde_json::Value;

use super::{Driver, LogFailure};
use crate::{
    contract::approver::{self, ApprovalMode, RuleAction, ToolApproval, WithoutApprover},
    definition::toolset,
    run::{
        executor,
        machine::{Allowed, Call, CallState},
    },
    value::{
        approval::{ApprovalKind, OnUnknownEffect},
        history::note,
        message::ToolCall,
        receipt::CallKind,
    },
};

/// What the model sees for a call that would nest too deep (S12.1).
const TOO_DEEP: &str =
    "error: agents are nested as deep as they may be here. Do this without calling another agent.";

/// What the model sees below the reason why arguments do not fit that it did not write.
const CHANGED: &str = "[a hook changed the arguments of this call; they are not those that you gave]";

/// The same where a person changed them who could not learn of it (S8.14).
const BY_A_PERSON: &str = "[a person approved this call with other arguments than yours, and those do not fit; the \
    mistake is not in the arguments that you gave]";

impl Driver {
    /// Checks new calls: each ends, waits for a person, or may begin. Stop requests that arrive meanwhile are
    /// noticed before the next call (S12.5).
    pub(super) async fn check(&mut self, calls: Vec<usize>) -> Result<(), LogFailure> {
        for index in calls {
            if self.stops.is_asked_anew() {
                return Ok(());
            }
            let Some(Call { call, step, .. }) = self.machine.call(index).cloned() else { continue };
            self.calls.look_at(&self.cx, &call.id);
            if matches!(step, CallState::Requested | CallState::Approved(_))
                && self.only_a_claim_allows(&call)
            {
                Box::pin(self.deny(&call, note::NOT_CLAIMED.into())).await?;
                continue;
            }
            match step {
                CallState::EffectUnknown => Box::pin(self.check_effect_unknown(index, &call)).await?,
                CallState::Approved(allowed) => Box::pin(self.check_approved(index, &call, allowed)).await?,
                CallState::Requested => self.check_requested(index, &call).await?,
                CallState::Resuming { args, .. } => match self.cx.def.tools.fit(&call.name, &args) {
                    Ok(work) => {
                        let overlaps = work.spec().may_overlap();
                        self.machine.clear(index, args, overlaps);
                    }
                    Err(why) => Box::pin(self.reject_call(&call, why)).await?,
                },
                CallState::AwaitingApproval(_)
                | CallState::Ready { .. }
                | CallState::Running
                | CallState::Suspended { .. }
                | CallState::Ended { .. } => {}
            }
        }
        Ok(())
    }

    /// The arguments of a new call, whether its tool needs an approval, and whether it may run in parallel.
    /// The error is the text for the model.
    pub(super) fn read_call(&self, call: &ToolCall) -> Result<(Arc<Value>, ToolApproval, bool), String> {
        self.fit_call(call, Arc::new(toolset::parse_args(&call.name, &call.args)?))
    }

    /// The same with arguments that a hook has changed.
    fn read_changed(
        &self,
        call: &ToolCall,
        args: Arc<Value>,
    ) -> Result<(Arc<Value>, ToolApproval, bool), String> {
        self.fit_call(call, args).map_err(|why| format!("{why}\n{CHANGED}"))
    }

    fn fit_call(
        &self,
        call: &ToolCall,
        args: Arc<Value>,
    ) -> Result<(Arc<Value>, ToolApproval, bool), String> {
        let tool = self.cx.def.tools.fit(&call.name, &args)?;
        if tool.kind() != CallKind::Tool && self.cx.shared.nesting() == 0 {
            return Err(TOO_DEEP.into());
        }
        Ok((args, tool.spec().approval, tool.spec().may_overlap()))
    }

    async fn check_requested(&mut self, index: usize, call: &ToolCall) -> Result<(), LogFailure> {
        let changed = self.machine.call(index).and_then(|call| call.changed.clone());
        let read = match changed {
            Some(args) => self.read_changed(call, args),
            None => self.read_call(call),
        };
        let (args, approval, overlaps) = match read {
            Ok(read) => read,
            Err(why) => return Box::pin(self.reject_call(call, why)).await,
        };
        let ruling = approver::rule(&self.cx.def.rules, approval, &call.name, &args);
        let Some(ruling) = self.unless_panicked("a rule", ruling) else { return Ok(()) };
        match ruling {
            RuleAction::Allow => self.machine.clear(index, args, overlaps),
            RuleAction::Deny(why) => self.deny(call, why).await?,
            RuleAction::Ask => match self.cx.def.approvals.clone() {
                ApprovalMode::Auto => self.machine.clear(index, args, overlaps),
                ApprovalMode::Deny => self.deny(call, String::new()).await?,
                _ if self.is_covered(&call.name, &call.name, &args) => {
                    self.machine.clear(index, args, overlaps);
                }
                ApprovalMode::Ask(None, WithoutApprover::Deny) => {
                    self.deny(call, note::NO_APPROVER.into()).await?;
                }
                ApprovalMode::Ask(..) => self.ask_person(call, args, ApprovalKind::BeforeCall).await?,
            },
        }
        Ok(())
    }

    /// The call was running when its process ended or when it was stopped, and only a person may decide what
    /// happens to it.
    async fn check_effect_unknown(&mut self, index: usize, call: &ToolCall) -> Result<(), LogFailure> {
        let given = self.machine.call(index).and_then(|call| call.given.clone());
        match (self.cx.def.on_unknown, &self.cx.def.approvals, given) {
            (
                OnUnknownEffect::Ask,
                ApprovalMode::Ask(Some(_), _)
                | ApprovalMode::Ask(None, WithoutApprover::Suspend | WithoutApprover::Wait),
                Some(args),
            ) => self.ask_person(call, args, ApprovalKind::AfterUnknownEnd).await,
            _ => self.end_call(call, executor::end_unknown("", self.unseen_at(call))).await,
        }
    }

    /// A person approved the tool as it was then. Arguments that the person changed are validated again: the
    /// approval covers neither what a rule denies of them nor what another rule than the first one asks about
    /// (S8.2).
    pub(super) async fn check_approved(
        &mut self,
        index: usize,
        call: &ToolCall,
        Allowed { args, is_changed, asked, definition, .. }: Allowed,
    ) -> Result<(), LogFailure> {
        let spec = match self.cx.def.tools.fit(&call.name, &args) {
            Ok(tool) => tool.spec().clone(),
            Err(why) if is_changed => return self.reject_call(call, format!("{why}\n{BY_A_PERSON}")).await,
            Err(why) => return self.reject_call(call, why).await,
        };
        let is_same = definition.is_empty() || definition == self.cx.def.tools.definition(&call.name);
        let own = if is_same { ToolApproval::NotNeeded } else { spec.approval };
        let rules = &self.cx.def.rules;
        let judged = approver::rule(rules, own, &call.name, &args)
            .and_then(|ruling| Ok((ruling, approver::is_one_rule(rules, &call.name, (&asked, &args))?)));
        let Some((ruling, is_asked_for)) = self.unless_panicked("a rule", judged) else { return Ok(()) };
        let is_bound = is_same && (!is_changed || is_asked_for);
        match ruling {
            RuleAction::Deny(why) if is_changed || !is_same => self.deny(call, why).await,
            // Where every call that a rule asks about may run, this one may too.
            RuleAction::Ask if matches!(self.cx.def.approvals, ApprovalMode::Auto) => {
                self.machine.clear(index, args, spec.may_overlap());
                Ok(())
            }
            RuleAction::Ask if !is_bound && !self.is_covered(&call.name, &call.name, &args) => {
                self.ask_person(call, args, ApprovalKind::BeforeCall).await
            }
            RuleAction::Deny(_) | RuleAction::Ask | RuleAction::Allow => {
                self.machine.clear(index, args, spec.may_overlap());
                Ok(())
            }
        }
    }
}

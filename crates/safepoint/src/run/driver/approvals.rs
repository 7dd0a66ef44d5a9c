//! Questions about calls: asked, answered once, expired or withdrawn (S8).

use std::{collections::HashMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use safepoint_scope::DropHandle;
use serde_json::Value;
use tokio::time::timeout;

use super::{Driver, LogFailure, mid_call::MidCallApprovals, promised_message::PromisedMessage};
use crate::{
    contract::{
        approver::{ApprovalMode, Approver, WithoutApprover},
        hook::HookOf,
        tool::Asks,
    },
    run::{
        executor,
        machine::{Call, CallState},
        shared::{Closing, DecideError, Reply, RunMessage},
    },
    sync::{
        self,
        callback::{Foreign, Panicked},
        clock,
    },
    value::{
        approval::{self, ApprovalKind, ApprovalRequest, Decision, Ruled},
        event::Fact,
        history::note,
        ids::{ApprovalId, CallId},
        message::ToolCall,
        receipt::{CallStatus, RemoteReport},
    },
};

/// Who decides where the agent's approver or its mode alone does.
const APPROVER: &str = "the agent's approver";
const POLICY: &str = "the agent's policy, without an approver";

/// The questions that are open now.
#[derive(Default)]
pub(super) struct OpenApprovals {
    /// The task that asks about a call, or waits until the question expires.
    asking: HashMap<ApprovalId, DropHandle>,
    /// Questions that calls ask while they run.
    pub(super) mid_call: MidCallApprovals,
}

impl OpenApprovals {
    /// Registers the task that asks, or waits until the question expires.
    pub(super) fn asked(&mut self, id: ApprovalId, asker: DropHandle) {
        self.asking.insert(id, asker);
    }

    /// Stops the task that waits for the answer.
    pub(super) fn ask_no_longer(&mut self, id: &ApprovalId) {
        if let Some(asker) = self.asking.remove(id) {
            asker.drop_now();
        }
    }

    /// Whether a task waits for an answer.
    pub(super) fn is_asking(&self) -> bool {
        !self.asking.is_empty()
    }
}

impl Driver {
    pub(super) async fn reject_call(&mut self, call: &ToolCall, why: String) -> Result<(), LogFailure> {
        self.end_unrun(call, CallStatus::Failed, why).await
    }

    pub(super) async fn deny(&mut self, call: &ToolCall, why: String) -> Result<(), LogFailure> {
        self.end_unrun(call, CallStatus::Denied, why).await
    }

    /// Ends a call that does not begin. If an earlier attempt may have run it, the model learns that, instead
    /// of that nothing was done.
    pub(super) async fn end_unrun(
        &mut self,
        call: &ToolCall,
        status: CallStatus,
        why: String,
    ) -> Result<(), LogFailure> {
        let is_in_doubt = self.machine.find(&call.id).is_some_and(Call::is_in_doubt);
        let ending = match is_in_doubt {
            true => executor::end_unknown(why, self.unseen_at(call)),
            false => executor::not_begun(status, why, None),
        };
        self.end_call(call, ending).await
    }

    /// What is known of the remote agent that does the call's work, if the end of the call was not seen.
    pub(super) fn unseen_at(&self, call: &ToolCall) -> Option<RemoteReport> {
        let unseen = self.cx.def.tools.get(&call.name)?.spec().unseen_at.as_deref()?;
        let task = self.machine.find(&call.id).and_then(|call| call.named.clone());
        let lost_at = unseen.lost_at.map(|_made| clock::now());
        Some(RemoteReport { task, lost_at, ..unseen.clone() })
    }

    /// Whether a lasting approval covers this: `tool` is the subject, either the tool `of` or a call of it.
    pub(super) fn is_covered(&self, of: &str, tool: &str, args: &Value) -> bool {
        let definition = self.cx.def.tools.definition(of);
        let digest = approval::digest(tool, definition, args);
        self.cx.shared.tree.always.covers((tool, definition), &digest)
    }

    pub(super) async fn ask(
        &mut self,
        call: &ToolCall,
        Asks { tool, args, holds, .. }: Asks,
        question: ApprovalKind,
    ) -> Result<ApprovalRequest, LogFailure> {
        let asked_at = clock::now();
        let open_for = jiff::SignedDuration::try_from(self.cx.def.limits.approval_expiry)
            .unwrap_or(jiff::SignedDuration::MAX);
        let definition = self.cx.def.tools.definition(&call.name).to_owned();
        let request = ApprovalRequest {
            id: ApprovalId::fresh(),
            path: self.cx.shared.path.clone(),
            question,
            call_id: call.id.clone(),
            digest: approval::digest(&tool, &definition, &args),
            tool,
            definition,
            holds,
            args,
            asked_at,
            expires_at: asked_at.checked_add(open_for).unwrap_or(Timestamp::MAX),
        };
        // Registered before it is announced: a reader of the announcement may answer at once.
        self.cx.shared.tree.asks(&request, &self.cx.shared);
        self.record(Fact::ApprovalRequested(request.clone())).await?;
        Ok(request)
    }

    /// Asks a person about the whole call.
    pub(super) async fn ask_person(
        &mut self,
        call: &ToolCall,
        args: Arc<Value>,
        question: ApprovalKind,
    ) -> Result<(), LogFailure> {
        let request = self.ask(call, Asks::about(&call.name, Arc::unwrap_or_clone(args)), question).await?;
        self.ask_approver_or_wait(request);
        Ok(())
    }

    /// Lets the agent's approver be asked. Without one the question waits.
    pub(super) fn ask_approver_or_wait(&mut self, request: ApprovalRequest) {
        match self.cx.def.approvals.clone() {
            ApprovalMode::Ask(Some(approver), _) => self.ask_approver(approver, request),
            ApprovalMode::Ask(None, WithoutApprover::Wait) => self.expire_later(&request),
            _ => self.wait_in_place(&request),
        }
    }

    /// Waits without an approver: a decision arrives from outside, or the question expires.
    pub(super) fn expire_later(&mut self, request: &ApprovalRequest) {
        let (shared, id) = (Arc::clone(&self.cx.shared), request.id.clone());
        let left = time_left(request);
        let task = self.cx.scope.spawn("approval", async move {
            tokio::time::sleep(left).await;
            shared.post(RunMessage::Expired { id });
        });
        self.approvals.asked(request.id.clone(), task.dropper());
    }

    /// Lets a performer ask the approver, until the question expires.
    pub(super) fn ask_approver(&mut self, approver: Arc<dyn Approver>, request: ApprovalRequest) {
        let open_for = time_left(&request).min(self.cx.def.limits.approval_expiry);
        let id = request.id.clone();
        let approver = Foreign::new(approver);
        let dead = || RunMessage::AskingPanicked { message: "the task that asks panicked".to_owned() };
        let promised = PromisedMessage::new(&self.cx.shared, dead);
        let task = self.cx.scope.spawn("approval", async move {
            let id = request.id.clone();
            let asking = approver.run(move |approver| approver.try_ask(request));
            promised.send(match timeout(open_for, asking).await {
                Ok(Ok(None)) => RunMessage::Left { id },
                Ok(Ok(Some(decision))) => {
                    let ruled = decision.by(APPROVER).taken();
                    RunMessage::Decided { id, ruled, reply: tokio::sync::oneshot::channel().0 }
                }
                Ok(Err(Panicked(message))) => RunMessage::AskingPanicked { message },
                Err(_elapsed) => RunMessage::Expired { id },
            });
        });
        self.approvals.asked(id, task.dropper());
    }

    /// The approver has left. The question stays open for one that can be asked later, or is denied.
    pub(super) async fn left(&mut self, id: ApprovalId) -> Result<(), LogFailure> {
        drop(self.approvals.asking.remove(&id));
        if let ApprovalMode::Ask(_, without @ (WithoutApprover::Suspend | WithoutApprover::Wait)) =
            self.cx.def.approvals
        {
            self.leave_open(&id);
            if let Some(Call { step: CallState::AwaitingApproval(request), .. }) = self.machine.asked(&id) {
                match without {
                    WithoutApprover::Wait => self.expire_later(&request),
                    WithoutApprover::Suspend | WithoutApprover::Deny => self.wait_in_place(&request),
                }
            }
            return Ok(());
        }
        let ruled = Decision::Deny { message: note::NO_APPROVER.into() }.by(POLICY);
        if self.decide(&id, ruled).await?.is_err() {
            // Another decision was first.
        }
        Ok(())
    }

    /// Handles a decision about a call of this run, or of a child run that has suspended itself.
    pub(super) async fn decided(
        &mut self,
        id: ApprovalId,
        ruled: Ruled,
        reply: Reply,
    ) -> Result<(), LogFailure> {
        let Err((ruled, reply)) = self.decide_inside(&id, (ruled, reply)) else { return Ok(()) };
        let Err((ruled, reply)) = self.cx.shared.pass_decision(&id, ruled, reply) else { return Ok(()) };
        if let Some(unfit) = self.unfit(&id, &ruled) {
            sync::reply(reply, Err(unfit));
            return Ok(());
        }
        let taken = self.decide(&id, ruled).await?;
        sync::reply(reply, taken);
        Ok(())
    }

    /// Why the changed arguments of a decision cannot be used, if its giver can still give others (S8.14).
    pub(super) fn unfit(&self, id: &ApprovalId, ruled: &Ruled) -> Option<DecideError> {
        let Decision::ApproveWith { args, .. } = &ruled.decision else { return None };
        let call = self.machine.asked(id).filter(|_| !ruled.is_taken)?;
        self.cx.def.tools.fit(&call.call.name, args).err().map(DecideError::unfit)
    }

    /// Takes the first answer to an open question; any later one comes too late.
    pub(super) async fn decide(
        &mut self,
        id: &ApprovalId,
        ruled: Ruled,
    ) -> Result<Result<(), DecideError>, LogFailure> {
        let is_live = self.machine.live().any(|request| request.id == *id);
        if is_live {
            return self.decide_while_running(id, ruled).await;
        }
        let Some(call) = self.machine.asked(id) else { return Ok(Err(self.not_open(id))) };
        if let CallState::AwaitingApproval(request) = &call.step
            && request.expires_at <= clock::now()
        {
            self.expire(id).await?;
            return Ok(Err(DecideError::Expired));
        }
        let decision = ruled.decision.clone();
        self.close(id, &call.call.id, Closing::Decided(ruled)).await?;
        match decision {
            Decision::Approve | Decision::ApproveAlways { .. } => {}
            // No hook has seen these arguments.
            Decision::ApproveWith { .. } => self.hooks.ask_again(&HookOf::Call(call.call.id.clone())),
            Decision::Deny { message } => self.deny(&call.call, message).await?,
            Decision::Respond { result } => {
                let ending = if call.is_in_doubt() {
                    executor::done_before(result)
                } else {
                    executor::answered(result)
                };
                self.end_call(&call.call, ending).await?;
            }
        }
        Ok(Ok(()))
    }

    /// Why a question cannot be decided: how it was closed, or that it is unknown.
    fn not_open(&self, id: &ApprovalId) -> DecideError {
        self.cx.shared.tree.closings.of(id).unwrap_or(DecideError::Unknown)
    }

    pub(super) async fn close(
        &mut self,
        id: &ApprovalId,
        call_id: &CallId,
        closing: Closing,
    ) -> Result<(), LogFailure> {
        let closed = self.closed(id.clone(), call_id, closing);
        self.record(closed).await?;
        Ok(())
    }

    /// Closes a question, and returns the fact to record.
    pub(super) fn closed(&mut self, id: ApprovalId, call_id: &CallId, closing: Closing) -> Fact {
        self.approvals.ask_no_longer(&id);
        let answer = closing.answer();
        self.cx.shared.tree.closes(&id, closing.into());
        Fact::ApprovalResolved { id, call_id: call_id.clone(), answer }
    }
}

/// How long a question stays open.
fn time_left(request: &ApprovalRequest) -> Duration {
    Duration::try_from(request.expires_at.duration_since(clock::now())).unwrap_or_default()
}

//! What hooks decide: recorded under the hook's name, and then done.
//!
//! **Invariants**: what a hook changes is recorded before it is used; arguments that a hook has changed are judged again
//! before their call begins.

use std::sync::Arc;

use serde_json::Value;

use super::{Driver, LogFailure};
use crate::{
    contract::hook::{CallVerdict, HookAnswer, HookKey, HookOf, ModelVerdict, by_hook},
    run::{
        executor,
        machine::{Call, CallState},
    },
    sync::callback::Panicked,
    value::{
        approval,
        event::{ErrorKind, ErrorReport, Fact, HookAction, HookReport},
        history::History,
        ids::CallId,
        message::ToolCall,
        receipt::CallStatus,
    },
};

/// What a call's result says of a change that comes too late for it.
const HAS_BEGUN: &str = "error: a hook changed the arguments of this call, which had begun with others";

impl Driver {
    /// Does what a hook says.
    pub(super) async fn hooked(
        &mut self,
        key: HookKey,
        answer: Result<HookAnswer, Panicked>,
    ) -> Result<(), LogFailure> {
        if !self.hooks.take_answer(&key) {
            return Ok(());
        }
        let (of, place) = key;
        let hook =
            self.cx.def.hooks.get(place).map_or_else(|| "a hook".into(), |hooks| Arc::clone(&hooks.name));
        match (of, answer) {
            (_, Err(panic)) => self.hook_panicked(&hook, &panic),
            (
                _,
                Ok(
                    HookAnswer::Model(ModelVerdict::Stop(request))
                    | HookAnswer::Call(CallVerdict::Stop(request)),
                ),
            ) => {
                self.cx.shared.stop.stop(by_hook(&hook, request));
            }
            (HookOf::Call(id), Ok(HookAnswer::Call(verdict))) => {
                self.call_hooked(&hook, &id, verdict).await?
            }
            (of @ (HookOf::Model(_) | HookOf::Summary(_)), Ok(HookAnswer::Model(verdict))) => {
                self.model_hooked(&hook, of, verdict).await?;
            }
            // No hook is asked one question and answers another.
            (HookOf::Call(_), Ok(HookAnswer::Model(_))) | (HookOf::Model(_) | HookOf::Summary(_), Ok(_)) => {}
        }
        Ok(())
    }

    async fn model_hooked(
        &mut self,
        hook: &Arc<str>,
        of: HookOf,
        verdict: ModelVerdict,
    ) -> Result<(), LogFailure> {
        let round = self.machine.next_round();
        // What a stop or a failure has ended is refused already.
        if self.machine.is_winding_down(self.cx.scope.demand()) {
            return Ok(());
        }
        match verdict {
            ModelVerdict::Proceed | ModelVerdict::Stop(_) => Ok(()),
            ModelVerdict::Refuse(why) => {
                let refused = format!("the hook {hook} refused the model call: {why}");
                self.machine.fail(ErrorReport::new("callback", refused, None).of_kind(ErrorKind::Refused));
                Ok(())
            }
            ModelVerdict::Answer(text) => {
                self.record_hook(hook, HookAction::RunAnswered { round, text }).await
            }
            ModelVerdict::Send(history) => self.change_request(hook, of, history).await,
        }
    }

    /// Keeps what a hook wants to be sent, in a form that a provider takes.
    async fn change_request(
        &mut self,
        hook: &Arc<str>,
        of: HookOf,
        history: History,
    ) -> Result<(), LogFailure> {
        let mut request = history.sent().into_owned();
        drop(request.repair());
        if request.entries().is_empty() {
            let hint = "a request needs at least one message of a person";
            self.fail("callback", format!("the hook {hook} sends an empty conversation"), Some(hint));
            return Ok(());
        }
        let before = self.hooks.request(&of).map_or_else(|| digest(&self.machine.history().sent()), digest);
        let (after, messages) = (digest(&request), request.entries().len());
        let round = self.machine.next_round();
        let is_changed = before != after;
        self.hooks.change_request(of, request);
        if is_changed {
            self.record_hook(hook, HookAction::RequestChanged { round, before, after, messages }).await?;
        }
        Ok(())
    }

    async fn call_hooked(
        &mut self,
        hook: &Arc<str>,
        id: &CallId,
        verdict: CallVerdict,
    ) -> Result<(), LogFailure> {
        let is_open = |call: &&Call| call.end().is_none();
        let Some(open) = self.machine.find(id).filter(is_open).cloned() else { return Ok(()) };
        // What a stop or a failure has ended is refused already.
        if self.machine.is_winding_down(self.cx.scope.demand()) {
            return Ok(());
        }
        let call_id = id.clone();
        match verdict {
            CallVerdict::Proceed | CallVerdict::Stop(_) => Ok(()),
            CallVerdict::Refuse(why) => {
                let action = HookAction::CallRefused { call_id };
                self.end_by_hook(&open.call, (hook, action), (CallStatus::Denied, why)).await
            }
            CallVerdict::Answer(text) => {
                let action = HookAction::CallAnswered { call_id };
                self.end_by_hook(&open.call, (hook, action), (CallStatus::Completed, text)).await
            }
            CallVerdict::Change(args) => self.change_args(hook, &open, args).await,
        }
    }

    /// Arguments that a hook has changed: the call is judged again. A call that an earlier attempt began keeps those that
    /// it began with.
    async fn change_args(&mut self, hook: &Arc<str>, open: &Call, args: Value) -> Result<(), LogFailure> {
        let CallState::Ready { args: before, .. } = &open.step else { return Ok(()) };
        if **before == args {
            return Ok(());
        }
        let call = &open.call;
        if open.has_run() || open.named.is_some() {
            let what = format!("the hook {hook} changed the arguments of {}, whose work had begun", call.id);
            self.fail("callback", what, Some("let the hook proceed where a run is resumed"));
            return Ok(());
        }
        if open.is_in_doubt() {
            return self.end_unrun(call, CallStatus::Failed, HAS_BEGUN.into()).await;
        }
        let before = approval::digest(&call.name, "", before);
        let action = HookAction::ArgsChanged { call_id: call.id.clone(), before, args: args.into() };
        self.record_hook(hook, action).await
    }

    /// Ends a call that a hook keeps from beginning. If an earlier attempt may have run it, its end is unknown.
    async fn end_by_hook(
        &mut self,
        call: &ToolCall,
        (hook, action): (&Arc<str>, HookAction),
        (status, text): (CallStatus, String),
    ) -> Result<(), LogFailure> {
        let is_in_doubt = self.machine.find(&call.id).is_some_and(Call::is_in_doubt);
        let ending = match (is_in_doubt, status) {
            (true, _) => executor::end_unknown(text, self.unseen_at(call)),
            (false, CallStatus::Completed) => executor::answered(text),
            (false, _) => executor::not_begun(status, text, None),
        };
        let acted = Arc::new(Fact::HookActed(HookReport::new(&**hook, action)));
        self.end_call_after(vec![acted], call, ending.into(), false).await
    }

    async fn record_hook(&mut self, hook: &Arc<str>, action: HookAction) -> Result<(), LogFailure> {
        self.record(Fact::HookActed(HookReport::new(&**hook, action))).await?;
        Ok(())
    }
}

/// A digest of the messages of a request.
fn digest(request: &History) -> String {
    let messages = serde_json::to_string(request.entries()).unwrap_or_default();
    approval::hashed("sha256:", &[&messages])
}

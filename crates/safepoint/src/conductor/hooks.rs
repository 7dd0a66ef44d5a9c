//! Hooks: run by performers, waited for only by what they guard, never by a stop.

use std::sync::Arc;

use safepoint_scope::{Actor, Code, Reason, Task, TaskEnd};
use tokio::time::timeout;

use super::{Broken, Conductor};
use crate::{
    executor,
    hook::{Hooked, Verdict, Work},
    machine::Step,
    message::AssistantMessage,
    receipt::{CallReport, CallStatus},
    shared::{HookAnswer, HookKey, Msg},
    usage::Usage,
};

impl Conductor {
    /// Whether the hook has said its word, or has none; otherwise it is asked, and its answer comes by mail.
    pub(super) fn hook_passed(&mut self, key: HookKey, ask: impl FnOnce(&Self) -> Hooked<Verdict>) -> bool {
        if self.hooks_passed.contains(&key) {
            return true;
        }
        if self.hooks_running.contains_key(&key) {
            return false;
        }
        let Some(asked) = ask(self) else { return true };
        let shared = Arc::clone(&self.shared);
        let bound = self.def.limits.callback;
        let answered = key.clone();
        let mut asked = self.begin(asked);
        self.hooks_running.insert(key, asked.dropper());
        drop(self.scope.spawn("hook's bound", async move {
            let answer = match timeout(bound, &mut asked).await {
                Ok(Ok(verdict)) => HookAnswer::Verdict(verdict),
                Ok(Err(TaskEnd::Panicked(message))) => HookAnswer::Panicked(message),
                Ok(Err(TaskEnd::Dropped)) => HookAnswer::Overdue,
                Err(_elapsed) => {
                    asked.dropper().drop_now();
                    HookAnswer::Overdue
                }
            };
            shared.post(Msg::Hooked { key: answered, answer });
        }));
        false
    }

    /// A hook's work as a task of the run: async, or on a thread that may block.
    fn begin<T: Send + 'static>(&self, work: Work<T>) -> Task<T> {
        match work {
            Work::Async(work) => self.scope.spawn("hook", work),
            Work::Blocking(work) => self.scope.spawn_blocking("hook that blocks", work),
        }
    }

    pub(super) async fn hooked(&mut self, key: HookKey, answer: HookAnswer) -> Result<(), Broken> {
        if self.hooks_running.remove(&key).is_none() {
            return Ok(());
        }
        match answer {
            HookAnswer::Verdict(Verdict::Proceed) | HookAnswer::Overdue => {}
            HookAnswer::Verdict(Verdict::Stop(request)) => {
                let request = match request.reason() {
                    Some(_) => request,
                    None => request.because(Reason::new(Code::HOOK).by(Actor::Hook("agent".into()))),
                };
                self.shared.stop.stop(request);
            }
            HookAnswer::Verdict(Verdict::Refuse(why)) => self.refused(&key, why).await?,
            HookAnswer::Panicked(message) => {
                self.fail("callback", format!("a hook panicked: {message}"), None)
            }
        }
        self.hooks_passed.insert(key);
        Ok(())
    }

    async fn refused(&mut self, key: &HookKey, why: String) -> Result<(), Broken> {
        match key {
            HookKey::Model(_) => {
                self.fail("callback", format!("a hook refused the model call: {why}"), None);
                Ok(())
            }
            HookKey::Call(id) => {
                let open = self.machine.find(id).filter(|call| !matches!(call.step, Step::Ended { .. }));
                match open.cloned() {
                    Some(call) => {
                        let ending = executor::not_begun(CallStatus::Denied, why, None);
                        self.end_call(&call.call, ending).await
                    }
                    None => Ok(()),
                }
            }
        }
    }

    /// Told, not waited for.
    pub(super) fn after_model(&self, round: u32, message: &AssistantMessage, usage: &Usage) {
        self.tell(self.def.hooks.after_model(round, message, usage));
    }

    /// Told, not waited for.
    pub(super) fn after_call(&self, report: &CallReport) {
        self.tell(self.def.hooks.after_call(report));
    }

    pub(super) fn tell(&self, told: Hooked<()>) {
        if let Some(told) = told {
            let bound = self.def.limits.callback;
            let mut told = self.begin(told);
            drop(self.scope.spawn("hook's bound", async move {
                if timeout(bound, &mut told).await.is_err() {
                    // Overdue: nobody waits for it any more.
                    told.dropper().drop_now();
                }
            }));
        }
    }

    /// Ends the hooks that still think: what they guard will not happen.
    pub(super) fn end_hooks(&mut self) {
        for (_, dropper) in self.hooks_running.drain() {
            dropper.drop_now();
        }
    }
}

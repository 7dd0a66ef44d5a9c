//! Hooks: run by performers, waited for only by what they guard, never by a stop.

use std::sync::Arc;

use safepoint_scope::{Actor, Code, Reason, Task, TaskEnd};
use tokio::time::timeout;

use super::{Broken, Conductor};
use crate::{
    callback::{self, Panicked},
    executor,
    hook::{Hooked, Hooks, Verdict, Work},
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
        let asked = match callback::call(|| ask(self)) {
            Ok(None) => return true,
            Ok(Some(asked)) => asked,
            Err(panic) => {
                self.callback_panicked("a hook", &panic);
                // What it guards waits; the failure is looked at next.
                self.shared.post(Msg::Look);
                return false;
            }
        };
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
            HookAnswer::Panicked(message) => self.callback_panicked("a hook", &Panicked(message)),
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

    /// Told; only the run's natural end waits for it.
    pub(super) fn after_model(&mut self, round: u32, message: &AssistantMessage, usage: &Usage) {
        self.tell(|hooks| hooks.after_model(round, message, usage));
    }

    /// Told; only the run's natural end waits for it.
    pub(super) fn after_call(&mut self, report: &CallReport) {
        self.tell(|hooks| hooks.after_call(report));
    }

    /// Has a hook told: what it does comes back by mail, whatever becomes of it.
    pub(super) fn tell(&mut self, tell: impl FnOnce(&dyn Hooks) -> Hooked<()>) {
        let told = match callback::call(|| tell(&*self.def.hooks)) {
            Ok(None) => return,
            Ok(Some(told)) => told,
            Err(panic) => return self.callback_panicked("a hook", &panic),
        };
        let bound = self.def.limits.callback;
        let shared = Arc::clone(&self.shared);
        let mut told = self.begin(told);
        self.hooks_told += 1;
        drop(self.scope.spawn("hook's bound", async move {
            let panicked = match timeout(bound, &mut told).await {
                Ok(Ok(())) | Ok(Err(TaskEnd::Dropped)) => None,
                Ok(Err(TaskEnd::Panicked(message))) => Some(message),
                Err(_elapsed) => {
                    // Overdue: nobody waits for it any more.
                    told.dropper().drop_now();
                    None
                }
            };
            shared.post(Msg::Told { panicked });
        }));
    }

    /// A hook that was told has ended.
    pub(super) fn told(&mut self, panicked: Option<String>) {
        self.hooks_told = self.hooks_told.saturating_sub(1);
        if let Some(message) = panicked {
            self.callback_panicked("a hook", &Panicked(message));
        }
    }

    /// Whether a hook is still being told of something that came before the natural end, which waits for it: a panic
    /// of it fails the run. A stop does not wait.
    pub(super) fn is_telling(&self) -> bool {
        self.hooks_told > 0 && !self.scope.is_stopping()
    }

    /// A panic in the code of others fails the run (S2.13).
    pub(super) fn callback_panicked(&mut self, whose: &str, panic: &Panicked) {
        self.fail("callback", format!("{whose} panicked: {}", panic.0), None);
    }

    /// Ends the hooks that still think: what they guard will not happen.
    pub(super) fn end_hooks(&mut self) {
        for (_, dropper) in self.hooks_running.drain() {
            dropper.drop_now();
        }
    }
}

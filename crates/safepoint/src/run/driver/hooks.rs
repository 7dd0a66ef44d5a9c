//! Hooks: run by performers, waited for only by what they guard, never by a stop.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use safepoint_scope::{Actor, Code, DropHandle, Reason, Task, TaskEnd};
use tokio::time::timeout;

use super::{Driver, LogFailure, word::Word};
use crate::{
    contract::hook::{HookAnswer, HookKey, HookOf, HookResult, HookWork, Hooks, Verdict},
    run::{
        executor,
        machine::{CallState, Machine},
        shared::RunMessage,
    },
    sync::callback::{self, Foreign, Panicked},
    value::receipt::CallStatus,
};

/// What is said for a hook's performer that did not live to say it.
const DEAD: &str = "the task that waits for the hook panicked";

/// The hooks of a run: which have passed, which are at work.
#[derive(Default)]
pub(super) struct HookRunner {
    pub(super) passed: HashSet<HookKey>,
    pub(super) running: HashMap<HookKey, DropHandle>,
    /// How many hooks are being notified of something.
    pub(super) notified: usize,
}

/// A hook at work.
type Working<T> = Task<Result<T, Panicked>>;

impl Driver {
    /// Whether the hooks have said their word, or have none: one after the other, in the order in which they were given.
    pub(super) fn hook_passed(
        &mut self,
        of: HookOf,
        ask: impl Fn(&dyn Hooks, &Machine) -> HookResult<Verdict>,
    ) -> bool {
        let def = Arc::clone(&self.cx.def);
        let mut hooks = def.hooks.iter().enumerate();
        hooks.all(|(place, hooks)| self.passed_one(HookKey { of: of.clone(), place }, hooks, &ask))
    }

    /// The same of one of them; otherwise it is asked, and its answer comes by mail.
    fn passed_one(
        &mut self,
        key: HookKey,
        hooks: &Foreign<dyn Hooks>,
        ask: impl Fn(&dyn Hooks, &Machine) -> HookResult<Verdict>,
    ) -> bool {
        if self.hooks.passed.contains(&key) {
            return true;
        }
        if self.hooks.running.contains_key(&key) {
            return false;
        }
        let asked = match hooks.call(|hooks| ask(hooks, &self.machine)) {
            Ok(None) => return true,
            Ok(Some(asked)) => asked,
            Err(panic) => {
                self.callback_panicked("a hook", &panic);
                // What it guards waits; the failure is looked at next.
                self.cx.shared.post(RunMessage::Look);
                return false;
            }
        };
        let bound = self.cx.def.limits.callback;
        let asked = self.begin(asked);
        self.hooks.running.insert(key.clone(), asked.dropper());
        let dead = HookAnswer::Panicked(DEAD.into());
        let word = Word::or(&self.cx.shared, RunMessage::Hooked { key: key.clone(), answer: dead });
        drop(self.cx.scope.spawn("hook's bound", async move {
            let answer = match within(bound, asked).await {
                Ok(Some(verdict)) => HookAnswer::Verdict(verdict),
                Ok(None) => HookAnswer::Overdue,
                Err(Panicked(message)) => HookAnswer::Panicked(message),
            };
            word.say(RunMessage::Hooked { key, answer });
        }));
        false
    }

    /// A hook's work as a task of the run: async, or on a thread that may block.
    fn begin<T: Send + 'static>(&self, work: HookWork<T>) -> Working<T> {
        match work {
            HookWork::Async(work) => self.cx.scope.spawn("hook", callback::run(work)),
            HookWork::Blocking(work) => {
                self.cx.scope.spawn_blocking("hook that blocks", move || callback::call(work))
            }
        }
    }

    pub(super) async fn hooked(&mut self, key: HookKey, answer: HookAnswer) -> Result<(), LogFailure> {
        if self.hooks.running.remove(&key).is_none() {
            return Ok(());
        }
        match answer {
            HookAnswer::Verdict(Verdict::Proceed) | HookAnswer::Overdue => {}
            HookAnswer::Verdict(Verdict::Stop(request)) => {
                let request = match request.reason() {
                    Some(_) => request,
                    None => {
                        request.with_reason(Reason::new(Code::HOOK).with_actor(Actor::Hook("agent".into())))
                    }
                };
                self.cx.shared.stop.stop(request);
            }
            // What a stop or a failure has ended is refused already.
            HookAnswer::Verdict(Verdict::Refuse(_))
                if self.machine.is_winding_down(self.cx.scope.demand()) => {}
            HookAnswer::Verdict(Verdict::Refuse(why)) => self.refused(&key, why).await?,
            HookAnswer::Panicked(message) => self.callback_panicked("a hook", &Panicked(message)),
        }
        self.hooks.passed.insert(key);
        Ok(())
    }

    async fn refused(&mut self, key: &HookKey, why: String) -> Result<(), LogFailure> {
        match &key.of {
            HookOf::Model(_) => {
                self.fail("callback", format!("a hook refused the model call: {why}"), None);
                Ok(())
            }
            HookOf::Call(id) => {
                let open = self.machine.find(id).filter(|call| !matches!(call.step, CallState::Ended { .. }));
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

    /// Has the hooks told of what is recorded; only the run's natural end waits for them. What they do comes back by mail,
    /// whatever becomes of it.
    pub(super) fn tell(&mut self, tell: impl Fn(&(dyn Hooks + 'static)) -> HookResult<()>) {
        let def = Arc::clone(&self.cx.def);
        def.hooks.iter().for_each(|hooks| self.tell_one(hooks, &tell));
    }

    fn tell_one(
        &mut self,
        hooks: &Foreign<dyn Hooks>,
        tell: impl Fn(&(dyn Hooks + 'static)) -> HookResult<()>,
    ) {
        let told = match hooks.call(tell) {
            Ok(None) => return,
            Ok(Some(told)) => told,
            Err(panic) => return self.callback_panicked("a hook", &panic),
        };
        let bound = self.cx.def.limits.callback;
        let told = self.begin(told);
        self.hooks.notified += 1;
        let word = Word::or(&self.cx.shared, RunMessage::Told { panicked: Some(DEAD.into()) });
        drop(self.cx.scope.spawn("hook's bound", async move {
            let panicked = within(bound, told).await.err().map(|Panicked(message)| message);
            word.say(RunMessage::Told { panicked });
        }));
    }

    /// A hook that was told has ended.
    pub(super) fn told(&mut self, panicked: Option<String>) {
        self.hooks.notified = self.hooks.notified.saturating_sub(1);
        if let Some(message) = panicked {
            self.callback_panicked("a hook", &Panicked(message));
        }
    }

    /// Whether a hook is still being told of something that came before the natural end, which waits for it: a panic
    /// of it fails the run. A stop does not wait.
    pub(super) fn is_telling(&self) -> bool {
        self.hooks.notified > 0 && !self.cx.scope.is_stopping()
    }

    /// Whether a stop at a safe point has to wait for the verdict of a hook that was asked before it: within its bound a
    /// hook finishes, and only `Now` drops it (S2.18).
    pub(super) fn is_thinking(&self) -> bool {
        !self.hooks.running.is_empty() && !self.cx.scope.is_stopping()
    }

    /// A panic in the code of others fails the run (S2.13).
    pub(super) fn callback_panicked(&mut self, whose: &str, panic: &Panicked) {
        self.fail("callback", format!("{whose} panicked: {}", panic.0), None);
    }

    /// Ends the hooks that still think: what they guard will not happen.
    pub(super) fn end_hooks(&mut self) {
        for (_, dropper) in self.hooks.running.drain() {
            dropper.drop_now();
        }
    }
}

/// What a hook comes to within its bound; none, if it is overdue: nobody waits for it any more.
async fn within<T: Send + 'static>(bound: Duration, mut work: Working<T>) -> Result<Option<T>, Panicked> {
    match timeout(bound, &mut work).await {
        Ok(Ok(said)) => said.map(Some),
        Ok(Err(TaskEnd::Panicked(message))) => Err(Panicked(message)),
        Ok(Err(TaskEnd::Dropped)) => Ok(None),
        Err(_elapsed) => {
            work.dropper().drop_now();
            Ok(None)
        }
    }
}

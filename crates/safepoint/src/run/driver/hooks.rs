//! Hooks: run by performers, waited for only by what they guard, never by a stop.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use safepoint_scope::{Actor, Code, DropHandle, Reason, Task, TaskEnd};
use tokio::time::timeout;

use super::{Driver, LogFailure, RunContext, promised_message::PromisedMessage};
use crate::{
    contract::hook::{HookKey, HookOf, HookResult, HookWork, Hooks, Verdict},
    run::{
        executor,
        machine::{Call, Machine},
        shared::RunMessage,
    },
    sync::callback::{self, Panicked},
    value::{
        event::{ErrorKind, ErrorReport},
        receipt::CallStatus,
    },
};

/// The panic text for a hook's performer that ended without an answer.
const DEAD: &str = "the task that waits for the hook panicked";

/// The hooks of a run: which have passed, and which are running.
#[derive(Default)]
pub(super) struct HookRunner {
    passed: HashSet<HookKey>,
    running: HashMap<HookKey, DropHandle>,
    /// How many hooks are being notified of something.
    notified: usize,
}

/// A running hook.
type Working<T> = Task<Result<T, Panicked>>;

impl HookRunner {
    /// Whether the hooks have answered, or there are none: one after the other, in the order of registration.
    /// A hook that has not answered is asked, and its answer arrives as a message.
    fn have_passed(
        &mut self,
        cx: &RunContext,
        of: HookOf,
        ask: impl Fn(&dyn Hooks) -> HookResult<Verdict>,
    ) -> Result<bool, Panicked> {
        for (place, hooks) in cx.def.hooks.iter().enumerate() {
            let key = (of.clone(), place);
            if self.passed.contains(&key) {
                continue;
            }
            if self.running.contains_key(&key) {
                return Ok(false);
            }
            if let Some(asked) = hooks.call(&ask)? {
                self.begin(cx, key, asked);
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn begin(&mut self, cx: &RunContext, key: HookKey, asked: HookWork<Verdict>) {
        let bound = cx.def.limits.callback_timeout;
        let asked = spawn(cx, asked);
        self.running.insert(key.clone(), asked.dropper());
        let asked_key = key.clone();
        let dead = move || RunMessage::Hooked { key: asked_key, answer: Err(Panicked(DEAD.into())) };
        let promised = PromisedMessage::new(&cx.shared, dead);
        drop(cx.scope.spawn("hook's bound", async move {
            // The run continues without a hook that is overdue.
            let answer = within(bound, asked).await.map(|said| said.unwrap_or(Verdict::Proceed));
            promised.send(RunMessage::Hooked { key, answer });
        }));
    }

    /// Notes that a hook has answered; it has passed, whatever the answer. False if nothing waits for it any
    /// more.
    fn take_answer(&mut self, key: &HookKey) -> bool {
        let is_awaited = self.running.remove(key).is_some();
        if is_awaited {
            self.passed.insert(key.clone());
        }
        is_awaited
    }

    fn notify(&mut self, cx: &RunContext, work: HookWork<()>) {
        let bound = cx.def.limits.callback_timeout;
        let work = spawn(cx, work);
        self.notified += 1;
        let dead = || RunMessage::HookNotified { panicked: Some(DEAD.into()) };
        let promised = PromisedMessage::new(&cx.shared, dead);
        drop(cx.scope.spawn("hook's bound", async move {
            let panicked = within(bound, work).await.err().map(|Panicked(message)| message);
            promised.send(RunMessage::HookNotified { panicked });
        }));
    }

    /// Whether a hook is still running for something before the natural end, which waits for it: its panic
    /// fails the run. A stop does not wait.
    pub(super) fn is_notifying(&self, cx: &RunContext) -> bool {
        self.notified > 0 && !cx.scope.is_stopping()
    }

    /// Whether a stop at a safe point must wait for the verdict of a hook that was asked earlier. A hook
    /// finishes within its bound, and only `Now` drops it (S2.18).
    pub(super) fn is_asking(&self, cx: &RunContext) -> bool {
        !self.running.is_empty() && !cx.scope.is_stopping()
    }

    /// Ends the hooks that have not answered: what they guard will not happen.
    pub(super) fn end(&mut self) {
        for (_, dropper) in self.running.drain() {
            dropper.drop_now();
        }
    }
}

impl Driver {
    /// Whether the hooks let this pass. A panic of a hook fails the run.
    pub(super) fn hook_passed(
        &mut self,
        of: HookOf,
        ask: impl Fn(&dyn Hooks, &Machine) -> HookResult<Verdict>,
    ) -> bool {
        let machine = &self.machine;
        let passed = self.hooks.have_passed(&self.cx, of, |hooks| ask(hooks, machine));
        passed.unwrap_or_else(|panic| {
            self.callback_panicked("a hook", &panic);
            // What it guards waits; the failure is handled next.
            self.cx.shared.post(RunMessage::Look);
            false
        })
    }

    pub(super) async fn hooked(
        &mut self,
        key: HookKey,
        answer: Result<Verdict, Panicked>,
    ) -> Result<(), LogFailure> {
        if !self.hooks.take_answer(&key) {
            return Ok(());
        }
        match answer {
            Ok(Verdict::Proceed) => {}
            Ok(Verdict::Stop(request)) => {
                let by_hook = || Reason::new(Code::HOOK).with_actor(Actor::Hook("agent".into()));
                let has_reason = request.reason().is_some();
                let request = if has_reason { request } else { request.with_reason(by_hook()) };
                self.cx.shared.stop.stop(request);
            }
            // What a stop or a failure has ended is refused already.
            Ok(Verdict::Refuse(_)) if self.machine.is_winding_down(self.cx.scope.demand()) => {}
            Ok(Verdict::Refuse(why)) => self.refused(&key.0, why).await?,
            Err(panic) => self.callback_panicked("a hook", &panic),
        }
        Ok(())
    }

    async fn refused(&mut self, step: &HookOf, why: String) -> Result<(), LogFailure> {
        match step {
            HookOf::Model(_) => {
                let refused = format!("a hook refused the model call: {why}");
                self.machine.fail(ErrorReport::new("callback", refused, None).of_kind(ErrorKind::Refused));
            }
            HookOf::Call(id) => {
                let is_open = |call: &&Call| call.end().is_none();
                if let Some(call) = self.machine.find(id).filter(is_open).map(|open| open.call.clone()) {
                    self.end_call(&call, executor::not_begun(CallStatus::Denied, why, None)).await?;
                }
            }
        }
        Ok(())
    }

    /// Notifies the hooks of what was recorded; only the run's natural end waits for them. Their end arrives
    /// as a message in any case.
    pub(super) fn notify(&mut self, notify: impl Fn(&(dyn Hooks + 'static)) -> HookResult<()>) {
        let def = Arc::clone(&self.cx.def);
        for hooks in &def.hooks {
            if let Some(Some(work)) = self.unless_panicked("a hook", hooks.call(&notify)) {
                self.hooks.notify(&self.cx, work);
            }
        }
    }

    /// A hook that was notified has ended.
    pub(super) fn notified(&mut self, panicked: Option<String>) {
        self.hooks.notified = self.hooks.notified.saturating_sub(1);
        if let Some(message) = panicked {
            self.callback_panicked("a hook", &Panicked(message));
        }
    }

    /// The result of foreign code. Its panic fails the run.
    pub(super) fn unless_panicked<T>(&mut self, whose: &str, result: Result<T, Panicked>) -> Option<T> {
        result.inspect_err(|panic| self.callback_panicked(whose, panic)).ok()
    }

    /// A panic in foreign code fails the run (S2.13).
    pub(super) fn callback_panicked(&mut self, whose: &str, panic: &Panicked) {
        self.fail("callback", format!("{whose} panicked: {}", panic.0), None);
    }
}

/// A hook's work as a task of the run: async, or on a thread that may block.
fn spawn<T: Send + 'static>(cx: &RunContext, work: HookWork<T>) -> Working<T> {
    match work {
        HookWork::Async(work) => cx.scope.spawn("hook", callback::run(work)),
        HookWork::Blocking(work) => cx.scope.spawn_blocking("hook that blocks", move || callback::call(work)),
    }
}

/// The result of a hook within its bound; a hook that is overdue is dropped.
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

//! Hooks: run by performers, waited for only by what they guard, never by a stop.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use safepoint_scope::{DropHandle, Task, TaskEnd};
use tokio::time::timeout;

use super::{Driver, RunContext, promised_message::PromisedMessage};
use crate::{
    contract::hook::{HookAnswer, HookKey, HookOf, HookResult, HookWork, Hooks, ModelVerdict},
    run::shared::RunMessage,
    sync::callback::{self, Panicked},
    value::history::History,
};

/// The panic text for a hook's performer that ended without an answer.
const DEAD: &str = "the task that waits for the hook panicked";

/// The hooks of a run: which have passed, and which are running.
#[derive(Default)]
pub(super) struct HookRunner {
    passed: HashSet<HookKey>,
    /// None for a hook whose answer is on its way already.
    running: HashMap<HookKey, Option<DropHandle>>,
    /// What hooks have made of the request of this step.
    request: Option<Box<(HookOf, History)>>,
    /// How many hooks are being notified of something.
    notified: usize,
}

/// A running hook.
type Working<T> = Task<Result<T, Panicked>>;

/// A hook that panicked as it was called: its name and what it said.
type HookPanic = (Arc<str>, Panicked);

impl HookRunner {
    /// Whether the hooks have answered, or there are none: one after the other, in the order of registration.
    /// A hook that has not answered is asked, and its answer arrives as a message.
    fn have_passed<T: Send + 'static>(
        &mut self,
        cx: &RunContext,
        of: &HookOf,
        ask: impl Fn(&dyn Hooks) -> HookResult<T>,
        answer: fn(T) -> HookAnswer,
    ) -> Result<bool, HookPanic> {
        for (place, hooks) in cx.def.hooks.iter().enumerate() {
            let key = (of.clone(), place);
            if self.passed.contains(&key) {
                continue;
            }
            if self.running.contains_key(&key) {
                return Ok(false);
            }
            let asked = hooks.call(&ask).map_err(|panic| (Arc::clone(&hooks.name), panic))?;
            if let Some(work) = asked {
                self.begin(cx, key, work, answer);
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn begin<T: Send + 'static>(
        &mut self,
        cx: &RunContext,
        key: HookKey,
        work: HookWork<T>,
        answer: fn(T) -> HookAnswer,
    ) {
        let asked = match spawn(cx, work) {
            Begun::Answered(said) => {
                self.running.insert(key.clone(), None);
                cx.shared.post(RunMessage::Hooked { key, answer: Ok(answer(said)) });
                return;
            }
            Begun::Working(asked) => asked,
        };
        let bound = cx.def.limits.callback_timeout;
        self.running.insert(key.clone(), Some(asked.dropper()));
        let asked_key = key.clone();
        let dead = move || RunMessage::Hooked { key: asked_key, answer: Err(Panicked(DEAD.into())) };
        let promised = PromisedMessage::new(&cx.shared, dead);
        drop(cx.scope.spawn("hook's bound", async move {
            // The run continues without a hook that is overdue.
            let said = within(bound, asked).await;
            let answer = said.map(|said| said.map_or_else(|| HookAnswer::overdue(&key.0), answer));
            promised.send(RunMessage::Hooked { key, answer });
        }));
    }

    /// Notes that a hook has answered; it has passed, whatever the answer. False if nothing waits for it any
    /// more.
    pub(super) fn take_answer(&mut self, key: &HookKey) -> bool {
        let is_awaited = self.running.remove(key).is_some();
        if is_awaited {
            self.passed.insert(key.clone());
        }
        is_awaited
    }

    /// The call has other arguments now: every hook is asked about it again.
    pub(super) fn ask_again(&mut self, of: &HookOf) {
        self.passed.retain(|(passed, _)| passed != of);
    }

    /// The next request is another one now: every hook is asked about it again.
    pub(super) fn ask_about_request_again(&mut self) {
        let is_request = |of: &HookOf| matches!(of, HookOf::Model(_) | HookOf::Summary(_));
        self.request = None;
        self.passed.retain(|(passed, _)| !is_request(passed));
        let asked = self.running.extract_if(|(asked, _), _| is_request(asked));
        asked.filter_map(|(_, dropper)| dropper).for_each(|dropper| dropper.drop_now());
    }

    /// What hooks have made of the request of this step so far.
    pub(super) fn request(&self, of: &HookOf) -> Option<&History> {
        self.request.as_ref().filter(|changed| changed.0 == *of).map(|changed| &changed.1)
    }

    /// A hook has changed the request of this step.
    pub(super) fn change_request(&mut self, of: HookOf, request: History) {
        self.request = Some(Box::new((of, request)));
    }

    /// Takes what the hooks have made of the request of this step, which begins.
    pub(super) fn take_request(&mut self, of: &HookOf) -> Option<History> {
        self.request.take_if(|changed| changed.0 == *of).map(|changed| changed.1)
    }

    fn notify(&mut self, cx: &RunContext, work: HookWork<()>) {
        let Begun::Working(work) = spawn(cx, work) else { return };
        let bound = cx.def.limits.callback_timeout;
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
        for dropper in self.running.drain().filter_map(|(_, dropper)| dropper) {
            dropper.drop_now();
        }
    }
}

impl Driver {
    /// Whether the hooks let this pass. A panic of a hook fails the run.
    pub(super) fn hook_passed<T: Send + 'static>(
        &mut self,
        of: &HookOf,
        ask: impl Fn(&dyn Hooks) -> HookResult<T>,
        answer: fn(T) -> HookAnswer,
    ) -> bool {
        let asked = self.hooks.have_passed(&self.cx, of, ask, answer);
        self.passed(asked)
    }

    /// The same for a request: the conversation, as the hooks before have changed it.
    pub(super) fn request_passed(
        &mut self,
        of: &HookOf,
        ask: impl Fn(&dyn Hooks, &History) -> HookResult<ModelVerdict>,
    ) -> bool {
        // Taken out, since hooks are asked one by one about it.
        let changed = self.hooks.take_request(of);
        let request = changed.as_ref().unwrap_or_else(|| self.machine.history());
        let asked = self.hooks.have_passed(&self.cx, of, |hooks| ask(hooks, request), HookAnswer::Model);
        if let Some(changed) = changed {
            self.hooks.change_request(of.clone(), changed);
        }
        self.passed(asked)
    }

    fn passed(&mut self, asked: Result<bool, HookPanic>) -> bool {
        asked.unwrap_or_else(|(hook, panic)| {
            self.hook_panicked(&hook, &panic);
            // What it guards waits; the failure is handled next.
            self.cx.shared.post(RunMessage::Look);
            false
        })
    }

    /// Notifies the hooks of what was recorded; only the run's natural end waits for them. Their end arrives
    /// as a message in any case.
    pub(super) fn notify(&mut self, notify: impl Fn(&(dyn Hooks + 'static)) -> HookResult<()>) {
        let def = Arc::clone(&self.cx.def);
        for hooks in &def.hooks {
            match hooks.call(&notify) {
                Ok(Some(work)) => self.hooks.notify(&self.cx, work),
                Ok(None) => {}
                Err(panic) => self.hook_panicked(&hooks.name, &panic),
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

    /// A panic in a hook fails the run.
    pub(super) fn hook_panicked(&mut self, hook: &str, panic: &Panicked) {
        self.callback_panicked(&format!("the hook {hook}"), panic);
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

/// A hook's work that has begun. Exhaustive: it was an answer already, or a task does it.
enum Begun<T> {
    Answered(T),
    Working(Working<T>),
}

/// A hook's work as a task of the run: async, or on a thread that may block.
fn spawn<T: Send + 'static>(cx: &RunContext, work: HookWork<T>) -> Begun<T> {
    Begun::Working(match work {
        HookWork::Ready(answer) => return Begun::Answered(answer),
        HookWork::Async(work) => cx.scope.spawn("hook", callback::run(work)),
        HookWork::Blocking(work) => cx.scope.spawn_blocking("hook that blocks", move || callback::call(work)),
    })
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

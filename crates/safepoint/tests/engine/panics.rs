//! A panic anywhere in the code of others: the run settles, and says whose it was.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use safepoint::{
    Agent, AgentBuilder, History, Limits, Model, Outcome, Receipt, RunHandle, StopRequest,
    approval::{ApprovalMode, ApprovalRequest, Approver, Decision, Rule, RuleAction, WithoutApprover},
    hook::{CallVerdict, HookCall, HookResult, HookedMessage, Hooks, ModelVerdict, from_future},
    model::{Conversation, Delta, DeltaStream, ModelSpec},
    receipt::{CallReport, Ending, QuietReport},
};

use crate::world::{agent, ask, call_started, does, say};

/// Longer than any wait of these runs; the clock is a controlled one.
const NEVER: Duration = Duration::from_secs(3600);

async fn settled(handle: &RunHandle) -> Outcome {
    let done = tokio::time::timeout(NEVER, handle.done()).await;
    let outcome = done.unwrap_or_else(|_| panic!("the run never settled; alive: {:?}", handle.alive()));
    let quiet = tokio::time::timeout(NEVER, handle.quiet()).await.expect("the run has no word on its quiet");
    assert!(matches!(quiet, QuietReport::Quiet(_)), "{:?}", quiet.receipt().survivors);
    outcome
}

fn code(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Failed(error) => error.code(),
        other => panic!("{:?}", other.ending()),
    }
}

/// Where a hook panics, and whether at once or in its future.
struct Panics(&'static str, When);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum When {
    AtOnce,
    Later,
}

impl Panics {
    fn at<T: Send + 'static>(&self, place: &'static str) -> HookResult<T> {
        match self.1 {
            _ if self.0 != place => None,
            When::AtOnce => panic!("{place} panics at once"),
            When::Later => from_future(async move { panic!("{place} panics later") }),
        }
    }
}

impl Hooks for Panics {
    fn before_model(&self, _: u32, _: &History) -> HookResult<ModelVerdict> {
        self.at("before_model")
    }
    fn after_model(&self, _: &HookedMessage) -> HookResult<()> {
        self.at("after_model")
    }
    fn before_call(&self, _: &HookCall) -> HookResult<CallVerdict> {
        self.at("before_call")
    }
    fn after_call(&self, _: &CallReport) -> HookResult<()> {
        self.at("after_call")
    }
    fn on_stop(&self, _: &Arc<Receipt>) -> HookResult<()> {
        self.at("on_stop")
    }
}

fn one_call() -> AgentBuilder {
    agent([ask(&["t"]), say("end")]).tool(does("t", |_| async { Ok("r".into()) }))
}

/// S2.13, S3.1, S1.10: a hook that panics, at once or in its future, fails the run with the code `callback`.
#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_fails_the_run() {
    for place in ["before_model", "after_model", "before_call", "after_call"] {
        for when in [When::AtOnce, When::Later] {
            let handle = one_call().hooks(Panics(place, when)).build().run("go").detach();
            let outcome = settled(&handle).await;
            assert_eq!(code(&outcome), "callback", "{place} {when:?}");
        }
    }
}

/// S2.13: a hook that panics after the last answer is waited for, and fails the run too.
#[tokio::test(start_paused = true)]
async fn a_hook_after_the_last_answer_fails_the_run_too() {
    let handle = agent([say("end")]).hooks(Panics("after_model", When::Later)).build().run("go").detach();
    assert_eq!(code(&settled(&handle).await), "callback");
}

/// S11.2, S3.1: an `on_stop` that panics neither vetoes nor delays the stop.
#[tokio::test(start_paused = true)]
async fn an_on_stop_that_panics_changes_nothing() {
    for when in [When::AtOnce, When::Later] {
        let builder = agent([]).hooks(Panics("on_stop", when));
        let handle = builder.build().run("go").detach();
        crate::world::until(&handle, |kind| matches!(kind, safepoint::event::EventKind::Text(_))).await;
        handle.stop(StopRequest::now());
        assert_eq!(settled(&handle).await.ending(), Ending::Stopped);
    }
}

/// S2.13, S8.2: a rule that panics fails the run; it never allows.
#[tokio::test(start_paused = true)]
async fn a_rule_that_panics_fails_the_run() {
    let rule = Rule::on("t", RuleAction::Allow).when(|_| panic!("the rule panics"));
    let handle = one_call().rule(rule).build().run("go").detach();
    let outcome = settled(&handle).await;
    assert_eq!(code(&outcome), "callback");
    assert!(outcome.receipt().calls.iter().all(|call| call.started_at.is_none()));
}

/// S2.16, S8.2: it does so also where it would not panic a second time.
#[tokio::test(start_paused = true)]
async fn a_rule_that_panics_once_fails_the_run() {
    let is_over = AtomicBool::new(false);
    let panics = move |_: &_| {
        assert!(is_over.swap(true, Ordering::SeqCst), "the rule panics");
        true
    };
    let handle = one_call().rule(Rule::on("t", RuleAction::Allow).when(panics)).build().run("go").detach();
    let outcome = settled(&handle).await;
    assert_eq!(code(&outcome), "callback");
    assert!(outcome.receipt().calls.iter().all(|call| call.started_at.is_none()));
}

struct Asker(When);

impl Approver for Asker {
    fn ask(&self, _: ApprovalRequest) -> BoxFuture<'static, Decision> {
        match self.0 {
            When::AtOnce => panic!("the approver panics at once"),
            When::Later => Box::pin(async { panic!("the approver panics later") }),
        }
    }
}

/// S2.13, S8.5: an approver that panics fails the run at once; its question does not hang.
#[tokio::test(start_paused = true)]
async fn an_approver_that_panics_fails_the_run() {
    for when in [When::AtOnce, When::Later] {
        let asks = ApprovalMode::Ask(Some(Arc::new(Asker(when))), WithoutApprover::Deny);
        let builder = one_call().rule(Rule::on("t", RuleAction::Ask)).approvals(asks);
        let handle = builder.build().run("go").detach();
        assert_eq!(code(&settled(&handle).await), "callback", "{when:?}");
    }
}

/// A model that panics at the configured point.
struct Faulty(&'static str);

impl Model for Faulty {
    fn name(&self) -> &str {
        "faulty"
    }
    fn open(&self, _: ModelSpec) -> Box<dyn Conversation> {
        assert!(self.0 != "open", "open panics");
        Box::new(Self(self.0))
    }
}

impl Conversation for Faulty {
    fn stream(&mut self, _: &History) -> DeltaStream {
        use futures_util::{StreamExt as _, stream};
        assert!(self.0 != "stream", "stream panics");
        stream::iter([Ok(Delta::Sent), Ok(Delta::Text("so f".into()))]).chain(stream::pending()).boxed()
    }
    fn release(&mut self) -> Option<BoxFuture<'static, ()>> {
        assert!(self.0 != "part", "part panics");
        None
    }
}

/// S2.13, S3.1: a model that panics before there is a stream fails the run with the code `provider`.
#[tokio::test(start_paused = true)]
async fn a_model_that_panics_fails_the_run() {
    for place in ["open", "stream"] {
        let handle = Agent::builder(Faulty(place)).build().run("go").detach();
        assert_eq!(code(&settled(&handle).await), "provider", "{place}");
    }
}

/// S2.2, S3.1: a model that panics when its reply is cancelled does not undo the stop.
#[tokio::test(start_paused = true)]
async fn a_parting_that_panics_does_not_undo_the_stop() {
    let handle = Agent::builder(Faulty("part")).build().run("go").detach();
    crate::world::until(&handle, |kind| matches!(kind, safepoint::event::EventKind::Text(_))).await;
    handle.stop(StopRequest::now());
    assert_eq!(settled(&handle).await.ending(), Ending::Stopped);
}

/// S3.3, S3.6: a run whose runtime has gone has an outcome and a word on its quiet.
#[test]
fn a_run_whose_runtime_is_gone_has_an_outcome() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let tool = does("t", |_| std::future::pending());
    let agent = agent([ask(&["t"])]).tool(tool).limits(Limits::default()).build();
    let handle = runtime.block_on(async {
        let handle = agent.run("go").detach();
        call_started(&handle).await;
        handle
    });
    drop(runtime);
    let later =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    later.block_on(async {
        let done = tokio::time::timeout(NEVER, handle.done()).await.expect("it never settled");
        assert_eq!(done.ending(), Ending::Stopped);
        assert!(done.persisted() != &safepoint::outcome::Persisted::Yes);
        tokio::time::timeout(NEVER, handle.quiet()).await.expect("no word on its quiet");
        assert_eq!(handle.stop(StopRequest::now()), safepoint::stop::StopAck::TooLate);
    });
}

/// S2.1, S3.3: a run that is dropped unstarted outside any runtime has an outcome.
#[test]
fn a_run_dropped_outside_a_runtime_has_an_outcome() {
    let run = agent([say("x")]).build().run("go");
    let handle = run.handle();
    drop(run);
    assert!(handle.is_done());
    assert_eq!(handle.stop(StopRequest::now()), safepoint::stop::StopAck::TooLate);
}

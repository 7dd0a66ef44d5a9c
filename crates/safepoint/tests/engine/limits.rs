//! Limits are the run's: over all its attempts, whatever ended them, and by one clock that stands while a person is asked.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use safepoint::{
    AgentBuilder, History, Limits, Outcome, Reason, SafePoints, StopRequest, Usage,
    approval::{ApprovalMode, ApprovalRequest, Approver, Decision, ToolApproval, WithoutApprover},
    event::{EventKind, Fact},
    log::{Log, LogError, MemoryLog, RunRecord},
    model::{Delta, Finish},
    receipt::Ending,
    tool::{Concurrency, EffectClass, FnTool},
    usage::Price,
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::children::{hire, with};
use crate::world::{Reply, agent, ask, call_started, does, say};

const TOKENS: u64 = 110;

/// The same with a bill of [`TOKENS`].
fn billed(mut reply: Reply) -> Reply {
    let usage = Usage::new(100, 10);
    let end = reply.len() - 1;
    reply.insert(end, Ok(Delta::Usage(usage)));
    reply
}

fn enough() -> StopRequest {
    StopRequest::at(SafePoints::AFTER_ALL_CALLS).with_reason(Reason::user("enough"))
}

/// Stops its run gracefully when it has been called so often.
fn stops_at(calls: u32) -> FnTool {
    let called = Arc::new(AtomicU32::new(0));
    let tool = does("step", move |cx| {
        let count = called.fetch_add(1, Ordering::SeqCst) + 1;
        async move {
            if count == calls {
                cx.stop_run(enough());
            }
            Ok(String::new())
        }
    });
    tool.with(|spec| spec.effect(EffectClass::Idempotent))
}

/// A model that asks for the tool again and again.
fn tireless(limits: &Limits) -> AgentBuilder {
    agent((0..20).map(|_| billed(ask(&["step"])))).limits(limits.clone())
}

fn code(outcome: &Outcome) -> (String, String) {
    let stop = outcome.receipt().stop.clone().unwrap();
    (stop.reason.code, stop.reason.text)
}

/// S12.6: rounds, tokens and cost are counted over all attempts, and a resume that finds one spent says which.
#[tokio::test(start_paused = true)]
async fn a_resume_has_what_is_left_of_each_limit() {
    let price = Price::new(10_000.0, 0.0, 0.0);
    for (limits, name) in [
        (Limits::default().with_max_rounds(4), "max_rounds"),
        (Limits::default().with_max_tokens(4 * TOKENS), "max_tokens"),
        (Limits::default().with_max_cost(4.0), "max_cost"),
    ] {
        let agent = tireless(&limits).tool(stops_at(2)).price(price).build();
        let first = agent.run("go").await;
        assert_eq!((code(&first).0.as_str(), first.receipt().rounds), ("user", 2));
        let second = agent.resume(&first).await;
        let (reason, text) = code(&second);
        assert_eq!((reason.as_str(), second.receipt().rounds), (name, 4), "{text}");
        assert!(text.ends_with("over 2 attempts"), "{text}");
        let third = agent.resume(&second).await;
        assert_eq!((code(&third).0.as_str(), third.receipt().rounds), (name, 4));
    }
}

/// S12.8: a resume may raise a limit; what each attempt began under is recorded.
#[tokio::test(start_paused = true)]
async fn a_resume_under_a_higher_limit_goes_on_and_says_so() {
    let limits = Limits::default().with_max_rounds(4);
    let before = tireless(&limits).tool(stops_at(9)).build();
    let spent = before.run("go").await;
    assert_eq!(code(&spent).0, "max_rounds");
    let after = tireless(&Limits::default().with_max_rounds(6)).tool(stops_at(9)).build();
    let handle = after.resume(&spent).detach();
    let outcome = handle.done().await;
    assert_eq!((code(&outcome).0.as_str(), outcome.receipt().rounds), ("max_rounds", 6));
    let opened = handle.events_from(0).next().await.unwrap();
    let EventKind::Fact(fact) = opened.kind else { panic!("{opened:?}") };
    let Fact::AttemptOpened { attempt: 2, limits: Some(limits), .. } = &*fact else { panic!("{fact:?}") };
    assert_eq!(limits.max_rounds, 6);
}

/// S12.7: wall time counts what attempts worked, and not the time between them.
#[tokio::test(start_paused = true)]
async fn wall_time_is_the_run_s_and_counts_no_time_between_attempts() {
    let nap = does("step", |cx| async move {
        sleep(Duration::from_secs(6)).await;
        cx.stop_run(enough());
        Ok(String::new())
    });
    let limits = Limits::default().with_wall_time(Duration::from_secs(10));
    let agent = tireless(&limits).tool(nap).build();
    let first = agent.run("go").await;
    assert_eq!((code(&first).0.as_str(), first.receipt().worked_ms), ("user", 6_000));
    sleep(Duration::from_secs(3600)).await;
    let began = Instant::now();
    let second = agent.resume(&first).await;
    assert_eq!(code(&second), ("wall_time".into(), "its limit of 10s passed, over 2 attempts".into()));
    assert_eq!(began.elapsed(), Duration::from_secs(4));
    let (third, rounds) = (agent.resume(&second).await, second.receipt().rounds);
    assert_eq!((code(&third).0.as_str(), third.receipt().rounds), ("wall_time", rounds), "nothing begins");
}

/// Says yes after a time.
struct Late(Duration);

impl Approver for Late {
    fn ask(&self, _: ApprovalRequest) -> BoxFuture<'static, Decision> {
        let time = self.0;
        Box::pin(async move {
            sleep(time).await;
            Decision::Approve
        })
    }
}

fn asking(builder: AgentBuilder) -> AgentBuilder {
    let late = Arc::new(Late(Duration::from_secs(3600)));
    builder.approvals(ApprovalMode::Ask(Some(late), WithoutApprover::Deny))
}

fn second_of_work() -> FnTool {
    does("work", |_| async {
        sleep(Duration::from_secs(1)).await;
        Ok(String::new())
    })
}

/// S12.7, S4.6: the run's clock stands while only a person's decision can continue it: about a call, in a
/// call, or inside a run below, whose own clock stands too. The time of a call that is a run stands with it.
#[tokio::test(start_paused = true)]
async fn wall_time_stands_while_a_person_is_asked() {
    let limits =
        Limits::default().with_wall_time(Duration::from_secs(10)).with_call_timeout(Duration::from_secs(10));
    let needs = || second_of_work().with(|spec| spec.approval(ToolApproval::Required));
    let inside = does("work", |cx| async move {
        drop(cx.ask("really", json!({})).await?);
        sleep(Duration::from_secs(1)).await;
        Ok(String::new())
    });
    let child = asking(agent([ask(&["work"]), say("child")])).limits(limits.clone()).tool(needs()).build();
    let agents = [
        asking(agent([ask(&["work"]), say("ok")])).tool(needs()),
        asking(agent([ask(&["work"]), say("ok")])).tool(inside),
        with(agent([hire(&["child"]), say("ok")]), "child", &child),
    ];
    for agent in agents {
        let began = Instant::now();
        let outcome = agent.limits(limits.clone()).build().run("go").await;
        assert_eq!(outcome.answer(), Some("ok"), "{outcome:?}");
        assert!(began.elapsed() > Duration::from_secs(3600));
        assert_eq!(outcome.receipt().worked_ms, 1_000);
    }
}

/// S12.7: while something else of the run is active beside an open question, its clock runs.
#[tokio::test(start_paused = true)]
async fn wall_time_runs_while_another_call_works() {
    let needs =
        second_of_work().with(|spec| spec.approval(ToolApproval::Required).overlap(Concurrency::Parallel));
    let busy = does("busy", |_| pending()).with(|spec| spec.overlap(Concurrency::Parallel));
    let limits = Limits::default().with_wall_time(Duration::from_secs(10));
    let agent = asking(agent([ask(&["busy", "work"])])).limits(limits).tool(needs).tool(busy).build();
    let began = Instant::now();
    let outcome = agent.run("go").await;
    assert_eq!((code(&outcome).0.as_str(), began.elapsed()), ("wall_time", Duration::from_secs(10)));
}

/// A log in which the process dies at a certain fact: from there on nothing is recorded, until it lives again.
struct Dies<F> {
    inner: MemoryLog,
    at: F,
    is_dead: AtomicBool,
}

impl<F: Fn(&RunRecord) -> bool + Send + Sync + 'static> Dies<F> {
    fn at(at: F) -> Arc<Self> {
        Arc::new(Self { inner: MemoryLog::default(), at, is_dead: AtomicBool::new(false) })
    }

    fn revive(&self) {
        self.is_dead.store(false, Ordering::SeqCst);
    }
}

impl<F: Fn(&RunRecord) -> bool + Send + Sync + 'static> Log for Dies<F> {
    fn append(&self, record: RunRecord) -> BoxFuture<'_, Result<u64, LogError>> {
        if (self.at)(&record) {
            self.is_dead.store(true, Ordering::SeqCst);
        }
        if self.is_dead.load(Ordering::SeqCst) {
            return Box::pin(std::future::ready(Err(LogError::new("the process has died"))));
        }
        self.inner.append(record)
    }
    fn read(&self) -> BoxFuture<'_, Result<Vec<RunRecord>, LogError>> {
        self.inner.read()
    }
}

/// S12.6, S12.7: crashes in a row use up every limit: of an attempt without an end its model call counts, and its time up
/// to the next step that was recorded ahead.
#[tokio::test(start_paused = true)]
async fn a_crash_loop_ends_at_the_limits() {
    for (limits, name, most) in [
        (Limits::default().with_max_rounds(3), "max_rounds", 3),
        (Limits::default().with_max_tokens(5), "max_tokens", 5),
    ] {
        let log = Dies::at(|record| matches!(&*record.fact, Fact::ModelEnded { .. }));
        let agent = tireless(&limits).tool(stops_at(99)).build();
        let mut outcome = agent.run_recorded(log.clone(), History::new(), "go").await;
        let mut crashes = 0;
        while outcome.ending() == Ending::Failed && crashes <= most {
            crashes += 1;
            log.revive();
            outcome = agent.resume(&outcome).await;
        }
        assert_eq!(code(&outcome).0, name);
        assert!(crashes <= most);
    }
    let nap = does("step", |_| async {
        sleep(Duration::from_secs(1)).await;
        Ok(String::new())
    })
    .with(|spec| spec.effect(EffectClass::Idempotent));
    let log = Dies::at(|record| matches!(&*record.fact, Fact::CallEnded { .. }));
    let limits = Limits::default().with_wall_time(Duration::from_secs(10));
    let agent = tireless(&limits).tool(nap).build();
    let mut outcome = agent.run_recorded(log.clone(), History::new(), "go").await;
    let mut crashes = 0;
    while outcome.receipt().stop.is_none() {
        crashes += 1;
        assert!(crashes <= 10, "{outcome:?}");
        log.revive();
        outcome = agent.resume(&outcome).await;
    }
    assert!(crashes >= 6, "a second of work never counts more than a step beyond it: {crashes}");
}

/// S12.6, S12.1: what a child run used counts above it, also in an attempt that ended with its process.
#[tokio::test(start_paused = true)]
async fn what_a_child_used_before_a_crash_counts_above() {
    let log = Dies::at({
        let ends = AtomicU32::new(0);
        move |record| {
            let is_first = matches!(&*record.fact, Fact::CallEnded { .. } if !record.path.is_root());
            is_first && ends.fetch_add(1, Ordering::SeqCst) == 0
        }
    });
    let child = agent([billed(ask(&["step"])), billed(say("child"))]).tool(stops_at(99)).build();
    let limits = Limits::default().with_max_tokens(3 * TOKENS);
    let root = with(agent([billed(hire(&["child"])), say("ok")]), "child", &child).limits(limits).build();
    let crashed = root.run_recorded(log.clone(), History::new(), "go").await;
    assert_eq!(crashed.ending(), Ending::Failed);
    log.revive();
    let outcome = root.resume(&crashed).await;
    assert_eq!(code(&outcome), ("max_tokens".into(), "330 of 330 tokens are used, over 2 attempts".into()));
    assert_eq!(
        outcome.receipt().usage_total.total(),
        3 * TOKENS,
        "the receipt reports what no earlier one did"
    );
}

/// S12.6: a model call of which nothing left this machine uses up no round.
#[tokio::test(start_paused = true)]
async fn a_model_call_that_was_never_sent_is_no_round() {
    let unsent = || {
        vec![Err(safepoint::model::ModelError::new(
            safepoint::model::ModelErrorKind::Unreachable,
            "no host is there",
        ))]
    };
    let replies = [
        unsent(),
        unsent(),
        vec![Ok(Delta::Sent), Ok(Delta::Text("hi".into())), Ok(Delta::Ended(Finish::Natural))],
    ];
    let limits = Limits::default().with_max_rounds(1);
    let agent = agent(replies).limits(limits).build();
    let first = agent.run("go").await;
    let second = agent.resume(&first).await;
    assert_eq!((first.ending(), second.ending()), (Ending::Failed, Ending::Failed));
    assert_eq!(agent.resume(&second).await.answer(), Some("hi"));
}

/// S3.7, S8.3: a run that is stopped at its question says that it waited for a decision.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_stopped_at_its_question_says_so() {
    let needs = second_of_work().with(|spec| spec.approval(ToolApproval::Required));
    let inside = does("work", |cx| async move {
        drop(cx.ask("really", json!({})).await?);
        Ok(String::new())
    });
    for tool in [needs, inside] {
        let agent = asking(agent([ask(&["work"])])).tool(tool).build();
        let handle = agent.run("go").detach();
        crate::world::until(
            &handle,
            |kind| matches!(kind, EventKind::Fact(fact) if matches!(**fact, Fact::ApprovalRequested(_))),
        )
        .await;
        handle.stop(StopRequest::now());
        let stop = handle.done().await.receipt().stop.clone().unwrap();
        assert_eq!(stop.phase, "it waited for a decision");
    }
    let agent = agent([ask(&["work"])]).tool(second_of_work()).build();
    let handle = agent.run("go").detach();
    call_started(&handle).await;
    handle.stop(StopRequest::now());
    assert_eq!(handle.done().await.receipt().stop.clone().unwrap().phase, "calls were running");
}

/// S12.1: limits under which no run could work are refused when the agent is made.
#[test]
fn limits_under_which_no_run_could_work_are_refused() {
    let usual = Limits::default;
    for (limits, named) in [
        (usual().with_parallel_calls(0), "`parallel_calls`"),
        (usual().with_append_timeout(Duration::ZERO), "`append`"),
        (usual().with_max_cost(f64::NAN), "`max_cost`"),
        (usual().with_max_cost(-1.0), "`max_cost`"),
    ] {
        let error = agent([say("hi")]).limits(limits).try_build().unwrap_err().to_string();
        assert!(error.starts_with("of the limits, ") && error.contains(named), "{error}");
    }
    assert!(agent([]).limits(usual().with_max_rounds(0).with_max_cost(0.0)).try_build().is_ok());
}

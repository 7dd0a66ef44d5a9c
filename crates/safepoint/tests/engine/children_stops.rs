//! What a stop of the tree does: late, early, to siblings, to the deaf, and by whom.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use safepoint::{
    History, Limits, Outcome, SafePoints, StopRequest,
    event::{EventKind, Fact},
    hook::{HookResult, Hooks, ModelVerdict, from_future},
    receipt::{CallStatus, Ending, StopSource},
    secs,
    stop::Reach,
    tool::{Concurrency, EffectClass, OnStop},
};
use tokio::{sync::Semaphore, time::Instant};

use crate::children::{at, gated, hire, row, started_at, with};
use crate::world::{agent, ask, does, say, until};

fn tree(points: SafePoints) -> StopRequest {
    StopRequest::at(points).with_reach(Reach::Tree)
}

fn gate() -> (Arc<Semaphore>, Arc<AtomicU32>) {
    (Arc::new(Semaphore::new(0)), Arc::new(AtomicU32::new(0)))
}

/// S9.3: a switch to the tree in mid-flight reaches a child that runs already.
/// anomalyco/opencode#28866: interrupting the main agent leaves subagents running.
#[tokio::test(start_paused = true)]
async fn a_late_switch_to_the_tree_reaches_a_running_child() {
    let (open, ran) = gate();
    let child = agent([ask(&["work"]), say("all of it")]).tool(gated("work", &open, &ran)).build();
    let parent = with(agent([hire(&["ask"]), say("ok")]), "ask", &child).build();
    let handle = parent.run("go").detach();
    started_at(&handle, &at(&["h0"])).await;
    handle.stop(StopRequest::at(SafePoints::ANY));
    tokio::task::yield_now().await;
    handle.stop(tree(SafePoints::AFTER_STARTED_CALLS));
    open.add_permits(1);
    let stopped = handle.done().await;
    let call = row(&stopped, 0);
    assert_eq!((stopped.ending(), call.status), (Ending::Stopped, CallStatus::Stopped));
    let nested = call.child.unwrap().receipt.unwrap();
    assert_eq!((nested.ending, nested.calls[0].status), (Ending::Stopped, CallStatus::Completed));
    assert_eq!(nested.stop.as_ref().unwrap().requests.len(), 2, "it got both requests");
    assert_eq!(parent.resume(&stopped).await.answer(), Some("ok"));
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

/// Holds the first model call of a run until its gate opens.
struct Doorman(Arc<Semaphore>);

impl Hooks for Doorman {
    fn before_model(&self, _: u32, _: &History) -> HookResult<ModelVerdict> {
        let gate = Arc::clone(&self.0);
        from_future(async move {
            if let Ok(permit) = gate.acquire().await {
                permit.forget();
            }
            ModelVerdict::Proceed
        })
    }
}

/// S9.3, S2.1: a stop while a child is starting: one stopped outcome, no model call of the child; a resume does
/// everything once.
/// anthropics/claude-agent-sdk-typescript#429: an interrupt during startup resolves but does nothing.
#[tokio::test(start_paused = true)]
async fn a_stop_while_a_child_starts_is_one_stop() {
    for request in [tree(SafePoints::ANY), StopRequest::now(), StopRequest::now().with_reach(Reach::Tree)] {
        let door = Arc::new(Semaphore::new(0));
        let child = agent([say("done")]).hooks(Doorman(Arc::clone(&door))).build();
        let parent = with(agent([hire(&["ask"]), say("ok")]), "ask", &child).build();
        let handle = parent.run("go").detach();
        until(&handle, |kind| matches!(kind, EventKind::Child { .. })).await;
        handle.stop(request);
        let stopped = handle.done().await;
        let call = row(&stopped, 0);
        assert_eq!((stopped.ending(), call.stopped_by), (Ending::Stopped, Some(StopSource::Run)));
        assert!(call.child.unwrap().receipt.unwrap().model.is_none());
        let (mut events, mut settled) = (handle.events(), 0);
        while let Some(event) = events.next().await {
            let is_settled = |kind: &EventKind| matches!(kind, EventKind::Fact(fact) if matches!(**fact, Fact::Settled { .. }));
            settled += usize::from(match &event.kind {
                EventKind::Child { event, .. } => is_settled(event),
                kind => is_settled(kind),
            });
        }
        assert_eq!(settled, 2, "one for each run");
        door.add_permits(1);
        assert_eq!(parent.resume(&stopped).await.answer(), Some("ok"));
    }
}

/// S9.3: two children at once go each to a safe point in its own run, and both resume where they were.
#[tokio::test(start_paused = true)]
async fn two_children_stop_and_go_on_each_by_itself() {
    let (open, ran) = gate();
    let first = agent([ask(&["work"]), say("one")]).tool(gated("work", &open, &ran)).build();
    let second = agent([ask(&["work"]), say("two")]).tool(gated("work", &open, &ran)).build();
    let parent = with(with(agent([hire(&["a", "b"]), say("ok")]), "a", &first), "b", &second).build();
    let handle = parent.run("go").detach();
    started_at(&handle, &at(&["h0"])).await;
    started_at(&handle, &at(&["h1"])).await;
    handle.stop(tree(SafePoints::ANY));
    open.add_permits(2);
    let stopped = handle.done().await;
    for n in [0, 1] {
        assert_eq!(row(&stopped, n).stopped_by, Some(StopSource::Run));
    }
    let outcome = parent.resume(&stopped).await;
    let history = format!("{:?}", outcome.history());
    assert_eq!((outcome.answer(), ran.load(Ordering::SeqCst)), (Some("ok"), 2));
    assert!(history.contains("one") && history.contains("two"));
}

/// S9.3: once a child's branch has ended the parent closes: what waits does not start, a sibling goes to its
/// own safe point, a plain running call ends; the child's call stays open until a new turn closes it.
/// jwbron/egg#3633: a cancelled pipeline keeps spawning agents.
#[tokio::test(start_paused = true)]
async fn a_parent_closes_with_its_siblings() {
    let (open, ran) = gate();
    let (plain_open, plain_ran) = gate();
    let (late_open, late_ran) = gate();
    let child = agent([ask(&["work"]), ask(&["work"]), say("all")]).tool(gated("work", &open, &ran)).build();
    let plain = gated("plain", &plain_open, &plain_ran).with(|spec| spec.overlap(Concurrency::Parallel));
    let late = gated("late", &late_open, &late_ran);
    let parent = with(agent([hire(&["ask", "+plain", "+late"]), say("ok")]), "ask", &child);
    let parent = parent.tool(plain).tool(late).build();
    let handle = parent.run("go").detach();
    started_at(&handle, &at(&["h0"])).await;
    // It fires in the child after its next message; the parent, whose calls have started, does not see that point.
    handle.stop(tree(SafePoints::AFTER_MODEL));
    open.add_permits(1);
    assert_eq!(handle.child(&at(&["h0"])).unwrap().done().await.ending(), Ending::Stopped);
    assert!(!handle.is_done(), "the plain call runs");
    plain_open.add_permits(1);
    let stopped = handle.done().await;
    let rows: Vec<_> = stopped.receipt().calls.iter().map(|call| call.status).collect();
    assert_eq!(rows, [CallStatus::Stopped, CallStatus::Completed, CallStatus::NotStarted]);
    assert_eq!((ran.load(Ordering::SeqCst), late_ran.load(Ordering::SeqCst)), (1, 0));
    let next = parent.run_on(stopped.history().clone(), "and now?").await;
    let history = format!("{:?}", next.history());
    assert!(history.contains("What it did stands"), "{history}");
    open.add_permits(1);
    late_open.add_permits(1);
}

/// S9.2, S2.7: a child whose tool ignores its stop delays nothing beyond that tool's contract, and is named.
/// vicoa-ai/vicoa PR#41: 20 subagents work on for minutes after the stop.
#[tokio::test(start_paused = true)]
async fn a_deaf_child_delays_nobody() {
    for (contract, took) in
        [(OnStop::Cooperate(None), Duration::from_secs(5)), (OnStop::Detach, Duration::ZERO)]
    {
        let deaf = does("work", |_| pending()).with(|spec| spec.on_stop(contract));
        let child = agent([ask(&["work"])]).tool(deaf).build();
        let parent = with(agent([hire(&["ask"])]), "ask", &child).build();
        let handle = parent.run("go").detach();
        started_at(&handle, &at(&["h0"])).await;
        let asked = Instant::now();
        handle.stop(StopRequest::now());
        assert_eq!(handle.done().await.ending(), Ending::Stopped);
        assert_eq!(asked.elapsed(), took);
        let quiet = handle.quiet().await;
        let (survivors, left) = (&quiet.receipt().survivors, contract == OnStop::Detach);
        assert_eq!(survivors.iter().any(|what| what.contains("root/h0")), left, "{survivors:?}");
        assert_eq!(quiet.receipt().quiet_at.is_none(), left);
    }
}

/// S9.4: a child that stops itself ends its call as stopped; the parent gets no stop, and continues.
/// anomalyco/opencode#47995: what ends one call must not end more.
#[tokio::test(start_paused = true)]
async fn a_child_that_stops_itself_stops_itself_alone() {
    let quits = does("work", |cx| async move {
        cx.stop_run(StopRequest::now());
        pending::<()>().await;
        Ok(String::new())
    });
    let child = agent([ask(&["work"])]).tool(quits).build();
    let parent = with(agent([hire(&["ask"]), say("ok")]), "ask", &child).build();
    let outcome = parent.run("go").await;
    let call = row(&outcome, 0);
    assert_eq!((outcome.answer(), call.status), (Some("ok"), CallStatus::Stopped));
    assert_eq!((call.stopped_by, outcome.receipt().stop.is_none()), (Some(StopSource::Call), true));
}

/// S9.4: a tool of the parent stops a child beside it, by the handle that the program gave it: the parent's
/// model sees that, and continues. github/copilot-cli#2460: an agent cannot stop its own subagents;
/// Kilo-Org/kilocode#14143: nor can a person stop one that runs in circles.
#[tokio::test(start_paused = true)]
async fn a_tool_of_the_parent_stops_a_child_beside_it() {
    let (open, ran) = gate();
    let child = agent([ask(&["work"])]).tool(gated("work", &open, &ran)).build();
    let own = Arc::new(std::sync::OnceLock::<safepoint::RunHandle>::new());
    let parents = Arc::clone(&own);
    let ends = does("end", move |_| {
        let own = Arc::clone(&parents);
        async move {
            let run = own.get().expect("set before it begins");
            started_at(run, &at(&["h0"])).await;
            let child = run.child(&at(&["h0"])).expect("it has begun");
            Ok(format!("{:?}", child.stop(StopRequest::now())))
        }
    })
    .with(|spec| spec.overlap(Concurrency::Parallel));
    let parent = with(agent([hire(&["ask", "+end"]), say("ok")]), "ask", &child).tool(ends).build();
    let run = parent.run("go");
    assert!(own.set(run.handle()).is_ok());
    let outcome = run.await;
    let rows: Vec<_> = outcome.receipt().calls.iter().map(|call| (call.status, call.stopped_by)).collect();
    assert_eq!(rows, [(CallStatus::Stopped, Some(StopSource::Call)), (CallStatus::Completed, None)]);
    assert_eq!((outcome.answer(), outcome.receipt().stop.is_none()), (Some("ok"), true));
}

/// S9.4, S2.10: a call stopped alone takes its child run with it, and nothing else.
#[tokio::test(start_paused = true)]
async fn a_call_stopped_alone_takes_its_run_with_it() {
    let (open, ran) = gate();
    let child = agent([ask(&["work"])]).tool(gated("work", &open, &ran)).build();
    let parent = with(agent([hire(&["ask"]), say("ok")]), "ask", &child).build();
    let handle = parent.run("go").detach();
    started_at(&handle, &at(&["h0"])).await;
    handle.stop_call(&"h0".into(), StopRequest::now());
    let outcome = handle.done().await;
    assert_eq!((outcome.answer(), row(&outcome, 0).stopped_by), (Some("ok"), Some(StopSource::Call)));
}

/// S9.5: the grace for children: it ends a child that takes too long to one of its safe points, only if
/// the tree is asked, and without a child nothing is waited for.
#[tokio::test(start_paused = true)]
async fn a_grace_for_children_counts_only_for_children() {
    let settle = async |request: StopRequest, grace: bool| -> (Outcome, Duration) {
        let slow = does("work", |_| async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Ok("late".into())
        });
        let child = agent([ask(&["work"]), say("all")]).tool(slow).build();
        let ask = child.as_subagent("ask", "works");
        let ask = if grace { ask.grace(secs(3)) } else { ask };
        let handle = agent([hire(&["ask"]), say("ok")]).child(ask).build().run("go").detach();
        started_at(&handle, &at(&["h0"])).await;
        let asked = Instant::now();
        handle.stop(request);
        (handle.done().await, asked.elapsed())
    };
    let (outcome, took) = settle(tree(SafePoints::ANY), true).await;
    assert_eq!((took, outcome.ending()), (Duration::from_secs(3), Ending::Stopped));
    assert_eq!(
        (row(&outcome, 0).status, row(&outcome, 0).stopped_by),
        (CallStatus::Stopped, Some(StopSource::Run))
    );
    let (outcome, took) = settle(tree(SafePoints::ANY), false).await;
    assert_eq!((took, outcome.ending()), (Duration::from_secs(60), Ending::Stopped));
    let (outcome, took) = settle(StopRequest::at(SafePoints::ANY), true).await;
    assert_eq!((took, row(&outcome, 0).status), (Duration::from_secs(60), CallStatus::Completed));
    let handle = agent([]).build().run("go").detach();
    let asked = Instant::now();
    handle.stop(tree(SafePoints::ANY));
    assert_eq!(handle.done().await.ending(), Ending::Stopped);
    assert_eq!(asked.elapsed(), Duration::ZERO);
}

/// S1.7, S9.2: the grace of the request itself reaches children too, in either reach.
#[tokio::test(start_paused = true)]
async fn an_expired_grace_ends_the_children() {
    for reach in [Reach::Root, Reach::Tree] {
        let (open, ran) = gate();
        let child = agent([ask(&["work"])]).tool(gated("work", &open, &ran)).build();
        let parent = with(agent([hire(&["ask"])]), "ask", &child).build();
        let handle = parent.run("go").detach();
        started_at(&handle, &at(&["h0"])).await;
        let asked = Instant::now();
        handle.stop(StopRequest::graceful(secs(2)).with_reach(reach));
        let outcome = handle.done().await;
        assert_eq!((asked.elapsed(), row(&outcome, 0).status), (Duration::from_secs(2), CallStatus::Stopped));
    }
}

/// S12.1: a call that would nest too deep fails, the model sees that, and nothing of it begins.
#[tokio::test(start_paused = true)]
async fn a_call_that_nests_too_deep_fails() {
    let leaf = agent([say("never")]).build();
    let middle = with(agent([hire(&["leaf"]), say("alone")]), "leaf", &leaf).build();
    let limits = Limits::default().with_max_depth(1);
    let root = with(agent([hire(&["middle"]), say("ok")]), "middle", &middle).limits(limits).build();
    let outcome = root.run("go").await;
    let middle = row(&outcome, 0).child.unwrap().receipt.unwrap();
    let leaf = &middle.calls[0];
    assert_eq!((outcome.answer(), leaf.status, leaf.child.is_none()), (Some("ok"), CallStatus::Failed, true));
    assert_eq!(leaf.started_at, None);
}

/// S12.1: tokens are counted over the tree.
#[tokio::test(start_paused = true)]
async fn tokens_are_counted_over_the_tree() {
    let child = agent([say("a long answer, which is billed by what arrived of it")]).build();
    let limits = Limits::default().with_max_tokens(10);
    let root = with(agent([hire(&["ask"]), say("ok")]), "ask", &child).limits(limits).build();
    let outcome = root.run("go").await;
    assert_eq!(outcome.ending(), Ending::Stopped);
    assert_eq!(outcome.receipt().stop.as_ref().unwrap().reason.code, "max_tokens");
}

/// S4.6: the time limit of a call whose work is a run: timed out, never stopped, and the parent continues.
#[tokio::test(start_paused = true)]
async fn a_child_that_takes_too_long_is_timed_out() {
    let child = agent([ask(&["work"])]).tool(does("work", |_| pending())).build();
    let ask = child.as_subagent("ask", "works").with(|spec| spec.timeout(Duration::from_secs(7)));
    let began = Instant::now();
    let outcome = agent([hire(&["ask"]), say("ok")]).child(ask).build().run("go").await;
    assert_eq!((outcome.answer(), row(&outcome, 0).status), (Some("ok"), CallStatus::TimedOut));
    assert_eq!(began.elapsed(), Duration::from_secs(7));
}

/// S2.13, S4.7: a child that fails, or whose model panics, is a failed call; the parent continues.
#[tokio::test(start_paused = true)]
async fn a_child_that_fails_is_a_failed_call() {
    struct Panics;
    impl safepoint::Model for Panics {
        fn name(&self) -> &str {
            "panics"
        }
        fn open(&self, _: safepoint::model::ModelSpec) -> Box<dyn safepoint::model::Conversation> {
            std::panic::panic_any("ouch")
        }
    }
    let broken = agent([vec![Ok(safepoint::model::Delta::Sent)]]).build();
    for child in [broken, safepoint::Agent::builder(Panics).build()] {
        let parent = with(agent([hire(&["ask"]), say("ok")]), "ask", &child).build();
        let handle = parent.run("go").detach();
        let outcome = handle.done().await;
        let call = row(&outcome, 0);
        assert_eq!((outcome.answer(), call.status), (Some("ok"), CallStatus::Failed));
        assert!(handle.quiet().await.receipt().quiet_at.is_some());
    }
}

/// S3.1: what is stopped is reported as stopped, what only read as harmless.
#[tokio::test(start_paused = true)]
async fn a_child_tells_what_it_did() {
    let (open, ran) = gate();
    let reads = gated("work", &open, &ran).with(|spec| spec.effect(EffectClass::ReadOnly));
    let child = agent([ask(&["work"])]).tool(reads).build();
    let parent = with(agent([hire(&["ask"])]), "ask", &child).build();
    let handle = parent.run("go").detach();
    started_at(&handle, &at(&["h0"])).await;
    handle.stop(StopRequest::now());
    let mut history = handle.done().await.history().clone();
    history.close();
    assert!(format!("{history:?}").contains("It had not changed anything"));
}

/// S9.6: any width and any depth: every run below is stopped once, and settles once.
#[tokio::test(start_paused = true)]
async fn a_stop_reaches_any_width_and_any_depth() {
    const WIDE: usize = 300;
    const DEEP: usize = 40;
    let limits = Limits::default().with_parallel_calls(WIDE).with_max_depth(u32::MAX);
    let leaf = agent([]).build();
    let wide = with(agent([hire(&["ask"; WIDE])]), "ask", &leaf).limits(limits.clone()).build();
    let deep = (0..DEEP).fold(agent([]).limits(limits.clone()).build(), |below, _| {
        with(agent([hire(&["ask"])]), "ask", &below).limits(limits.clone()).build()
    });
    for (root, count) in [(wide, WIDE), (deep, DEEP)] {
        let handle = root.run("go").detach();
        let mut events = handle.events();
        let mut speaking = 0;
        while speaking < if count == WIDE { WIDE } else { 1 } {
            let event = events.next().await.expect("the leaves speak");
            speaking += usize::from(
                matches!(&event.kind, EventKind::Child { event, .. } if matches!(**event, EventKind::Text(_))),
            );
        }
        handle.stop(tree(SafePoints::ANY));
        handle.stop(StopRequest::now());
        assert_eq!(handle.done().await.ending(), Ending::Stopped);
        let mut settled = std::collections::HashMap::new();
        let mut events = handle.events();
        while let Some(event) = events.next().await {
            if let EventKind::Child { path, event } = event.kind
                && matches!(&*event, EventKind::Fact(fact) if matches!(**fact, Fact::Settled { .. }))
            {
                *settled.entry(path).or_insert(0) += 1;
            }
        }
        assert_eq!((settled.len(), settled.values().all(|times| *times == 1)), (count, true));
        assert!(handle.quiet().await.receipt().quiet_at.is_some());
    }
}

/// S3.6, S3.9: a child that reads its cut call on for the bill is waited for: the parent is quiet after it, and tells
/// the bill.
#[tokio::test(start_paused = true)]
async fn a_parent_is_quiet_after_a_child_that_drains() {
    let child = safepoint::Agent::builder(Drains).on_cut(safepoint::model::OnModelStop::Drain).build();
    let handle = with(agent([hire(&["ask"])]), "ask", &child).build().run("go").detach();
    until(
        &handle,
        |kind| matches!(kind, EventKind::Child { event, .. } if matches!(**event, EventKind::Text(_))),
    )
    .await;
    handle.stop(StopRequest::now());
    let stopped = handle.done().await;
    let quiet = handle.quiet().await;
    let receipt = quiet.receipt();
    assert!(receipt.quiet_at.is_some(), "{:?}", receipt.survivors);
    assert_eq!(receipt.usage_total.output, receipt.usage.output + 77);
    assert!(stopped.receipt().usage_total.output < 77);
}

/// Says a little, and twenty seconds later what it cost.
#[derive(Clone)]
struct Drains;

impl safepoint::Model for Drains {
    fn name(&self) -> &str {
        "drains"
    }
    fn open(&self, _: safepoint::model::ModelSpec) -> Box<dyn safepoint::model::Conversation> {
        Box::new(self.clone())
    }
}

impl safepoint::model::Conversation for Drains {
    fn stream(&mut self, _: &History) -> safepoint::model::DeltaStream {
        use safepoint::model::{Delta, Finish};
        let bill = safepoint::Usage::new(0, 77);
        stream::iter([Ok(Delta::Sent), Ok(Delta::Text("well".into()))])
            .chain(stream::once(async move {
                tokio::time::sleep(Duration::from_secs(20)).await;
                Ok(Delta::Usage(bill))
            }))
            .chain(stream::iter([Ok(Delta::Ended(Finish::Natural))]))
            .boxed()
    }
}

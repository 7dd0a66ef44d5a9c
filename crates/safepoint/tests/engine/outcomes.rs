//! Outcomes, events, hooks, logs: what everybody sees of a run.

use std::{
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use safepoint::{
    History, Limits, Outcome, Receipt, StopRequest,
    event::{EventKind, Fact},
    history::Message,
    hook::{CallVerdict, HookCall, HookResult, Hooks, blocking, from_future},
    log::{Log, LogError, MemoryLog, RunRecord},
    message::{AssistantMessage, UserMessage},
    model::{Delta, ModelError, ModelErrorKind},
    outcome::Persisted,
    receipt::{CallReport, CallStatus, Ending},
    stop::StopAck,
};

use crate::world::{agent, ask, call_started, does, say, until};

/// S3.1, S3.3: everybody sees the same outcome, as often as they like, also after the end.
/// agentclientprotocol/claude-agent-acp#551: a second end comes after the first.
#[tokio::test(start_paused = true)]
async fn an_outcome_is_the_same_for_everybody() {
    let handle = agent([say("hi")]).build().run("go").detach();
    let (one, two) = tokio::join!(handle.done(), handle.done());
    assert_eq!((one.answer(), two.answer()), (Some("hi"), Some("hi")));
    let Outcome::Done(answer) = one else { panic!() };
    assert_eq!((answer.value(), answer.clone().into_value()), (&"hi".to_owned(), "hi".to_owned()));
    assert_eq!(two.into_value().as_deref(), Some("hi"));
    assert!(handle.is_done());
    assert_eq!(handle.done().await.ending(), Ending::Done);
    assert_eq!(handle.stop(StopRequest::now()), StopAck::TooLate);
}

/// S2.11, S3.2: a stop and the natural end race: exactly one wins, for every caller. google/adk-python
/// PR#4161: a task ends both completed and cancelled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_and_the_end_have_one_winner() {
    for _ in 0..200 {
        let handle = agent([say("hi")]).build().run("go").detach();
        let racer = handle.clone();
        let race = tokio::spawn(async move { racer.stop(StopRequest::now()) });
        let outcome = handle.done().await;
        let asked = race.await.unwrap();
        match outcome.ending() {
            Ending::Stopped => assert_eq!(asked, StopAck::First),
            Ending::Done => assert!(outcome.receipt().stop.as_ref().is_none_or(|stop| stop.fired.is_none())),
            other => panic!("{other:?}"),
        }
    }
}

/// S2.1, S5.5: a safe point armed before the start ends the run there; resumed, its failure keeps what was shown, and
/// the user's message.
#[tokio::test(start_paused = true)]
async fn a_failed_run_keeps_what_was_shown() {
    let broken = vec![
        Ok(Delta::Sent),
        Ok(Delta::Text("so f".into())),
        Err(ModelError::new(ModelErrorKind::Broken, "the line went dead")),
    ];
    let agent = agent([broken, say("ok")]).build();
    let run = agent.run("remember me");
    let handle = run.handle();
    let outcome = {
        let started = run.start();
        handle.stop(StopRequest::at(safepoint::SafePoints::AFTER_ALL_CALLS));
        started.await
    };
    assert_eq!(outcome.ending(), Ending::Stopped);
    let outcome = agent.resume(&outcome).await;
    assert_eq!((outcome.ending(), outcome.partial_text()), (Ending::Failed, "so f"));
    let next = agent.run_on(outcome.history().clone(), "and?").await;
    let history = format!("{:?}", next.history());
    assert!(history.contains("remember me") && history.contains("so f") && history.contains("[interrupted"));
}

/// S5.5: the messages of a stopped run are in its history.
/// microsoft/agent-framework#2889, mastra-ai/mastra#17510: a run that ends early leaves nothing in the
/// conversation.
#[tokio::test(start_paused = true)]
async fn user_messages_of_stopped_runs_are_kept() {
    let agent = agent([]).build();
    let handle = agent.run("first").detach();
    until(&handle, |kind| matches!(kind, EventKind::Text(_))).await;
    handle.stop(StopRequest::now());
    let stopped = handle.done().await;
    let Message::User(UserMessage { text, .. }) = &*stopped.history().entries()[0].clone() else { panic!() };
    assert_eq!(text, "first");
}

/// S11.1: a reader that lags learns how much it missed, a late reader sees all facts from the start, and no
/// reader delays the run.
#[tokio::test(start_paused = true)]
async fn a_slow_reader_is_told_what_it_missed() {
    let mut reply: Vec<_> = (0..1000).map(|n| Ok(Delta::Text(format!("{n} ")))).collect();
    reply.push(Ok(Delta::Ended(safepoint::model::Finish::Natural)));
    let limits = Limits::default().with_retained_deltas(10);
    let handle = agent([reply]).limits(limits).build().run("go").detach();
    let outcome = handle.done().await;
    let (mut events, mut missed, mut seen, mut facts) = (handle.events(), 0, 0, 0);
    while let Some(event) = events.next().await {
        match event.kind {
            EventKind::Lagged { count } => missed += count,
            EventKind::Fact(_) => facts += 1,
            _ => seen += 1,
        }
    }
    assert_eq!((missed + seen, facts), (1000, 4));
    assert!(missed > 900 && outcome.answer().unwrap().ends_with("999 "));
    let mut tail = handle.events_from(1);
    assert_eq!(tail.next().await.map(|event| event.seq), Some(1));
}

/// S11.2: each phase of a stop leaves an event, the histograms count it once, and the hook is notified.
/// anthropics/claude-code#9516, openai/codex#22858: no hook is notified of an interrupt.
#[tokio::test(start_paused = true)]
async fn each_phase_of_a_stop_leaves_its_trace() {
    struct Notified(Arc<AtomicU32>);
    impl Hooks for Notified {
        fn on_stop(&self, _: &Arc<Receipt>) -> HookResult<()> {
            let notified = Arc::clone(&self.0);
            from_future(async move {
                notified.fetch_add(1, Ordering::SeqCst);
                pending::<()>().await;
            })
        }
    }
    let notified = Arc::new(AtomicU32::new(0));
    let agent = agent([]).hooks(Notified(notified.clone())).build();
    let handle = agent.run("go").detach();
    until(&handle, |kind| matches!(kind, EventKind::Text(_))).await;
    handle.stop(StopRequest::graceful(safepoint::secs(2)));
    assert_eq!(handle.done().await.ending(), Ending::Stopped);
    let quiet = handle.quiet().await;
    let mut names = Vec::new();
    let mut events = handle.events();
    while let Some(event) = events.next().await {
        if let EventKind::Fact(fact) = event.kind {
            names.push(match &*fact {
                Fact::StopRequested(_) => "asked",
                Fact::StopEscalated => "escalated",
                Fact::StopObserved { .. } => "observed",
                Fact::Settled { .. } => "settled",
                _ => continue,
            });
        }
    }
    assert_eq!(names, ["asked", "escalated", "observed", "settled"]);
    let mut audit = handle.audit();
    assert!(matches!(audit.next().await.unwrap().kind, EventKind::Quiet(_)));
    let times = agent.stop_times().snapshot();
    let phase = &times["the model was streaming"];
    assert_eq!((phase.settled.total(), phase.quiet.total()), (1, 1));
    // The hook hangs; it delays neither the outcome nor, past its bound, the quiet.
    assert_eq!(notified.load(Ordering::SeqCst), 1);
    assert!(quiet.receipt().quiet_at.is_some());
}

/// S2.8: a hook that hangs is a wait that a stop ends; one that is overdue is gone on without.
#[tokio::test(start_paused = true)]
async fn a_hanging_hook_holds_up_no_stop() {
    struct Hangs;
    impl Hooks for Hangs {
        fn before_call(&self, _: &HookCall) -> HookResult<CallVerdict> {
            from_future(pending())
        }
    }
    let work = || does("work", |_| async { Ok("done".into()) });
    let hanging = agent([ask(&["work"]), say("ok")]).hooks(Hangs).tool(work()).build();
    let handle = hanging.run("go").detach();
    until(&handle, |kind| matches!(kind, EventKind::Fact(fact) if matches!(**fact, Fact::ModelEnded { .. })))
        .await;
    handle.stop(StopRequest::now());
    let outcome = handle.done().await;
    assert_eq!(outcome.receipt().calls[0].status, CallStatus::NotStarted);
    assert!(handle.quiet().await.receipt().quiet_at.is_some());
    let overdue = agent([ask(&["work"]), say("ok")]).hooks(Hangs).tool(work()).build();
    assert_eq!(overdue.run("go").await.answer(), Some("ok"));
}

/// S2.14: what hooks may say: refuse a call, stop the run, panic (a failure of the run with its own code).
#[tokio::test(start_paused = true)]
async fn hooks_have_verdicts() {
    struct Says(fn() -> CallVerdict);
    impl Hooks for Says {
        fn before_call(&self, _: &HookCall) -> HookResult<CallVerdict> {
            let says = self.0;
            from_future(async move { says() })
        }
    }
    let run = |says| {
        let work = does("work", |_| async { Ok("done".into()) });
        agent([ask(&["work"]), say("ok")]).hooks(Says(says)).tool(work).build().run("go")
    };
    let refused = run(|| CallVerdict::Refuse("not on Sundays".into())).await;
    assert_eq!((refused.answer(), refused.receipt().calls[0].status), (Some("ok"), CallStatus::Denied));
    let stopped = run(|| CallVerdict::Stop(StopRequest::now())).await;
    assert_eq!(stopped.receipt().stop.as_ref().unwrap().reason.code, "hook");
    let panicked = run(|| std::panic::panic_any("ouch")).await;
    let Outcome::Failed(error) = panicked else { panic!("{panicked:?}") };
    assert_eq!(error.code(), "callback");
}

/// S2.13, S2.14: every set of hooks that was added runs: verdicts are requested one after the other, a
/// refusal ends that, and all hooks are notified, async or blocking.
#[tokio::test(start_paused = true)]
async fn all_hooks_that_were_added_run() {
    struct Noted(&'static str, fn() -> CallVerdict, Arc<Mutex<Vec<String>>>);
    impl Noted {
        fn note(&self, what: &str) {
            self.2.lock().unwrap().push(format!("{} {what}", self.0));
        }
    }
    impl Hooks for Noted {
        fn before_call(&self, _: &HookCall) -> HookResult<CallVerdict> {
            self.note("asked");
            let says = self.1;
            if self.0 == "b" { blocking(says) } else { from_future(async move { says() }) }
        }
        fn after_call(&self, _: &CallReport) -> HookResult<()> {
            self.note("notified");
            None
        }
    }
    let run = |[a, b]: [fn() -> CallVerdict; 2]| {
        let noted = Arc::default();
        let (a, b) = (Noted("a", a, Arc::clone(&noted)), Noted("b", b, Arc::clone(&noted)));
        let work = does("work", |_| async { Ok("done".into()) });
        let agent = agent([ask(&["work"]), say("ok")]).hooks(a).hooks(b).tool(work).build();
        async move {
            let outcome = agent.run("go").await;
            assert_eq!(outcome.answer(), Some("ok"));
            let noted = noted.lock().unwrap().join(", ");
            (outcome.receipt().calls[0].status, noted)
        }
    };
    let proceeds: fn() -> CallVerdict = || CallVerdict::Proceed;
    let refuses: fn() -> CallVerdict = || CallVerdict::Refuse("no".into());
    let all = "a asked, b asked, a notified, b notified".to_owned();
    assert_eq!(run([proceeds, proceeds]).await, (CallStatus::Completed, all.clone()));
    assert_eq!(run([proceeds, refuses]).await, (CallStatus::Denied, all));
    let first = "a asked, a notified, b notified".to_owned();
    assert_eq!(run([refuses, proceeds]).await, (CallStatus::Denied, first));
}

/// A log that fails or hangs at one append.
struct Faulty {
    inner: MemoryLog,
    at: u64,
    hangs: bool,
    appends: Mutex<u64>,
}

impl Log for Faulty {
    fn append(&self, record: RunRecord) -> BoxFuture<'_, Result<u64, LogError>> {
        let mut appends = self.appends.lock().unwrap();
        *appends += 1;
        match (*appends > self.at, self.hangs) {
            (false, _) => self.inner.append(record),
            (true, false) => Box::pin(async { Err(LogError::new("disk full")) }),
            (true, true) => Box::pin(pending()),
        }
    }
    fn read(&self) -> BoxFuture<'_, Result<Vec<RunRecord>, LogError>> {
        self.inner.read()
    }
}

/// S3.4, S2.8: an append that fails or hangs, at each place: the run settles in a bounded time and says whether it is
/// recorded; nothing is written after.
#[tokio::test(start_paused = true)]
async fn a_faulty_log_fails_the_run_at_any_append() {
    for hangs in [false, true] {
        for at in 0..8 {
            let work = does("work", |_| async { Ok("done".into()) });
            let agent = agent([ask(&["work"]), say("ok")]).tool(work).build();
            let log = Arc::new(Faulty { inner: MemoryLog::default(), at, hangs, appends: Mutex::new(0) });
            let began = tokio::time::Instant::now();
            let outcome = agent.run_recorded(log.clone(), History::new(), "go").await;
            assert!(began.elapsed() <= Duration::from_secs(5));
            let persisted = outcome.persisted();
            match hangs {
                true => assert_eq!(*persisted, Persisted::Unknown, "append {at}"),
                false => assert!(
                    matches!(persisted, Persisted::No(why) if why.contains("disk full")),
                    "append {at}"
                ),
            }
            // The last append is the settling: the work was done, and only its record is missing.
            let expected = if at == 7 { Ending::Done } else { Ending::Failed };
            assert_eq!(outcome.ending(), expected, "append {at}");
            assert_eq!(*log.appends.lock().unwrap(), at + 1, "nothing is written after a failure");
        }
    }
}

/// S2.9: while suspended nothing runs; see the approvals.
#[tokio::test(start_paused = true)]
async fn a_suspended_run_holds_nothing_alive() {
    use safepoint::approval::{ApprovalMode, Rule, RuleAction, WithoutApprover};
    let work = does("work", |_| async { Ok("done".into()) });
    let agent = agent([ask(&["work"]), say("ok")])
        .approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend))
        .rule(Rule::on("work", RuleAction::Ask))
        .tool(work)
        .build();
    let handle = agent.run("go").detach();
    assert_eq!(handle.done().await.ending(), Ending::Suspended);
    assert!(handle.quiet().await.receipt().quiet_at.is_some() && handle.alive().is_empty());
}

/// S5.1: a broken history is repaired, once, with an event that says so.
/// microsoft/agent-framework#5814: users repair the history by hand.
#[tokio::test(start_paused = true)]
async fn a_broken_history_is_repaired_and_told() {
    let mut broken = History::new();
    broken.push(Message::User("hi".into()));
    broken.push(Message::Assistant(AssistantMessage::default().into()));
    broken.push(Message::Results { results: Vec::new() });
    let mut again = broken.clone();
    assert!(!again.repair().is_empty() && again.repair().is_empty());
    let handle = agent([say("ok")]).build().run_on(broken, "go").detach();
    assert_eq!(handle.done().await.answer(), Some("ok"));
    until(
        &handle,
        |kind| matches!(kind, EventKind::Fact(fact) if matches!(**fact, Fact::HistoryRepaired { .. })),
    )
    .await;
}

/// S1.9: a stop requested by the completion of the same run, or from a tool's own thread, never blocks.
/// google/adk-python#4796, agno-agi/agno#3106, strands-agents/harness-sdk#1275: a run cannot be stopped from
/// outside, or not at any time.
#[tokio::test(start_paused = true)]
async fn asking_from_anywhere_blocks_nobody() {
    let handle = agent([ask(&["work"])]).tool(does("work", |_| pending())).build().run("go").detach();
    call_started(&handle).await;
    let from_thread = handle.clone();
    let thread = std::thread::spawn(move || from_thread.stop(StopRequest::now()));
    assert_eq!(thread.join().unwrap(), StopAck::First);
    assert_eq!(handle.done().await.ending(), Ending::Stopped);
}

/// S2.8: a hook that blocks for too long is gone on without, and named as a survivor while it is there.
#[tokio::test]
async fn a_blocking_hook_is_gone_on_without() {
    struct Blocks(Mutex<Option<std::sync::mpsc::Receiver<()>>>);
    impl Hooks for Blocks {
        fn before_call(&self, _: &HookCall) -> HookResult<CallVerdict> {
            let open = self.0.lock().unwrap().take();
            blocking(move || {
                // Until the test lets go.
                assert!(open.is_none_or(|open| open.recv().is_ok()));
                CallVerdict::Proceed
            })
        }
    }
    let (let_go, open) = std::sync::mpsc::channel();
    let limits = Limits::default()
        .with_callback_timeout(Duration::from_millis(20))
        .with_quiet_timeout(Duration::from_millis(50));
    let work = does("work", |_| async { Ok("done".into()) });
    let agent = agent([ask(&["work"]), say("ok")])
        .limits(limits)
        .hooks(Blocks(Mutex::new(Some(open))))
        .tool(work)
        .build();
    let handle = agent.run("go").detach();
    assert_eq!(handle.done().await.answer(), Some("ok"));
    assert_eq!(handle.alive(), ["hook that blocks"]);
    let_go.send(()).unwrap();
    assert!(handle.quiet().await.receipt().quiet_at.is_some());
}

/// S2.8: a model whose stream stays open after its end is not waited for.
#[tokio::test(start_paused = true)]
async fn a_stream_that_stays_open_after_its_end_is_not_waited_for() {
    struct Lingers;
    impl safepoint::Model for Lingers {
        fn name(&self) -> &str {
            "lingers"
        }
        fn open(&self, _: safepoint::model::ModelSpec) -> Box<dyn safepoint::model::Conversation> {
            Box::new(Self)
        }
    }
    impl safepoint::model::Conversation for Lingers {
        fn stream(&mut self, _: &History) -> safepoint::model::DeltaStream {
            use futures_util::StreamExt as _;
            futures_util::stream::iter(say("hi")).chain(futures_util::stream::pending()).boxed()
        }
    }
    let outcome = safepoint::Agent::builder(Lingers).build().run("go").await;
    assert_eq!(outcome.answer(), Some("hi"));
}

/// S2.8, S2.2: a stream that always has another chunk does not outrun a stop: it is not drained first.
/// microsoft/autogen#7100: an interrupt takes effect only when everything that was buffered has been read.
#[tokio::test]
async fn a_stream_that_is_always_ready_does_not_outrun_a_stop() {
    struct Floods;
    impl safepoint::Model for Floods {
        fn name(&self) -> &str {
            "floods"
        }
        fn open(&self, _: safepoint::model::ModelSpec) -> Box<dyn safepoint::model::Conversation> {
            Box::new(Self)
        }
    }
    impl safepoint::model::Conversation for Floods {
        fn stream(&mut self, _: &History) -> safepoint::model::DeltaStream {
            use futures_util::StreamExt as _;
            futures_util::stream::repeat_with(|| Ok(Delta::Text("x".into()))).boxed()
        }
    }
    let limits = Limits::default().with_model_output_bytes(usize::MAX);
    let handle = safepoint::Agent::builder(Floods).limits(limits).build().run("go").detach();
    until(&handle, |kind| matches!(kind, EventKind::Text(_))).await;
    handle.stop(StopRequest::now());
    assert_eq!(handle.done().await.ending(), Ending::Stopped);
    assert!(handle.quiet().await.receipt().quiet_at.is_some());
}

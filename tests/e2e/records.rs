//! A log that fails, and one that answers too late (S3.4).

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use safepoint::{
    Agent, History, Outcome,
    approval::ApprovalMode,
    outcome::Persisted,
    raw::{
        log::{Log, LogError, MemoryLog, RunRecord},
        run_recorded,
    },
    receipt::{CallStatus, Ending, SideEffect},
    tool::EffectClass,
};
use safepoint_testkit::{
    invariants::{ClosedScenario, Invariants},
    script::{Reply, Script, When},
    scripted::ScriptedModel,
    tools::GateTools,
};
use serde_json::json;
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep},
};

use super::world::{Ledger, WIRES, builder, continues, gated, server};

/// What a faulty log does at its one faulty append. Exhaustive: the three ways of S3.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Fails,
    /// It answers after the deadline, and then the fact is there.
    LandsLate,
    /// It never answers, and the fact is not there.
    IsLost,
}

/// A log with a fault at one append, and none before or after it.
struct Faulty {
    inner: Arc<MemoryLog>,
    at: u64,
    fault: Fault,
    asked: AtomicU64,
}

impl Faulty {
    fn new(at: u64, fault: Fault) -> Arc<Self> {
        Arc::new(Self { inner: Arc::default(), at, fault, asked: AtomicU64::new(0) })
    }
    fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }
}

/// Longer than the deadline of an append.
const LATE: Duration = Duration::from_secs(6);

impl Log for Faulty {
    fn append(&self, fact: RunRecord) -> BoxFuture<'_, Result<u64, LogError>> {
        if self.asked.fetch_add(1, Ordering::SeqCst) != self.at {
            return self.inner.append(fact);
        }
        match self.fault {
            Fault::Fails => Box::pin(async { Err(LogError::new("disk full")) }),
            Fault::IsLost => Box::pin(std::future::pending()),
            Fault::LandsLate => {
                let inner = Arc::clone(&self.inner);
                // As a writer's thread does: the write outlives the caller that gave up waiting.
                tokio::spawn(async move {
                    sleep(LATE).await;
                    inner.append(fact).await.unwrap();
                });
                Box::pin(std::future::pending())
            }
        }
    }
    fn read(&self) -> BoxFuture<'_, Result<Vec<RunRecord>, LogError>> {
        self.inner.read()
    }
}

/// The appends of a run of one call: opened, model started and ended, call started and ended, model, model,
/// settled.
const APPENDS: u64 = 8;

/// S3.4, S2.13, S7.6: an append that fails, at each place: the run settles and says so, the work that was
/// done is in the receipt, nothing more is written, and the conversation continues.
/// openai/openai-agents-python#1658: what a run had done is lost because saving it failed;
/// google/adk-python#4588: the end is not persisted with the event.
#[tokio::test]
async fn an_append_that_fails_fails_the_run_and_loses_no_account() {
    for wire in WIRES {
        for at in 0..APPENDS {
            let server =
                server([Reply::call("pay", json!({})), Reply::text("paid"), Reply::text("ok")]).await;
            let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(9)));
            let pay = gated("pay", EffectClass::Unsafe, &ledger, &gate);
            let agent = builder(&server, wire).tool(pay).build();
            let log = Faulty::new(at, Fault::Fails);
            let handle = run_recorded(&agent, log.clone(), History::new(), "pay").detach();
            let closing = Invariants::of(&handle).server(&server).first_request(0).ledger(ledger.book());
            let ClosedScenario { outcome, receipt, .. } = closing.log(&*log).check().await.unwrap();
            assert!(matches!(outcome.persisted(), Persisted::No(why) if why.contains("disk full")), "{at}");
            assert_eq!(outcome.ending(), if at + 1 == APPENDS { Ending::Done } else { Ending::Failed });
            assert_eq!((log.asked(), log.read().await.unwrap().len() as u64), (at + 1, at));
            assert!(receipt.quiet_at.is_some(), "I5: {:?}", receipt.survivors);
            // The call is in the account once the model has asked for it, whether that is recorded or not.
            assert_eq!(receipt.calls.len(), usize::from(at > 1), "append {at}");
            if ledger.count("commit") == 1 {
                assert_eq!(
                    (receipt.calls[0].status, receipt.calls[0].effect),
                    (CallStatus::Completed, SideEffect::Done)
                );
            }
            continues(&agent, &outcome).await;
        }
    }
}

/// S3.4, S3.7, S2.13: the log fails while another call runs. The run settles at once, that call is reported
/// as left running, and its contract ends it before anything is called quiet.
#[tokio::test]
async fn a_log_that_fails_ends_the_calls_that_run() {
    let calls = Reply::default().and_call("quick", json!({})).and_call("slow", json!({}));
    let server = server([calls]).await;
    let ledger = Ledger::default();
    let (open, shut) = (Arc::new(Semaphore::new(9)), Arc::new(Semaphore::new(0)));
    let agent = builder(&server, WIRES[0])
        .tool(gated("quick", EffectClass::ReadOnly, &ledger, &open))
        .tool(gated("slow", EffectClass::ReadOnly, &ledger, &shut))
        .build();
    // After both have started, the end of the quick one.
    let log = Faulty::new(5, Fault::Fails);
    let handle = run_recorded(&agent, log.clone(), History::new(), "go").detach();
    let closing = Invariants::of(&handle).server(&server).first_request(0).ledger(ledger.book());
    let closed = closing.log(&*log).check().await.unwrap();
    let statuses: Vec<_> = closed.outcome.receipt().calls.iter().map(|call| call.status).collect();
    assert_eq!(statuses, [CallStatus::Completed, CallStatus::LeftRunning]);
    assert_eq!(log.asked(), 6, "nothing is written after a failure");
    assert!(closed.receipt.quiet_at.is_some(), "I5: {:?}", closed.receipt.survivors);
    assert!(
        closed.receipt.late.iter().any(|late| late.contains("ended as stopped")),
        "{:?}",
        closed.receipt.late
    );
}

/// A run of one unsafe call on the paused clock, with an append that is late at `at`.
async fn with_a_late_append(at: u64, fault: Fault) -> (Outcome, Agent, Arc<Faulty>, GateTools) {
    // By what it is asked, since a model call whose end is lost is made again.
    let on = |results| Some(When { results: Some(results), ..When::default() });
    let model = ScriptedModel::new(Script::of([
        Reply { when: on(0), ..Reply::call("pay", json!({})) },
        Reply { when: on(1), ..Reply::text("the end") },
    ]));
    let tools = GateTools::new();
    tools.gate().open_for_all();
    let agent = Agent::builder(model).approvals(ApprovalMode::Auto).tool(tools.gated("pay")).build();
    let log = Faulty::new(at, fault);
    let began = Instant::now();
    let handle = run_recorded(&agent, log.clone(), History::new(), "pay").detach();
    let closed = Invariants::of(&handle).ledger(tools.ledger()).check().await.unwrap();
    let settled = closed.outcome.receipt().settled_at;
    assert!(closed.receipt.quiet_at.is_some_and(|quiet| quiet >= settled));
    assert_eq!(began.elapsed(), Duration::from_secs(5), "it settles at the deadline, not with the append");
    (closed.outcome, agent, log, tools)
}

/// S3.4, S7.3: an append that is late beyond its deadline, at each place: the outcome says `unknown`, nothing
/// more is written, whether the fact landed after all or not; and at the next open the log's word wins: what
/// it holds is not done again, and an unsafe call is never done twice.
#[tokio::test(start_paused = true)]
async fn an_append_that_is_late_is_unknown_and_the_log_has_the_last_word() {
    for fault in [Fault::LandsLate, Fault::IsLost] {
        for at in 0..APPENDS {
            let (outcome, agent, log, tools) = with_a_late_append(at, fault).await;
            assert_eq!(*outcome.persisted(), Persisted::Unknown, "{fault:?} {at}");
            assert_eq!(outcome.ending(), if at + 1 == APPENDS { Ending::Done } else { Ending::Failed });
            sleep(LATE).await;
            let landed = u64::from(fault == Fault::LandsLate);
            assert_eq!((log.asked(), log.read().await.unwrap().len() as u64), (at + 1, at + landed));

            if at + landed == 0 {
                continue; // The log is empty: there is nothing to open.
            }
            let resumed = agent.resume(&outcome).await;
            assert_eq!(
                (resumed.answer(), resumed.persisted()),
                (Some("the end"), &Persisted::Yes),
                "{fault:?} {at}"
            );
            // Announced and never begun, as far as the log knows: only then was it not done, and no run may
            // repeat it.
            let announced_only = at == 3 && fault == Fault::LandsLate;
            let commits = tools.ledger().count(safepoint_testkit::ledger::Mark::Commit);
            assert_eq!(commits, usize::from(!announced_only), "{fault:?} {at}");
        }
    }
}

//! A stop that is asked before the run starts (S2.1).

use std::{sync::Arc, time::Duration};

use safepoint::{
    Grace, History, SafePoints, StopRequest,
    event::Fact,
    log::{Log, MemoryLog},
    receipt::{Ending, Escalation},
    stop::StopAck,
    tool::EffectClass,
};
use safepoint_testkit::wait;
use safepoint_testkit::{invariants::Invariants, script::Reply};
use serde_json::json;
use tokio::sync::Semaphore;

use super::world::{Ledger, WIRES, builder, close, continues, gated, server};

/// S2.1, S5.5, S7.7: `Now` before the start, with a log: no model call, the input is recorded, and a resume
/// does it exactly once.
/// anthropics/claude-agent-sdk-typescript#429: an interrupt during the start that resolves and does nothing.
#[tokio::test]
async fn now_before_the_start_records_the_input_and_a_resume_does_it_once() {
    for wire in WIRES {
        let server = server([Reply::call("pay", json!({})), Reply::text("paid")]).await;
        let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(9)));
        let agent = builder(&server, wire).tool(gated("pay", EffectClass::Unsafe, &ledger, &gate)).build();
        let log = Arc::new(MemoryLog::default());
        let run = agent.run_recorded(log.clone(), History::new(), "pay the rent");
        let handle = run.handle();
        assert_eq!(handle.stop(StopRequest::now()), StopAck::First);
        let _run = run.start();
        let closing =
            Invariants::of(&handle).server(&server).first_request(0).ledger(ledger.book()).log(&*log);
        let stopped = closing.check().await.unwrap().outcome;
        assert_eq!(
            (stopped.ending(), server.requests().len(), ledger.count("entry")),
            (Ending::Stopped, 0, 0)
        );
        let facts = log.read().await.unwrap();
        let Fact::AttemptOpened { history: Some(input), .. } = &*facts[0].fact else {
            panic!("{:?}", facts[0])
        };
        assert!(format!("{input:?}").contains("pay the rent"));
        assert!(!facts.iter().any(|fact| matches!(*fact.fact, Fact::ModelStarted { .. })));

        let resumed = agent.resume(&stopped).detach();
        let (outcome, receipt) = close(&server, &resumed, &ledger).await;
        assert_eq!((outcome.answer(), receipt.attempt, ledger.count("commit")), (Some("paid"), 2, 1));
        assert_eq!(server.requests().len(), 2);
        for request in server.requests() {
            assert_eq!(request.body.to_string().matches("pay the rent").count(), 1);
        }
    }
}

/// S2.1, S1.3: a safe point asked before the start is armed: the run starts, and ends at the first boundary,
/// which is one for every set. Nothing has happened; a resume does it.
#[tokio::test]
async fn a_safe_point_before_the_start_is_armed_for_every_set() {
    let sets = [
        SafePoints::AFTER_MODEL,
        SafePoints::AFTER_STARTED_CALLS,
        SafePoints::AFTER_ALL_CALLS,
        SafePoints::AFTER_MODEL | SafePoints::AFTER_ALL_CALLS,
        SafePoints::ANY,
    ];
    for wire in WIRES {
        for points in sets {
            let server = server([Reply::text("done it")]).await;
            let agent = builder(&server, wire).build();
            let run = agent.run("go");
            let handle = run.handle();
            assert_eq!(handle.stop(StopRequest::at(points)), StopAck::First);
            assert!(!handle.is_done(), "armed, not fired: nothing has started");
            let _run = run.start();
            let (stopped, receipt) = close(&server, &handle, &Ledger::default()).await;
            assert_eq!((stopped.ending(), server.requests().len()), (Ending::Stopped, 0), "{points}");
            let stop = receipt.stop.as_ref().unwrap();
            assert_eq!(stop.fired.as_deref(), Some(points.to_string().as_str()));
            assert_eq!((stop.escalated, stop.asked.clone()), (Escalation::No, points.to_string()));
            assert!(receipt.model.is_none() && receipt.calls.is_empty());
            assert_eq!(agent.resume(&stopped).await.answer(), Some("done it"));
            continues(&agent, &stopped).await;
        }
    }
}

/// S2.1, S1.7: the grace of a request before the start counts from the request: it is over when the run
/// starts.
#[tokio::test]
async fn a_grace_that_is_over_before_the_start_is_now() {
    let server = server([]).await;
    let agent = builder(&server, WIRES[0]).build();
    let run = agent.run("go");
    let handle = run.handle();
    handle.stop(StopRequest::at_within(SafePoints::AFTER_ALL_CALLS, Grace::from_millis(1)));
    let asked = tokio::time::Instant::now();
    wait::so("its grace is over", || asked.elapsed() >= Duration::from_millis(2)).await;
    let _run = run.start();
    let (_, receipt) = close(&server, &handle, &Ledger::default()).await;
    let stop = receipt.stop.as_ref().unwrap();
    assert_eq!((stop.fired.as_deref(), stop.escalated), (Some("now"), Escalation::ByDeadline));
    assert!(server.requests().is_empty());
}

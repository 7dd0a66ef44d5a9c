//! The safe points of a round, asked for at every moment of it (S2.3, S2.6).

use std::{sync::Arc, time::Duration};

use safepoint::{
    Limits, RunHandle, SafePoints, StopRequest,
    receipt::{CallStatus, Ending, ModelState, SideEffect},
    stop::Failure,
    tool::{self, EffectClass, FnTool},
    usage::UsageSource,
};
use safepoint_testkit::{script::Reply, server::ServedWire};
use serde_json::json;
use tokio::sync::Semaphore;

use super::world::{Ledger, WIRES, builder, close, continues, gated, server, started};

fn message() -> Reply {
    Reply::text("I pay twice.")
        .reasoning("hm")
        .and_call("pay", json!({}))
        .and_call("pay", json!({}))
        .paced(4, Duration::ZERO)
        .usage(50, 20)
}

/// Asks after `sent` chunks of the message; false when it has fewer.
async fn asked_after(sent: usize, wire: ServedWire, points: SafePoints) -> bool {
    let server = server([Reply::text("both are paid")]).await;
    let mut gate = server.gate();
    let (ledger, open) = (Ledger::default(), Arc::new(Semaphore::new(9)));
    let agent = builder(&server, wire).tool(gated("pay", EffectClass::Unsafe, &ledger, &open)).build();
    let handle = agent.run("pay").detach();
    let exchange = gate.request().await;
    gate.headers();
    let chunks = gate.script(&message());
    for _ in 0..sent {
        gate.send_next();
    }
    handle.stop(StopRequest::at(points));
    gate.finish();
    let (stopped, receipt) = close(&server, &handle, &ledger).await;

    assert!(exchange.fate_now().completed.is_some(), "the stream was read to its end");
    let model = receipt.model.as_ref().unwrap();
    assert_eq!((model.state, stopped.partial_text()), (ModelState::Completed, "I pay twice."));
    let usage = stopped.usage();
    assert_eq!((usage.input, usage.output, usage.source), (50, 20, UsageSource::Exact));
    assert_eq!((stopped.ending(), ledger.count("entry")), (Ending::Stopped, 0));
    assert_eq!(receipt.stop.as_ref().unwrap().fired.as_deref(), Some(points.to_string().as_str()));
    let rows: Vec<_> = receipt.calls.iter().map(|call| (call.status, call.effect)).collect();
    assert_eq!(rows, [(CallStatus::NotStarted, SideEffect::None); 2]);

    let resumed = agent.resume(&stopped).detach();
    let (outcome, _) = close(&server, &resumed, &ledger).await;
    assert_eq!((outcome.answer(), ledger.count("commit")), (Some("both are paid"), 2));
    assert_eq!(server.requests().len(), 2, "the message was not asked for again");
    sent < chunks
}

/// S2.3, S1.3, S5.3: `AFTER_MODEL`, and any set that holds it, asked at every moment of a stream: it runs to
/// its end, its usage is known, no call of it starts, and a resume starts them once.
#[tokio::test]
async fn after_model_at_any_moment_of_a_stream_lets_it_end() {
    for wire in WIRES {
        for points in [SafePoints::AFTER_MODEL, SafePoints::ANY] {
            let mut sent = 0;
            while asked_after(sent, wire, points).await {
                sent += 1;
            }
            assert!(sent > 4, "{sent} moments");
        }
    }
}

fn broken() -> FnTool {
    tool::from_fn("broken", "fails", |_cx, (): ()| async {
        Err::<String, _>(Failure::new("no paper").into())
    })
}

/// When a stop after all calls is asked for.
#[derive(Clone, Copy, Debug)]
enum Asked {
    WhileItStreams,
    WhileTheFirstRuns,
}

/// S2.6, S2.13, S4.1: `AFTER_ALL_CALLS`: the whole round completes first, its failures and the queued calls
/// included, and only the next model call is left to a resume.
/// anomalyco/opencode#47995: one call of two that is refused cancels the rest; vybestack/llxprt-code#2099:
/// one of several parallel calls is stopped and the agent hangs.
#[tokio::test]
async fn after_all_calls_completes_failures_and_the_queue() {
    for (wire, when) in
        WIRES.map(|wire| [(wire, Asked::WhileItStreams), (wire, Asked::WhileTheFirstRuns)]).concat()
    {
        let round = ["pay", "broken", "none such", "pay"]
            .into_iter()
            .fold(Reply::default(), |reply, name| reply.and_call(name, json!({})));
        let server = server([Reply::text("one is missing")]).await;
        let mut model = server.gate();
        let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(0)));
        let pay = gated("pay", EffectClass::Unsafe, &ledger, &gate);
        let agent = builder(&server, wire).tool(pay).tool(broken()).build();
        let handle = agent.run("pay").detach();
        model.request().await;
        model.headers();
        model.script(&round);
        model.send_next();
        ask_at(when, &handle, &mut model).await;
        gate.add_permits(2);
        let (stopped, receipt) = close(&server, &handle, &ledger).await;
        let statuses: Vec<_> = receipt.calls.iter().map(|call| call.status).collect();
        let (good, bad) = (CallStatus::Completed, CallStatus::Failed);
        assert_eq!(statuses, [good, bad, bad, good], "{when:?}");
        assert_eq!(
            (stopped.ending(), server.requests().len(), ledger.count("commit")),
            (Ending::Stopped, 1, 2)
        );
        let outcome = agent.resume(&stopped).await;
        assert_eq!((outcome.answer(), ledger.count("commit")), (Some("one is missing"), 2));
        let sent = server.requests()[1].body.to_string();
        assert!(sent.contains("no paper") && sent.contains("there is no tool `none such`"), "{sent}");
        continues(&agent, &stopped).await;
    }
}

async fn ask_at(when: Asked, handle: &RunHandle, model: &mut safepoint_testkit::server::Gate) {
    let request = StopRequest::at(SafePoints::AFTER_ALL_CALLS);
    match when {
        Asked::WhileItStreams => {
            handle.stop(request);
            model.finish();
        }
        Asked::WhileTheFirstRuns => {
            model.finish();
            started(handle, 1).await;
            handle.stop(request);
        }
    }
}

/// S2.6, S4.2: the same in parallel with a limit: those that queue still start.
#[tokio::test]
async fn after_all_calls_in_parallel_starts_those_that_queue() {
    for wire in WIRES {
        let calls = (0..5).fold(Reply::default(), |reply, _| reply.and_call("look", json!({})));
        let server = server([calls]).await;
        let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(0)));
        let limits = Limits::default().with_parallel_calls(2);
        let look = gated("look", EffectClass::ReadOnly, &ledger, &gate);
        let agent = builder(&server, wire).limits(limits).tool(look).build();
        let handle = agent.run("look").detach();
        started(&handle, 2).await;
        handle.stop(StopRequest::at(SafePoints::AFTER_ALL_CALLS));
        gate.add_permits(5);
        let (outcome, receipt) = close(&server, &handle, &ledger).await;
        assert!(receipt.calls.iter().all(|call| call.status == CallStatus::Completed), "{receipt}");
        assert_eq!((receipt.calls.len(), ledger.count("commit"), server.requests().len()), (5, 5, 1));
        assert_eq!(outcome.ending(), Ending::Stopped);
    }
}

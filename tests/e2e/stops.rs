//! A stop in each phase, on every wire.

use std::{sync::Arc, time::Duration};

use safepoint::{
    Grace, Limits, Outcome, Reason, SafePoints, StopRequest,
    receipt::{CallStatus, Ending, Escalation, ModelState, SideEffect, StopSource},
    secs,
    stop::{Code, StopAck},
    tool::EffectClass,
    usage::{ExtraBilling, UsageSource},
};
use safepoint_testkit::{
    script::{Reply, ReplyFault},
    server::ServedWire,
};
use serde_json::json;
use tokio::sync::Semaphore;

use super::world::{Ledger, WIRES, builder, close, continues, first_text, gated, server, started};

fn two_calls() -> Reply {
    Reply::default().and_call("pay", json!({})).and_call("pay", json!({}))
}

/// S2.1, S1.9: `Now` before the start: no model call, and the outcome says so.
#[tokio::test]
async fn now_before_the_start_calls_no_model() {
    for wire in WIRES {
        let server = server([Reply::text("never"), Reply::text("later")]).await;
        let agent = builder(&server, wire).build();
        let run = agent.run("go");
        let handle = run.handle();
        assert_eq!(handle.stop(StopRequest::now()), StopAck::First);
        let outcome = run.await;
        assert_eq!((outcome.ending(), server.requests().len()), (Ending::Stopped, 0));
        assert_eq!(outcome.receipt().stop.as_ref().unwrap().phase, "not yet started");
        let _closed = close(&server, &handle, &Ledger::default()).await;
        continues(&agent, &outcome).await;
    }
}

/// S2.2, S3.9, S5.4, S2.14: `Now` while the model streams: the socket closes, the text is kept, usage is
/// never zero.
/// langchain-ai/langgraph#5672, openai/openai-agents-python#1895, moltis-org/moltis#186: what had arrived is
/// thrown away; vercel/ai#577 and #7805, spring-projects/spring-ai#6654 and #2944,
/// microsoft/agent-framework#7511,
/// quarkiverse/quarkus-langchain4j#1976, firebase/flutterfire#18309: the exchange continues, or its usage is
/// not reported.
/// google-gemini/gemini-cli PR#28801: the model resumes the stopped task instead of the new message.
/// livekit/agents#995: a quick interruption takes calls and results apart.
#[tokio::test]
async fn now_mid_stream_closes_the_socket_and_keeps_the_text() {
    for wire in WIRES {
        let server = server([Reply::text("I see.")]).await;
        let mut gate = server.gate();
        let agent = builder(&server, wire).build();
        let handle = agent.run("tell").detach();
        let exchange = gate.request().await;
        gate.headers();
        let chunks = gate.script(&Reply::text("once upon a time").paced(5, Duration::ZERO));
        for _ in 0..chunks / 2 {
            gate.send_next();
        }
        first_text(&handle).await;
        handle.stop(StopRequest::now().with_reason(Reason::user("enough")));
        let outcome = handle.done().await;
        exchange.peer_closed().await;
        let (_, receipt) = close(&server, &handle, &Ledger::default()).await;
        assert_eq!(receipt.model.as_ref().unwrap().state, ModelState::Closed);
        assert!("once upon a time".starts_with(outcome.partial_text()) && !outcome.partial_text().is_empty());
        assert!(outcome.usage().input > 0 && outcome.usage().output > 0);
        assert_eq!(outcome.usage().billed_beyond, ExtraBilling::Unknown);
        assert_eq!(outcome.usage().source, UsageSource::Estimated);
        continues(&agent, &outcome).await;
        let sent = server.requests()[1].body.to_string();
        assert!(sent.contains("[interrupted"), "{sent}");
    }
}

/// S2.8: a server that accepts and says nothing, and one that falls silent mid-stream: the wait ends at once.
/// anthropics/claude-agent-sdk-typescript#425: an interrupt in the middle of a request never settles.
#[tokio::test]
async fn now_ends_every_silence() {
    for wire in WIRES {
        for fault in [ReplyFault::Silence, ReplyFault::StallAfter(1), ReplyFault::StallAfter(3)] {
            let server = server([Reply::text("slow").fault(fault), Reply::text("ok")]).await;
            let agent = builder(&server, wire).build();
            let handle = agent.run("go").detach();
            let exchange = server.request(0).await;
            handle.stop(StopRequest::now());
            let outcome = handle.done().await;
            assert_eq!(outcome.ending(), Ending::Stopped);
            exchange.peer_closed().await;
            let _closed = close(&server, &handle, &Ledger::default()).await;
            continues(&agent, &outcome).await;
        }
    }
}

/// S2.3, S1.3, S5.1: `AFTER_MODEL` while it streams: the message is completed, none of its calls starts.
#[tokio::test]
async fn after_model_lets_the_message_end_and_starts_no_call() {
    for wire in WIRES {
        let server = server([Reply::text("next")]).await;
        let mut gate = server.gate();
        let ledger = Ledger::default();
        let agent = builder(&server, wire)
            .tool(gated("pay", EffectClass::Unsafe, &ledger, &Arc::new(Semaphore::new(9))))
            .build();
        let handle = agent.run("pay").detach();
        gate.request().await;
        gate.headers();
        gate.script(&two_calls());
        gate.send_next();
        handle.stop(StopRequest::at(SafePoints::AFTER_MODEL));
        gate.finish();
        let (outcome, receipt) = close(&server, &handle, &ledger).await;
        assert_eq!(ledger.count("entry"), 0);
        assert_eq!(receipt.calls.len(), 2);
        assert!(
            receipt
                .calls
                .iter()
                .all(|call| call.status == CallStatus::NotStarted && call.effect == SideEffect::None)
        );
        continues(&agent, &outcome).await;
    }
}

/// S2.4: a final answer is not a safe point: the run completes, and the asker learns that the end came first.
#[tokio::test]
async fn a_final_answer_comes_before_a_safe_point() {
    let server = server([]).await;
    let mut gate = server.gate();
    let agent = builder(&server, WIRES[0]).build();
    let handle = agent.run("hi").detach();
    gate.request().await;
    gate.headers();
    gate.script(&Reply::text("bye"));
    handle.stop(StopRequest::at(SafePoints::AFTER_MODEL));
    gate.finish();
    let (outcome, receipt) = close(&server, &handle, &Ledger::default()).await;
    assert_eq!(outcome.answer(), Some("bye"));
    assert_eq!(receipt.stop.as_ref().unwrap().fired, None);
    assert_eq!(handle.stop(StopRequest::now()), StopAck::TooLate);
    assert!(handle.stop_requested().is_some());
}

/// S2.4: `AFTER_MODEL` while calls run does not fire there: the round completes, the next model call is made.
#[tokio::test]
async fn after_model_during_calls_waits_for_the_next_message() {
    let server = server([two_calls(), two_calls()]).await;
    let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(0)));
    let agent = builder(&server, WIRES[0]).tool(gated("pay", EffectClass::Unsafe, &ledger, &gate)).build();
    let handle = agent.run("pay").detach();
    started(&handle, 1).await;
    handle.stop(StopRequest::at(SafePoints::AFTER_MODEL));
    gate.add_permits(2);
    let (outcome, receipt) = close(&server, &handle, &ledger).await;
    assert_eq!((outcome.ending(), server.requests().len(), ledger.count("commit")), (Ending::Stopped, 2, 2));
    assert_eq!(receipt.calls.iter().filter(|call| call.status == CallStatus::NotStarted).count(), 2);
}

/// S2.5, S1.3: `AFTER_STARTED_CALLS`, one at a time: the running call ends, the rest do not start.
#[tokio::test]
async fn after_started_calls_starts_no_queued_call() {
    for wire in WIRES {
        let server = server([two_calls(), Reply::text("ok")]).await;
        let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(0)));
        let agent = builder(&server, wire).tool(gated("pay", EffectClass::Unsafe, &ledger, &gate)).build();
        let handle = agent.run("pay").detach();
        started(&handle, 1).await;
        handle.stop(StopRequest::graceful(secs(60)));
        gate.add_permits(2);
        let (outcome, receipt) = close(&server, &handle, &ledger).await;
        let statuses: Vec<_> = receipt.calls.iter().map(|call| call.status).collect();
        assert_eq!(statuses, [CallStatus::Completed, CallStatus::NotStarted]);
        assert_eq!((ledger.count("commit"), server.requests().len()), (1, 1));
        continues(&agent, &outcome).await;
    }
}

/// S2.5, S4.2: parallel with a limit: those that run end, those that queue do not start.
#[tokio::test]
async fn after_started_calls_in_parallel_ends_the_running_ones() {
    let calls = (0..5).fold(Reply::default(), |reply, _| reply.and_call("pay", json!({})));
    let server = server([calls]).await;
    let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(0)));
    let limits = Limits::default().with_parallel_calls(2);
    let agent = builder(&server, WIRES[0])
        .limits(limits)
        .tool(gated("pay", EffectClass::ReadOnly, &ledger, &gate))
        .build();
    let handle = agent.run("pay").detach();
    started(&handle, 2).await;
    handle.stop(StopRequest::at(SafePoints::AFTER_STARTED_CALLS));
    gate.add_permits(5);
    let (_, receipt) = close(&server, &handle, &ledger).await;
    let completed = receipt.calls.iter().filter(|call| call.status == CallStatus::Completed).count();
    assert_eq!((completed, receipt.calls.len()), (2, 5));
}

/// S2.6: `AFTER_ALL_CALLS`: the whole round, queued calls included, completes first.
#[tokio::test]
async fn after_all_calls_completes_the_round() {
    let server = server([two_calls()]).await;
    let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(0)));
    let agent = builder(&server, WIRES[1]).tool(gated("pay", EffectClass::Unsafe, &ledger, &gate)).build();
    let handle = agent.run("pay").detach();
    started(&handle, 1).await;
    handle.stop(StopRequest::at(SafePoints::AFTER_ALL_CALLS));
    gate.add_permits(2);
    let (outcome, receipt) = close(&server, &handle, &ledger).await;
    assert_eq!((outcome.ending(), ledger.count("commit"), server.requests().len()), (Ending::Stopped, 2, 1));
    assert!(receipt.calls.iter().all(|call| call.effect == SideEffect::Done));
}

/// S2.7, S3.8, S5.2: `Now` while calls run: the running one is dropped and its effect unknown, the next never
/// starts.
/// anthropics/claude-code#2261 and #3003, charmbracelet/crush#1860, aaif-goose/goose#1624, vercel/ai#4584,
/// anomalyco/opencode#8312, langchain-ai/langgraph#6726, CopilotKit/CopilotKit#2974: a stop leaves a call
/// without a result, and every later request is refused.
/// livekit/agents#5092: who speaks during a call is refused from then on, for a call without an output.
/// anthropics/claude-code#3003, anomalyco/opencode#21326: calls without results, in both directions, and an
/// empty error.
#[tokio::test]
async fn now_during_calls_says_what_is_unknown() {
    for wire in WIRES {
        let server = server([two_calls(), Reply::text("ok")]).await;
        let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(0)));
        let agent = builder(&server, wire).tool(gated("pay", EffectClass::Unsafe, &ledger, &gate)).build();
        let handle = agent.run("pay").detach();
        started(&handle, 1).await;
        handle.stop(StopRequest::now());
        let (outcome, receipt) = close(&server, &handle, &ledger).await;
        let rows: Vec<_> =
            receipt.calls.iter().map(|call| (call.status, call.effect, call.stopped_by)).collect();
        let by_run = Some(StopSource::Run);
        assert_eq!(
            rows,
            [
                (CallStatus::Stopped, SideEffect::Unknown, by_run),
                (CallStatus::NotStarted, SideEffect::None, by_run)
            ]
        );
        continues(&agent, &outcome).await;
        let sent = server.requests()[1].body.to_string();
        assert!(sent.contains("effects are unknown") && sent.contains("[not started"), "{sent}");
    }
}

/// S1.5, S1.7: an escalation by request wakes what is parked on the earlier one, at once.
#[tokio::test]
async fn a_later_request_escalates_at_once() {
    let server = server([two_calls()]).await;
    let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(0)));
    let agent = builder(&server, WIRES[0]).tool(gated("pay", EffectClass::Unsafe, &ledger, &gate)).build();
    let handle = agent.run("pay").detach();
    started(&handle, 1).await;
    assert_eq!(handle.stop(StopRequest::graceful(secs(3600))), StopAck::First);
    assert_eq!(handle.stop(StopRequest::now()), StopAck::Strengthened);
    assert_eq!(handle.stop(StopRequest::at(SafePoints::ANY)), StopAck::Unchanged);
    let (_, receipt) = close(&server, &handle, &ledger).await;
    let stop = receipt.stop.as_ref().unwrap();
    assert_eq!((stop.escalated, stop.fired.as_deref()), (Escalation::ByRequest, Some("now")));
    assert_eq!(stop.requests.len(), 3);
}

/// S1.7: a grace that runs out makes it `Now`, and the receipt says so.
#[tokio::test]
async fn a_grace_that_runs_out_escalates() {
    let server = server([two_calls()]).await;
    let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(0)));
    let agent = builder(&server, WIRES[0]).tool(gated("pay", EffectClass::Unsafe, &ledger, &gate)).build();
    let handle = agent.run("pay").detach();
    started(&handle, 1).await;
    handle.stop(StopRequest::graceful(Grace::from_millis(30)));
    let (_, receipt) = close(&server, &handle, &ledger).await;
    assert_eq!(receipt.stop.as_ref().unwrap().escalated, Escalation::ByDeadline);
}

/// S2.10: one call stopped alone ends as stopped, the model learns of it, and the run continues.
/// anomalyco/opencode#38966: one of several cannot be stopped alone; vybestack/llxprt-code#2099: stopping one
/// of several hangs the agent.
#[tokio::test]
async fn one_call_is_stopped_alone() {
    for wire in WIRES {
        let server = server([two_calls(), Reply::text("one of two")]).await;
        let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(0)));
        let agent = builder(&server, wire).tool(gated("pay", EffectClass::ReadOnly, &ledger, &gate)).build();
        let handle = agent.run("pay").detach();
        let calls = started(&handle, 2).await;
        assert_eq!(handle.stop_call(&calls[0], StopRequest::now()), Some(StopAck::First));
        gate.add_permits(1);
        let (outcome, receipt) = close(&server, &handle, &ledger).await;
        assert_eq!(outcome.answer(), Some("one of two"));
        let rows: Vec<_> = receipt.calls.iter().map(|call| (call.status, call.stopped_by)).collect();
        assert_eq!(rows, [(CallStatus::Stopped, Some(StopSource::Call)), (CallStatus::Completed, None)]);
        assert!(receipt.stop.is_none());
    }
}

/// S1.8: a stop of one run of an agent never reaches another.
/// Waishnav/devspace PR#358: a cancel hits the next turn.
#[tokio::test]
async fn runs_of_one_agent_share_nothing() {
    let server = server([]).await;
    let (mut first, mut second) = (server.gate(), server.gate());
    let agent = builder(&server, WIRES[0]).build();
    let one = agent.run("one").detach();
    first.request().await;
    let two = agent.run("two").detach();
    second.request().await;
    one.stop(StopRequest::now());
    assert_eq!(one.done().await.ending(), Ending::Stopped);
    second.headers();
    second.script(&Reply::text("fine"));
    second.finish();
    assert_eq!(two.done().await.answer(), Some("fine"));
    assert!(two.stop_requested().is_none());
}

/// S3.3: dropping the run asks `Now`; the holder of the handle sees the outcome.
/// pydantic/pydantic-ai#1524, BerriAI/litellm#17364: a stream without its reader is still consumed;
/// earendil-works/pi#4189: a drop leaves an open call.
#[tokio::test]
async fn dropping_the_run_stops_it() {
    let server = server([]).await;
    let mut gate = server.gate();
    let agent = builder(&server, WIRES[0]).build();
    let run = agent.run("go").start();
    let handle = run.handle();
    let exchange = gate.request().await;
    drop(run);
    let outcome = handle.done().await;
    assert_eq!(outcome.receipt().stop.as_ref().unwrap().reason.code, Code::DISCONNECT.as_str());
    exchange.peer_closed().await;
    let unstarted = agent.run("never");
    let handle = unstarted.handle();
    drop(unstarted);
    assert!(matches!(handle.done().await, Outcome::Stopped(_)));
}

/// S4.6, S12.1: a run's wall time is `Now` with its own reason; a call's is `timed out` and the run
/// continues.
/// crewAIInc/crewAI#1958: a run that timed out works on.
#[tokio::test]
async fn limits_of_time_have_their_own_ends() {
    let gate = Arc::new(Semaphore::new(0));
    let ledger = Ledger::default();
    let server_one = server([two_calls()]).await;
    let limits = Limits::default().with_wall_time(Duration::from_millis(50));
    let agent = builder(&server_one, WIRES[0])
        .limits(limits)
        .tool(gated("pay", EffectClass::Unsafe, &ledger, &gate))
        .build();
    let handle = agent.run("pay").detach();
    let (_, receipt) = close(&server_one, &handle, &ledger).await;
    assert_eq!(receipt.stop.as_ref().unwrap().reason.code, "wall_time");

    let ledger = Ledger::default();
    let server_two = server([Reply::call("pay", json!({})), Reply::text("too slow")]).await;
    let limits = Limits::default().with_call_timeout(Duration::from_millis(20));
    let agent = builder(&server_two, WIRES[0])
        .limits(limits)
        .tool(gated("pay", EffectClass::Unsafe, &ledger, &gate))
        .build();
    let handle = agent.run("pay").detach();
    let (outcome, receipt) = close(&server_two, &handle, &ledger).await;
    assert_eq!((outcome.answer(), receipt.calls[0].status), (Some("too slow"), CallStatus::TimedOut));
    assert_eq!(receipt.calls[0].effect, SideEffect::Unknown);
    assert!(receipt.stop.is_none());
}

/// S12.1, S1.10: a model that never stops calling tools is stopped at the limit, and its last round finishes.
#[tokio::test]
async fn a_model_that_never_stops_meets_the_limit() {
    let server = server((0..9).map(|_| two_calls())).await;
    let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(99)));
    let limits = Limits::default().with_max_rounds(3);
    let agent = builder(&server, WIRES[0])
        .limits(limits)
        .tool(gated("pay", EffectClass::Unsafe, &ledger, &gate))
        .build();
    let handle = agent.run("pay").detach();
    let (outcome, receipt) = close(&server, &handle, &ledger).await;
    assert_eq!((outcome.ending(), server.requests().len(), ledger.count("commit")), (Ending::Stopped, 3, 6));
    assert_eq!(receipt.stop.as_ref().unwrap().reason.code, "max_rounds");
}

/// S3.9: usage is exact where the provider said so, and never zero where it said nothing.
/// openai/openai-agents-js#995, vercel/ai#7628: the usage of a cut call is zero.
#[tokio::test]
async fn usage_has_its_source_and_is_never_zero() {
    for wire in WIRES {
        let server =
            server([Reply::text("four words in all").usage(11, 7), Reply::text("and more").usage(0, 0)])
                .await;
        let agent = builder(&server, wire).build();
        let said = agent.run("go").await;
        assert_eq!(
            (said.usage().input, said.usage().output, said.usage().source),
            (11, 7, UsageSource::Exact)
        );
        let unsaid = agent.run("go").await;
        assert!(unsaid.usage().input > 0 && unsaid.usage().output > 0);
        assert_eq!(
            (unsaid.usage().source, unsaid.usage().billed_beyond),
            (UsageSource::Estimated, ExtraBilling::Nothing)
        );
    }
}

/// T12, vercel/ai#7805: no usage at all on an abort; etalab-ia/OpenGateLLM PR#1151: a client that goes away
/// early is billed nothing of what it was sent. S3.9: one rule for a call that was cut, whenever that was:
/// its input is a floor of the request that was sent, the same before the headers, in a silent stream and in
/// the middle of one. (The other wires name it as they begin.)
#[tokio::test]
async fn a_request_weighs_the_same_whenever_its_reply_is_cut() {
    for wire in [ServedWire::OpenAi, ServedWire::Responses] {
        let mut inputs = Vec::new();
        for (headers, chunks) in [(false, 0), (true, 0), (true, 3)] {
            let server = server([]).await;
            let mut gate = server.gate();
            let handle = builder(&server, wire).build().run("a prompt of some words").detach();
            gate.request().await;
            if headers {
                gate.headers();
            }
            if chunks > 0 {
                gate.script(&Reply::text("once upon a time").paced(1, Duration::ZERO));
                for _ in 0..chunks + 2 {
                    gate.send_next();
                }
                first_text(&handle).await;
            }
            handle.stop(StopRequest::now());
            let outcome = handle.done().await;
            gate.finish();
            let (usage, _) = (outcome.usage().clone(), close(&server, &handle, &Ledger::default()).await);
            assert_eq!((usage.source, usage.billed_beyond), (UsageSource::Estimated, ExtraBilling::Unknown));
            inputs.push(usage.input);
        }
        assert!(inputs[0] > 1 && inputs.iter().all(|input| *input == inputs[0]), "{wire:?}: {inputs:?}");
    }
}

/// S3.9, S3.5: with *drain* the caller has the outcome at once. The exchange is read on for its bill, and
/// nothing of it is shown.
/// BerriAI/litellm PR#36008: the true bill of a cut call is learned only by reading on;
/// langchain4j/langchain4j#2968: what comes after the stop is still written to memory.
#[tokio::test]
async fn a_drained_call_learns_its_bill_and_shows_nothing() {
    for wire in WIRES {
        let server = server([]).await;
        let mut gate = server.gate();
        let agent = builder(&server, wire).on_cut(safepoint::model::OnModelStop::Drain).build();
        let handle = agent.run("tell").detach();
        gate.request().await;
        gate.headers();
        let chunks = gate.script(&Reply::text("once upon a time").paced(5, Duration::ZERO).usage(70, 30));
        for _ in 0..chunks / 2 {
            gate.send_next();
        }
        first_text(&handle).await;
        handle.stop(StopRequest::now());
        let outcome = handle.done().await;
        assert_eq!(outcome.receipt().model.as_ref().unwrap().state, ModelState::Draining);
        let shown = outcome.partial_text().to_owned();
        gate.finish();
        let (after, receipt) = close(&server, &handle, &Ledger::default()).await;
        assert_eq!((after.partial_text(), after.usage()), (shown.as_str(), outcome.usage()));
        assert_eq!(receipt.model.as_ref().unwrap().state, ModelState::Completed);
        let usage =
            (receipt.usage.input, receipt.usage.output, receipt.usage.source, receipt.usage.billed_beyond);
        assert_eq!(usage, (70, 30, UsageSource::Exact, ExtraBilling::Nothing));
    }
}

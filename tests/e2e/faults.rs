//! Bad input and broken servers: a clear error, and nothing lost.

use std::{sync::Arc, time::Duration};

use safepoint::{
    Limits, Outcome, StopRequest,
    event::EventKind,
    receipt::{CallStatus, Ending},
    tool::{self, EffectClass},
};
use safepoint_models::{Patience, Retry, openai};
use safepoint_testkit::{
    script::{Reply, ReplyFault},
    server::ServedWire,
};
use serde_json::json;
use tokio::sync::Semaphore;

use super::world::{Ledger, WIRES, builder, close, continues, gated, server};

fn failed(outcome: &Outcome) -> (String, String) {
    match outcome {
        Outcome::Failed(error) => (error.code().to_owned(), error.to_string()),
        other => panic!("{other:?}"),
    }
}

/// S2.13, S5.1: each broken answer is a failure of the run that says what was wrong, and the next message is
/// accepted.
/// google/adk-python#1484, alibaba/spring-ai-alibaba PR#4790: a broken stream makes the conversation
/// unusable.
#[tokio::test]
async fn broken_answers_are_failures_that_say_why() {
    let html = ReplyFault::Answer { content_type: "text/html".into(), body: "<html>log in</html>".into() };
    let error_body = ReplyFault::Answer {
        content_type: "application/json".into(),
        body: r#"{"error":{"message":"no credit"}}"#.into(),
    };
    let status = |status| ReplyFault::Status { status, body: String::new(), headers: Vec::new() };
    for wire in WIRES {
        for (fault, says) in [
            (ReplyFault::Raw(b"data: {not json}\n\n".to_vec()), "not what its wire promises"),
            (ReplyFault::Raw(b"data: \xff\xfe\n\n".to_vec()), "UTF-8"),
            (
                ReplyFault::Raw(b"data: {\"choices\":[{\"delta\":{\"content\":\"ha".to_vec()),
                "ended before its end",
            ),
            (ReplyFault::CloseAfter(2), "broke"),
            (ReplyFault::ResetAfter(2), "broke"),
            (html.clone(), "text/html"),
            (error_body.clone(), "no credit"),
            (status(401), "401"),
            (status(404), "404"),
            (status(400), "400"),
        ] {
            let server =
                server([Reply::text("hello there").paced(3, Duration::ZERO).fault(fault), Reply::text("ok")])
                    .await;
            let agent = builder(&server, wire).build();
            let handle = agent.run("hi").detach();
            let (outcome, _) = close(&server, &handle, &Ledger::default()).await;
            let (code, message) = failed(&outcome);
            assert_eq!(code, "provider", "{message}");
            assert!(message.contains(says), "{wire:?}: {message} does not say {says}");
            continues(&agent, &outcome).await;
        }
    }
}

/// S2.8, S2.12: a 429 that asks for an hour, and a stop during a back-off: the wait ends, nothing is tried
/// again.
#[tokio::test]
async fn a_stop_ends_a_back_off() {
    let busy = |seconds: &str| {
        let headers = vec![("retry-after".into(), seconds.into())];
        Reply::default().fault(ReplyFault::Status { status: 429, body: String::new(), headers })
    };
    let server = server([busy("3600"), busy("30"), Reply::text("never")]).await;
    let agent = builder(&server, ServedWire::OpenAi).build();
    let hour = agent.run("hi").await;
    assert!(failed(&hour).1.contains("429"));

    let handle = agent.run("hi").detach();
    let mut events = handle.events();
    while let Some(event) = events.next().await {
        if matches!(event.kind, EventKind::Retrying { .. }) {
            break;
        }
    }
    handle.stop(StopRequest::now());
    let (outcome, _) = close(&server, &handle, &Ledger::default()).await;
    assert_eq!((outcome.ending(), server.requests().len()), (Ending::Stopped, 2));
}

/// S2.12: before the first byte another try is made, and the run is none the wiser.
#[tokio::test]
async fn a_server_error_is_tried_again() {
    for wire in WIRES {
        let headers = vec![("retry-after".into(), "0".into())];
        let busy = Reply::default().fault(ReplyFault::Status { status: 503, body: String::new(), headers });
        let server = server([busy.clone(), busy, Reply::text("here I am")]).await;
        let outcome = builder(&server, wire).build().run("hi").await;
        assert_eq!(outcome.answer(), Some("here I am"));
        assert_eq!(server.requests().len(), 3);
    }
}

/// S2.8: an unreachable host is reported as such, with what to do.
#[tokio::test]
async fn an_unreachable_host_says_what_to_do() {
    let patience = Patience { retry: Retry::never(), ..Patience::default() };
    let model = openai::model("m").base_url("http://127.0.0.1:1/v1").patience(patience);
    let outcome = safepoint::Agent::builder(model).build().run("hi").await;
    let Outcome::Failed(error) = &outcome else { panic!("{outcome:?}") };
    assert!(error.to_string().contains("could not reach"), "{error}");
    assert!(error.hint().unwrap().contains("base URL"));
}

/// S2.8: a stream that falls silent for too long is its own failure.
#[tokio::test]
async fn a_silent_stream_is_idle() {
    for fault in [ReplyFault::Silence, ReplyFault::StallAfter(1)] {
        let server =
            server([Reply::text("slow").fault(fault.clone()), Reply::text("slow").fault(fault)]).await;
        let patience =
            Patience { idle: Duration::from_millis(40), retry: Retry::never(), ..Patience::default() };
        let model = openai::model("m").base_url(server.url()).patience(patience);
        let outcome = safepoint::Agent::builder(model).build().run("hi").await;
        assert_eq!(failed(&outcome).0, "stream_idle");
    }
}

/// S4.11, S4.7: what does not fit is a failed call that tells the model what to correct; the run continues.
#[tokio::test]
async fn misfits_are_reported_to_the_model() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Amount {
        euros: u32,
    }
    let pay = || tool::from_fn("pay", "pays", |_cx, _: Amount| async { Ok("paid") });
    for wire in WIRES {
        for (name, args, says) in [
            ("pay", json!({"euros": "ten"}), "do not fit"),
            ("pay", json!({}), "euros"),
            ("steal", json!({}), "there is no tool `steal`. There are: pay"),
            ("pay", json!("{not json"), "not JSON"),
        ] {
            // Gemini's own server reads the arguments: what is not JSON never comes through.
            let says = if wire == ServedWire::Gemini && says == "not JSON" { "want object" } else { says };
            let server = server([Reply::call(name, args), Reply::text("I see")]).await;
            let agent = builder(&server, wire).tool(pay()).build();
            let handle = agent.run("pay").detach();
            let (outcome, receipt) = close(&server, &handle, &Ledger::default()).await;
            assert_eq!(outcome.answer(), Some("I see"));
            assert_eq!(receipt.calls[0].status, CallStatus::Failed);
            let result = server.requests()[1].body.to_string();
            assert!(result.contains(says), "{result}");
        }
    }
}

/// S5.1: duplicate and missing call ids are replaced, and the history stays valid.
#[tokio::test]
async fn doubtful_ids_are_replaced() {
    let ids = [["same", "same"], ["", ""], ["a", ""]];
    for (wire, ids) in WIRES.into_iter().flat_map(|wire| ids.map(|ids| (wire, ids))) {
        let calls = ids.iter().fold(Reply::default(), |reply, id| reply.and_call_as(*id, "pay", json!({})));
        let server = server([calls.clone(), calls, Reply::text("ok")]).await;
        let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(9)));
        let agent = builder(&server, wire).tool(gated("pay", EffectClass::ReadOnly, &ledger, &gate)).build();
        let handle = agent.run("pay").detach();
        let (outcome, receipt) = close(&server, &handle, &ledger).await;
        assert_eq!((outcome.answer(), receipt.calls.len(), ledger.count("commit")), (Some("ok"), 4, 4));
    }
}

/// S4.7: a tool that panics fails its call, and only that.
/// google/adk-python#1484: a tool error makes the session unusable.
#[tokio::test]
async fn a_panic_is_a_failed_call() {
    let server = server([Reply::call("boom", json!({})), Reply::text("ouch")]).await;
    let boom = tool::from_fn("boom", "panics", |_cx, (): ()| async move {
        let empty: Vec<u8> = Vec::new();
        Ok(format!("{}", empty[std::hint::black_box(3)]))
    });
    let agent = builder(&server, WIRES[0]).tool(boom).build();
    let handle = agent.run("go").detach();
    let (outcome, receipt) = close(&server, &handle, &Ledger::default()).await;
    assert_eq!((outcome.answer(), receipt.calls[0].status), (Some("ouch"), CallStatus::Failed));
}

/// S4.7: an output of 100 MB is shown in part, and kept in a file.
#[tokio::test]
async fn a_huge_output_is_truncated_with_notice() {
    const HUGE: usize = 100 << 20;
    let server = server([Reply::call("flood", json!({})), Reply::text("much")]).await;
    let flood = tool::from_fn("flood", "floods", |_cx, (): ()| async move { Ok("x".repeat(HUGE)) });
    let agent = builder(&server, WIRES[0]).tool(flood).build();
    let handle = agent.run("go").detach();
    let (outcome, _) = close(&server, &handle, &Ledger::default()).await;
    assert_eq!(outcome.answer(), Some("much"));
    let result = server.requests()[1].body["messages"][2]["content"].as_str().unwrap().to_owned();
    assert!(result.len() < 100_000 && result.contains("left out"));
    let file = result.split("is in ").nth(1).unwrap().split(" …").next().unwrap().to_owned();
    assert_eq!(std::fs::metadata(&file).unwrap().len(), HUGE as u64);
    std::fs::remove_file(file).unwrap();
}

/// S12.1, S4.1: a model that asks for a thousand calls at once gets a thousand results, in their order.
/// QwenLM/qwen-code PR#4366, langchain-ai/langgraphjs#1014: each call leaves a listener on one signal; here
/// nothing of a thousand is left.
#[tokio::test]
async fn a_thousand_calls_queue() {
    let calls =
        (0..1000).fold(Reply::default(), |reply, n| reply.and_call_as(format!("c{n}"), "pay", json!({})));
    let server = server([calls, Reply::text("all")]).await;
    let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(1000)));
    let agent = builder(&server, WIRES[0]).tool(gated("pay", EffectClass::ReadOnly, &ledger, &gate)).build();
    let handle = agent.run("go").detach();
    let (outcome, receipt) = close(&server, &handle, &ledger).await;
    assert_eq!(outcome.answer(), Some("all"));
    let order: Vec<String> = receipt.calls.iter().map(|call| call.call_id.to_string()).collect();
    assert_eq!(order, (0..1000).map(|n| format!("c{n}")).collect::<Vec<_>>());
}

/// S12.1: a model that says too much is stopped.
#[tokio::test]
async fn endless_text_is_stopped() {
    // It says much and never ends: only the limit can end this run.
    let endless =
        Reply::text("x".repeat(100_000)).paced(1000, Duration::ZERO).fault(ReplyFault::StallAfter(50));
    let server = server([endless]).await;
    let limits = Limits::default().with_model_output_bytes(10_000);
    let agent = builder(&server, WIRES[0]).limits(limits).build();
    let outcome = agent.run("go").await;
    assert_eq!(outcome.ending(), Ending::Stopped);
    assert_eq!(outcome.receipt().stop.as_ref().unwrap().reason.code, "output_bytes");
}

/// S1.10: a message cut by the model's own limit is a failure with its own code, not a completion.
#[tokio::test]
async fn a_truncated_message_is_not_completed() {
    let server = server([Reply::text("half a sen").finish("length")]).await;
    let outcome = builder(&server, WIRES[0]).build().run("go").await;
    assert_eq!(failed(&outcome).0, "truncated");
    assert_eq!(outcome.partial_text(), "half a sen");
}

/// S2.13, S3.2: a genuine failure that comes while a safe point is pending is a failure, and the stop fired
/// nothing.
#[tokio::test]
async fn a_failure_is_not_hidden_by_a_pending_stop() {
    for wire in WIRES {
        let server = server([Reply::text("ok")]).await;
        let mut gate = server.gate();
        let agent = builder(&server, wire).build();
        let handle = agent.run("hi").detach();
        gate.request().await;
        gate.headers();
        let chunks = gate.script(&Reply::text("so far").paced(3, Duration::ZERO));
        for _ in 0..chunks.div_ceil(2) {
            gate.send_next();
        }
        super::world::first_text(&handle).await;
        handle.stop(StopRequest::at(safepoint::SafePoints::ANY));
        gate.close();
        let (outcome, receipt) = close(&server, &handle, &Ledger::default()).await;
        assert_eq!(failed(&outcome).0, "provider");
        assert_eq!(receipt.stop.as_ref().unwrap().fired, None);
        assert!(handle.stop_requested().is_some());
        continues(&agent, &outcome).await;
    }
}

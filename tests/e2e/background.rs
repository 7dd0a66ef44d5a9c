//! Responses in the background: a stop calls them off, and a broken stream is read on, not asked for again.

use std::time::Duration;

use safepoint::{
    Agent, StopRequest,
    event::EventKind,
    receipt::{Ending, ModelState},
    usage::ExtraBilling,
};
use safepoint_models::{Patience, Retry, responses};
use safepoint_testkit::{
    script::{Reply, ReplyFault},
    server::{ModelServer, What},
};

use serde_json::json;

use super::world::{Ledger, close, continues, first_text, server};

fn agent(server: &ModelServer, tries: u32) -> Agent {
    let retry = Retry { tries, first: Duration::from_millis(1), ..Retry::default() };
    let patience = Patience { retry, ..Patience::default() };
    let model = responses::model("m").base_url(server.url()).api_key("a key".to_owned().into());
    Agent::builder(model.patience(patience).background()).build()
}

fn story() -> Reply {
    Reply::text("once upon a time").paced(4, Duration::ZERO)
}

/// S2.2, S3.6, S3.9: `Now` mid-stream: the connection closes, and the provider gets one cancel by the
/// response's id before the run is quiet. What it bills beyond stays unknown.
///
/// microsoft/agent-framework#7511: marked as cancelled while the model runs to its end; vercel/ai#577: the
/// provider's query runs on.
#[tokio::test]
async fn a_stop_calls_the_response_off() {
    let server = server([Reply::text("I see.")]).await;
    let mut gate = server.gate();
    let agent = agent(&server, 4);
    let handle = agent.run("tell").detach();
    let exchange = gate.request().await;
    gate.headers();
    let chunks = gate.script(&story());
    for _ in 0..chunks / 2 {
        gate.send_next();
    }
    first_text(&handle).await;
    handle.stop(StopRequest::now());
    exchange.peer_closed().await;
    let (outcome, receipt) = close(&server, &handle, &Ledger::default()).await;
    assert_eq!(receipt.model.as_ref().unwrap().state, ModelState::Closed);
    assert_eq!(outcome.usage().billed_beyond, ExtraBilling::Unknown);
    let asked = server.asked_about();
    assert_eq!(asked.iter().map(|ask| ask.what).collect::<Vec<_>>(), [What::Cancel]);
    continues(&agent, &outcome).await;
    assert_eq!(server.asked_about(), asked, "a response that ended by itself is not called off");
}

/// S2.2: a connection that breaks is not the response's end: its rest is read, no event twice, nothing is
/// requested again, and each new connection shows its key again.
#[tokio::test]
async fn a_broken_stream_is_read_on() {
    for fault in [ReplyFault::CloseAfter(5), ReplyFault::ResetAfter(6), ReplyFault::CutAfter(1200)] {
        let server = server([story().fault(fault)]).await;
        let handle = agent(&server, 4).run("tell").detach();
        let (outcome, _) = close(&server, &handle, &Ledger::default()).await;
        assert_eq!(outcome.answer(), Some("once upon a time"));
        assert_eq!((server.requests().len(), server.asked_about().len()), (1, 1));
        let mut events = handle.events();
        let mut retries = 0;
        while let Some(event) = events.next().await {
            retries += usize::from(matches!(event.kind, EventKind::Retrying { failed: 1, .. }));
        }
        assert_eq!(retries, 1);
    }
}

/// S2.12, S2.8: a stop while the rest is waited for: it is not read any more, and the response is called off.
#[tokio::test]
async fn a_stop_before_the_rest_reads_no_more() {
    let server = server([story().fault(ReplyFault::CloseAfter(5))]).await;
    let long = Duration::from_secs(3600);
    let patience = Patience {
        retry: Retry { tries: 4, first: long, most: long, most_asked: long },
        ..Patience::default()
    };
    let model = responses::model("m").base_url(server.url()).patience(patience).background();
    let handle = Agent::builder(model).build().run("tell").detach();
    let mut events = handle.events();
    while let Some(event) = events.next().await {
        if matches!(event.kind, EventKind::Retrying { .. }) {
            break;
        }
    }
    handle.stop(StopRequest::now());
    let (outcome, _) = close(&server, &handle, &Ledger::default()).await;
    assert_eq!((outcome.ending(), outcome.partial_text()), (Ending::Stopped, "once"));
    let asked: Vec<What> = server.asked_about().iter().map(|ask| ask.what).collect();
    assert_eq!(asked, [What::Cancel]);
}

/// S2.13: what the provider does not keep is not asked for again and again.
#[tokio::test]
async fn a_response_that_is_not_kept_is_a_failure_at_once() {
    let created = json!({"type": "response.created", "sequence_number": 0, "response": {"id": "resp_none"}});
    let said = json!({"type": "response.output_text.delta", "sequence_number": 1, "delta": "so far"});
    let body = format!("data: {created}\n\ndata: {said}\n\n");
    let server = server([Reply::default().fault(ReplyFault::Raw(body.into_bytes()))]).await;
    let handle = agent(&server, 4).run("tell").detach();
    let (outcome, _) = close(&server, &handle, &Ledger::default()).await;
    assert_eq!((outcome.ending(), outcome.partial_text()), (Ending::Failed, "so far"));
    let asked: Vec<What> = server.asked_about().iter().map(|ask| ask.what).collect();
    assert_eq!(asked, [What::Rest { after: Some(1) }, What::Cancel]);
}

/// S2.13: a stream that breaks and may not be read on is a failure, and the response does not run on unheard.
#[tokio::test]
async fn a_stream_that_stays_broken_is_a_failure_and_called_off() {
    let server = server([story().fault(ReplyFault::CloseAfter(5))]).await;
    let handle = agent(&server, 1).run("tell").detach();
    let (outcome, _) = close(&server, &handle, &Ledger::default()).await;
    assert_eq!(outcome.ending(), Ending::Failed);
    let asked: Vec<What> = server.asked_about().iter().map(|ask| ask.what).collect();
    assert_eq!(asked, [What::Cancel]);
}

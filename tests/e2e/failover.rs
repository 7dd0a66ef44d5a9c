//! Several models in a row, on different wires: the next is asked before the first byte only, and never after
//! a stop.

use std::{sync::Arc, time::Duration};

use safepoint::{
    Agent, RunHandle, StopRequest,
    event::EventKind,
    receipt::{Ending, ModelState},
    tool::EffectClass,
};
use safepoint_models::{Failover, Patience, Retry, anthropic, gemini, openai, responses};
use safepoint_testkit::{
    script::{Reply, ReplyFault},
    server::ModelServer,
};
use serde_json::json;
use tokio::sync::Semaphore;

use super::world::{Ledger, close, continues, first_text, gated, server};

fn patience(tries: u32, wait: Duration) -> Patience {
    let retry = Retry { tries, first: wait, most: wait, most_asked: wait };
    Patience { retry, ..Patience::default() }
}

fn quick() -> Patience {
    patience(2, Duration::from_millis(1))
}

fn busy() -> ReplyFault {
    ReplyFault::Status { status: 503, body: String::new(), headers: Vec::new() }
}

/// An Anthropic model, and a Gemini one behind it.
fn two(first: &ModelServer, second: &ModelServer) -> Failover {
    let patient = anthropic::model("a").base_url(first.url()).patience(quick());
    Failover::new(patient).or(gemini::model("gemini-3-b").base_url(second.url()).patience(quick()))
}

/// The changes that readers saw.
async fn changes(handle: &RunHandle) -> Vec<(String, String)> {
    let mut events = handle.events();
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        if let EventKind::FailedOver { from, to, .. } = event.kind {
            seen.push((from.to_string(), to.to_string()));
        }
    }
    seen
}

/// S2.12, S3.7: a model that fails all its tries before its first byte gives way; events and receipt name the
/// other.
#[tokio::test]
async fn a_model_that_cannot_begin_gives_way() {
    let unreachable = anthropic::model("a").base_url("http://127.0.0.1:1/v1").patience(quick());
    let first = server([Reply::default().fault(busy()), Reply::default().fault(busy())]).await;
    let second = server([Reply::text("from the other"), Reply::text("again")]).await;
    let agent = Agent::builder(two(&first, &second)).build();
    let handle = agent.run("hi").detach();
    let (outcome, receipt) = close(&second, &handle, &Ledger::default()).await;
    assert_eq!(outcome.answer(), Some("from the other"));
    assert_eq!((first.requests().len(), second.requests().len()), (2, 1));
    assert_eq!(receipt.model.as_ref().unwrap().model, "gemini:gemini-3-b");
    assert_eq!(changes(&handle).await, [("anthropic:a".to_owned(), "gemini:gemini-3-b".to_owned())]);

    let other = gemini::model("gemini-3-b").base_url(second.url());
    let outcome = Agent::builder(Failover::new(unreachable).or(other)).build().run("hi").await;
    assert_eq!(outcome.answer(), Some("again"));
}

/// S5.1, S2.12: in the middle of a tool loop the next wire takes the history of the first, foreign calls
/// included.
#[tokio::test]
async fn the_next_wire_takes_the_history_of_the_first() {
    let all = |wire: usize, url: String| -> Box<dyn Fn(Failover) -> Failover> {
        Box::new(move |before: Failover| match wire {
            0 => before.or(openai::model("o").base_url(&url).patience(quick())),
            1 => before.or(anthropic::model("a").base_url(&url).patience(quick())),
            2 => before.or(responses::model("r").base_url(&url).patience(quick())),
            _ => before.or(gemini::model("gemini-3-g").base_url(&url).patience(quick())),
        })
    };
    let first = |wire: usize, url: String| match wire {
        0 => Failover::new(openai::model("o").base_url(&url).patience(quick())),
        1 => Failover::new(anthropic::model("a").base_url(&url).patience(quick())),
        2 => Failover::new(responses::model("r").base_url(&url).patience(quick())),
        _ => Failover::new(gemini::model("gemini-3-g").base_url(&url).patience(quick())),
    };
    for (from, to) in (0..4).flat_map(|from| (0..4).map(move |to| (from, to))) {
        let calls =
            Reply::text("let me pay").reasoning("hm").and_call("pay", json!({})).and_call("pay", json!({}));
        let broken = server([calls, Reply::default().fault(busy()), Reply::default().fault(busy())]).await;
        let sound = server([Reply::text("paid")]).await;
        let ledger = Ledger::default();
        let pay = gated("pay", EffectClass::Unsafe, &ledger, &Arc::new(Semaphore::new(9)));
        let model = all(to, sound.url())(first(from, broken.url()));
        let handle = Agent::builder(model).tool(pay).build().run("pay").detach();
        let (outcome, _) = close(&sound, &handle, &ledger).await;
        assert_eq!((outcome.answer(), ledger.count("commit")), (Some("paid"), 2), "{from} to {to}");
    }
}

/// S2.12: once the first byte is here, a failure is a failure: no other model is asked.
#[tokio::test]
async fn no_other_model_is_asked_after_the_first_byte() {
    for fault in [ReplyFault::CloseAfter(3), ReplyFault::ErrorAfter(3), ReplyFault::StallAfter(3)] {
        let first = server([Reply::pieces(["so ", "far"]).fault(fault)]).await;
        let second = server([Reply::text("never")]).await;
        let idle = Patience { idle: Duration::from_millis(200), ..quick() };
        let stalls = anthropic::model("a").base_url(first.url()).patience(idle);
        let model = Failover::new(stalls).or(gemini::model("b").base_url(second.url()));
        let handle = Agent::builder(model).build().run("hi").detach();
        let (outcome, _) = close(&first, &handle, &Ledger::default()).await;
        assert_eq!((outcome.ending(), second.requests().len()), (Ending::Failed, 0));
    }
}

/// S2.13: a refused request or key is reported, not hidden behind another model.
#[tokio::test]
async fn a_refusal_is_not_hidden() {
    for status in [400, 401, 404] {
        let fault = ReplyFault::Status { status, body: String::new(), headers: Vec::new() };
        let first = server([Reply::default().fault(fault)]).await;
        let second = server([Reply::text("never")]).await;
        let outcome = Agent::builder(two(&first, &second)).build().run("hi").await;
        assert_eq!((outcome.ending(), second.requests().len()), (Ending::Failed, 0));
    }
}

/// S2.13: when no model can answer, the last one's failure is the run's.
#[tokio::test]
async fn when_no_model_can_answer_the_last_failure_counts() {
    let broken = || Reply::default().fault(busy());
    let (first, second) = (server([broken(), broken()]).await, server([broken(), broken()]).await);
    let handle = Agent::builder(two(&first, &second)).build().run("hi").detach();
    let (outcome, receipt) = close(&second, &handle, &Ledger::default()).await;
    assert_eq!(outcome.ending(), Ending::Failed);
    assert_eq!((first.requests().len(), second.requests().len()), (2, 2));
    assert_eq!(receipt.model.as_ref().unwrap().model, "gemini:gemini-3-b");
}

/// S2.12, S2.8: a stop while the first model is waited for, or waits for its next try: the second is never
/// asked.
#[tokio::test]
async fn after_a_stop_no_other_model_is_asked() {
    for fault in [ReplyFault::Silence, busy(), ReplyFault::StallAfter(4)] {
        let first = server([Reply::pieces(["so ", "far"]).fault(fault.clone())]).await;
        let second = server([Reply::text("later")]).await;
        let slow = patience(2, Duration::from_secs(3600));
        let model = Failover::new(anthropic::model("a").base_url(first.url()).patience(slow))
            .or(gemini::model("b").base_url(second.url()));
        let agent = Agent::builder(model).build();
        let handle = agent.run("hi").detach();
        first.request(0).await;
        match fault {
            ReplyFault::StallAfter(_) => first_text(&handle).await,
            ReplyFault::Silence => {}
            _ => {
                let mut events = handle.events();
                while !matches!(events.next().await.unwrap().kind, EventKind::Retrying { .. }) {}
            }
        }
        handle.stop(StopRequest::now());
        let (outcome, receipt) = close(&first, &handle, &Ledger::default()).await;
        assert_eq!((outcome.ending(), second.requests().len()), (Ending::Stopped, 0));
        assert_ne!(receipt.model.as_ref().unwrap().state, ModelState::Completed);
        assert!(changes(&handle).await.is_empty());
        let second_only = Agent::builder(gemini::model("b").base_url(second.url())).build();
        continues(&second_only, &outcome).await;
    }
}

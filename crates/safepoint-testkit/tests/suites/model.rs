//! The model without a wire.

use std::time::Duration;

use safepoint::{
    Agent, StopRequest,
    approval::ApprovalMode,
    event::EventKind,
    model::{Delta, Finish, ModelError, ModelErrorKind},
    receipt::Ending,
};
use safepoint_testkit::{
    invariants::Invariants,
    recorder,
    script::{Reply, ReplyFault, Script},
    scripted::ScriptedModel,
    tools::GateTools,
};
use serde_json::json;

/// S2.2: through a gate, a stop mid-stream is seen by the model, and what had arrived is kept.
#[tokio::test]
async fn a_gate_sees_the_engine_let_go() {
    let model = ScriptedModel::new(Script::default());
    let mut gate = model.gate();
    let handle = Agent::builder(model.clone()).build().run("tell").detach();
    let asked = gate.request().await.unwrap();
    assert_eq!((asked.entries().len(), model.requests().len()), (1, 1));
    gate.send(Delta::Text("once upon".into()));
    recorder::until(&handle, |kind| matches!(kind, EventKind::Text(_))).await.unwrap();
    handle.stop(StopRequest::now());
    gate.dropped().await;
    let closed = Invariants::of(&handle).check().await.unwrap();
    assert_eq!((closed.outcome.ending(), closed.outcome.partial_text()), (Ending::Stopped, "once upon"));
}

/// S3.1: through a gate, a message ends or fails as the test says.
#[tokio::test]
async fn a_gate_ends_or_fails_a_message() {
    let model = ScriptedModel::new(Script::default());
    let (ends, fails) = (model.gate(), model.gate());
    let agent = Agent::builder(model).build();
    ends.send(Delta::Text("bye".into())).send(Delta::Ended(Finish::Natural));
    assert_eq!(agent.run("hi").await.answer(), Some("bye"));
    fails.fail(ModelError::new(ModelErrorKind::StreamIdle, "nothing came"));
    let safepoint::Outcome::Failed(error) = agent.run("hi").await else { panic!() };
    assert_eq!(error.code(), "stream_idle");
}

/// S14: a script plays as it does through a wire: calls, results, faults, the practice model.
#[tokio::test(start_paused = true)]
async fn a_script_plays_without_a_wire() {
    let hour = Duration::from_secs(3600);
    let script = Script::of([
        Reply::text("let me see").reasoning("hm").paced(3, hour).and_call("pay", json!({})).usage(7, 3),
        Reply::text("paid"),
        Reply::text("x").fault(ReplyFault::CloseAfter(1)),
        Reply::text("x").fault(ReplyFault::Status { status: 401, body: String::new(), headers: Vec::new() }),
        Reply::text("x").fault(ReplyFault::StallAfter(1)),
    ]);
    let tools = GateTools::new();
    tools.gate().open_for_all();
    let model = ScriptedModel::new(script);
    let agent = Agent::builder(model.clone()).approvals(ApprovalMode::Auto).tool(tools.gated("pay")).build();
    let handle = agent.run("go").detach();
    let closed = Invariants::of(&handle).ledger(tools.ledger()).check().await.unwrap();
    assert_eq!((closed.outcome.answer(), model.requests().len()), (Some("paid"), 2));
    for _ in 0..2 {
        let handle = agent.run("go").detach();
        let closed = Invariants::of(&handle).check().await.unwrap();
        assert_eq!(closed.outcome.ending(), Ending::Failed);
    }
    let handle = agent.run("go").detach();
    recorder::until(&handle, |kind| matches!(kind, EventKind::Text(_))).await.unwrap();
    handle.stop(StopRequest::now());
    assert_eq!(Invariants::of(&handle).check().await.unwrap().outcome.ending(), Ending::Stopped);
    assert_eq!(agent.run("hello").await.answer(), Some("You said: hello"));
}

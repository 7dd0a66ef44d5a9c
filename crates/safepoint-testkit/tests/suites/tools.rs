//! Each gate tool in a run that is stopped while it is at its gate, and in one that is not.

use std::time::Duration;

use safepoint::{
    Agent, RunHandle, StopRequest,
    approval::ApprovalMode,
    receipt::{CallReport, CallStatus, Ending, SideEffect},
    tool::{EffectClass, FnTool},
};
use safepoint_models::{anthropic, gemini, openai, responses};
use safepoint_testkit::{
    invariants::Invariants,
    ledger::Mark,
    script::{Reply, Script},
    server::{ModelServer, ServedWire},
    tools::GateTools,
};
use serde_json::json;

const WIRES: [ServedWire; 3] = [ServedWire::OpenAi, ServedWire::Anthropic, ServedWire::Responses];

struct World {
    server: ModelServer,
    tools: GateTools,
    handle: RunHandle,
}

/// A run whose model asks for `tool` once.
async fn world(wire: ServedWire, make: impl FnOnce(&GateTools) -> FnTool) -> World {
    let script = Script::of([Reply::call("it", json!({})), Reply::text("fine")]);
    let server = ModelServer::start(script).await.unwrap();
    let tools = GateTools::new();
    let builder = match wire {
        ServedWire::OpenAi => Agent::builder(openai::model("m").base_url(server.url())),
        ServedWire::Anthropic => Agent::builder(anthropic::model("m").base_url(server.url())),
        ServedWire::Responses => Agent::builder(responses::model("m").base_url(server.url())),
        ServedWire::Gemini => Agent::builder(gemini::model("m").base_url(server.url())),
    };
    let agent = builder.approvals(ApprovalMode::Auto).tool(make(&tools)).build();
    let handle = agent.run("go").detach();
    World { server, tools, handle }
}

impl World {
    async fn stopped(self) -> (CallReport, GateTools) {
        self.tools.gate().came(1).await;
        self.handle.stop(StopRequest::now().with_cleanup_cap(Duration::from_millis(30)));
        self.closed(Ending::Stopped).await
    }

    async fn passed(self) -> (CallReport, GateTools) {
        self.tools.gate().open_for_all();
        self.closed(Ending::Done).await
    }

    async fn closed(self, ending: Ending) -> (CallReport, GateTools) {
        let closing = Invariants::of(&self.handle).server(&self.server).first_request(0);
        let closed = closing.ledger(self.tools.ledger()).check().await.unwrap();
        assert_eq!(closed.outcome.ending(), ending, "{}", closed.receipt);
        (closed.receipt.calls[0].clone(), self.tools)
    }
}

/// S2.7, S4.3: stopped at its gate, each tool ends as its contract says.
#[tokio::test]
async fn each_contract_ends_in_its_own_way() {
    for wire in WIRES {
        let (call, tools) = world(wire, |tools| tools.gated("it")).await.stopped().await;
        assert_eq!((call.status, call.effect), (CallStatus::Stopped, SideEffect::Unknown));
        assert_eq!((tools.ledger().count(Mark::Entry), tools.ledger().count(Mark::Commit)), (1, 0));

        let (call, tools) = world(wire, |tools| tools.polite("it")).await.stopped().await;
        assert_eq!((call.status, tools.ledger().count(Mark::Cleanup)), (CallStatus::Stopped, 1));
        assert_eq!(call.cleanups.len(), 1);

        let (call, _) = world(wire, |tools| tools.deaf("it")).await.stopped().await;
        assert_eq!((call.status, call.effect), (CallStatus::Stopped, SideEffect::Unknown));

        let (call, _) = world(wire, |tools| tools.disguising("it")).await.stopped().await;
        assert_eq!(call.status, CallStatus::Stopped);
    }
}

/// S2.14: a tool that swallows its stop and commits changes nothing: the run stops, the receipt tells.
#[tokio::test]
async fn a_swallowed_stop_is_reported() {
    let (call, tools) = world(WIRES[0], |tools| tools.swallowing("it")).await.stopped().await;
    assert_eq!((call.effect, tools.ledger().count(Mark::Commit)), (SideEffect::Done, 1));
}

/// S1.9, S2.14: a tool stops its run by asking.
#[tokio::test]
async fn a_tool_may_ask() {
    let (call, _) = world(WIRES[0], |tools| tools.asking("it")).await.closed(Ending::Stopped).await;
    assert_eq!((call.status, call.reason.unwrap().code.as_str()), (CallStatus::Stopped, "tool"));
}

/// S4.3, S4.7: what is left running, async or blocking, is named, and what it returns later is late.
#[tokio::test]
async fn what_is_left_running_is_named() {
    for make in [GateTools::late, GateTools::blocking] {
        let world = world(WIRES[1], |tools| make(tools, "it")).await;
        world.tools.gate().came(1).await;
        world.handle.stop(StopRequest::now().with_cleanup_cap(Duration::ZERO));
        let outcome = world.handle.done().await;
        assert_eq!(outcome.receipt().calls[0].status, CallStatus::LeftRunning);
        world.tools.gate().open_for_all();
        world.closed(Ending::Stopped).await;
    }
}

/// S4.3: a tool that may finish does, if it is let.
#[tokio::test]
async fn a_finishing_tool_finishes() {
    let world = world(WIRES[0], |tools| tools.finishing("it")).await;
    world.tools.gate().came(1).await;
    world.handle.stop(StopRequest::now());
    world.tools.gate().let_pass(1);
    let (call, tools) = world.closed(Ending::Stopped).await;
    assert_eq!(
        (call.status, call.effect, tools.ledger().count(Mark::Commit)),
        (CallStatus::Completed, SideEffect::Done, 1)
    );
}

/// S4.5: the model gets the progress that a stopped call reported.
#[tokio::test]
async fn progress_is_kept() {
    let world = world(WIRES[0], |tools| tools.partial("it")).await;
    world.tools.gate().came(1).await;
    world.handle.stop(StopRequest::now());
    let outcome = world.handle.done().await;
    assert!(format!("{:?}", outcome.history()).contains("half of it"));
    world.closed(Ending::Stopped).await;
}

/// S4.1, S4.7: behind the open gate each ends as it was made to, and the run continues.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn let_through_they_end_as_made() {
    for make in
        [GateTools::gated, GateTools::polite, GateTools::deaf, GateTools::blocking, GateTools::spinning]
    {
        let (call, tools) = world(WIRES[0], |tools| make(tools, "it")).await.passed().await;
        assert_eq!((call.status, tools.ledger().count(Mark::Commit)), (CallStatus::Completed, 1));
    }
    for make in [GateTools::failing, GateTools::panicking] {
        let (call, tools) = world(WIRES[0], |tools| make(tools, "it")).await.passed().await;
        assert_eq!((call.status, call.effect), (CallStatus::Failed, SideEffect::Unknown));
        assert_eq!(tools.ledger().count(Mark::Commit), 0);
    }
    let look = |tools: &GateTools| tools.gated("it").with(|spec| spec.effect(EffectClass::ReadOnly));
    let (call, _) = world(WIRES[0], look).await.stopped().await;
    assert_eq!(call.effect, SideEffect::None);
}

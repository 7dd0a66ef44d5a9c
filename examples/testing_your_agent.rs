//! A test of an agent: a scripted model in process, a tool that waits at a gate, and the invariants of every run.

use std::error::Error;

use safepoint::{Agent, StopRequest, approval::ApprovalMode};
use safepoint_testkit::{
    invariants::Invariants,
    script::{Reply, Script},
    scripted::ScriptedModel,
    tools::GateTools,
};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let tools = GateTools::new();
    let model = ScriptedModel::new(Script::of([Reply::call("pay", json!({}))]));
    let agent = Agent::builder(model).approvals(ApprovalMode::Auto).tool(tools.gated("pay")).build();

    let handle = agent.run("pay the rent").detach();
    tools.gate().came(1).await; // the tool has begun, and waits: no sleep, no luck
    handle.stop(StopRequest::now());

    let closed = Invariants::of(&handle).ledger(tools.ledger()).check().await?;
    let call = &closed.receipt.calls[0];
    println!("{}: {:?}, effect {:?}", call.name, call.status, call.effect);
    Ok(())
}

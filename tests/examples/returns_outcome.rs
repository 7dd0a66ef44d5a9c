//! A program whose `main` returns an outcome; its argument says which. A test looks at what it prints and how it ends.

use std::{error::Error, time::Duration};

use safepoint::{
    Agent, Limits, Outcome, Reason, StopRequest,
    approval::{ApprovalMode, ToolApproval, WithoutApprover},
    model::{ModelError, ModelErrorKind},
    tool,
};
use safepoint_testkit::{
    script::{Reply, Script},
    scripted::ScriptedModel,
};
use serde_json::json;

/// A run that a program stops by hand.
async fn stopped(agent: Agent, reason: Reason) -> Outcome {
    let handle = agent.run("go").detach();
    handle.stop(StopRequest::now().with_reason(reason));
    handle.done().await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<Outcome, Box<dyn Error>> {
    let ending = std::env::args().nth(1).ok_or("which ending?")?;
    let pay = tool::from_fn("pay", "Pays", |_cx, (): ()| async { Ok("paid") })
        .with(|spec| spec.approval(ToolApproval::Required));
    let model = ScriptedModel::new(Script::of([
        Reply::call("pay", json!({})),
        Reply::text("The bill is\npaid.").paced(100, Duration::ZERO),
    ]));
    let gate = (ending == "failed").then(|| model.gate());
    if let Some(gate) = gate {
        gate.fail(
            ModelError::new(ModelErrorKind::Unauthorized, "the provider answered 401: no such key")
                .with_hint("check the API key"),
        );
    }
    let agent = Agent::builder(model).tool(pay);
    Ok(match ending.as_str() {
        "done" | "failed" => agent.approvals(ApprovalMode::Auto).build().run("go").await,
        "limit" => {
            let limits = Limits::default().with_max_rounds(1);
            agent.approvals(ApprovalMode::Auto).limits(limits).build().run("go").await
        }
        "sigint" => stopped(agent.build(), Reason::sigint()).await,
        "sigterm" => stopped(agent.build(), Reason::sigterm()).await,
        "suspended" => {
            let suspends = ApprovalMode::Ask(None, WithoutApprover::Suspend);
            agent.approvals(suspends).build().run("go").await
        }
        other => return Err(format!("there is no ending {other}").into()),
    })
}

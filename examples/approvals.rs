//! A call that a person must approve: the run suspends, nothing of it runs meanwhile, and the decision resumes it.

use std::error::Error;

use safepoint::{
    Agent, Outcome,
    approval::{ApprovalMode, Decision, ToolApproval, WithoutApprover},
    tool,
};
use safepoint_models::openai;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let pay = tool::from_fn("pay", "Pays the rent", |_cx, (): ()| async { Ok("paid") })
        .with(|spec| spec.approval(ToolApproval::Required));
    let agent = Agent::builder(openai::from_env("gpt-5.2")?)
        .tool(pay)
        .approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend))
        .build();
    let mut outcome = agent.run("Pay the rent.").await;
    while let Outcome::Suspended(waiting) = &outcome {
        let mut decisions = Vec::new();
        for asked in waiting.approvals() {
            println!("may {} run? not today", asked.tool);
            decisions.push((asked.id.clone(), Decision::Deny { message: "Not before Friday.".into() }));
        }
        outcome = agent.resume_with(&outcome, decisions).await;
    }
    for call in &outcome.receipt().calls {
        println!("{}: {:?}, effect {:?}", call.name, call.status, call.effect);
    }
    println!("{}", outcome.answer().unwrap_or_default());
    Ok(())
}

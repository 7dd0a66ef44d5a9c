//! An agent that another party runs, over A2A, as a tool. `A2A_URL` is its address.

use std::{env, error::Error};

use safepoint::{Agent, approval::ApprovalMode, remote::RemoteTool};
use safepoint_models::openai;
use safepoint_remote::a2a::A2a;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let researcher = A2a::at(&env::var("A2A_URL")?)?.named("researcher");
    let agent = Agent::builder(openai::from_env("gpt-5.2")?)
        .tool(RemoteTool::new(researcher))
        .approvals(ApprovalMode::Auto)
        .build();
    let outcome = agent.run("Ask the researcher what a safe point is.").await;
    for call in &outcome.receipt().calls {
        println!("{} {:?}, effect {:?}", call.name, call.status, call.effect);
    }
    println!("{}", outcome.answer().unwrap_or_default());
    Ok(())
}

//! The tools of an MCP server. `MCP_URL` is its address; `Server::stdio` starts one as a process.

use std::{env, error::Error};

use safepoint::{Agent, approval::ApprovalMode};
use safepoint_models::openai;
use safepoint_tools::mcp::Server;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Server::http("demo", env::var("MCP_URL")?).include(["echo"]).connect().await?;
    let tools = client.tools().await?;
    println!("tools: {:?}", tools.iter().map(|tool| tool.spec().name.as_str()).collect::<Vec<_>>());
    // A stranger's tool asks before it runs. Here everything may run.
    let agent =
        Agent::builder(openai::from_env("gpt-5.2")?).tools(tools).approvals(ApprovalMode::Auto).build();
    let outcome = agent.run("Say hello through the server.").await;
    for call in &outcome.receipt().calls {
        println!("{} {:?}", call.name, call.status);
    }
    println!("{}", outcome.answer().unwrap_or_default());
    client.close().await;
    Ok(())
}

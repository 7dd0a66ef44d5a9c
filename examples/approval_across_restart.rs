//! A payment waits for a person, over the end of the program: run it once with a file, and again with `yes` behind the file.

use std::{env, error::Error, sync::Arc};

use safepoint::{
    Agent, Session,
    approval::{ApprovalMode, Decision, ToolApproval, WithoutApprover},
    session::{ChatPlanner, SessionStop},
    store::OwnerProcess,
    tool,
};
use safepoint_models::openai;
use safepoint_stores::SqliteStore;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (file, answer) = (env::args().nth(1).ok_or("name a file")?, env::args().nth(2));
    let pay = tool::from_fn("pay", "Pays the rent", |_cx, (): ()| async { Ok("paid") })
        .with(|spec| spec.approval(ToolApproval::Required));
    let agent = Agent::builder(openai::from_env("gpt-5.2")?)
        .tool(pay)
        .approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend))
        .build();
    let store = Arc::new(SqliteStore::open(file)?);
    let builder = Session::<String>::builder(ChatPlanner::new(agent));
    let session = builder.open(store, "rent".into(), OwnerProcess::here()).await?;
    if answer.as_deref() == Some("yes") {
        let mut events = session.events();
        for asked in session.approvals().await {
            println!("approving {}", asked.tool);
            session.decide(&asked.id, Decision::Approve).await?;
        }
        while let Some(event) = events.next().await {
            if let safepoint::session::SessionEvent::TurnEnded { receipt, .. } = event.kind {
                println!("{:?}: {} {:?}", receipt.ending, receipt.calls[0].name, receipt.calls[0].status);
                break;
            }
        }
    } else {
        let ticket = session.push("Pay the rent.".to_owned()).map_err(|error| error.to_string())?;
        println!("{:?}", ticket.outcome().await);
    }
    session.stop(SessionStop::at_turn_end());
    session.done().await;
    Ok(())
}

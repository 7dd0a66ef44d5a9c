//! A stop at the next safe point: the call that runs may end within its grace, and the next one does not begin.

use std::error::Error;

use safepoint::{Agent, Outcome, Reason, StopRequest, event::EventKind, secs, tool};
use safepoint_models::openai;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let copy = tool::from_fn("copy", "Copies the files", |cx, (): ()| async move {
        cx.progress("copying");
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        Ok("copied")
    });
    let erase = tool::from_fn("erase", "Erases the files", |_cx, (): ()| async { Ok("erased") });
    let agent = Agent::builder(openai::from_env("gpt-5.2")?).tool(copy).tool(erase).build();
    let run = agent.run("Move the files.").start();
    let (handle, mut events) = (run.handle(), run.handle().events());
    while let Some(event) = events.next().await {
        if matches!(event.kind, EventKind::Progress { .. }) {
            break;
        }
    }
    handle.stop(StopRequest::graceful(secs(5)).with_reason(Reason::user("enough")));
    if let Outcome::Stopped(stopped) = run.await {
        for call in &stopped.receipt().calls {
            println!("{}: {:?}, effect {:?}", call.name, call.status, call.effect);
        }
    }
    Ok(())
}

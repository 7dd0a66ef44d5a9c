//! One call is stopped alone: the model gets that as its result, and the run continues.

use safepoint::{Agent, StopRequest, tool};
use safepoint_models::openai;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let wait = tool::from_fn("wait", "Waits for a parcel", |_cx, (): ()| async {
        std::future::pending::<()>().await;
        Ok("it came")
    });
    let agent = Agent::builder(openai::from_env("gpt-5.2")?).tool(wait).build();
    let run = agent.run("Wait for the parcel.").start();
    let (handle, mut events) = (run.handle(), run.handle().events());
    while let Some(event) = events.next().await {
        if let Some((call, name)) = event.call_started() {
            println!("{name} runs; stopping it");
            handle.stop_call(call, StopRequest::now());
        }
    }
    let outcome = run.await;
    println!("{:?}: {}", outcome.ending(), outcome.answer().unwrap_or_default());
    Ok(())
}

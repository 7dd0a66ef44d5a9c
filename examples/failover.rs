//! Several models in a row: where one cannot begin to answer, the next one is asked.

use safepoint::{Agent, event::EventKind};
use safepoint_models::{Failover, Patience, Retry, openai};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Nothing listens there, and one try is enough to know that.
    let once = Patience { retry: Retry::never(), ..Patience::default() };
    let near = openai::model("local").base_url("http://127.0.0.1:9/v1").patience(once);
    let models = Failover::new(near).or(openai::from_env("gpt-5.2")?);
    let run = Agent::builder(models).build().run("Are you there?").start();
    let mut events = run.handle().events();
    while let Some(event) = events.next().await {
        if let EventKind::FailedOver { from, to, .. } = event.kind {
            println!("{from} cannot answer; {to} is asked");
        }
    }
    println!("{}", run.await.answer().unwrap_or("(none)"));
    Ok(())
}

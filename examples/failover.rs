//! Several models in a row: where one cannot begin to answer, the next one is asked.

use std::error::Error;

use futures_util::StreamExt as _;
use safepoint::{
    Agent,
    event::{EventKind, RunItem},
};
use safepoint_models::{Failover, Patience, Retry, openai};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Nothing listens there, and one try is enough to know that.
    let once = Patience { retry: Retry::never(), ..Patience::default() };
    let near = openai::model("local").base_url("http://127.0.0.1:9/v1").patience(once);
    let models = Failover::new(near).or(openai::from_env("gpt-5.2")?);
    let mut items = Agent::builder(models).build().run("Are you there?").into_stream();
    while let Some(item) = items.next().await {
        match item {
            RunItem::Event(event) => {
                if let EventKind::FailedOver { from, to, .. } = event.kind {
                    println!("{from} cannot answer; {to} is asked");
                }
            }
            RunItem::Outcome(outcome) => println!("{}", outcome.answer().unwrap_or("(none)")),
        }
    }
    Ok(())
}

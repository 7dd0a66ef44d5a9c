//! Everything that happens, as one stream that ends with the outcome. Dropping the stream stops the run.

use std::error::Error;

use futures_util::StreamExt as _;
use safepoint::{
    Agent,
    event::{EventKind, RunItem},
    tool,
};
use safepoint_models::openai;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let clock = tool::from_fn("clock", "Says the time", |_cx, (): ()| async { Ok("noon") });
    let agent = Agent::builder(openai::from_env("gpt-5.2")?).tool(clock).build();
    let mut items = agent.run("What time is it?").into_stream();
    while let Some(item) = items.next().await {
        match item {
            RunItem::Event(event) => match event.kind {
                EventKind::Text(text) => print!("{text}"),
                EventKind::CallDelta { name, arguments, .. } => {
                    println!("{name} is asked for with {arguments}")
                }
                _ => {}
            },
            RunItem::Outcome(outcome) => println!("\nended: {:?}", outcome.ending()),
        }
    }
    Ok(())
}

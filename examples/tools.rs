//! A tool is an async function: what the model reads of it comes from its name, its comments and its types. Calls of tools
//! that only read run in parallel.

use std::error::Error;

use safepoint::{Agent, tool};
use safepoint_models::openai;

/// Says the weather.
#[tool(effect = "read_only", timeout = "10s")]
async fn weather(
    /// The city, without its country.
    city: String,
    /// How many days ahead.
    days: Option<u8>,
) -> String {
    format!("sunny in {city}, {} days from now", days.unwrap_or(0))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let agent = Agent::builder(openai::from_env("gpt-5.2")?).tool(weather).build();
    let outcome = agent.run("Is it warmer in Lisbon or in Oslo?").await;
    for call in &outcome.receipt().calls {
        println!("{} {:?}, effect {:?}", call.name, call.status, call.effect);
    }
    println!("{}", outcome.answer().unwrap_or("no answer"));
    Ok(())
}

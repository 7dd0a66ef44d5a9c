//! A tool: an async closure, whose arguments' schema comes from a type. Calls of tools that only read run in parallel.

use std::error::Error;

use safepoint::{
    Agent,
    tool::{self, EffectClass},
};
use safepoint_models::openai;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Place {
    /// The city, without its country.
    city: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let weather = tool::from_fn("weather", "Says the weather", |_cx, place: Place| async move {
        Ok(format!("sunny in {}", place.city))
    })
    .with(|spec| spec.effect(EffectClass::ReadOnly));
    let agent = Agent::builder(openai::from_env("gpt-5.2")?).tool(weather).build();
    let outcome = agent.run("Is it warmer in Lisbon or in Oslo?").await;
    for call in &outcome.receipt().calls {
        println!("{} {:?}, effect {:?}", call.name, call.status, call.effect);
    }
    println!("{}", outcome.answer().unwrap_or("no answer"));
    Ok(())
}

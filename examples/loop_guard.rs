//! A guard against a run that goes in circles: first the model gets a note, then the run is stopped.

use std::error::Error;

use safepoint::{
    Agent,
    guard::LoopGuard,
    history::Message,
    tool::{self, EffectClass},
};
use safepoint_models::openai;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Build {
    number: u32,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let status = tool::from_fn("status", "Says how a build is", |_cx, build: Build| async move {
        Ok(format!("build {} waits", build.number))
    })
    .with(|spec| spec.effect(EffectClass::ReadOnly));
    let guard = LoopGuard::new().repeats(3, 4);
    let agent = Agent::builder(openai::from_env("gpt-5.2")?).tool(status).hooks(guard).build();
    let outcome = agent.run("Tell me when build 7 is done.").await;
    for message in outcome.history().entries() {
        if let Message::Results { results } = &**message {
            results.iter().for_each(|result| println!("{}", result.text));
        }
    }
    if let Some(stop) = &outcome.receipt().stop {
        println!("{}: {}", stop.reason.code, stop.reason.text);
    }
    Ok(())
}

//! An answer of a type while it arrives: what of it is certain is shown, and grows up to the answer.

use std::error::Error;

use safepoint::Agent;
use safepoint_models::openai;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Trip {
    city: String,
    days: u32,
    sights: Vec<String>,
}

/// The same, of which anything may be missing.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Draft {
    city: Option<String>,
    days: Option<u32>,
    sights: Vec<String>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let agent = Agent::builder(openai::from_env("gpt-5.2")?).build();
    let run = agent.run_typed::<Trip>("Plan a trip to Lisbon.").start();
    let mut partials = run.partials::<Draft>();
    let mut seen = 0;
    while let Some(draft) = partials.next().await {
        // The last text may still grow; all before it are whole.
        while draft.sights.len() > seen + 1 {
            println!("so far: {:?}, {:?} days, {}", draft.city, draft.days, draft.sights[seen]);
            seen += 1;
        }
    }
    let Trip { city, days, sights } = run.await.into_result()?.into_value();
    println!("{days} days in {city}: {}", sights.join(", "));
    Ok(())
}

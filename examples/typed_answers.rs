//! An answer of a type. An answer that does not fit goes back to the model, which may correct it.

use safepoint::{Agent, Outcome};
use safepoint_models::openai;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct City {
    name: String,
    people: u64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let agent = Agent::builder(openai::from_env("gpt-5.2")?).build();
    match agent.run_typed::<City>("Which is the largest city of Europe?").await {
        Outcome::Done(answer) => {
            let City { name, people } = answer.into_value();
            println!("{name} has {people} people");
        }
        other => println!("{}", other.receipt()),
    }
    Ok(())
}

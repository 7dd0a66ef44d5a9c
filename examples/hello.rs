//! One question and its answer. Set `OPENAI_API_KEY`, or `OPENAI_BASE_URL` for another server of the same wire.

use std::error::Error;

use safepoint::{Agent, Outcome};
use safepoint_models::openai;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let agent = Agent::builder(openai::from_env("gpt-5.2")?).system("Answer in one sentence.").build();
    match agent.run("What is a safe point?").await {
        Outcome::Done(answer) => println!("{answer}"),
        other => println!("{}", other.receipt()),
    }
    Ok(())
}

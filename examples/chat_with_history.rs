//! A conversation: each run goes on from the history that the run before it left, however that run ended.

use std::error::Error;

use safepoint::{Agent, History};
use safepoint_models::openai;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let agent = Agent::builder(openai::from_env("gpt-5.2")?).build();
    let mut history = History::new();
    for question in ["My name is Ada.", "What is my name?"] {
        let outcome = agent.run_on(history, question).await;
        println!("{question} {}", outcome.answer().unwrap_or("(no answer)"));
        history = outcome.history().clone();
    }
    println!("{} messages", history.entries().len());
    Ok(())
}

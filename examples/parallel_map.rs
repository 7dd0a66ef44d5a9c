//! One agent on many inputs at once, and one stop for all of them.

use std::error::Error;

use futures_util::future::join_all;
use safepoint::{Agent, Reason, StopRequest, raw::within, stop::Scope};
use safepoint_models::openai;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let agent = Agent::builder(openai::from_env("gpt-5.2")?).system("Translate into French.").build();
    let words = ["rain", "snow", "fog"];

    let (all, stop) = Scope::root();
    let outcomes = join_all(words.iter().map(|word| within(agent.run(*word), &all))).await;
    for (word, outcome) in words.iter().zip(&outcomes) {
        println!("{word}: {}", outcome.answer().unwrap_or("(none)"));
    }

    // The same again, and this time one request stops every one of them.
    let runs: Vec<_> = words.iter().map(|word| within(agent.run(*word), &all).start()).collect();
    stop.stop(StopRequest::now().with_reason(Reason::user("never mind")));
    for (word, outcome) in words.iter().zip(join_all(runs).await) {
        println!("{word}: {:?}", outcome.ending());
    }
    Ok(())
}

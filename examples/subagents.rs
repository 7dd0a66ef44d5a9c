//! An agent as a tool of another: its work is a run of its own, in the same tree. A stop of the tree reaches it.

use std::error::Error;

use safepoint::Agent;
use safepoint_models::openai;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let model = openai::from_env("gpt-5.2")?;
    let writer = Agent::builder(model.clone()).system("You write one line.").build();
    let editor = Agent::builder(model)
        .system("You ask the writer, and improve what it wrote.")
        .child(writer.as_subagent("writer", "Writes a line about something"))
        .build();
    let outcome = editor.run("A line about rain, please.").await;
    for call in &outcome.receipt().calls {
        let rounds =
            call.child.as_ref().and_then(|child| child.receipt.as_ref()).map(|receipt| receipt.rounds);
        println!("{} {:?} after {} rounds of its own", call.name, call.status, rounds.unwrap_or_default());
    }
    println!("{}", outcome.answer().unwrap_or_default());
    Ok(())
}

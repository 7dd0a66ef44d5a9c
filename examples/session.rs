//! A conversation with an inbox: what is pushed while a turn runs waits for the next one, and each item has one outcome.

use std::error::Error;

use safepoint::{
    Agent, Session,
    event::{EventKind, Fact},
    session::{ChatPlanner, SessionEvent, SessionStop},
};
use safepoint_models::openai;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let agent = Agent::builder(openai::from_env("gpt-5.2")?).build();
    let session: Session<String> = Session::builder(ChatPlanner::new(agent)).start();
    for question in ["What is the capital of Portugal?", "And of Norway?"] {
        let ticket = session.push(question.to_owned()).map_err(|error| error.to_string())?;
        println!("{}: {question} {:?}", ticket.id(), ticket.outcome().await);
    }
    session.stop(SessionStop::at_turn_end());
    let mut events = session.events();
    while let Some(event) = events.next().await {
        if let SessionEvent::Run { turn, event } = event.kind
            && let EventKind::Fact(fact) = event.kind
            && let Fact::ModelEnded { message, .. } = &*fact
        {
            println!("{turn}: {}", message.text());
        }
    }
    println!("{:?}", session.done().await.reason());
    Ok(())
}

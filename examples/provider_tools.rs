//! A tool that the provider runs itself: its use and its sources are in the events, the message and the receipt.

use std::error::Error;

use safepoint::{
    Agent,
    event::EventKind,
    history::Message,
    message::ProviderPart,
    model::{ProviderTool, WebSearch},
};
use safepoint_models::{openai, responses};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Not each wire has such tools: then the agent is not built, and the error says what to do.
    let chat = Agent::builder(openai::from_env("gpt-5.2")?).provider_tool(ProviderTool::CodeExecution);
    if let Err(error) = chat.try_build() {
        println!("{error}");
    }

    let search = WebSearch::new().allow_domains(["doc.rust-lang.org"]);
    let agent = Agent::builder(responses::from_env("gpt-5.2")?).provider_tool(search).build();
    let run = agent.run("What is a crate?").start();
    let mut events = run.handle().events();
    while let Some(event) = events.next().await {
        if let EventKind::Provider(block) = event.kind
            && let ProviderPart::Use { tool, input, .. } = &block.part
        {
            println!("{tool}: {input}");
        }
    }
    let answer = run.await.into_result()?;
    println!("{}", answer.value());
    for entry in answer.history().entries() {
        if let Message::Assistant(message) = &**entry {
            message.citations().for_each(|source| println!("from {}", source.url.as_deref().unwrap_or("-")));
        }
    }
    for used in &answer.receipt().provider_tools {
        println!("{} was used {} times, and billed by the provider", used.tool, used.uses);
    }
    Ok(())
}

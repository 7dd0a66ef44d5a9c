//! Drives Rig as its documentation says, for `stop-test`.
//!
//! A turn is `agent.prompt(text).stream()`, read to its end. An `InMemoryConversationMemory` keeps the conversation.
//!
//! Its way to stop:
//!   drop  drops the stream: "Dropping a pending call or stream cancels its execution and descendants" (README of `rig-agent`).
//!         Whoever drops it has control at once, and Rig says nothing to them.

use std::env;

use futures::StreamExt as _;
use rig::{
    agent::MultiTurnStreamItem, memory::InMemoryConversationMemory, prelude::*, providers::openai::OpenAI, rig_tool,
    tool::ToolExecutionError,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, stdin},
    sync::oneshot,
    task::spawn_blocking,
};

/// Works.
#[rig_tool(params(what = "what"))]
async fn work(what: Option<String>) -> Result<String, ToolExecutionError> {
    let asked = reqwest::Client::new().post(tool("work")).json(&json!({ "what": what })).send();
    let answer = async { asked.await?.text().await };
    answer.await.map_err(|error| ToolExecutionError::other(error.to_string()))
}

/// Works, and looks at no stop.
#[rig_tool(params(what = "what"))]
async fn deaf(what: Option<String>) -> Result<String, ToolExecutionError> {
    let ask = move || {
        let client = reqwest::blocking::Client::builder().timeout(None).build()?;
        client.post(tool("deaf")).json(&json!({ "what": what })).send()?.text()
    };
    let answer = spawn_blocking(ask).await.expect("it does not panic");
    answer.map_err(|error: reqwest::Error| ToolExecutionError::other(error.to_string()))
}

fn tool(name: &str) -> String {
    format!("{}/{name}", env::var("STOP_TEST_TOOLS").unwrap_or_default())
}

async fn turn(agent: rig::agent::Agent, text: String, mut dropped: oneshot::Receiver<()>) {
    let mut stream = agent.prompt(text).stream();
    let mut says = "nothing";
    loop {
        let item = tokio::select! {
            item = stream.next() => item,
            _ = &mut dropped => break,
        };
        match item {
            Some(Ok(MultiTurnStreamItem::FinalResponse(_))) => says = "done",
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                eprintln!("{error}");
                says = "failed";
            }
            None => break,
        }
    }
    drop(stream);
    println!("{}", json!({"at": "told", "says": says}));
}

#[tokio::main]
async fn main() {
    let model = OpenAI::from_env().expect("its variables are set").completion("stop-test");
    let memory = InMemoryConversationMemory::new();
    let agent = AgentBuilder::new(model).memory(memory).conversation("1").tool(Work).tool(Deaf).build();
    println!("{}", json!({"at": "ready", "stops": ["drop"]}));
    let mut lines = BufReader::new(stdin()).lines();
    let mut stop = None;
    while let Ok(Some(line)) = lines.next_line().await {
        let wish: Value = serde_json::from_str(&line).expect("a line of JSON");
        if wish["do"] == "stop" {
            // Once it is dropped, there is nothing to drop.
            drop(stop.take());
        } else {
            let (to_drop, dropped) = oneshot::channel();
            stop = Some(to_drop);
            tokio::spawn(turn(agent.clone(), wish["text"].as_str().unwrap_or_default().to_owned(), dropped));
        }
    }
    std::process::exit(0);
}

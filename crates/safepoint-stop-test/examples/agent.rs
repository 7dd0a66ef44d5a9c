//! An agent that can be stopped, with the protocol of `stop-test`: Rust with tokio, and an HTTP client whose answers close their
//! connection when they are dropped.
//!
//! A stop drops the future of the turn, and with it all for which the turn waits; then each call without a result gets one.

use std::{env, error::Error, process::ExitCode, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use safepoint_http::Response;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, stdin},
    sync::{Mutex, Notify},
    time::sleep,
};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// All messages so far. A turn has it from its first step to its last one.
type History = Arc<Mutex<Vec<Value>>>;

#[tokio::main]
async fn main() -> ExitCode {
    let (history, mut stop) = (History::default(), Arc::new(Notify::new()));
    tell(&json!({"at": "ready", "stops": ["drop"]}));
    let mut lines = BufReader::new(stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let wish: Value = serde_json::from_str(&line).unwrap_or_default();
        if wish["do"] == "stop" {
            stop.notify_one();
        } else {
            stop = Arc::new(Notify::new());
            tokio::spawn(stoppable(Arc::clone(&history), wish["text"].clone(), Arc::clone(&stop)));
        }
    }
    ExitCode::SUCCESS
}

fn tell(line: &Value) {
    println!("{line}");
}

/// A turn, until it is over or is stopped; says what the caller learns then.
async fn stoppable(history: History, text: Value, stop: Arc<Notify>) {
    let mut history = history.lock().await;
    history.push(json!({"role": "user", "content": text}));
    let ended = tokio::select! {
        // A stop comes first. What the turn was doing is dropped with it: its connections close.
        biased;
        () = stop.notified() => None,
        ended = turn(&mut history) => Some(ended),
    };
    settle(&mut history);
    let says = match ended {
        None => "stopped",
        Some(Ok(())) => "done",
        Some(Err(error)) => {
            eprintln!("{error}");
            "failed"
        }
    };
    tell(&json!({"at": "told", "says": says}));
}

/// Asks the model, and runs what it calls, until it calls nothing.
async fn turn(history: &mut Vec<Value>) -> Result<()> {
    loop {
        let message = ask(history).await?;
        history.push(message.clone());
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        if calls.is_empty() {
            return Ok(());
        }
        let mut running: FuturesUnordered<_> = calls.iter().map(run).collect();
        while let Some(result) = running.next().await {
            history.push(result);
        }
    }
}

/// Gives each call without a result one: a provider refuses a history in which a call has none.
fn settle(history: &mut Vec<Value>) {
    let calls = history.iter().flat_map(|message| message["tool_calls"].as_array().into_iter().flatten());
    let has_result = |id: &Value| history.iter().any(|message| message["tool_call_id"] == *id);
    let open: Vec<Value> = calls.map(|call| call["id"].clone()).filter(|id| !has_result(id)).collect();
    let stopped = |id| json!({"role": "tool", "tool_call_id": id, "content": "stopped before it was done"});
    history.extend(open.into_iter().map(stopped));
}

async fn post(url: String, body: String) -> Result<Response> {
    let key = format!("Bearer {}", env::var("OPENAI_API_KEY")?);
    let request = safepoint_http::shared()?.post(&url.parse()?).body(body);
    Ok(request.texts([("content-type", "application/json"), ("authorization", &*key)]).send().await?)
}

/// Streams one answer of the model, and returns it as a message.
async fn ask(history: &[Value]) -> Result<Value> {
    let parameters = json!({"type": "object", "properties": {"what": {"type": "string"}}});
    let work = json!({"name": "work", "description": "Works.", "parameters": parameters});
    let tools = json!([{"type": "function", "function": work}]);
    let body = json!({"model": "m", "stream": true, "messages": history, "tools": tools}).to_string();
    let mut answer = loop {
        let answer = post(format!("{}/chat/completions", env::var("OPENAI_BASE_URL")?), body.clone()).await?;
        match answer.status().as_u16() {
            200 => break answer,
            429 => {
                let after =
                    answer.headers().get("retry-after").and_then(|after| after.to_str().ok()?.parse().ok());
                sleep(Duration::from_secs(after.unwrap_or(1))).await;
            }
            status => return Err(format!("the model says {status}").into()),
        }
    };
    let (mut bytes, mut text, mut calls) = (Vec::new(), String::new(), Vec::new());
    while let Some(chunk) = answer.chunk().await? {
        bytes.extend_from_slice(&chunk);
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = bytes.drain(..=end).collect();
            match String::from_utf8(line)?.strip_prefix("data:").map(str::trim) {
                Some("[DONE]") => return Ok(message(text, calls)),
                Some(data) => {
                    add(&serde_json::from_str::<Value>(data)?["choices"][0]["delta"], &mut text, &mut calls)
                }
                None => {}
            }
        }
    }
    Err("the model's answer was cut".into())
}

/// Adds a piece of an answer.
fn add(delta: &Value, text: &mut String, calls: &mut Vec<[String; 3]>) {
    text.push_str(delta["content"].as_str().unwrap_or_default());
    for piece in delta["tool_calls"].as_array().into_iter().flatten() {
        let place = piece["index"].as_u64().and_then(|place| usize::try_from(place).ok()).unwrap_or_default();
        if calls.len() <= place {
            calls.resize(place + 1, <[String; 3]>::default());
        }
        let more = [&piece["id"], &piece["function"]["name"], &piece["function"]["arguments"]];
        for (part, more) in calls[place].iter_mut().zip(more) {
            part.push_str(more.as_str().unwrap_or_default());
        }
    }
}

fn message(text: String, calls: Vec<[String; 3]>) -> Value {
    let call = |[id, name, arguments]: [String; 3]| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let calls: Vec<Value> = calls.into_iter().map(call).collect();
    let mut message = json!({"role": "assistant", "content": text});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    message
}

/// Runs a call of the tool, and returns its result.
async fn run(call: &Value) -> Value {
    let function = &call["function"];
    let [name, arguments] =
        [&function["name"], &function["arguments"]].map(|text| text.as_str().unwrap_or_default());
    let answered = async {
        let url = format!("{}/{name}", env::var("STOP_TEST_TOOLS")?);
        let bytes = post(url, arguments.to_owned()).await?.bytes().await?;
        Ok::<_, Box<dyn Error + Send + Sync>>(String::from_utf8_lossy(&bytes).into_owned())
    };
    let result = answered.await.unwrap_or_else(|error| format!("it failed: {error}"));
    json!({"role": "tool", "tool_call_id": call["id"], "content": result})
}

//! The reference as a server of tools, whose caller cancels calls and tasks.

use std::{
    cell::Cell,
    collections::BTreeMap,
    io, process,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use serde_json::{Value, json};

use crate::{Manner, agent::Agent, say, stop};

/// The tasks that were begun, by name.
#[derive(Default)]
struct Tasks {
    /// The results of those that are done.
    done: BTreeMap<String, Value>,
    /// The requests that wait for the result of one.
    waits: BTreeMap<String, Value>,
    /// The answer to the cancel of one: all are cancelled at once, and one that is cancelled again has the same answer.
    cancelled: Option<Value>,
}

/// Held for one look or one change; no other lock is taken under it.
type SharedTasks = Arc<Mutex<Tasks>>;

/// Lines of JSON-RPC in, lines out.
pub(crate) fn tools(agent: &Arc<Agent>, manner: Manner) {
    let tasks = SharedTasks::default();
    for line in io::stdin().lines().map_while(Result::ok) {
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str() {
            Some("initialize") => answer(id, &welcome(params)),
            Some("tools/list") => answer(id, &json!({ "tools": offered() })),
            Some("tools/call") => call(agent, &tasks, (id, params)),
            Some("tasks/result") => result(&tasks, id, &params["taskId"]),
            Some("notifications/cancelled") => stop(agent, manner, &|_says, _running| {}),
            Some("tasks/cancel") => cancel(agent, manner, &tasks, (id, params)),
            _ => {}
        }
    }
    // A caller that is gone is one that wants nothing more.
    stop(agent, manner, &|_says, _running| {});
    // Exit: its input is closed.
    process::exit(0);
}

fn answer(id: &Value, result: &Value) {
    say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn welcome(params: &Value) -> Value {
    let tasks = json!({"cancel": {}, "requests": {"tools": {"call": {}}}});
    let server = json!({"name": "stop-test-reference", "version": env!("CARGO_PKG_VERSION")});
    json!({
        "protocolVersion": params["protocolVersion"],
        "capabilities": {"tools": {}, "tasks": tasks},
        "serverInfo": server,
    })
}

fn offered() -> Value {
    let tool = |name: &str, argument: &str| {
        let schema = json!({"type": "object", "properties": {argument: {"type": "string"}}});
        json!({"name": name, "description": name, "inputSchema": schema, "execution": {"taskSupport": "optional"}})
    };
    json!([tool("sh", "command"), tool("work", "what"), tool("deaf", "what")])
}

fn call(agent: &Arc<Agent>, tasks: &SharedTasks, (id, params): (&Value, &Value)) {
    let (agent, tasks, id) = (Arc::clone(agent), Arc::clone(tasks), id.clone());
    let (name, arguments) =
        (params["name"].as_str().unwrap_or_default().to_owned(), params["arguments"].clone());
    let turn = agent.begin(&name);
    let task = params.get("task").map(|_| format!("task-{id}"));
    if let Some(task) = &task {
        answer(&id, &json!({"task": {"taskId": task, "status": "working"}}));
    }
    drop(thread::spawn(move || {
        let Some(text) = agent.called(turn, &name, &arguments) else { return };
        let result = json!({"content": [{"type": "text", "text": text}], "isError": false});
        let Some(task) = task else { return answer(&id, &result) };
        let mut tasks = lock(&tasks);
        match tasks.waits.remove(&task) {
            Some(waits) => answer(&waits, &result),
            None => drop(tasks.done.insert(task, result)),
        }
    }));
}

fn result(tasks: &SharedTasks, id: &Value, task: &Value) {
    let task = task.as_str().unwrap_or_default().to_owned();
    let mut tasks = lock(tasks);
    match tasks.done.remove(&task) {
        Some(result) => answer(id, &result),
        None => drop(tasks.waits.insert(task, id.clone())),
    }
}

fn cancel(agent: &Agent, manner: Manner, tasks: &SharedTasks, (id, params): (&Value, &Value)) {
    if manner == Manner::Garbles {
        return refuse(id, "a task of this server cannot be cancelled");
    }
    let is_told = Cell::new(false);
    stop(agent, manner, &|_says, running| {
        let words = (!running.is_empty()).then(|| format!("still running: {}", running.join(", ")));
        let cancelled = json!({"status": "cancelled", "statusMessage": words});
        lock(tasks).cancelled.get_or_insert(cancelled);
        answer_cancel(tasks, id, &params["taskId"]);
        is_told.set(true);
    });
    if !is_told.get() && manner != Manner::GoesOn && !answer_cancel(tasks, id, &params["taskId"]) {
        refuse(id, "the task is over");
    }
}

/// Answers the cancel of a task, if tasks were cancelled.
fn answer_cancel(tasks: &SharedTasks, id: &Value, task: &Value) -> bool {
    let Some(mut cancelled) = lock(tasks).cancelled.clone() else { return false };
    cancelled["taskId"] = task.clone();
    answer(id, &cancelled);
    true
}

fn refuse(id: &Value, why: &str) {
    let error = json!({"code": -32602, "message": why});
    say(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
}

fn lock(tasks: &SharedTasks) -> MutexGuard<'_, Tasks> {
    tasks.lock().unwrap_or_else(PoisonError::into_inner)
}

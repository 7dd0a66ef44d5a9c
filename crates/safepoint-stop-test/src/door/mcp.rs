//! A server of tools of the Model Context Protocol, over its standard input and output.
//!
//! It asks no model: the test is its caller, and calls a tool that runs a command, that fetches an address, or that is one of the test's
//! own. The protocol has no answer to `notifications/cancelled`: a caller has control when it has sent that, and learns nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures_util::future::BoxFuture;
use safepoint_testkit::script::Call;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::{CalledTools, Started, Told, lines::JsonLines, no_such_way, wrote};
use crate::{
    claims::Said,
    stage::{StageError, TrialStage},
};

/// How long a server may take to be ready, and to answer a later call.
const PATIENCE: Duration = Duration::from_secs(60);
/// The version that the test speaks; a server may answer with one that it speaks.
const VERSION: &str = "2025-11-25";
/// For how long the result of a task is kept, in milliseconds.
const KEPT: u64 = 60_000;

/// The notification of the protocol; the end of its input, as a caller that is gone; the cancel of a task, where a server has tasks.
const CANCELLED: &str = "notifications/cancelled";
const CLOSED: &str = "input-closed";
const TASK: &str = "tasks/cancel";

/// A server that is connected.
pub(super) struct Mcp {
    lines: JsonLines,
    /// The number of the last request.
    asked: u64,
    /// Its tools, as a request to a model has them.
    offered: Value,
    /// Whether a call may be a task, and whether those of this trial are.
    has_tasks: bool,
    as_tasks: bool,
    /// The calls, or the results of their tasks, that are not answered.
    open: BTreeSet<u64>,
    /// The calls of which it is not known yet whether they are tasks.
    unnamed: BTreeSet<u64>,
    /// The tasks, by the request for the result of each; and the last one that was named.
    tasks: BTreeMap<u64, Value>,
    last_task: Option<Value>,
    /// The cancels that are not answered, each with the task and the request for that one's result.
    cancels: BTreeMap<u64, (Value, u64)>,
    /// When its caller asked for a stop that has no answer.
    stopped: Option<Instant>,
    is_closed: bool,
    /// What its caller knows once nothing is open.
    said: Said,
    named: Vec<String>,
    later: Option<Call>,
    crash: Option<String>,
}

impl Mcp {
    /// Starts the server, whose calls are stopped in this way.
    pub(super) async fn start((line, way): (&str, &str), stage: &TrialStage) -> Result<Self, StageError> {
        let mut mcp = Self {
            lines: JsonLines::start(line, stage)?,
            asked: 0,
            offered: Value::Null,
            has_tasks: false,
            as_tasks: way == TASK,
            open: BTreeSet::new(),
            unnamed: BTreeSet::new(),
            tasks: BTreeMap::new(),
            last_task: None,
            cancels: BTreeMap::new(),
            stopped: None,
            is_closed: false,
            said: Said::Done,
            named: Vec::new(),
            later: None,
            crash: None,
        };
        let opened = timeout(PATIENCE, mcp.open()).await;
        opened.map_err(|_elapsed| {
            let why = format!(
                "it did not answer `initialize` and `tools/list` in time{}",
                wrote(&mcp.lines.words())
            );
            StageError::NotStarted(why)
        })??;
        if mcp.as_tasks && !mcp.has_tasks {
            return Err(StageError::NotExpressed("it says of no call that it may be a task".to_owned()));
        }
        Ok(mcp)
    }

    /// The ways to stop a call of it.
    pub(super) fn ways(&self) -> Vec<String> {
        let ways = [CANCELLED, CLOSED].into_iter().chain(self.has_tasks.then_some(TASK));
        ways.map(ToOwned::to_owned).collect()
    }

    async fn open(&mut self) -> Result<(), StageError> {
        let client = json!({"name": "stop-test", "version": env!("CARGO_PKG_VERSION")});
        let hello = json!({"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client});
        let server = self.answered("initialize", hello).await?;
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.lines.say(&initialized).await;
        let mut tools: Vec<Value> = Vec::new();
        let mut page = json!({});
        loop {
            let listed = self.answered("tools/list", page).await?;
            tools.extend(listed["tools"].as_array().into_iter().flatten().cloned());
            match listed.get("nextCursor") {
                Some(Value::String(next)) if tools.len() < MOST => page = json!({ "cursor": next }),
                _ => break,
            }
        }
        let may_be_tasks = server["capabilities"]["tasks"]["requests"]["tools"]["call"].is_object();
        let support = |tool: &Value| tool["execution"]["taskSupport"].as_str().unwrap_or_default().to_owned();
        self.has_tasks =
            may_be_tasks && tools.iter().any(|tool| matches!(&*support(tool), "optional" | "required"));
        // Only what can be called in the way of this trial.
        let fits = |tool: &&Value| match &*support(tool) {
            "optional" => true,
            "required" => self.as_tasks,
            _ => !self.as_tasks,
        };
        let offered = tools.iter().filter(fits);
        let offered = offered.map(|tool| json!({"name": tool["name"], "input_schema": tool["inputSchema"]}));
        self.offered = json!({ "tools": offered.collect::<Vec<_>>() });
        Ok(())
    }

    /// Asks, and waits for the result.
    async fn answered(&mut self, method: &str, params: Value) -> Result<Value, StageError> {
        let id = self.request(method, &params).await;
        loop {
            let Some(message) = self.hear().await else {
                let end = self.lines.end().await;
                let wrote = wrote(&self.lines.words());
                let why = format!("it ended before it answered `{method}`: {end}{wrote}");
                return Err(StageError::NotStarted(why));
            };
            if message["id"] != id {
                continue;
            }
            let refused =
                || StageError::NotStarted(format!("it answered `{method}` with {}", message["error"]));
            return message.get("result").cloned().ok_or_else(refused);
        }
    }

    async fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.asked += 1;
        let id = self.asked;
        self.lines.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    async fn called(&mut self, call: &Call, as_task: bool) -> u64 {
        let mut params = json!({"name": call.name, "arguments": call.args});
        if as_task {
            params["task"] = json!({ "ttl": KEPT });
        }
        self.request("tools/call", &params).await
    }

    /// The next answer; none once its output is closed. What it asks its caller is refused, and a ping is answered.
    ///
    /// # Cancel safety
    /// Nothing is lost but an answer that was being written to what the server asks.
    async fn hear(&mut self) -> Option<Value> {
        loop {
            let message = self.lines.hear().await?;
            let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else {
                if message.get("id").is_some() {
                    return Some(message);
                }
                continue;
            };
            let answer = match method {
                "ping" => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
                _ => {
                    let error = json!({"code": -32601, "message": "this client has no such method"});
                    json!({"jsonrpc": "2.0", "id": id, "error": error})
                }
            };
            self.lines.say(&answer).await;
        }
    }

    /// Takes what answers a call, or the cancel of a task.
    async fn take(&mut self, message: &Value) {
        let Some(id) = message["id"].as_u64() else { return };
        let result = &message["result"];
        if let Some((task, waits)) = self.cancels.remove(&id) {
            // A refusal, a task that still works, or another task is no end: its caller waits on for the result.
            let is_ours = result.get("taskId").is_none_or(|named| *named == task);
            let Some(said) = ended(&result["status"]).filter(|_| is_ours) else { return };
            self.open.remove(&waits);
            self.said = said;
            let words = [result.get("statusMessage"), result.get("_meta")];
            self.named.extend(words.into_iter().flatten().map(ToString::to_string));
        } else if self.open.remove(&id) {
            self.unnamed.remove(&id);
            self.tasks.remove(&id);
            if let Some(task) = result["task"].get("taskId").cloned() {
                let waits = self.request("tasks/result", &json!({ "taskId": task })).await;
                self.open.insert(waits);
                self.last_task = Some(task.clone());
                self.tasks.insert(waits, task);
            } else if message.get("error").is_some() || result["isError"] == true {
                self.said = Said::Failed;
            }
        }
    }

    /// Cancels the task of each call. What is not known to be a task yet is waited for.
    async fn cancel_tasks(&mut self) {
        let named = timeout(NAMES, async {
            while !self.unnamed.is_empty() {
                let Some(message) = self.hear().await else { return };
                self.take(&message).await;
            }
        });
        if named.await.is_err() {
            // What has no name cannot be cancelled: its caller waits for its answer.
        }
        // Where all is over, a late cancel names the last of them.
        let late = self.last_task.clone().filter(|_| self.open.is_empty()).map(|task| (0, task));
        let tasks = self.tasks.iter().map(|(waits, task)| (*waits, task.clone())).chain(late);
        for (waits, task) in tasks.collect::<Vec<_>>() {
            let id = self.request(TASK, &json!({ "taskId": task })).await;
            self.cancels.insert(id, (task, waits));
        }
    }
}

/// What a status says of the end of a task; none of one that has not ended.
fn ended(status: &Value) -> Option<Said> {
    match status.as_str()? {
        "cancelled" => Some(Said::Stopped),
        "completed" => Some(Said::Done),
        "failed" => Some(Said::Failed),
        _ => None,
    }
}

/// How long a server may take to name the task of a call.
const NAMES: Duration = Duration::from_secs(5);
/// Of no server are more tools looked at.
const MOST: usize = 1000;

impl CalledTools for Mcp {
    fn offered(&self) -> &Value {
        &self.offered
    }

    fn call<'a>(&'a mut self, calls: &'a [Call], later: Option<Call>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            for call in calls {
                let id = self.called(call, self.as_tasks).await;
                self.open.insert(id);
                self.unnamed.extend(self.as_tasks.then_some(id));
            }
            self.later = later;
        })
    }
}

impl Started for Mcp {
    fn tools(&mut self) -> Option<&mut dyn CalledTools> {
        Some(self)
    }

    fn stop<'a>(&'a mut self, way: &'a str) -> BoxFuture<'a, Result<(), StageError>> {
        Box::pin(async move {
            match way {
                CANCELLED => {
                    // Where all is answered, a late cancel names the last of them.
                    let late = self.open.is_empty().then_some(self.asked);
                    for id in self.open.iter().copied().chain(late) {
                        let params = json!({"requestId": id, "reason": "stopped"});
                        let cancel = json!({"jsonrpc": "2.0", "method": CANCELLED, "params": params});
                        self.lines.say(&cancel).await;
                    }
                    self.stopped = Some(Instant::now());
                }
                CLOSED => {
                    self.lines.close();
                    (self.stopped, self.is_closed) = (Some(Instant::now()), true);
                }
                TASK => self.cancel_tasks().await,
                way => return Err(no_such_way(way)),
            }
            Ok(())
        })
    }

    fn told(&mut self) -> BoxFuture<'_, Told> {
        Box::pin(async move {
            if let Some(at) = self.stopped {
                return Told { at, ..Told::now(Said::Nothing) };
            }
            // The cancel of a task says how it ended; its result need not be waited for.
            while !self.open.is_empty() {
                let Some(message) = self.hear().await else {
                    self.crash = Some(self.lines.end().await);
                    return Told::now(Said::Nothing);
                };
                self.take(&message).await;
            }
            Told { named: std::mem::take(&mut self.named), ..Told::now(self.said) }
        })
    }

    fn next(&mut self) -> BoxFuture<'_, Result<bool, String>> {
        Box::pin(async move {
            if self.is_closed {
                return Err("its input is closed".to_owned());
            }
            let Some(call) = self.later.take() else {
                return Err("there is nothing more to call".to_owned());
            };
            let id = self.called(&call, false).await;
            let answer = timeout(PATIENCE, async {
                while let Some(message) = self.hear().await {
                    if message["id"] == id {
                        return Some(message);
                    }
                }
                None
            });
            Ok(answer.await.ok().flatten().is_some_and(|answer| answer.get("result").is_some()))
        })
    }

    fn crash(&mut self) -> Option<String> {
        self.crash.clone()
    }

    fn words(&self) -> String {
        self.lines.words()
    }
}

//! What a server answers to each message: the same over pipes and over HTTP.

use serde_json::{Value, json};

use super::{List, McpManners, ServerStart, Speaks};

/// Its tools, and what each does when it is called.
pub const TOOLS: [(&str, &str); 17] = [
    ("echo", "answers with its argument `text`"),
    ("look", "the same, and is annotated as read-only"),
    ("deaf", "never answers"),
    ("late", "answers when its call is cancelled"),
    ("twice", "answers twice, differently"),
    ("progress", "gives three notices, then answers"),
    ("big", "answers with as many bytes as its argument `bytes` says"),
    ("fail", "answers with its own error"),
    ("refuse", "answers with an error of the protocol"),
    ("broken", "answers with no valid message"),
    ("noise", "writes lines that are no messages, then answers"),
    ("crash", "says why on standard error and ends the server with code 3"),
    ("mislead", "asks something with the call's own id, takes that back, and then answers"),
    (
        "grow",
        "says that its tools changed (of 2026-07-28: to clients that listen), and has one more from then on",
    ),
    ("picture", "answers with words, a picture and a value"),
    ("down", "answers with HTTP 500 and a page, and over pipes not at all"),
    ("env", "answers with the variable of its environment that its argument `name` names"),
];

/// What is to be done.
#[derive(Debug)]
pub(super) enum McpStep {
    Say(Value),
    /// Sent to the clients that listen for changes.
    Tell(Value),
    /// A line that is not JSON.
    Raw(String),
    /// Over HTTP, this status and a page instead of an answer.
    Status(u16),
    /// Words on standard error, then the end of the server.
    Die(&'static str, i32),
}

/// A server's mind.
#[derive(Debug)]
pub(super) struct Brain {
    pub(super) manners: McpManners,
    grown: usize,
    late: Vec<Value>,
    listens: Option<Value>,
    pub(super) lists: usize,
}

impl Brain {
    pub(super) fn new(manners: McpManners) -> Self {
        Self { manners, grown: 0, late: Vec::new(), listens: None, lists: 0 }
    }

    pub(super) fn hear(&mut self, message: &Value) -> Vec<McpStep> {
        self.manners.note(message);
        if self.manners.start == ServerStart::Hang {
            return Vec::new();
        }
        let id = &message["id"];
        match (message["method"].as_str().unwrap_or_default(), self.manners.speaks) {
            ("initialize", Speaks::Older) => vec![result(id, self.initialized())],
            ("server/discover", Speaks::Newest) => vec![result(id, discovered())],
            ("subscriptions/listen", Speaks::Newest) => {
                self.listens = Some(id.clone());
                let what = json!({"notifications": message["params"]["notifications"]});
                vec![McpStep::Say(notification(id, "notifications/subscriptions/acknowledged", what))]
            }
            ("tools/list", _) => {
                self.lists += 1;
                vec![result(id, self.listed(&message["params"]["cursor"]))]
            }
            ("tools/call", _) => self.call(id, &message["params"]),
            ("notifications/cancelled", _) => self.cancelled(&message["params"]["requestId"]),
            ("ping", _) => vec![result(id, json!({}))],
            _ if id.is_null() => Vec::new(),
            _ => vec![error(id, -32601, "there is no such method")],
        }
    }

    fn initialized(&self) -> Value {
        json!({
            "protocolVersion": self.manners.version.as_deref().unwrap_or("2025-11-25"),
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "test", "version": "1"},
        })
    }

    fn listed(&self, cursor: &Value) -> Value {
        match self.manners.list {
            List::Plain => {
                let mut tools: Vec<Value> = TOOLS.iter().map(|(name, what)| plain(name, what)).collect();
                tools.extend((0..self.grown).map(|number| plain(&format!("grown{number}"), "is new")));
                json!({"tools": tools, "resultType": "complete"})
            }
            List::Odd => json!({"tools": odd()}),
            List::Deep => {
                let level = |inner, _| json!({"type": "object", "properties": {"a": inner}});
                let deep = json!({"name": "deep", "inputSchema": (0..200).fold(json!({}), level)});
                let tools = TOOLS.iter().map(|(name, what)| plain(name, what)).chain([deep]);
                json!({"tools": tools.collect::<Vec<_>>(), "resultType": "complete"})
            }
            List::Endless => {
                let page = cursor.as_str().and_then(|page| page.parse().ok()).unwrap_or(0_u64);
                let tools = [plain(&format!("page{page}"), "is on a page")];
                json!({"tools": tools, "nextCursor": (page + 1).to_string()})
            }
        }
    }

    fn call(&mut self, id: &Value, params: &Value) -> Vec<McpStep> {
        let args = &params["arguments"];
        let text = args["text"].as_str().unwrap_or_default();
        match params["name"].as_str().unwrap_or_default() {
            "echo" | "look" => vec![said(id, text)],
            "deaf" => Vec::new(),
            "late" => {
                self.late.push(id.clone());
                Vec::new()
            }
            "twice" => vec![said(id, "once"), said(id, "twice")],
            "progress" => {
                let token = &params["_meta"]["progressToken"];
                (1..=3).map(|step| notice(token, step)).chain([said(id, "after three")]).collect()
            }
            "big" => {
                let bytes = args["bytes"].as_u64().and_then(|bytes| usize::try_from(bytes).ok());
                vec![said(id, &"x".repeat(bytes.unwrap_or_default()))]
            }
            "fail" => vec![result(
                id,
                json!({"content": [{"type": "text", "text": "I could not"}], "isError": true}),
            )],
            "refuse" => vec![error(id, -32602, "not like this")],
            "broken" => vec![McpStep::Say(json!({"jsonrpc": "2.0", "id": id}))],
            "noise" => {
                vec![
                    McpStep::Raw("Listening on {port".into()),
                    McpStep::Raw(String::new()),
                    said(id, "received"),
                ]
            }
            "crash" => vec![McpStep::Die("the disk is on fire", 3)],
            "mislead" => vec![
                McpStep::Say(json!({"jsonrpc": "2.0", "id": id, "method": "ping"})),
                McpStep::Say(json!({
                    "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id},
                })),
                said(id, "answered"),
            ],
            "grow" => self.grow(id),
            "down" => vec![McpStep::Status(500)],
            "picture" => vec![result(id, picture())],
            "env" => {
                let value = std::env::var(args["name"].as_str().unwrap_or_default());
                vec![said(id, &value.unwrap_or_else(|_| "unset".into()))]
            }
            _ if self.grown > 0 => vec![said(id, "I am new")],
            _ => vec![error(id, -32602, "there is no such tool")],
        }
    }

    /// One more tool, and the notice of it for a client that wants it.
    fn grow(&mut self, id: &Value) -> Vec<McpStep> {
        self.grown += 1;
        let changed = "notifications/tools/list_changed";
        let change = match (self.manners.speaks, &self.listens) {
            (Speaks::Older, _) => Some(McpStep::Say(json!({"jsonrpc": "2.0", "method": changed}))),
            (Speaks::Newest, Some(listens)) => Some(McpStep::Tell(notification(listens, changed, json!({})))),
            // No client asked for notices.
            (Speaks::Newest, None) => None,
        };
        change.into_iter().chain([said(id, "grown")]).collect()
    }

    fn cancelled(&mut self, id: &Value) -> Vec<McpStep> {
        let Some(at) = self.late.iter().position(|late| late == id) else { return Vec::new() };
        vec![said(&self.late.remove(at), "too late")]
    }
}

fn discovered() -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {"listChanged": true}},
        "serverInfo": {"name": "test", "version": "1"},
        "ttlMs": 0,
        "cacheScope": "private",
    })
}

fn plain(name: &str, what: &str) -> Value {
    let properties =
        json!({"text": {"type": "string"}, "bytes": {"type": "integer"}, "name": {"type": "string"}});
    let schema = json!({"type": "object", "properties": properties});
    json!({
        "name": name,
        "description": what,
        "inputSchema": schema,
        "annotations": {"readOnlyHint": name == "look"},
    })
}

fn odd() -> Vec<Value> {
    let with = |name: &str, schema: Value| json!({"name": name, "inputSchema": schema});
    let object = json!({"type": "object"});
    vec![
        plain("echo", &"very long ".repeat(10_000)),
        with("no-schema", Value::Null),
        with("bad-schema", json!({"type": "object", "properties": {"a": {"type": "no such type"}}})),
        with("text-schema", json!("object")),
        with("list-schema", json!({"type": "array"})),
        with("far-schema", json!({"type": "object", "$ref": "http://192.0.2.1/schema.json"})),
        with("huge-schema", json!({"type": "object", "description": "x".repeat(100_000)})),
        with("a/b", object.clone()),
        with("a.b", object.clone()),
        with("echo", object.clone()),
        with("", object.clone()),
        json!({"inputSchema": object.clone()}),
        json!("a tool?"),
        with(&"long".repeat(50), object),
    ]
}

/// A PNG's first bytes are a picture to a reader that checks no more.
fn picture() -> Value {
    let image = json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"});
    let words = json!({"type": "text", "text": "a dot"});
    json!({"content": [words, image], "structuredContent": {"dots": 1}, "resultType": "complete"})
}

/// A notice on the stream of this listener.
fn notification(listener: &Value, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": listener});
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

fn notice(token: &Value, step: u64) -> McpStep {
    McpStep::Say(json!({
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {"progressToken": token, "progress": step, "total": 3, "message": format!("step {step}")},
    }))
}

fn said(id: &Value, text: &str) -> McpStep {
    result(id, json!({"content": [{"type": "text", "text": text}], "resultType": "complete"}))
}

fn result(id: &Value, result: Value) -> McpStep {
    McpStep::Say(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn error(id: &Value, code: i64, message: &str) -> McpStep {
    McpStep::Say(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
}

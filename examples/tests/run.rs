//! Each example is run as a program of its own against the scripted server, and prints what its file in `expected` says.
//!
//! `cargo test -p safepoint-examples` builds them first; with `--test run` alone, those of the last build are run. A script in
//! `scripts` is what the model says to the example of its name. `SAFEPOINT_WRITE_GOLDEN=1` writes the expected files anew.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use safepoint::store::{MemoryStore, Store};
use safepoint_testkit::{
    a2a::{A2aManners, A2aServer, WorkStep},
    mcp::{HttpServer, McpManners},
    script::{Reply, ReplyFault, Script},
    server::ModelServer,
    store_suite,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    process::Command,
    time::timeout,
};

#[path = "../own_store.rs"]
#[expect(dead_code, reason = "its `main` is run as a program")]
mod own_store;

/// How long an example may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The end of a response in chunks.
const LAST_CHUNK: &str = "\r\n0\r\n\r\n";

/// Those that need nothing but the model of their script.
const PLAIN: [&str; 24] = [
    "approvals",
    "chat_with_history",
    "failover",
    "guardrails",
    "hello",
    "hooks",
    "loop_guard",
    "one_call_stopped",
    "own_log",
    "own_model",
    "own_store",
    "parallel_map",
    "partial_answers",
    "retrieval",
    "run_settings",
    "session",
    "stop_and_grace",
    "streaming",
    "subagents",
    "testing_your_agent",
    "tools",
    "tools_with_state",
    "tracing",
    "typed_answers",
];

/// Those that have a test of their own.
const OTHERS: [&str; 6] =
    ["a2a", "approval_across_restart", "axum_chat", "axum_sse", "mcp", "provider_tools"];

fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// An example and the server that its model is on.
struct Example {
    name: &'static str,
    server: ModelServer,
}

impl Example {
    async fn of(name: &'static str) -> Self {
        let script = fs::read_to_string(home().join(format!("scripts/{name}.json")));
        let script = script.map_or_else(|_none| Script::default(), |text| Script::from_json(&text).unwrap());
        Self::with(name, script).await
    }

    async fn with(name: &'static str, script: Script) -> Self {
        Self { name, server: ModelServer::start(script).await.unwrap() }
    }

    fn command(&self) -> Command {
        let mut program: PathBuf = env::current_exe().unwrap();
        program.pop();
        program.pop();
        let program = program.join("examples").join(self.name);
        assert!(program.exists(), "`cargo test -p safepoint-examples` builds {} first", self.name);
        let mut command = Command::new(program);
        command.env("OPENAI_BASE_URL", self.server.url()).env("OPENAI_API_KEY", "none").kill_on_drop(true);
        command.stdin(Stdio::null()).stderr(Stdio::inherit());
        command
    }

    /// What it prints, with this change of how it is started.
    async fn prints(&self, change: impl FnOnce(&mut Command) -> &mut Command) -> String {
        let mut command = self.command();
        let output = timeout(PATIENCE, change(&mut command).output()).await;
        let output = output.unwrap_or_else(|_elapsed| panic!("{} does not end", self.name)).unwrap();
        assert!(output.status.success(), "{}: {}", self.name, output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    fn check(&self, printed: &str) {
        let path = home().join(format!("expected/{}.txt", self.name));
        if env::var_os("SAFEPOINT_WRITE_GOLDEN").is_some() {
            fs::write(&path, printed).unwrap();
        }
        assert_eq!(printed, fs::read_to_string(&path).unwrap(), "{}", self.name);
    }
}

/// Each example prints what is expected of it.
#[tokio::test]
async fn each_example_prints_what_is_expected() {
    for name in PLAIN {
        let example = Example::of(name).await;
        example.check(&example.prints(|command| command).await);
    }
}

/// An agent uses the tools of an MCP server.
#[tokio::test]
async fn the_tools_of_an_mcp_server() {
    let server = HttpServer::start(McpManners::default()).await.unwrap();
    let example = Example::of("mcp").await;
    example.check(&example.prints(|command| command.env("MCP_URL", server.url())).await);
}

/// An agent asks an agent that another party runs.
#[tokio::test]
async fn an_agent_that_somebody_else_runs() {
    let plan = vec![WorkStep::Say("a place where a run may stop".into())];
    let peer = A2aServer::start(A2aManners { plan, ..A2aManners::default() }).unwrap();
    let example = Example::of("a2a").await;
    example.check(&example.prints(|command| command.env("A2A_URL", peer.url())).await);
}

/// A provider searches itself, and says what its answer is from.
#[tokio::test]
async fn a_tool_that_the_provider_runs() {
    let page = json!({"type": "url_citation", "url": "https://doc.rust-lang.org/book", "title": "The book"});
    let said = json!([{"type": "output_text", "text": "A unit that is compiled.", "annotations": [page]}]);
    let used = json!({"type": "web_search_call", "id": "ws_1", "status": "completed",
        "action": {"type": "search", "query": "rust crate"}});
    let events = [
        json!({"type": "response.output_item.done", "item": used}),
        json!({"type": "response.output_text.delta", "delta": "A unit that is compiled."}),
        json!({"type": "response.output_item.done", "item": {"type": "message", "content": said}}),
        json!({"type": "response.completed", "response": {"status": "completed"}}),
    ];
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let reply = Reply::default().fault(ReplyFault::Raw(body.into_bytes()));
    let example = Example::with("provider_tools", Script::of([reply])).await;
    example.check(&example.prints(|command| command).await);
}

/// A question outlives its program, and is answered in the next one.
#[tokio::test]
async fn an_approval_outlives_its_program() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let example = Example::of("approval_across_restart").await;
    let asked = example.prints(|command| command.arg(&file)).await;
    let answered = example.prints(|command| command.arg(&file).arg("yes")).await;
    example.check(&(asked + &answered));
}

/// A client gets the events of its run, and one that disconnects stops its run.
#[tokio::test]
async fn a_client_that_disconnects_stops_its_run() {
    let example = Example::of("axum_sse").await;
    let mut program = example.command().stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(program.stdout.take().unwrap()).lines();
    let url = timeout(PATIENCE, said.next_line()).await.unwrap().unwrap().unwrap();
    let address = url.trim_start_matches("http://").trim_end_matches("/ask").to_owned();

    let ask = "POST /ask HTTP/1.1\r\ncontent-length: 5\r\n\r\nHello";
    let whole = events(&address, ask, LAST_CHUNK).await;
    let kinds = whole.lines().filter_map(|line| line.trim_end().strip_prefix("event: "));
    let mut printed = kinds.map(|kind| format!("{kind}\n")).collect::<String>();
    printed += &format!("{}\n", timeout(PATIENCE, said.next_line()).await.unwrap().unwrap().unwrap());

    // The model is silent after its first words, and the client goes away.
    let begun = events(&address, ask, "\"type\":\"text_delta\"").await;
    assert!(!begun.contains("event: outcome"), "{begun}");
    printed += &format!("{}\n", timeout(PATIENCE, said.next_line()).await.unwrap().unwrap().unwrap());
    example.check(&printed);
}

/// A page says something, approves what is asked, and comes back: to the same stream, and to one that it was never on.
#[tokio::test]
async fn a_conversation_in_a_browser() {
    let example = Example::of("axum_chat").await;
    let mut program = example.command().stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(program.stdout.take().unwrap()).lines();
    let url = timeout(PATIENCE, said.next_line()).await.unwrap().unwrap().unwrap();
    let address = url.trim_start_matches("http://").to_owned();
    let post = async |path: &str, body: &str| {
        let head = format!("POST {path} HTTP/1.1\r\ncontent-length: {}\r\nconnection: close", body.len());
        let answer = events(&address, &format!("{head}\r\n\r\n{body}"), "\r\n\r\n").await;
        answer.lines().next().unwrap_or_default().to_owned()
    };
    let follow = async |last: &str, until: &str| {
        let head = format!("GET /events HTTP/1.1\r\nlast-event-id: {last}\r\n\r\n");
        lines_of(&events(&address, &head, until).await)
    };
    let mut printed = format!("{}\n", post("/say", "Pay Acme.").await);
    let asked = follow("", "\"type\":\"approval_asked\"").await;
    let (_, question) = asked.last().unwrap();
    let path = format!("/decide/{}", question["approval_id"].as_str().unwrap());
    for decision in [
        json!({"decision": "approve_with", "args": {"supplier": "Acme", "cents": "much"}}),
        json!({"decision": "approve"}),
        json!({"decision": "deny"}),
    ] {
        printed += &format!("{} {}\n", post(&path, &decision.to_string()).await, decision["decision"]);
    }
    let quiet = "\"type\":\"turn_quiet\"";
    let all = follow("", quiet).await;
    for (_, line) in all.iter().filter(|(_, line)| !line["type"].as_str().unwrap().ends_with("_delta")) {
        let shown = ["text", "args", "answer", "output", "outcome"].map(|field| &line[field]);
        let shown: Vec<String> =
            shown.iter().filter(|field| !field.is_null()).map(ToString::to_string).collect();
        printed += format!("{} {}", line["type"].as_str().unwrap(), shown.join(" ")).trim_end();
        printed += "\n";
    }
    let (id, _) = &all[all.len() - 2];
    let rest = follow(id, quiet).await;
    let elsewhere = follow("25", quiet).await;
    printed += &format!("back: {}, of {}\n", rest.len(), all.len());
    printed += &format!("back from elsewhere: {}, of {}\n", elsewhere[0].1["type"], elsewhere.len());
    let printed = printed.replace(&format!("of {}", all.len() + 1), "of one more");
    example.check(&printed.replace(&format!("of {}", all.len()), "of all"));
}

/// The ids and the lines of server-sent events.
fn lines_of(read: &str) -> Vec<(String, Value)> {
    let events = read.split("\n\n").filter_map(|event| {
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
        Some((field("id: ").unwrap_or_default().to_owned(), serde_json::from_str(field("data: ")?).ok()?))
    });
    events.collect()
}

/// What a client of the server reads until this stands there; then it disconnects.
async fn events(address: &str, request: &str, until: &str) -> String {
    let mut client = TcpStream::connect(address).await.unwrap();
    let request = request.replacen("\r\n", &format!("\r\nhost: {address}\r\n"), 1);
    client.write_all(request.as_bytes()).await.unwrap();
    let (mut read, mut piece) = (String::new(), [0; 4096]);
    loop {
        let bytes = timeout(PATIENCE, client.read(&mut piece)).await.unwrap().unwrap();
        read += &String::from_utf8_lossy(&piece[..bytes]);
        // The whole line in which it stands, or all of a response that ends.
        if read.contains(until) && (bytes == 0 || read.ends_with('\n')) {
            return read;
        }
        assert!(bytes > 0, "the server closed: {read}");
    }
}

/// The store of its example is a store: it keeps what every store must keep.
#[tokio::test]
async fn the_store_of_an_example_does_what_a_store_must() {
    let fresh = |outside| {
        let store: Arc<dyn Store> = Arc::new(own_store::Audited(Arc::new(MemoryStore::new(outside))));
        [Arc::clone(&store), store]
    };
    store_suite::all(&fresh).await.unwrap();
}

/// Each example is in a list above, is declared, and has at most 60 lines.
#[test]
fn each_example_is_run_and_is_short() {
    const MOST_LINES: usize = 60;
    let manifest = fs::read_to_string(home().join("Cargo.toml")).unwrap();
    let mut found = 0;
    for entry in fs::read_dir(home()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "rs") || path.ends_with("guides.rs") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(PLAIN.contains(&&*name) || OTHERS.contains(&&*name), "{name} is not run");
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} is not declared");
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= MOST_LINES, "{name} has {lines} lines");
        found += 1;
    }
    assert_eq!(found, PLAIN.len() + OTHERS.len(), "an example of the lists is gone");
}

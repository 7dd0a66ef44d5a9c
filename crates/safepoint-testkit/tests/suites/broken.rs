//! The closing invariants are seen to break: a check that cannot fail checks nothing.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use safepoint::{
    Agent, History, StopRequest,
    approval::ApprovalMode,
    event::Fact,
    log::{Log, LogError, MemoryLog, RunRecord},
};
use safepoint_models::openai;
use safepoint_testkit::{
    invariants::{BrokenInvariant, Invariant, Invariants},
    ledger::Ledger,
    script::{Reply, Script},
    server::{ModelServer, ServerOptions, Strictness},
    tools::GateTools,
};
use serde_json::json;

fn script() -> Script {
    Script::of([Reply::call("it", json!({})), Reply::text("fine")])
}

fn agent(server: &ModelServer, tools: &GateTools) -> Agent {
    let model = openai::model("m").base_url(server.url());
    Agent::builder(model).approvals(ApprovalMode::Auto).tool(tools.gated("it")).build()
}

fn which(broken: Result<impl Sized, BrokenInvariant>) -> Option<Invariant> {
    broken.err().map(|broken| broken.invariant)
}

/// I4: the ledger has a call that was never announced, or misses the commit of one that is reported as done.
#[tokio::test]
async fn a_ledger_that_disagrees_is_found() {
    let server = ModelServer::start(script()).await.unwrap();
    let tools = GateTools::new();
    tools.gate().open_for_all();
    let handle = agent(&server, &tools).run("go").detach();
    let closed = Invariants::of(&handle).ledger(tools.ledger()).check().await.unwrap();

    let more = Ledger::new();
    more.enter(&"unknown".into());
    assert_eq!(which(Invariants::of(&handle).ledger(&more).check().await), Some(Invariant::I4));
    let less = Ledger::new();
    less.enter(&closed.receipt.calls[0].call_id);
    assert_eq!(which(Invariants::of(&handle).ledger(&less).check().await), Some(Invariant::I4));
}

/// I3, I5: a request that no provider would take; an exchange that is still open.
#[tokio::test]
async fn a_foreign_request_is_found() {
    let options = ServerOptions { strictness: Strictness::Lenient, ..ServerOptions::default() };
    let server = ModelServer::start_with(script(), options, ([127, 0, 0, 1], 0).into()).await.unwrap();
    let tools = GateTools::new();
    tools.gate().open_for_all();
    let handle = agent(&server, &tools).run("go").detach();
    Invariants::of(&handle).server(&server).first_request(0).check().await.unwrap();

    let gate = server.gate();
    let url = server.url() + "/chat/completions";
    let foreign = post(url, json!({"messages": [{"role": "tool", "tool_call_id": "x", "content": ""}]}));
    let asking = tokio::spawn(foreign);
    let exchange = server.request(2).await;
    assert_eq!(which(Invariants::of(&handle).server(&server).check().await), Some(Invariant::I3));
    assert_eq!(
        which(Invariants::of(&handle).server(&server).first_request(0).check().await),
        Some(Invariant::I2)
    );
    assert_eq!(exchange.fate_now().completed, None);
    drop(gate);
    asking.await.unwrap();
}

async fn post(url: String, body: serde_json::Value) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let host = url.trim_start_matches("http://").split('/').next().unwrap().to_owned();
    let mut socket = tokio::net::TcpStream::connect(&host).await.unwrap();
    let body = body.to_string();
    let path = url.split_once(&host).unwrap().1;
    let request = format!("POST {path} HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    socket.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(socket.read(&mut [0; 16]).await.unwrap(), 0);
}

/// I5: a peer that never lets go of its connection is found, by the real clock.
#[tokio::test(start_paused = true)]
async fn an_exchange_that_never_ends_is_found() {
    let server = ModelServer::start(script()).await.unwrap();
    let tools = GateTools::new();
    tools.gate().open_for_all();
    let handle = agent(&server, &tools).run("go").detach();
    assert_eq!(handle.done().await.answer(), Some("fine"));
    let _gate = server.gate();
    let (host, body) = (server.address(), r#"{"messages":[{"role":"user","content":"x"}]}"#);
    let mut socket = tokio::net::TcpStream::connect(host).await.unwrap();
    let request =
        format!("POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    tokio::io::AsyncWriteExt::write_all(&mut socket, request.as_bytes()).await.unwrap();
    server.request(2).await;
    assert_eq!(which(Invariants::of(&handle).server(&server).check().await), Some(Invariant::I5));
}

/// A log that forgets how the run settled, or remembers it otherwise.
#[derive(Default)]
struct Forgetful(MemoryLog, Mutex<usize>);

impl Log for Forgetful {
    fn append(&self, record: RunRecord) -> BoxFuture<'_, Result<u64, LogError>> {
        if matches!(&*record.fact, Fact::Settled { .. }) {
            *self.1.lock().unwrap() += 1;
            return Box::pin(std::future::ready(Ok(0)));
        }
        self.0.append(record)
    }
    fn read(&self) -> BoxFuture<'_, Result<Vec<RunRecord>, LogError>> {
        self.0.read()
    }
}

/// I1: the stored outcome is the returned one; a log that lost it is found.
#[tokio::test]
async fn a_log_that_disagrees_is_found() {
    let tools = GateTools::new();
    let server = ModelServer::start(script()).await.unwrap();
    let log = Arc::new(MemoryLog::default());
    let handle = agent(&server, &tools).run_recorded(log.clone(), History::new(), "go").detach();
    tools.gate().came(1).await;
    handle.stop(StopRequest::now());
    Invariants::of(&handle).log(&*log).ledger(tools.ledger()).check().await.unwrap();

    let server = ModelServer::start(script()).await.unwrap();
    let log = Arc::new(Forgetful::default());
    let handle = agent(&server, &tools).run_recorded(log.clone(), History::new(), "go").detach();
    handle.stop(StopRequest::now());
    assert_eq!(which(Invariants::of(&handle).log(&*log).check().await), Some(Invariant::I1));
    assert_eq!(*log.1.lock().unwrap(), 1);
}

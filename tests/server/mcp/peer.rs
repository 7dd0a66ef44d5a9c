//! A client over two streams: it writes lines to the server and reads its lines, and no more.

use safepoint_server::McpServer;
use safepoint_testkit::wait::InTime as _;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream},
    task::JoinHandle,
};

use super::OLD;
use crate::world::World;

/// How many bytes may be on their way.
const PIPE: usize = 4_096;

pub(super) struct Peer {
    write: Option<DuplexStream>,
    read: BufReader<DuplexStream>,
    served: JoinHandle<()>,
    last: u64,
    /// What came that was no answer.
    pub(super) notices: Vec<Value>,
}

impl Peer {
    /// One that has said nothing yet.
    pub(super) fn silent(world: &World) -> Self {
        let (write, input) = tokio::io::duplex(PIPE);
        let (output, read) = tokio::io::duplex(PIPE);
        let served = tokio::spawn(McpServer::new(&world.host, "helper").serve(input, output));
        Self { write: Some(write), read: BufReader::new(read), served, last: 0, notices: Vec::new() }
    }

    /// One that has agreed on the old version.
    pub(super) async fn of(world: &World, capabilities: Value) -> Self {
        let mut peer = Self::silent(world);
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": OLD, "capabilities": capabilities, "clientInfo": client});
        let answer = peer.request("initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], OLD, "{answer}");
        peer.notify("notifications/initialized", json!({})).await;
        peer
    }

    async fn write(&mut self, line: &Value) {
        let write = self.write.as_mut().unwrap();
        write.write_all(format!("{line}\n").as_bytes()).in_time("a line is taken").await.unwrap();
    }

    /// Sends a request, and returns its id.
    pub(super) async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})).await;
        self.last
    }

    /// Sends a request again under this id, whatever waits under it.
    pub(super) async fn send_as(&mut self, id: u64, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
    }

    /// The next line that is no notice.
    pub(super) async fn said(&mut self) -> Value {
        loop {
            let said = self.next().await.unwrap_or_else(|| panic!("nothing more: {:?}", self.notices));
            if said["method"].is_null() {
                return said;
            }
            self.notices.push(said);
        }
    }

    pub(super) async fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    pub(super) async fn cancel(&mut self, request: u64) {
        self.notify("notifications/cancelled", json!({"requestId": request})).await;
    }

    pub(super) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// Calls the agent, and returns what it answers.
    pub(super) async fn call(&mut self, params: Value) -> Value {
        let answer = self.request("tools/call", params).await;
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// The next line; none at the end.
    pub(super) async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let count = self.read.read_line(&mut line).in_time("a line of the server").await.unwrap();
        (count > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    /// Reads up to the answer of this request.
    pub(super) async fn answer(&mut self, id: u64) -> Value {
        loop {
            let said = self.next().await.unwrap_or_else(|| panic!("no answer to {id}: {:?}", self.notices));
            if said["id"] == id && said["method"].is_null() {
                return said;
            }
            assert!(said["method"].is_string(), "{said} instead of an answer to {id}");
            self.notices.push(said);
        }
    }

    /// Reads up to a request of the server.
    pub(super) async fn asked(&mut self, method: &str) -> Value {
        loop {
            let said = self.next().await.expect("the server ended before it asked");
            if said["method"] == method {
                return said;
            }
            assert!(said["id"].is_null(), "{said}");
            self.notices.push(said);
        }
    }

    /// Answers a request of the server.
    pub(super) async fn say(&mut self, asked: &Value, result: Value) {
        self.write(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})).await;
    }

    /// The messages of the progress with this token.
    pub(super) fn progress(&self, token: &str) -> Vec<&str> {
        let progress = self.notices.iter().filter(|said| said["method"] == "notifications/progress");
        let of = progress.filter(|said| said["params"]["progressToken"] == token);
        of.filter_map(|said| said["params"]["message"].as_str()).collect()
    }

    /// Closes its end, as a client that quits.
    pub(super) fn close(&mut self) {
        drop(self.write.take());
    }

    /// Closes its end and reads to the server's; what came.
    pub(super) async fn end(mut self) -> Vec<Value> {
        self.close();
        let mut all = Vec::new();
        while let Some(said) = self.next().await {
            all.push(said);
        }
        self.served.in_time("the end of the server").await.unwrap();
        all
    }
}

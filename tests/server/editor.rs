//! An editor: it writes lines to an agent over ACP and reads its lines, and no more.

use std::time::Duration;

use safepoint_server::AcpServer;
use safepoint_testkit::wait::InTime as _;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream},
    task::JoinHandle,
};

use super::world::World;

/// How many bytes may be on their way.
const PIPE: usize = 4_096;

pub(crate) struct Editor {
    write: Option<DuplexStream>,
    read: BufReader<DuplexStream>,
    served: JoinHandle<()>,
    last: u64,
}

/// What came up to an answer, and the answer.
#[derive(Debug)]
pub(crate) struct EditorReply {
    pub(crate) updates: Vec<Value>,
    pub(crate) answer: Value,
}

impl Editor {
    /// An editor of the world's agent, which cancels at once.
    pub(crate) fn of(world: &World) -> Self {
        Self::at(AcpServer::new(&world.host, "helper").grace(Duration::ZERO))
    }

    pub(crate) fn at(server: AcpServer) -> Self {
        let (write, input) = tokio::io::duplex(PIPE);
        let (output, read) = tokio::io::duplex(PIPE);
        let served = tokio::spawn(server.serve(input, output));
        Self { write: Some(write), read: BufReader::new(read), served, last: 0 }
    }

    /// An editor with a session.
    pub(crate) async fn with_session(world: &World) -> (Self, String) {
        let mut editor = Self::of(world);
        editor.call("initialize", json!({"protocolVersion": 1})).await;
        let made = editor.call("session/new", json!({"cwd": "/", "mcpServers": []})).await;
        let session = made.answer["result"]["sessionId"].as_str().unwrap().to_owned();
        (editor, session)
    }

    pub(crate) async fn write(&mut self, text: &str) {
        let write = self.write.as_mut().unwrap();
        write.write_all(text.as_bytes()).in_time("a line is taken").await.unwrap();
    }

    /// Sends a request, and returns its id.
    pub(crate) async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let line = json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params});
        self.write(&format!("{line}\n")).await;
        self.last
    }

    pub(crate) async fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.send("session/prompt", json!({"sessionId": session, "prompt": prompt})).await
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        let line = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.write(&format!("{line}\n")).await;
    }

    pub(crate) async fn cancel(&mut self, session: &str) {
        self.notify("session/cancel", json!({"sessionId": session})).await;
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> EditorReply {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// The next line; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let count = self.read.read_line(&mut line).in_time("a line of the agent").await.unwrap();
        (count > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    /// Reads up to the answer of this request.
    pub(crate) async fn answer(&mut self, id: u64) -> EditorReply {
        let mut updates = Vec::new();
        loop {
            let said = self.next().await.unwrap_or_else(|| panic!("no answer to {id}: {updates:?}"));
            if said["method"] == "session/update" {
                updates.push(said["params"]["update"].clone());
            } else if said["id"] == id && said["method"].is_null() {
                return EditorReply { updates, answer: said };
            } else {
                panic!("{said} instead of an answer to {id}");
            }
        }
    }

    /// Reads up to a question of the agent.
    pub(crate) async fn question(&mut self) -> Value {
        loop {
            let said = self.next().await.expect("the agent ended before it asked");
            if said["method"] == "session/request_permission" {
                return said;
            }
            assert_eq!(said["method"], "session/update", "{said}");
        }
    }

    /// Answers a question with one of its options.
    pub(crate) async fn choose(&mut self, question: &Value, kind: &str) {
        let options = question["params"]["options"].as_array().unwrap();
        let option = options.iter().find(|option| option["kind"] == kind).unwrap();
        let outcome = json!({"outcome": "selected", "optionId": option["optionId"]});
        self.outcome(question, outcome).await;
    }

    pub(crate) async fn outcome(&mut self, question: &Value, outcome: Value) {
        let line = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"outcome": outcome}});
        self.write(&format!("{line}\n")).await;
    }

    /// Closes its end, as an editor that quits.
    pub(crate) fn close(&mut self) {
        drop(self.write.take());
    }

    /// Reads no more, and nothing can be written to it; closes nothing else.
    pub(crate) fn stop_reading(&mut self) {
        self.read = BufReader::new(tokio::io::duplex(1).0);
    }

    /// Closes its end and reads to the agent's; what came.
    pub(crate) async fn end(mut self) -> Vec<Value> {
        self.close();
        let mut all = Vec::new();
        while let Some(said) = self.next().await {
            all.push(said);
        }
        self.served.in_time("the end of the agent").await.unwrap();
        all
    }
}

impl EditorReply {
    pub(crate) fn stop_reason(&self) -> &str {
        self.answer["result"]["stopReason"].as_str().unwrap_or_else(|| panic!("{self:?}"))
    }

    /// What is said of the turn in our own terms.
    pub(crate) fn meta(&self) -> &Value {
        &self.answer["result"]["_meta"]["safepoint"]
    }

    /// What the agent said.
    pub(crate) fn text(&self) -> String {
        let said = self.updates.iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk");
        said.filter_map(|update| update["content"]["text"].as_str()).collect()
    }

    /// The statuses of the calls, in their order.
    pub(crate) fn statuses(&self) -> Vec<&str> {
        let calls = self.updates.iter().filter(|update| !update["toolCallId"].is_null());
        calls.filter_map(|update| update["status"].as_str()).collect()
    }
}

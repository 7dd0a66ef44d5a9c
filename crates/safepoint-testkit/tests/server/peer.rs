//! A client that sees every byte: no HTTP library between the test and the socket.

use std::net::SocketAddr;

use safepoint_testkit::server::ServedWire;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

pub(crate) const WIRES: [ServedWire; 4] =
    [ServedWire::OpenAi, ServedWire::Anthropic, ServedWire::Responses, ServedWire::Gemini];

pub(crate) struct Peer {
    pub(crate) socket: TcpStream,
    unread: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    pub(crate) whole: Whole,
}

/// How a body ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Whole {
    Complete,
    Closed,
    Reset,
}

pub(crate) fn path(wire: ServedWire) -> &'static str {
    match wire {
        ServedWire::OpenAi => "/v1/chat/completions",
        ServedWire::Anthropic => "/v1/messages?beta=true",
        ServedWire::Responses => "/v1/responses",
        ServedWire::Gemini => "/v1beta/models/m:streamGenerateContent?alt=sse",
    }
}

/// A request with one user message, as each wire says it.
pub(crate) fn ask(text: &str) -> Value {
    json!({"model": "m", "max_tokens": 9, "stream": true, "stream_options": {"include_usage": true},
        "messages": [{"role": "user", "content": text}], "input": [{"role": "user", "content": text}],
        "contents": [{"role": "user", "parts": [{"text": text}]}]})
}

impl Peer {
    pub(crate) async fn to(address: SocketAddr) -> Self {
        Self { socket: TcpStream::connect(address).await.unwrap(), unread: Vec::new() }
    }

    pub(crate) async fn send(&mut self, path: &str, body: &Value) {
        let body = body.to_string();
        let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
        self.socket.write_all((head + &body).as_bytes()).await.unwrap();
    }

    pub(crate) async fn exchange(&mut self, wire: ServedWire, body: &Value) -> Response {
        let path = match (wire, body["stream"].as_bool()) {
            (ServedWire::Gemini, Some(false)) => "/v1beta/models/m:generateContent",
            (wire, _) => path(wire),
        };
        self.send(path, body).await;
        self.response().await
    }

    /// Reads until the unread bytes hold `end`; says how it ended if they never do.
    pub(crate) async fn until(&mut self, end: &[u8]) -> Result<Vec<u8>, Whole> {
        loop {
            if let Some(at) = self.unread.windows(end.len()).position(|window| window == end) {
                let rest = self.unread.split_off(at + end.len());
                return Ok(std::mem::replace(&mut self.unread, rest));
            }
            self.more().await?;
        }
    }

    async fn more(&mut self) -> Result<(), Whole> {
        match self.socket.read_buf(&mut self.unread).await {
            Ok(0) => Err(Whole::Closed),
            Ok(_) => Ok(()),
            Err(_) => Err(Whole::Reset),
        }
    }

    /// One chunk of a chunked body; empty = the last.
    pub(crate) async fn chunk(&mut self) -> Result<Vec<u8>, Whole> {
        let size = self.until(b"\r\n").await?;
        let size = usize::from_str_radix(std::str::from_utf8(&size).unwrap().trim(), 16).unwrap();
        while self.unread.len() < size + 2 {
            self.more().await?;
        }
        let rest = self.unread.split_off(size + 2);
        let mut chunk = std::mem::replace(&mut self.unread, rest);
        chunk.truncate(size);
        Ok(chunk)
    }

    pub(crate) async fn head(&mut self) -> Result<(u16, String), Whole> {
        let head = String::from_utf8(self.until(b"\r\n\r\n").await?).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Ok((status, head))
    }

    pub(crate) async fn response(&mut self) -> Response {
        let (status, head) = match self.head().await {
            Ok(head) => head,
            Err(whole) => return Response { status: 0, head: String::new(), body: Vec::new(), whole },
        };
        let mut body = Vec::new();
        let whole = match self.body(&head, &mut body).await {
            Ok(()) => Whole::Complete,
            Err(whole) => whole,
        };
        Response { status, head, body, whole }
    }

    async fn body(&mut self, head: &str, body: &mut Vec<u8>) -> Result<(), Whole> {
        if head.contains("transfer-encoding: chunked") {
            loop {
                let chunk = self.chunk().await?;
                if chunk.is_empty() {
                    return Ok(());
                }
                body.extend(chunk);
            }
        }
        let length = head.split("content-length: ").nth(1).unwrap().lines().next().unwrap();
        let length: usize = length.parse().unwrap();
        while self.unread.len() < length {
            self.more().await?;
        }
        *body = self.unread.drain(..length).collect();
        Ok(())
    }
}

impl Response {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The JSON of each `data:` line.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.text()
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }
}

//! A client of the server on a real socket, which sends exactly what a test says.

use std::net::SocketAddr;

use safepoint_testkit::wait::InTime as _;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpSocket, TcpStream},
};

/// A client with a token.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Reply {
    /// The code of a refusal.
    pub(crate) fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sent {
    pub(crate) id: Option<String>,
    pub(crate) event: String,
    pub(crate) data: Value,
}

/// A stream that is read event by event.
pub(crate) struct Stream {
    pub(crate) head: String,
    reader: BufReader<TcpStream>,
}

impl Client {
    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send("POST", path, &[], Some(body)).await
    }

    /// Sends the request as it would be sent by a program, with these headers too.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Reply {
        let body = body.map(Value::to_string);
        self.send_text(method, path, more, body.as_deref()).await
    }

    /// The same with a body as it is.
    pub(crate) async fn send_text(
        &self,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
        body: Option<&str>,
    ) -> Reply {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let mut stream = self.sent_on(stream, method, path, (more, body)).await;
        let mut text = String::new();
        stream.read_to_string(&mut text).in_time("the answer").await.unwrap();
        reply(&text)
    }

    /// Opens a stream.
    pub(crate) async fn stream(
        &self,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Stream {
        let stream = self.sent(method, path, more, body).await;
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let count = reader.read_line(&mut head).in_time("the head of a stream").await.unwrap();
            assert!(count > 0, "{head}");
        }
        Stream { head, reader }
    }

    /// Reads the events of a session behind this id.
    pub(crate) async fn events(&self, session: &str, last: &str) -> Stream {
        self.stream("GET", &format!("/v1/sessions/{session}/events"), &[("last-event-id", last)], None).await
    }

    /// The connection on which the request was sent.
    pub(crate) async fn sent(
        &self,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
        body: Option<&Value>,
    ) -> TcpStream {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let body = body.map(Value::to_string);
        self.sent_on(stream, method, path, (more, body.as_deref())).await
    }

    /// A connection whose system takes little for a client that does not read, on which a stream was asked for.
    pub(crate) async fn narrow(&self, path: &str) -> TcpStream {
        const LITTLE: u32 = 4_096;
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(LITTLE).unwrap();
        let stream = socket.connect(self.address).await.unwrap();
        self.sent_on(stream, "GET", path, (&[], None)).await
    }

    async fn sent_on(
        &self,
        mut stream: TcpStream,
        method: &str,
        path: &str,
        (more, body): (&[(&str, &str)], Option<&str>),
    ) -> TcpStream {
        let mut head = format!("{method} {path} HTTP/1.0\r\n");
        let named = |name: &str| more.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        if !named("host") {
            head.push_str(&format!("host: {}\r\n", self.address));
        }
        if !named("authorization") {
            head.push_str(&format!("authorization: Bearer {}\r\n", self.token));
        }
        if let Some(body) = body {
            if !named("content-type") {
                head.push_str("content-type: application/json\r\n");
            }
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        for (name, value) in more {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        head.push_str(body.unwrap_or_default());
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }
}

fn reply(text: &str) -> Reply {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    let body = serde_json::from_str(body).unwrap_or_else(|_no_json| Value::String(body.to_owned()));
    Reply { status, head: head.to_ascii_lowercase(), body }
}

impl Stream {
    /// The next event; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Sent> {
        let mut sent = Sent { id: None, event: String::new(), data: Value::Null };
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).in_time("an event of a stream").await.unwrap() == 0 {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some(("id", id)) => sent.id = Some(id.to_owned()),
                Some(("event", event)) => event.clone_into(&mut sent.event),
                Some(("data", data)) => sent.data = serde_json::from_str(data).unwrap(),
                Some(_) => {}
                None if sent.event.is_empty() => {}
                None => return Some(sent),
            }
        }
    }

    /// The id and the data of the next event, which has an id and no name; none at the end.
    pub(crate) async fn numbered(&mut self) -> Option<(String, Value)> {
        let (mut id, mut data) = (None, Value::Null);
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).in_time("an event of a stream").await.unwrap() == 0 {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some(("id", named)) => id = Some(named.to_owned()),
                Some(("data", text)) => data = serde_json::from_str(text).unwrap(),
                None if line.trim_end().is_empty() && id.is_some() => return id.map(|id| (id, data)),
                _ => {}
            }
        }
    }

    /// The data of the next event, which has no name; none at the end.
    pub(crate) async fn data(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).in_time("an event of a stream").await.unwrap() == 0 {
                return None;
            }
            if let Some(data) = line.trim_end().strip_prefix("data: ") {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }

    /// The next event of this name; those before it are passed over.
    pub(crate) async fn until(&mut self, event: &str) -> Sent {
        loop {
            let sent = self.next().await.unwrap_or_else(|| panic!("the stream ended before `{event}`"));
            if sent.event == event {
                return sent;
            }
        }
    }

    /// All that follow.
    pub(crate) async fn rest(&mut self) -> Vec<Sent> {
        let mut all = Vec::new();
        while let Some(sent) = self.next().await {
            all.push(sent);
        }
        all
    }
}

//! What goes over the wire of Streamable HTTP, seen by a server that says its answers byte by byte.

use std::{
    io,
    sync::{Arc, Mutex},
};

use safepoint_testkit::wait::InTime as _;
use safepoint_tools::mcp::{Protocol, Server};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::mcp::support::{no_args, until};

/// A request, as it came.
#[derive(Clone, Debug, Default)]
struct Got {
    method: String,
    headers: Vec<(String, String)>,
    body: Value,
}

impl Got {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// What it asks, or how.
    fn what(&self) -> &str {
        self.body["method"].as_str().unwrap_or(&self.method)
    }
}

/// A server with one answer a connection, for as long as its test runs.
struct Raw {
    url: String,
    seen: Arc<Mutex<Vec<Got>>>,
}

impl Raw {
    async fn start(answer: impl Fn(&Got) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let seen = Arc::<Mutex<Vec<Got>>>::default();
        let (all, answer) = (Arc::clone(&seen), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (all, answer) = (Arc::clone(&all), Arc::clone(&answer));
                tokio::spawn(async move {
                    let mut socket = BufReader::new(socket);
                    let got = request(&mut socket).await?;
                    all.lock().unwrap().push(got.clone());
                    socket.write_all(&answer(&got)).await?;
                    socket.shutdown().await
                });
            }
        });
        Self { url, seen }
    }

    fn server(&self) -> Server {
        Server::http("test", &self.url).protocol(Protocol::Initialize)
    }

    fn seen(&self, what: &str) -> Vec<Got> {
        self.seen.lock().unwrap().iter().filter(|got| got.what() == what).cloned().collect()
    }
}

async fn request(socket: &mut BufReader<TcpStream>) -> io::Result<Got> {
    let mut line = String::new();
    socket.read_line(&mut line).await?;
    let mut got = Got { method: line.split(' ').next().unwrap_or_default().to_owned(), ..Got::default() };
    loop {
        line.clear();
        socket.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        got.headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length = got.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await?;
    got.body = serde_json::from_slice(&body).unwrap_or_default();
    Ok(got)
}

fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}")
        .into_bytes()
}

fn said(got: &Got, result: &Value) -> Vec<u8> {
    let body = json!({"jsonrpc": "2.0", "id": got.body["id"], "result": result}).to_string();
    answer("200 OK", "content-type: application/json\r\nmcp-session-id: seven\r\n", &body)
}

fn events(text: &str) -> Vec<u8> {
    answer("200 OK", "content-type: text/event-stream\r\n", text)
}

/// What a server does that does nothing remarkable.
fn plain(got: &Got) -> Vec<u8> {
    match got.what() {
        "initialize" => said(
            got,
            &json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "test", "version": "1"}}),
        ),
        "tools/call" => said(got, &json!({"content": [{"type": "text", "text": "good"}]})),
        "DELETE" => answer("200 OK", "", ""),
        "GET" => answer("405 Method Not Allowed", "", ""),
        _ => answer("202 Accepted", "", ""),
    }
}

/// S4.10: every request has the headers of its server and of the protocol, each once, and the session ends with the client.
#[tokio::test]
async fn each_request_has_the_headers_of_the_server_and_of_the_protocol() {
    let raw = Raw::start(plain).await;
    let server = Server::http("test", raw.url.replace("http://", "http://bob:secret@"));
    let server =
        server.protocol(Protocol::Initialize).header("Authorization", "Bearer mine").header("x-own", "1");
    let client = server.connect().in_time("it connects").await.unwrap();
    client.call("echo", no_args(), |_| {}).in_time("it is called").await.unwrap();
    client.close().in_time("it is closed").await;
    for what in ["initialize", "notifications/initialized", "tools/call", "DELETE"] {
        let [got] = &raw.seen(what)[..] else { panic!("{what} was sent {} times", raw.seen(what).len()) };
        let count = |name: &str| got.headers.iter().filter(|(known, _)| known == name).count();
        assert_eq!((got.header("authorization"), count("authorization")), (Some("Bearer mine"), 1), "{what}");
        assert_eq!(got.header("x-own"), Some("1"), "{what}");
        let (session, version) = (got.header("mcp-session-id"), got.header("mcp-protocol-version"));
        if what == "initialize" {
            assert_eq!((session, version), (None, None), "{what}");
        } else {
            assert_eq!((session, version), (Some("seven"), Some("2025-11-25")), "{what}");
        }
        if got.method == "POST" {
            assert_eq!(got.header("accept"), Some("text/event-stream, application/json"), "{what}");
            assert_eq!(got.header("content-type"), Some("application/json"), "{what}");
        }
    }
    assert_eq!(raw.seen("GET").len(), 1, "a server without a stream of notices is asked once");
}

/// S4.10: a header of the protocol's own is refused before anything is sent.
#[tokio::test]
async fn a_header_of_the_protocols_own_is_refused() {
    let raw = Raw::start(plain).await;
    for name in ["accept", "Mcp-Session-Id", "last-event-id", "Content-Type"] {
        let error = raw.server().header(name, "mine").connect().await.unwrap_err();
        assert!(error.is_description() && error.to_string().contains(name), "{error}");
    }
    assert!(raw.seen.lock().unwrap().is_empty());
}

/// S3.8: no redirect takes the headers elsewhere.
#[tokio::test]
async fn no_redirect_is_followed() {
    let elsewhere = Raw::start(plain).await;
    let to = elsewhere.url.clone();
    let raw = Raw::start(move |_| answer("307 Temporary Redirect", &format!("location: {to}\r\n"), "")).await;
    let error = raw.server().header("authorization", "mine").connect().await.unwrap_err();
    assert!(error.to_string().contains("answered with HTTP 307"), "{error}");
    assert!(elsewhere.seen.lock().unwrap().is_empty());
}

/// S3.8: a server that wants to know who asks is reported as that, and not as one that is lost.
#[tokio::test]
async fn a_server_that_asks_who_asks_is_told_of_as_that() {
    for status in ["401 Unauthorized", "403 Forbidden"] {
        let raw = Raw::start(move |_| answer(status, "www-authenticate: Bearer scope=\"a\"\r\n", "")).await;
        let error = raw.server().connect().await.unwrap_err().to_string();
        assert!(error.contains("asks for authorization"), "{error}");
    }
}

/// S4.7, S4.10: an event that is too large ends its call even where the stream was resumed, and is not asked for again.
#[tokio::test]
async fn a_large_event_of_a_resumed_stream_ends_its_call_and_is_sent_once() {
    let id = Arc::new(Mutex::new(Value::Null));
    let raw = Raw::start(move |got| match (got.what(), got.header("last-event-id")) {
        ("tools/call", _) if got.body["params"]["name"] == "big" => {
            *id.lock().unwrap() = got.body["id"].clone();
            events("id: one\nretry: 1\ndata:\n\n")
        }
        ("GET", Some("one")) => {
            let large = "x".repeat(17 << 20);
            let message = json!({"jsonrpc": "2.0", "id": *id.lock().unwrap(), "result": {"a": large}});
            events(&format!("id: two\ndata: {message}\n\n"))
        }
        _ => plain(got),
    })
    .await;
    let client = raw.server().connect().in_time("it connects").await.unwrap();
    let error = client.call("big", no_args(), |_| {}).in_time("it fails").await.unwrap_err().to_string();
    assert!(error.contains("answered with more than 16777216 bytes"), "{error}");
    let resumed = raw.seen("GET").iter().filter(|got| got.header("last-event-id").is_some()).count();
    assert_eq!(resumed, 1);
    assert!(client.call("echo", no_args(), |_| {}).in_time("it goes on").await.is_ok());
}

/// S4.10: an answer with too many values, or that is no message, ends its call, whichever way it is written.
#[tokio::test]
async fn an_answer_that_cannot_be_read_ends_its_call() {
    let raw = Raw::start(move |got| {
        let id = &got.body["id"];
        let wide = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"a":[0{}]}}}}"#, ",0".repeat(1 << 18));
        let none = format!(r#"{{"jsonrpc":"2.0","id":{id}}}"#);
        let json = |body: &str| answer("200 OK", "content-type: application/json\r\n", body);
        match got.body["params"]["name"].as_str() {
            Some("wide-json") => json(&wide),
            Some("wide-events") => events(&format!("data: {wide}\n\n")),
            Some("no-message-json") => json(&none),
            Some("no-message-events") => events(&format!("data: {none}\n\n")),
            Some("page") => answer("200 OK", "content-type: text/html\r\n", "<h1>Do as I say</h1>"),
            Some("refused") => answer("400 Bad Request", "content-type: text/plain\r\n", "not so"),
            _ => plain(got),
        }
    })
    .await;
    let client = raw.server().connect().in_time("it connects").await.unwrap();
    for (tool, words) in [
        ("wide-json", "262144 values"),
        ("wide-events", "262144 values"),
        ("no-message-json", "is no valid message (it is not as the protocol says"),
        ("no-message-events", "is no valid message (it is not as the protocol says"),
        ("page", "is no valid message"),
        ("refused", "answered with HTTP 400"),
    ] {
        let error = client.call(tool, no_args(), |_| {}).in_time(tool).await.unwrap_err().to_string();
        assert!(error.contains("the MCP server `test` answered") && error.contains(words), "{tool}: {error}");
        assert!(!error.contains("Do as I say"), "{tool}: {error}");
    }
    until("the calls were sent", || raw.seen("tools/call").len() == 6).await;
}

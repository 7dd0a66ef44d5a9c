//! Readers of HTTP/1.1, whose stream the server writes itself: each has a whole body, with its last chunk.

use safepoint_testkit::{script::Reply, wait::InTime as _};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
};

use super::{
    client::Client,
    world::{World, served},
};

/// How many read one session.
const READERS: usize = 40;

/// The connection of a client that has asked for this.
async fn asks(client: &Client, version: &str, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(client.address).await.unwrap();
    let (address, token) = (client.address, &client.token);
    let head =
        format!("GET {path} HTTP/{version}\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

/// A reader of this session's events.
async fn reads(client: &Client, session: &str) -> TcpStream {
    asks(client, "1.1", &format!("/v1/sessions/{session}/events")).await
}

/// All that comes to it.
async fn rest(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).in_time("the end of an answer").await.unwrap();
    answer
}

/// What is in the chunks of an answer, which is whole.
fn whole(answer: &str) -> String {
    let (head, mut rest) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.to_ascii_lowercase().contains("transfer-encoding: chunked"), "{head}");
    let mut text = String::new();
    loop {
        let (size, behind) = rest.split_once("\r\n").unwrap_or_else(|| panic!("it is cut: {rest:?}"));
        let size = usize::from_str_radix(size, 16).unwrap();
        let chunk = behind.get(..size).unwrap_or_else(|| panic!("it is cut in a chunk: {behind:?}"));
        text.push_str(chunk);
        rest = behind[size..].strip_prefix("\r\n").expect("the end of a chunk");
        if size == 0 {
            assert_eq!(rest, "", "nothing is behind the last chunk");
            return text;
        }
    }
}

/// The names of the events in it.
fn names(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("event: ")).collect()
}

/// S13.12, S13.38: a drain ends the stream of every reader with `bye` and the last chunk, also where nothing runs, and cuts none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_ends_every_reader_and_cuts_none() {
    let (model, agent) = served([Reply::text("One.")]).await;
    let mut world = World::of(agent).await;
    let (idle, busy) = (world.session("first").await, world.empty().await);
    world.rest(&idle, 1).await;
    let mut gate = model.gate();
    world.client.post(&format!("/v1/sessions/{busy}/items"), &json!({"text": "second"})).await;
    let request = gate.request().await;
    let mut readers = JoinSet::new();
    for number in 0..READERS {
        let session = if number % 2 == 0 { &idle } else { &busy };
        let stream = reads(&world.client, session).await;
        readers.spawn(async move { (number, rest(stream).await) });
    }
    world.read_by(READERS).await;
    world.begin_end();
    request.peer_closed().in_time("the end of the model's connection").await;
    while let Some(ended) = readers.join_next().await {
        let (number, answer) = ended.unwrap();
        let text = whole(&answer);
        let names = names(&text);
        assert_eq!(names.first(), Some(&"session"), "{number}: {names:?}");
        assert_eq!(names.last(), Some(&"bye"), "{number}: {names:?}");
        assert_eq!(names.iter().filter(|name| **name == "turn_ended").count(), 1, "{number}: {names:?}");
    }
    world.end().await;
}

/// S13.57: a client that closes its own side alone is answered, once, and the connection ends with that.
#[tokio::test]
async fn a_client_that_has_closed_its_side_is_answered() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = World::of(agent).await;
    let session = world.session("go").await;
    gate.request().await;
    let waits = format!("/v1/sessions/{session}/items/item-1?wait=rest&timeout_ms=120000");
    let mut stream = asks(&world.client, "1.1", &waits).await;
    stream.shutdown().await.unwrap();
    // The server learns of the end of its side while nothing else comes: requests of others are served meanwhile.
    for _ in 0..20 {
        assert_eq!(world.client.get("/livez").await.status, 200);
    }
    gate.headers();
    gate.script(&Reply::text("Done."));
    gate.finish();
    let answer = rest(stream).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.ends_with('}') && answer.contains("\"outcome\":\"completed\""), "{answer}");
    world.end().await;
}

/// S13.57: a stream ends with the client's side, with either writer.
#[tokio::test]
async fn a_reader_that_has_closed_its_side_reads_no_more() {
    let (_model, agent) = served([Reply::text("One.")]).await;
    let world = World::of(agent).await;
    let session = world.session("first").await;
    world.rest(&session, 1).await;
    let path = format!("/v1/sessions/{session}/events");
    for version in ["1.1", "1.0"] {
        let mut early = asks(&world.client, version, &path).await;
        early.shutdown().await.unwrap();
        rest(early).await;
        let mut late = asks(&world.client, version, &path).await;
        world.read_by(1).await;
        late.shutdown().await.unwrap();
        rest(late).await;
        world.read_by(0).await;
    }
    world.end().await;
}

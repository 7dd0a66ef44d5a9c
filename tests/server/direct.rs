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

/// A reader of this session's events.
async fn reads(client: &Client, session: &str) -> TcpStream {
    let mut stream = TcpStream::connect(client.address).await.unwrap();
    let head = format!(
        "GET /v1/sessions/{session}/events HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\r\n",
        client.address, client.token
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
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
        let mut stream = reads(&world.client, session).await;
        readers.spawn(async move {
            let mut answer = String::new();
            stream.read_to_string(&mut answer).in_time("the end of a stream").await.unwrap();
            (number, answer)
        });
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

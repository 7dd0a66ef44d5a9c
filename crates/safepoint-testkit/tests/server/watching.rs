//! What it saw: requests, closes, what came after, and steps taken by hand.

use std::time::Duration;

use safepoint_testkit::{
    script::{Reply, ReplyFault, Script},
    server::{KeptExchanges, ModelServer, ServedWire, ServerLog, ServerOptions},
};
use serde_json::json;
use tokio::{io::AsyncWriteExt as _, sync::mpsc};

use super::peer::{Peer, WIRES, Whole, ask, path};

/// S3.6: a peer that goes away is seen, silent or mid-stream, and the answer is never complete.
#[tokio::test]
async fn a_close_is_seen() {
    let hour = Duration::from_secs(3600);
    for wire in WIRES {
        for reply in [
            Reply::text("x").fault(ReplyFault::Silence),
            Reply::text("x").fault(ReplyFault::StallAfter(2)),
            Reply::text("long story").paced(1, hour),
        ] {
            let server = ModelServer::start(Script::of([reply])).await.unwrap();
            let mut peer = Peer::to(server.address()).await;
            peer.send(path(wire), &ask("hi")).await;
            let exchange = server.request(0).await;
            assert_eq!((exchange.fate_now().peer_closed, server.open_connections()), (None, 1));
            drop(peer);
            assert!(exchange.peer_closed().await >= exchange.at);
            assert_eq!(exchange.fate_now().completed, None);
        }
    }
}

/// S3.6: a message that is not streamed takes the time of its text, in which a peer that goes away is seen
/// too.
#[tokio::test]
async fn a_message_takes_the_time_of_its_text() {
    for (pause, is_answered) in [(Duration::from_millis(1), true), (Duration::from_secs(3600), false)] {
        for wire in WIRES {
            let reply = Reply::text("a story").paced(0, pause);
            let server = ModelServer::start(Script::of([reply])).await.unwrap();
            let mut peer = Peer::to(server.address()).await;
            let mut body = ask("hi");
            body["stream"] = json!(false);
            if is_answered {
                let body = peer.exchange(wire, &body).await.body;
                assert!(String::from_utf8_lossy(&body).contains("a story"));
                continue;
            }
            let path =
                if wire == ServedWire::Gemini { "/v1beta/models/m:generateContent" } else { path(wire) };
            peer.send(path, &body).await;
            let exchange = server.request(0).await;
            drop(peer);
            assert!(exchange.peer_closed().await >= exchange.at);
            assert_eq!((exchange.fate_now().first_byte, exchange.fate_now().completed), (None, None));
        }
    }
}

/// S3.6: an answer that was written whole says when; the idle connection's close is seen too.
#[tokio::test]
async fn an_answer_and_then_a_close_are_distinct() {
    let server = ModelServer::start(Script::of([Reply::text("x")])).await.unwrap();
    let mut peer = Peer::to(server.address()).await;
    peer.exchange(WIRES[0], &ask("hi")).await;
    let exchange = server.request(0).await;
    let completed = exchange.completed().await;
    assert_eq!(exchange.fate_now().peer_closed, None);
    assert!(exchange.fate_now().first_byte.unwrap() <= completed && exchange.fate_now().status == 200);
    drop(peer);
    assert!(exchange.peer_closed().await >= completed);
}

/// S13: requests are recorded with head and bytes; one connection serves many, on every wire.
#[tokio::test]
async fn requests_are_recorded_on_a_kept_connection() {
    let server = ModelServer::start(Script::default()).await.unwrap();
    let mut peer = Peer::to(server.address()).await;
    for turn in 0..6 {
        let wire = WIRES[turn % 2];
        let response = peer.exchange(wire, &ask(&format!("turn {turn}"))).await;
        assert!(response.text().contains(&format!("turn {turn}")), "{}", response.text());
    }
    let requests = server.requests();
    assert_eq!((requests.len(), server.open_connections()), (6, 1));
    let second = &requests[1];
    assert_eq!(
        (second.id, second.wire, second.path.as_str()),
        (1, ServedWire::Anthropic, "/v1/messages?beta=true")
    );
    assert_eq!((second.header("host"), &*second.bytes), (Some("x"), ask("turn 1").to_string().as_bytes()));
    assert_eq!(second.body["messages"][0]["content"], "turn 1");
}

/// S2.2: through a gate, a test decides when each byte is sent; what the peer sends meanwhile is counted.
#[tokio::test]
async fn a_gate_answers_step_by_step() {
    for wire in WIRES {
        let server = ModelServer::start(Script::of([Reply::text("from the script")])).await.unwrap();
        let mut gate = server.gate();
        let mut peer = Peer::to(server.address()).await;
        peer.send(path(wire), &ask("hi")).await;
        let exchange = gate.request().await;
        gate.headers();
        assert_eq!(peer.head().await.unwrap().0, 200);
        let count = gate.script(&Reply::pieces(["a", "b"]));
        for _ in 0..count {
            assert!(gate.send_next());
            assert!(!peer.chunk().await.unwrap().is_empty());
        }
        assert!(!gate.send_next());
        peer.send(path(wire), &ask("next")).await;
        exchange.fate.clone().wait_for(|fate| fate.bytes_after > 0).await.unwrap();
        gate.send(b": still here\n\n");
        assert_eq!(peer.chunk().await.unwrap(), b": still here\n\n");
        gate.finish();
        assert!(peer.chunk().await.unwrap().is_empty());
        assert!(peer.response().await.text().contains("from the script"));
        assert!(exchange.completed().await >= exchange.at);
    }
}

/// S2.2: a gate can close, reset, refuse, or be dropped; a peer's close is seen while it waits.
#[tokio::test]
async fn a_gate_can_end_it() {
    for (end, status, whole) in [
        ("close", 200, Whole::Closed),
        ("reset", 200, Whole::Reset),
        ("drop", 200, Whole::Closed),
        ("status", 503, Whole::Complete),
    ] {
        let server = ModelServer::start(Script::default()).await.unwrap();
        let mut gate = server.gate();
        let mut peer = Peer::to(server.address()).await;
        peer.send(path(WIRES[0]), &ask("hi")).await;
        gate.request().await;
        match end {
            "status" => gate.status(503),
            "close" => gate.headers().close(),
            "reset" => {
                gate.headers();
                assert_eq!(peer.head().await.unwrap().0, 200);
                gate.reset();
                assert_eq!(peer.chunk().await.unwrap_err(), Whole::Reset);
                continue;
            }
            _ => {
                gate.headers();
                drop(gate);
            }
        }
        let response = peer.response().await;
        assert_eq!((response.status, response.whole), (status, whole), "{end}");
    }
    let server = ModelServer::start(Script::default()).await.unwrap();
    let mut gate = server.gate();
    let mut peer = Peer::to(server.address()).await;
    peer.send(path(WIRES[0]), &ask("hi")).await;
    let exchange = gate.request().await;
    drop(peer);
    exchange.peer_closed().await;
}

/// S3.6: a server that is dropped closes its connections, silent ones included.
#[tokio::test]
async fn a_dropped_server_closes_its_connections() {
    let server = ModelServer::start(Script::of([Reply::default().fault(ReplyFault::Silence)])).await.unwrap();
    let mut peer = Peer::to(server.address()).await;
    peer.send(path(WIRES[0]), &ask("hi")).await;
    server.request(0).await;
    drop(server);
    assert_ne!(peer.response().await.whole, Whole::Complete);
}

/// S13: the log tells of each event in order, also where nothing is recorded.
#[tokio::test]
async fn the_log_tells_of_each_event() {
    let (log, mut lines) = mpsc::unbounded_channel();
    let log = ServerLog::to(move |line| log.send(line).unwrap());
    let options = ServerOptions { log: Some(log), recording: KeptExchanges::Off, ..ServerOptions::default() };
    let server =
        ModelServer::start_with(Script::default(), options, ([127, 0, 0, 1], 0).into()).await.unwrap();
    let mut peer = Peer::to(server.address()).await;
    peer.exchange(WIRES[0], &ask("hi")).await;
    drop(peer);
    for kind in ["request", "sent", "completed", "peer_closed"] {
        let line = lines.recv().await.unwrap();
        assert_eq!((&line["type"], &line["id"]), (&json!(kind), &json!(0)));
        assert!(line["at"].is_string());
        assert!(kind != "request" || line["body"]["messages"][0]["content"] == "hi");
    }
    assert!(server.requests().is_empty());
}

/// S13: bodies in chunks, and clients that wait for a word before they send one.
#[tokio::test]
async fn bodies_come_in_every_shape() {
    let server = ModelServer::start(Script::default()).await.unwrap();
    let mut peer = Peer::to(server.address()).await;
    let body = ask("in pieces").to_string();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ntransfer-encoding: chunked\r\n\r\n";
    peer.socket.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(peer.head().await.unwrap().0, 100);
    let (first, second) = body.split_at(20);
    for part in [first, second, ""] {
        peer.socket.write_all(format!("{:x}\r\n{part}\r\n", part.len()).as_bytes()).await.unwrap();
    }
    assert!(peer.response().await.text().contains("in pieces"));
    assert_eq!(&*server.requests()[0].bytes, body.as_bytes());
}

/// S2.2: gates are taken in order; a request that is refused takes none; then the script continues.
#[tokio::test]
async fn gates_queue_up() {
    let server = ModelServer::start(Script::of([Reply::text("scripted")])).await.unwrap();
    let mut gates = [(server.gate(), "one"), (server.gate(), "two")];
    let mut peer = Peer::to(server.address()).await;
    assert_eq!(peer.exchange(WIRES[1], &json!({"messages": []})).await.status, 400);
    for (gate, word) in &mut gates {
        peer.send(path(WIRES[0]), &ask("hi")).await;
        gate.request().await;
        gate.headers();
        gate.script(&Reply::text(*word));
        gate.finish();
        assert!(peer.response().await.text().contains(*word));
    }
    assert!(peer.exchange(WIRES[0], &ask("hi")).await.text().contains("scripted"));
}

/// S13: requests that come at once on one connection are answered in order; a broken body in its provider's
/// words.
#[tokio::test]
async fn requests_at_once_are_answered_in_order() {
    let words = ["one", "two", "three", "four"];
    let server = ModelServer::start(Script::of(words.map(Reply::text))).await.unwrap();
    let mut peer = Peer::to(server.address()).await;
    let broken = "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\n{";
    peer.socket.write_all(broken.as_bytes()).await.unwrap();
    for wire in WIRES {
        peer.send(path(wire), &ask("hi")).await;
    }
    let refused = peer.response().await;
    assert_eq!((refused.status, &refused.json()["type"]), (400, &json!("error")));
    for word in &words[..WIRES.len()] {
        assert!(peer.response().await.text().contains(word));
    }
    assert_eq!((server.open_connections(), server.requests().len()), (1, WIRES.len()));
}

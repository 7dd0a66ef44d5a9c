//! Many at once.

use futures_util::future::join_all;
use safepoint_testkit::{
    script::{Reply, ReplyFault, Script},
    server::{KeptExchanges, ModelServer, ServerOptions, Strictness},
};

use super::peer::{Peer, WIRES, ask, path};

/// S9.6: five hundred silent connections are held, and each close is seen.
#[tokio::test]
async fn silent_connections_are_held() {
    const MANY: usize = 500;
    let script = Script { repeat: true, ..Script::of([Reply::default().fault(ReplyFault::Silence)]) };
    let server = ModelServer::start(script).await.unwrap();
    let mut peers = Vec::new();
    for n in 0..MANY {
        let mut peer = Peer::to(server.address()).await;
        peer.send(path(WIRES[n % 2]), &ask("hi")).await;
        peers.push(peer);
    }
    server.request(MANY - 1).await;
    assert_eq!(server.open_connections(), MANY);
    drop(peers);
    let requests = server.requests();
    join_all(requests.iter().map(|request| request.peer_closed())).await;
    assert!(requests.iter().all(|request| request.fate_now().first_byte.is_none()));
}

/// The text of an answer, with one id for all.
fn without_number(text: &str) -> String {
    let mut pieces = text.split("scripted");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| {
        text + "scripted" + piece.trim_start_matches(|letter: char| letter.is_ascii_digit())
    })
}

/// S13: an unwatched server gives the same answer as a watched one, which gives each its own id.
#[tokio::test]
async fn an_unwatched_server_says_the_same() {
    let script = Script { repeat: true, ..Script::of([Reply::text("one"), Reply::text("two")]) };
    let options = ServerOptions {
        strictness: Strictness::Lenient,
        recording: KeptExchanges::Off,
        ..ServerOptions::default()
    };
    let address = ([127, 0, 0, 1], 0).into();
    let unwatched = ModelServer::start_with(script.clone(), options, address).await.unwrap();
    let watched = ModelServer::start(script).await.unwrap();
    let (mut one, mut other) = (Peer::to(unwatched.address()).await, Peer::to(watched.address()).await);
    for turn in 0..8 {
        let wire = WIRES[turn % 2];
        let (said, seen) = (one.exchange(wire, &ask("hi")).await, other.exchange(wire, &ask("hi")).await);
        assert_ne!(said.text(), seen.text(), "an id says which answer it is");
        assert_eq!(said.text(), without_number(&seen.text()));
    }
    assert!(unwatched.requests().is_empty());
}

//! What becomes of connections that wait for another request.

use std::time::Duration;

use safepoint_http::HttpClient;
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpListener,
    runtime::{Builder, Runtime},
    time::{pause, timeout},
};
use url::Url;

use super::peer::{Peer, direct, listen, soon};

/// One exchange, after which its connection waits.
async fn rests(client: &HttpClient, listener: &TcpListener, address: &Url) -> Peer {
    let asked = tokio::spawn(client.get(address).send());
    let mut peer = Peer::accept(listener).await;
    peer.request().await;
    peer.answer("so").await;
    soon(soon(asked).await.unwrap().unwrap().bytes()).await.unwrap();
    peer
}

fn single() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A connection that its server ends is closed without another request, and the next request goes over a new one.
#[tokio::test]
async fn what_the_server_ends_is_closed() {
    let (listener, address) = listen().await;
    let client = direct();
    for _ in 0..2 {
        let mut peer = rests(&client, &listener, &address).await;
        peer.stream.shutdown().await.unwrap();
        peer.ended().await;
    }
}

/// A connection is kept for a while, and then closed.
#[tokio::test]
async fn what_is_not_used_for_long_is_closed() {
    let (listener, address) = listen().await;
    let client = direct();
    let mut peer = rests(&client, &listener, &address).await;
    let again = rests_again(&client, &address, &mut peer).await;
    pause();
    assert!(timeout(Duration::from_secs(80), again.closes()).await.is_err());
    timeout(Duration::from_secs(20), again.closes()).await.unwrap();
}

/// Another exchange over the same connection.
async fn rests_again<'a>(client: &HttpClient, address: &Url, peer: &'a mut Peer) -> &'a mut Peer {
    let asked = tokio::spawn(client.get(address).send());
    peer.request().await;
    peer.answer("so").await;
    soon(soon(asked).await.unwrap().unwrap().bytes()).await.unwrap();
    peer
}

/// The connections of a runtime are closed with it, and used by no other.
#[test]
fn a_connection_belongs_to_its_runtime() {
    let client = direct();
    let (here, there) = (single(), single());
    let (listener, address) = here.block_on(listen());
    let mut first = here.block_on(rests(&client, &listener, &address));
    // That of the other runtime, which no task drives by now, is not taken.
    let mut second = there.block_on(async {
        let listener = TcpListener::from_std(listener.into_std().unwrap()).unwrap();
        rests(&client, &listener, &address).await
    });
    first = here.block_on(async {
        rests_again(&client, &address, &mut first).await;
        first
    });
    there.block_on(async {
        rests_again(&client, &address, &mut second).await;
    });
    let second = second.stream.into_std().unwrap();
    drop(there);
    here.block_on(async {
        Peer::of(tokio::net::TcpStream::from_std(second).unwrap()).ended().await;
        // This one is of use still.
        rests_again(&client, &address, &mut first).await;
    });
}

//! What is sent with a request, and what is made of an answer.

use std::{
    future::{Future as _, poll_fn},
    pin::pin,
};

use ::http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{ACCEPT, AUTHORIZATION, LOCATION},
};
use tokio::{io::AsyncWriteExt as _, task::coop::consume_budget};

use super::peer::{Peer, direct, listen, soon};

/// User and password of an address are a header, unless there is one, and nothing else of the request.
#[tokio::test]
async fn a_password_of_an_address_is_sent_as_a_header() {
    let (listener, mut address) = listen().await;
    address.set_username("otter").unwrap();
    address.set_password(Some("s3cr%t")).unwrap();
    address.set_path("/a path");
    address.set_query(Some("q=1"));
    address.set_fragment(Some("part"));
    let client = direct();
    let own = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static("Bearer own"))]);
    let basic = "Basic b3R0ZXI6czNjciV0";
    for (headers, sent) in [(HeaderMap::new(), basic), (own, "Bearer own")] {
        let asked = tokio::spawn(client.get(&address).headers(headers).send());
        let mut peer = Peer::accept(&listener).await;
        let request = peer.request().await;
        assert!(request.starts_with("GET /a%20path?q=1 HTTP/1.1\r\n"), "{request}");
        let known: Vec<&str> = request.lines().filter(|line| line.starts_with("authorization")).collect();
        assert_eq!(known, [format!("authorization: {sent}")]);
        assert!(!request.contains('@') && !request.contains("part"), "{request}");
        drop(peer);
        soon(asked).await.unwrap().unwrap_err();
    }
}

/// What a request asks for is anything, if it does not say more.
#[tokio::test]
async fn a_request_takes_anything_unless_it_says_more() {
    let (listener, address) = listen().await;
    let client = direct();
    for (own, sent) in [(None, "*/*"), (Some("text/plain"), "text/plain")] {
        let request = client.get(&address);
        let request = match own {
            Some(own) => request.header(ACCEPT, HeaderValue::from_static(own)),
            None => request,
        };
        let asked = tokio::spawn(request.send());
        let mut peer = Peer::accept(&listener).await;
        let request = peer.request().await;
        let taken: Vec<&str> = request.lines().filter_map(|line| line.strip_prefix("accept: ")).collect();
        assert_eq!(taken, [sent]);
        drop(peer);
        soon(asked).await.unwrap().unwrap_err();
    }
}

/// A redirect is an answer like any other.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (listener, address) = listen().await;
    let asked = tokio::spawn(direct().get(&address).send());
    let mut peer = Peer::accept(&listener).await;
    peer.request().await;
    peer.say(&format!("HTTP/1.1 307 Go\r\nlocation: {address}else\r\ncontent-length: 0\r\n\r\n")).await;
    let answer = soon(asked).await.unwrap().unwrap();
    assert_eq!((answer.status().as_u16(), answer.left()), (307, Some(0)));
    assert_eq!(answer.headers()[LOCATION], format!("{address}else"));
    peer.ended().await;
}

/// Headers without end are an error, and are not kept.
#[tokio::test]
async fn headers_without_end_are_refused() {
    let (listener, address) = listen().await;
    let many: String = (0..200).map(|n| format!("x-{n}: 1\r\n")).collect();
    let large = format!("x: {}\r\n", "a".repeat(1 << 20));
    for headers in [many, large] {
        let asked = tokio::spawn(direct().get(&address).send());
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        // The client may close before it has all.
        let text = format!("HTTP/1.1 200 OK\r\n{headers}\r\n");
        let said = soon(tokio::io::AsyncWriteExt::write_all(&mut peer.stream, text.as_bytes())).await;
        let error = soon(asked).await.unwrap().unwrap_err();
        assert!(error.to_string().contains("too large"), "{error} ({said:?})");
        peer.ended().await;
    }
}

/// A body that breaks off is an error, with what arrived before it.
#[tokio::test]
async fn a_body_that_breaks_off_is_an_error() {
    let (listener, address) = listen().await;
    let asked = tokio::spawn(direct().get(&address).send());
    let mut peer = Peer::accept(&listener).await;
    peer.request().await;
    peer.say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nbegun\r\n").await;
    let mut answer = soon(asked).await.unwrap().unwrap();
    assert_eq!(soon(answer.chunk()).await.unwrap().unwrap(), "begun");
    drop(peer);
    let error = soon(answer.chunk()).await.unwrap_err();
    assert!(!error.is_connect() && !error.to_string().is_empty(), "{error:?}");
}

/// An answer arrives in a task that has used nearly all of its turn: its head is seen, whatever the body's end waits for.
#[tokio::test]
async fn a_head_is_seen_at_the_end_of_a_turn() {
    const TURN: usize = 128;
    for used in TURN - 4..TURN {
        let (listener, address) = listen().await;
        let mut send = Box::pin(direct().get(&address).send());
        let asked = tokio::spawn(poll_fn(move |cx| {
            for _ in 0..used {
                let _spent = pin!(consume_budget()).poll(cx);
            }
            send.as_mut().poll(cx)
        }));
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        let begun = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nso\r\n";
        peer.stream.write_all(begun).await.unwrap();
        assert_eq!(soon(asked).await.unwrap().unwrap().status(), StatusCode::OK, "after {used}");
    }
}

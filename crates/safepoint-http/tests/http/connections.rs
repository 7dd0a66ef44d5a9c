//! Which connections are used, reused and closed.

use std::{
    convert::Infallible,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{
    FutureExt as _,
    future::{Either, select},
};
use http_body::{Body as HttpBody, Frame, SizeHint};
use safepoint_http::{Body, HttpClient, Proxy, Settings};
use tokio::io::AsyncReadExt as _;
use url::Url;

use super::peer::{Peer, direct, listen, soon};

/// Requests that follow one another go over one connection.
#[tokio::test]
async fn a_connection_is_used_again() {
    let (listener, address) = listen().await;
    let client = direct();
    let peer = tokio::spawn(async move {
        let mut peer = Peer::accept(&listener).await;
        for _ in 0..3 {
            peer.request().await;
            peer.answer("so").await;
        }
    });
    for _ in 0..3 {
        let answer = soon(client.get(&address).send()).await.unwrap();
        assert_eq!(soon(answer.bytes()).await.unwrap(), "so");
    }
    soon(peer).await.unwrap();
}

/// A body that was not read to its end takes its connection with it, and so does an answer that has not come.
#[tokio::test]
async fn what_is_dropped_closes_its_connection() {
    let (listener, address) = listen().await;
    let client = direct();
    let asked = tokio::spawn(client.get(&address).send());
    let mut peer = Peer::accept(&listener).await;
    peer.request().await;
    peer.say("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nbegun").await;
    let mut answer = soon(asked).await.unwrap().unwrap();
    assert_eq!(soon(answer.chunk()).await.unwrap().unwrap(), "begun");
    drop(answer);
    peer.ended().await;

    let asked = tokio::spawn(client.get(&address).send());
    let mut peer = Peer::accept(&listener).await;
    peer.request().await;
    asked.abort();
    peer.ended().await;
}

/// The last client of a pool closes its idle connections.
#[tokio::test]
async fn a_client_takes_its_idle_connections_with_it() {
    let (listener, address) = listen().await;
    let client = direct();
    let asked = tokio::spawn(client.get(&address).send());
    let mut peer = Peer::accept(&listener).await;
    peer.request().await;
    peer.answer("").await;
    soon(soon(asked).await.unwrap().unwrap().bytes()).await.unwrap();
    drop(client);
    peer.ended().await;
}

/// A connection that the server ended in the pool is not asked, and what a server has read is never sent again.
#[tokio::test]
async fn nothing_that_was_read_is_sent_again() {
    let (listener, address) = listen().await;
    let client = direct();
    for _ in 0..20 {
        let asked = tokio::spawn(client.get(&address).send());
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        peer.answer("").await;
        soon(soon(asked).await.unwrap().unwrap().bytes()).await.unwrap();
        drop(peer);
        // The end of the connection may be known or not: the request goes over a new one, or fails.
        let asked = tokio::spawn(client.post(&address).body("once").send());
        let mut asked = pin!(soon(asked));
        let accepted = pin!(Peer::accept(&listener));
        match select(&mut asked, accepted).await {
            Either::Left((failed, _)) => {
                let error = failed.unwrap().unwrap_err();
                assert!(!error.is_connect(), "it may have arrived: {error}");
            }
            Either::Right((mut peer, _)) => {
                assert!(peer.request().await.ends_with("once"));
                // It was read: the connection breaks, and there is no other try.
                drop(peer);
                assert!(!asked.await.unwrap().unwrap_err().is_connect());
                assert!(listener.accept().now_or_never().is_none());
            }
        }
    }
}

/// A body of parts is sent part by part, with its length if that is known and in chunks if not.
#[tokio::test]
async fn a_body_of_parts_is_sent_whole() {
    struct Parts(Vec<&'static str>, SizeHint);
    impl HttpBody for Parts {
        type Data = Bytes;
        type Error = Infallible;
        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let next = self.0.pop();
            Poll::Ready(next.map(|part| Ok(Frame::data(Bytes::from_static(part.as_bytes())))))
        }
        fn size_hint(&self) -> SizeHint {
            self.1
        }
    }
    let (listener, address) = listen().await;
    let client = direct();
    for (hint, sent) in [
        (SizeHint::with_exact(5), "content-length: 5\r\n"),
        (SizeHint::new(), "transfer-encoding: chunked\r\n"),
    ] {
        let body = Body::of_parts(Parts(vec!["cd", "ab", "x"], hint));
        let asked = tokio::spawn(client.post(&address).body(body).send());
        let mut peer = Peer::accept(&listener).await;
        let request = peer.request().await;
        assert!(request.starts_with("POST / HTTP/1.1\r\n") && request.contains(sent), "{request}");
        if sent.starts_with("content") {
            assert!(request.ends_with("\r\n\r\nxabcd"), "{request}");
        }
        drop(peer);
        soon(asked).await.unwrap().unwrap_err();
    }
}

/// A name has the addresses that the settings give it, and only those.
#[tokio::test]
async fn a_name_has_the_addresses_that_it_is_given() {
    let (listener, address) = listen().await;
    let port = address.port().unwrap();
    let addresses = Some(vec!["127.0.0.1:1".parse().unwrap()]);
    let client =
        HttpClient::new(&Settings { addresses, proxy: Proxy::Direct, ..Settings::default() }).unwrap();
    let named = Url::parse(&format!("http://name.invalid:{port}/")).unwrap();
    let asked = tokio::spawn(client.get(&named).send());
    let mut peer = Peer::accept(&listener).await;
    assert!(peer.request().await.contains(&format!("host: name.invalid:{port}\r\n")));
    peer.answer("").await;
    soon(asked).await.unwrap().unwrap();
}

/// Where no server listens there is no connection, and the error says so without the address's secrets.
#[tokio::test]
async fn a_refused_connection_is_told_without_secrets() {
    let (listener, address) = listen().await;
    drop(listener);
    let mut address = address;
    address.set_username("otter").unwrap();
    address.set_password(Some("s3cret")).unwrap();
    address.set_query(Some("key=s3cret"));
    let error = soon(direct().get(&address).send()).await.unwrap_err();
    assert!(error.is_connect() && !error.is_timeout() && !error.is_unusable(), "{error:?}");
    assert!(error.to_string().to_lowercase().contains("connection refused"), "{error}");
    assert!(error.root_cause().to_lowercase().starts_with("connection refused"), "{}", error.root_cause());
    for text in [error.to_string(), format!("{error:?}"), error.root_cause()] {
        assert!(!text.contains("s3cret") && !text.contains("otter"), "{text}");
    }
}

/// A connection that is not made in time is an error that says so.
#[tokio::test]
async fn a_connection_is_waited_for_no_longer_than_its_time() {
    let (listener, proxy) = listen().await;
    let proxy = Proxy::Server { address: proxy, except: String::new() };
    let most = Duration::from_millis(50);
    let client = HttpClient::new(&Settings { connect_timeout: most, proxy, ..Settings::default() }).unwrap();
    let asked = tokio::spawn(client.get(&Url::parse("https://name.invalid/").unwrap()).send());
    // The proxy takes the connection, and says nothing.
    let mut peer = Peer::accept(&listener).await;
    let error = soon(asked).await.unwrap().unwrap_err();
    assert!(error.is_connect() && error.is_timeout(), "{error:?}");
    assert_eq!(error.to_string(), "no connection within 50ms");
    let mut rest = Vec::new();
    soon(peer.stream.read_to_end(&mut rest)).await.unwrap();
}

/// Only web addresses are requested.
#[tokio::test]
async fn an_address_that_is_not_of_the_web_is_refused() {
    let address = Url::parse("ftp://otter:s3cret@name.invalid/").unwrap();
    let error = soon(direct().get(&address).send()).await.unwrap_err();
    assert!(error.is_unusable() && !error.is_connect(), "{error:?}");
    assert_eq!(error.to_string(), "its scheme is neither http: nor https:");
}

/// A request that waits for its answer has no room for the making of a connection.
#[tokio::test]
async fn a_request_that_waits_is_small() {
    let sent = direct().get(&Url::parse("http://name.invalid/").unwrap()).send();
    let bytes = size_of_val(&sent);
    assert!(bytes <= 4096, "{bytes} bytes");
}

//! TLS: HTTP/2 where the server speaks it, and no server that is not trusted.

use std::{future::poll_fn, sync::Arc};

use ::http::{HeaderMap, Version, header::ETAG};
use bytes::Bytes;
use h2::{Reason, SendStream, server::Connection};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use safepoint_http::{HttpClient, HttpError, Proxy, Response, Settings};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use url::Url;

use super::peer::{Peer, listen, soon};

type Answered = Result<Response, HttpError>;

const AUTHORITY: &str = include_str!("../certificates/authority.pem");
const LOCALHOST: &[u8] = include_bytes!("../certificates/localhost.pem");
const KEY: &[u8] = include_bytes!("../certificates/localhost.key");

fn trusting(proxy: Proxy) -> HttpClient {
    HttpClient::new(&Settings { certificates: AUTHORITY.to_owned(), proxy, ..Settings::default() }).unwrap()
}

async fn secured(stream: TcpStream, protocol: &str) -> std::io::Result<TlsStream<TcpStream>> {
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let certificate = CertificateDer::from_pem_slice(LOCALHOST).unwrap();
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    let config = config.unwrap().with_no_client_auth().with_single_cert(vec![certificate], key);
    let mut config = config.unwrap();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    soon(TlsAcceptor::from(Arc::new(config)).accept(stream)).await
}

async fn accept(listener: &TcpListener, protocol: &str) -> std::io::Result<TlsStream<TcpStream>> {
    secured(soon(listener.accept()).await.unwrap().0, protocol).await
}

fn secure(address: &Url) -> Url {
    Url::parse(&format!("https://localhost:{}/path", address.port().unwrap())).unwrap()
}

/// A server that speaks HTTP/1.1 alone is spoken to so.
#[tokio::test]
async fn a_server_without_http_2_is_asked_with_http_1() {
    let (listener, address) = listen().await;
    let client = trusting(Proxy::Direct);
    let asked = tokio::spawn(client.get(&secure(&address)).send());
    let mut peer = Peer::of(accept(&listener, "http/1.1").await.unwrap());
    assert!(peer.request().await.starts_with("GET /path HTTP/1.1\r\n"));
    peer.answer("so").await;
    let answer = soon(asked).await.unwrap().unwrap();
    assert_eq!(soon(answer.bytes()).await.unwrap(), "so");
}

/// Takes the next request of a connection of HTTP/2, and begins its answer.
async fn begin(connection: &mut Connection<TlsStream<TcpStream>, Bytes>) -> SendStream<Bytes> {
    let (request, mut answer) = soon(connection.accept()).await.unwrap().unwrap();
    assert_eq!((request.version(), request.uri().path()), (Version::HTTP_2, "/path"));
    let mut body = answer.send_response(::http::Response::new(()), false).unwrap();
    body.send_data(Bytes::from_static(b"begun"), false).unwrap();
    body
}

/// Two exchanges share a connection of HTTP/2, and the one that is dropped resets only its own stream.
async fn shares(client: HttpClient, address: Url, stream: TlsStream<TcpStream>, first: JoinHandle<Answered>) {
    let mut connection = soon(h2::server::handshake(stream)).await.unwrap();
    let mut whole = begin(&mut connection).await;
    let second = tokio::spawn(client.get(&address).send());
    let mut dropped = begin(&mut connection).await;
    let driven = tokio::spawn(async move { while connection.accept().await.is_some() {} });
    let mut first = soon(first).await.unwrap().unwrap();
    let mut second = soon(second).await.unwrap().unwrap();
    for answer in [&mut first, &mut second] {
        assert_eq!(soon(answer.chunk()).await.unwrap().unwrap(), "begun");
    }
    drop(second);
    assert_eq!(soon(poll_fn(|cx| dropped.poll_reset(cx))).await.unwrap(), Reason::CANCEL);
    whole.send_data(Bytes::from_static(b"so"), false).unwrap();
    // Headers behind the body are no part of it.
    whole.send_trailers(HeaderMap::from_iter([(ETAG, "x".parse().unwrap())])).unwrap();
    assert_eq!(soon(first.bytes()).await.unwrap(), "so");
    drop(client);
    soon(driven).await.unwrap();
}

#[tokio::test]
async fn a_dropped_exchange_resets_its_http_2_stream() {
    let (listener, address) = listen().await;
    let (client, address) = (trusting(Proxy::Direct), secure(&address));
    let first = tokio::spawn(client.get(&address).send());
    let stream = accept(&listener, "h2").await.unwrap();
    shares(client, address, stream, first).await;
}

/// A tunnel carries the server's TLS and HTTP/2.
#[tokio::test]
async fn a_tunnel_carries_http_2() {
    let (listener, proxy) = listen().await;
    let client = trusting(Proxy::Server { address: proxy, except: String::new() });
    let address = Url::parse("https://localhost:1/path").unwrap();
    let first = tokio::spawn(client.get(&address).send());
    let mut peer = Peer::accept(&listener).await;
    assert!(peer.request().await.starts_with("CONNECT localhost:1 HTTP/1.1\r\n"));
    peer.say("HTTP/1.1 200 OK\r\n\r\n").await;
    let stream = secured(peer.stream, "h2").await.unwrap();
    shares(client, address, stream, first).await;
}

/// A server whose certificate the platform does not trust is not spoken to.
#[tokio::test]
async fn a_server_that_is_not_trusted_is_no_connection() {
    let (listener, address) = listen().await;
    let client = HttpClient::new(&Settings { proxy: Proxy::Direct, ..Settings::default() }).unwrap();
    let asked = tokio::spawn(client.get(&secure(&address)).send());
    accept(&listener, "h2").await.unwrap_err();
    let error = soon(asked).await.unwrap().unwrap_err();
    assert!(error.is_connect() && error.is_untrusted(), "{error}");
    assert!(error.to_string().contains("certificate"), "{error}");
}

/// Certificates that are none are refused when the client is made.
#[test]
fn certificates_that_are_none_are_refused() {
    let certificates = "-----BEGIN CERTIFICATE-----\nbm9uZQ==\n-----END CERTIFICATE-----\n".to_owned();
    let error = HttpClient::new(&Settings { certificates, ..Settings::default() }).unwrap_err();
    assert!(error.is_unusable(), "{error}");
}

/// No choice of how to encrypt is made for the program.
#[tokio::test]
async fn no_provider_is_installed() {
    drop(trusting(Proxy::Direct));
    assert!(rustls::crypto::CryptoProvider::get_default().is_none());
}

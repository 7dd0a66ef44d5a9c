//! Proxies: those that ask the server themselves, tunnels, and what is reached without them.

use std::process::{ExitStatus, Stdio};

use futures_util::FutureExt as _;
use safepoint_http::{HttpClient, Proxy, Settings};
use url::Url;

use super::peer::{Peer, listen, soon};

fn through(proxy: &Url, except: &str) -> HttpClient {
    let proxy = Proxy::Server { address: proxy.clone(), except: except.to_owned() };
    HttpClient::new(&Settings { proxy, ..Settings::default() }).unwrap()
}

/// A proxy is asked for the whole address of an http: server, and has its own password.
#[tokio::test]
async fn an_http_server_is_asked_through_its_proxy() {
    let (listener, mut proxy) = listen().await;
    proxy.set_username("otter").unwrap();
    proxy.set_password(Some("s3cret")).unwrap();
    let client = through(&proxy, "");
    let asked = tokio::spawn(client.get(&Url::parse("http://name.invalid:81/path?q").unwrap()).send());
    let mut peer = Peer::accept(&listener).await;
    let request = peer.request().await;
    assert!(request.starts_with("GET http://name.invalid:81/path?q HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nhost: name.invalid:81\r\n"), "{request}");
    assert!(request.contains("\r\nproxy-authorization: Basic b3R0ZXI6czNjcmV0\r\n"), "{request}");
    peer.answer("so").await;
    let answer = soon(asked).await.unwrap().unwrap();
    assert_eq!(soon(answer.bytes()).await.unwrap(), "so");
}

/// A tunnel that the proxy refuses is no connection. The server's request is not shown to the proxy.
#[tokio::test]
async fn an_https_server_is_reached_through_a_tunnel() {
    let (listener, mut proxy) = listen().await;
    proxy.set_username("otter").unwrap();
    proxy.set_password(Some("s3cret")).unwrap();
    let client = through(&proxy, "");
    let asked = tokio::spawn(client.get(&Url::parse("https://name.invalid:444/path?q").unwrap()).send());
    let mut peer = Peer::accept(&listener).await;
    let request = peer.request().await;
    assert!(request.starts_with("CONNECT name.invalid:444 HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nProxy-Authorization: Basic b3R0ZXI6czNjcmV0\r\n"), "{request}");
    assert!(!request.contains("path"), "{request}");
    peer.say("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n").await;
    let error = soon(asked).await.unwrap().unwrap_err();
    assert!(error.is_connect() && error.to_string().contains("tunnel"), "{error}");
    assert!(!format!("{error}{error:?}").contains("s3cret"));
}

/// What is excepted is reached directly.
#[tokio::test]
async fn an_exception_is_reached_directly() {
    let (proxied, proxy) = listen().await;
    let (listener, address) = listen().await;
    let client = through(&proxy, "name.invalid, 127.0.0.0/8");
    let asked = tokio::spawn(client.get(&address).send());
    let mut peer = Peer::accept(&listener).await;
    assert!(peer.request().await.starts_with("GET / HTTP/1.1\r\n"));
    peer.answer("").await;
    soon(asked).await.unwrap().unwrap();
    drop(proxied);
}

/// A password of a proxy is not shown, and a proxy of another kind is refused, not left out.
#[tokio::test]
async fn a_proxy_is_used_or_refused() {
    let address = Url::parse("socks5://otter:s3cret@name.invalid/").unwrap();
    let proxy = Proxy::Server { address, except: String::new() };
    let settings = Settings { proxy, ..Settings::default() };
    assert!(!format!("{settings:?}").contains("s3cret"));
    let error = HttpClient::new(&settings).unwrap_err();
    assert!(error.is_unusable() && !error.to_string().contains("s3cret"), "{error}");
}

/// The proxy that the environment names is used: of another program, whose environment the test makes.
#[tokio::test]
async fn the_environment_names_the_proxy() {
    let (listener, proxy) = listen().await;
    for (variables, expected) in [
        (vec![("HTTP_PROXY", proxy.as_str())], true),
        (vec![("http_proxy", proxy.as_str())], true),
        (vec![("ALL_PROXY", proxy.as_str())], true),
        (vec![("HTTPS_PROXY", proxy.as_str())], false),
        (vec![("HTTP_PROXY", proxy.as_str()), ("NO_PROXY", ".invalid")], false),
        (vec![("HTTP_PROXY", proxy.as_str()), ("REQUEST_METHOD", "GET")], false),
    ] {
        let child = program("http://name.invalid/", &variables);
        let served = async {
            let mut peer = Peer::accept(&listener).await;
            let request = peer.request().await;
            assert!(request.starts_with("GET http://name.invalid/ HTTP/1.1\r\n"), "{request}");
            peer.answer("").await;
        };
        if expected {
            let (_, status) = soon(futures_util::future::join(served, child)).await;
            assert!(status.success(), "{variables:?}");
        } else {
            // There is no such name.
            assert!(!soon(child).await.success(), "{variables:?}");
            assert!(listener.accept().now_or_never().is_none(), "{variables:?}");
        }
    }
}

/// S13.43: a proxy of the environment is asked for nothing of this machine, by number or by name.
#[tokio::test]
async fn this_machine_is_reached_through_no_proxy_of_the_environment() {
    let (proxied, proxy) = listen().await;
    let (listener, address) = listen().await;
    for host in ["127.0.0.1", "localhost"] {
        let asked = format!("http://{host}:{}/", address.port().unwrap());
        let variables = [("HTTP_PROXY", proxy.as_str()), ("ALL_PROXY", proxy.as_str())];
        let child = program(&asked, &variables);
        let served = async {
            let mut peer = Peer::accept(&listener).await;
            let request = peer.request().await;
            assert!(request.starts_with("GET / HTTP/1.1\r\n"), "{request}");
            peer.answer("").await;
        };
        let (_, status) = soon(futures_util::future::join(served, child)).await;
        assert!(status.success(), "{asked}");
        assert!(proxied.accept().now_or_never().is_none(), "{asked}");
    }
}

/// Starts this program with this environment, to ask for this address.
async fn program(asked: &str, variables: &[(&str, &str)]) -> ExitStatus {
    let mut child = tokio::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "http::proxies::a_program_with_an_environment"]).env_clear().stdout(Stdio::null());
    child.env("ASK", asked).envs(variables.iter().copied()).kill_on_drop(true).status().await.unwrap()
}

/// What the tests above start. By itself it asks for nothing.
#[tokio::test]
async fn a_program_with_an_environment() {
    let Ok(asked) = std::env::var("ASK") else { return };
    let client = safepoint_http::shared().unwrap();
    soon(client.get(&Url::parse(&asked).unwrap()).send()).await.unwrap();
}

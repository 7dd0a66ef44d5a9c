//! Fetching, against a server in a thread.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

use safepoint::{
    StopRequest,
    approval::{Rule, RuleAction},
    receipt::CallStatus,
};
use serde_json::json;

use super::support::{Bench, PATIENCE};

/// Answers each request with what `answer` makes of its path; returns the address.
fn serve(answer: impl Fn(&str, &mut TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let Some(Ok(first)) = lines.next() else { continue };
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            answer(first.split(' ').nth(1).unwrap(), &mut stream);
        }
    });
    address
}

fn reply(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n");
    // The client may have gone by now, which is what some tests are about.
    let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
    drop(sent);
}

#[tokio::test]
async fn a_text_is_fetched_with_its_status_and_type() {
    let url =
        serve(|_, stream| reply(stream, "404 Not Found", "content-type: text/plain\r\n", b"no such page"));
    let text = Bench::new().call("http_get", json!({"url": url})).await.good();
    assert_eq!(text, "404 Not Found\ntext/plain\n\nno such page");
}

#[tokio::test]
async fn redirects_are_followed_but_not_for_ever() {
    let url = serve(|path, stream| match path {
        "/end" => reply(stream, "200 OK", "content-type: text/plain\r\n", b"here"),
        "/start" => reply(stream, "302 Found", "location: /end\r\n", b""),
        _ => reply(stream, "302 Found", "location: /again\r\n", b""),
    });
    let bench = Bench::new();
    let text = bench.call("http_get", json!({"url": format!("{url}/start")})).await.good();
    assert_eq!(text, format!("200 OK\nfrom {url}/end\ntext/plain\n\nhere"));
    let text = bench.call("http_get", json!({"url": format!("{url}/again")})).await.refused();
    assert!(text.contains("too many redirects"), "{text}");
}

/// S8.9: an address that is not public needs a specific rule, decided on what the name resolves to, in
/// whatever form it is written; the tool connects to nothing before that.
#[tokio::test]
async fn an_address_that_is_not_public_takes_a_rule_of_its_own() {
    let (asked, was_asked) = mpsc::channel();
    let url = serve(move |_, stream| {
        asked.send(()).unwrap();
        reply(stream, "200 OK", "content-type: text/plain\r\n", b"inside");
    });
    let port = url.rsplit_once(':').unwrap().1;
    let mut bench = Bench::new();
    for allowed in [vec!["http_get/reach"], vec!["*"], vec!["http*"]] {
        bench.allowed = allowed;
        for host in ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.0.0.1", "[::ffff:127.0.0.1]"] {
            let text =
                bench.call("http_get", json!({"url": format!("http://{host}:{port}/")})).await.refused();
            assert!(text.contains("`http_get/private`"), "{host}: {text}");
        }
    }
    bench.allowed = vec!["http_get/private"];
    let text = bench.call("http_get", json!({"url": url})).await.refused();
    assert!(text.contains("was not fetched"), "that its range is allowed permits no origin: {text}");
    assert!(was_asked.try_recv().is_err(), "nobody was connected to");
}

/// S8.9: where only a rule could open an address, there is no question whether its origin may be reached.
#[tokio::test]
async fn no_question_is_put_that_no_answer_could_open() {
    let mut bench = Bench::new();
    bench.allowed = Vec::new();
    for host in ["127.0.0.1", "localhost", "[::1]", "192.168.0.7"] {
        let text = bench.call("http_get", json!({"url": format!("http://{host}:1/")})).await.refused();
        assert!(text.contains("no rule allows that"), "{host}: {text}");
    }
    let text = bench.call("http_get", json!({"url": "http://example.invalid/"})).await.refused();
    assert!(
        !text.contains("no rule allows that"),
        "its origin is asked about, before it is looked up: {text}"
    );
}

/// S8.9: the tool does not follow a redirect to an origin without permission, and no request says where it
/// comes from.
#[tokio::test]
async fn a_redirect_to_another_origin_is_asked_about() {
    let (noticed, was_noticed) = mpsc::channel();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut lines = BufReader::new(listener.accept().unwrap().0).lines();
        let head: Vec<String> =
            lines.by_ref().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
        drop(noticed.send(head));
    });
    let location = format!("location: http://{other}/end\r\n");
    let url = serve(move |_, stream| reply(stream, "302 Found", &location, b""));
    let mut bench = Bench::new();
    let here = url.clone();
    bench.only =
        Some(Rule::on("http_get/reach", RuleAction::Allow).when(move |args| args["origin"] == here.as_str()));
    bench.allowed = vec!["http_get/private"];
    let text = bench.call("http_get", json!({"url": url})).await.refused();
    assert!(text.contains(&format!("http://{other} was not fetched")), "{text}");
    assert!(was_noticed.try_recv().is_err(), "nothing was sent there");
    bench.allowed = vec!["http_get/private", "http_get/reach"];
    bench.call("http_get", json!({"url": url})).await.failed();
    let head =
        tokio::task::spawn_blocking(move || was_noticed.recv_timeout(PATIENCE)).await.unwrap().unwrap();
    assert!(head[0].starts_with("GET /end"), "{head:?}");
    assert!(!head.iter().any(|line| line.to_ascii_lowercase().starts_with("referer")), "{head:?}");
}

/// S4.7
#[tokio::test]
async fn a_body_that_is_too_large_is_cut_with_notice() {
    let url =
        serve(|_, stream| reply(stream, "200 OK", "content-type: text/plain\r\n", &vec![b'x'; 8 << 20]));
    let reported = Bench::new().call("http_get", json!({"url": url})).await;
    let text = reported.good();
    assert!(text.len() < 128 << 10, "the engine's own budget holds too: {}", text.len());
    assert!(text.ends_with("[cut after 2097152 bytes]"), "{}", &text[text.len() - 80..]);
}

#[tokio::test]
async fn what_is_not_text_is_refused() {
    let bench = Bench::new();
    let url = serve(|_, stream| reply(stream, "200 OK", "content-type: image/png\r\n", b"\x89PNG"));
    let text = bench.call("http_get", json!({"url": url})).await.refused();
    assert!(text.contains("answered 200 OK with image/png, which is not text"), "{text}");
    let url = serve(|_, stream| reply(stream, "200 OK", "content-type: text/plain\r\n", b"a\0b"));
    let text = bench.call("http_get", json!({"url": url})).await.refused();
    assert!(text.contains("something that is not text"), "{text}");
}

#[tokio::test]
async fn bad_addresses_and_dead_hosts_are_clear_errors() {
    let bench = Bench::new();
    let text = bench.call("http_get", json!({"url": "file:///etc/passwd"})).await.refused();
    assert!(text.contains("must begin with http:// or https://, not file:"), "{text}");
    let text = bench.call("http_get", json!({"url": "not an address"})).await.refused();
    assert!(text.contains("`url` is not an address"), "{text}");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let text = bench.call("http_get", json!({"url": format!("http://127.0.0.1:{port}/")})).await.refused();
    assert!(text.contains("onnection refused"), "{text}");
}

/// S2.8: a server that says nothing; the connection is closed by the stop.
#[tokio::test]
async fn a_stop_closes_the_connection_of_a_silent_server() {
    let (asked, was_asked) = mpsc::channel();
    let (closed, was_closed) = mpsc::channel();
    let url = serve(move |_, stream| {
        asked.send(()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        closed.send(stream.read(&mut [0]).is_ok_and(|read| read == 0)).unwrap();
    });
    let running = Bench::new().start("http_get", json!({"url": url}));
    tokio::task::spawn_blocking(move || was_asked.recv_timeout(PATIENCE)).await.unwrap().expect("it asked");
    let (reported, _) = running.stop(StopRequest::now()).await;
    assert_eq!(reported.report.status, CallStatus::Stopped);
    let closed = tokio::task::spawn_blocking(move || was_closed.recv_timeout(PATIENCE)).await.unwrap();
    assert!(closed.unwrap(), "the server saw the end");
}

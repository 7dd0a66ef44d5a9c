//! Servers that cannot be asked, and what a client of a server does not do.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    thread,
};

use safepoint_testkit::{script::Reply, wait::patience};
use serde_json::json;

use super::world::{Said, World, said, says};

/// A listener that answers this to the first connection, and hands over what came.
pub(super) fn answers(answer: String) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sent, came) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream: TcpStream = stream.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if stream.read(&mut byte).unwrap_or(0) == 0 {
                    break;
                }
                head.push(byte[0]);
            }
            if sent.send(String::from_utf8_lossy(&head).into_owned()).is_err() {
                break;
            }
            drop(stream.write_all(answer.as_bytes()));
        }
    });
    (address, came)
}

/// A listener that answers the second of two requests, and the first not at all; what was posted to it. The first connection is kept
/// until the end.
fn mute_at_first(answer: String) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sent, came) = mpsc::channel();
    thread::spawn(move || {
        let (mut first, _) = listener.accept().unwrap();
        sent.send(posted(&mut first)).unwrap();
        let (mut second, _) = listener.accept().unwrap();
        sent.send(posted(&mut second)).unwrap();
        drop(second.write_all(answer.as_bytes()));
        drop(first);
    });
    (address, came)
}

/// The body of a request, up to its last brace.
fn posted(stream: &mut TcpStream) -> String {
    let mut asked = Vec::new();
    while !asked.ends_with(b"}") {
        let mut byte = [0];
        if stream.read(&mut byte).unwrap_or(0) == 0 {
            break;
        }
        asked.push(byte[0]);
    }
    let asked = String::from_utf8(asked).unwrap();
    asked.split_once("\r\n\r\n").map_or_else(String::new, |(_, body)| body.to_owned())
}

pub(super) fn http(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}")
}

async fn listed(world: &World, url: &str, with: &[(&str, &str)]) -> Said {
    let file = world.file("all.token");
    let mut command = world.binary(&["sessions", "ls", "--json", "--server", url, "--token-file", &file]);
    command.envs(with.iter().copied());
    said(command).await
}

/// S13.14: a server that is not there, or none of ours, is said with what to do; the exit code is that of a failure.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_asked_is_said() {
    let world = World::of(says([Reply::text("x")]).build()).await;
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gone = listed(&world, &format!("http://{free}"), &[]).await;
    assert_eq!((gone.code, &gone.last()["status"]), (1, &json!("unreachable")), "{gone:?}");
    assert!(gone.out.contains("safepoint serve"), "{gone:?}");
    let (other, _came) = answers(http("404 Not Found", "content-type: text/html\r\n", "<p>no"));
    let none = listed(&world, &other, &[]).await;
    assert_eq!(none.code, 1, "{none:?}");
    assert!(none.out.contains("not the address of a Safepoint server"), "{none:?}");
    let nested = listed(&world, &format!("{}/elsewhere", world.url()), &[]).await;
    assert_eq!(nested.code, 1, "{nested:?}");
    for (url, why) in
        [("http://192.0.2.1:7717", "--insecure"), ("ftp://a.example", "http:"), ("127.0.0.1:1", "http://")]
    {
        let refused = listed(&world, url, &[]).await;
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.err.contains(why), "{refused:?}");
    }
    let pushed = world.binary(&["push", "s", "x", "--json", "--server", "http://192.0.2.1:1"]);
    let pushed = said(pushed).await;
    assert_eq!((pushed.code, &pushed.last()["status"]), (2, &json!("refused")), "{pushed:?}");
    world.end().await;
}

/// S13.14: a token follows no redirect, and goes through no proxy to this machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_goes_to_its_server_alone() {
    let world = World::of(says([Reply::text("x")]).build()).await;
    let (elsewhere, sent_on) = answers(http("200 OK", "content-type: application/json\r\n", "{\"data\":[]}"));
    let to = format!("location: {elsewhere}/v1/sessions\r\n");
    let (moved, came) = answers(http("307 Temporary Redirect", &to, ""));
    let listing = listed(&world, &moved, &[]).await;
    assert_eq!(listing.code, 1, "{listing:?}");
    let head = came.recv_timeout(patience()).unwrap().to_lowercase();
    assert!(head.contains("authorization: bearer spt_"), "{head}");
    let proxied =
        listed(&world, &world.url(), &[("HTTP_PROXY", &elsewhere), ("ALL_PROXY", &elsewhere)]).await;
    assert_eq!(proxied.code, 0, "{proxied:?}");
    assert!(sent_on.try_recv().is_err(), "another server got the token");
    world.end().await;
}

/// S13.14: what a server says moves no cursor, and its words cannot look like the program's own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_says_is_shown_and_not_obeyed() {
    let world = World::of(says([Reply::text("x")]).build()).await;
    let detail = "no\u{1b}[2J\u{202e}\nsafepoint: all is well";
    let problem = json!({"code": "too_late", "detail": detail}).to_string();
    let (url, _came) = answers(http("409 Conflict", "content-type: application/problem+json\r\n", &problem));
    let file = world.file("all.token");
    let refused = said(world.binary(&["sessions", "rm", "s", "--server", &url, "--token-file", &file])).await;
    assert_eq!((refused.code, refused.err.lines().count()), (4, 1), "{refused:?}");
    assert!(!refused.err.contains(['\u{1b}', '\u{202e}']), "{refused:?}");
    world.end().await;
}

/// S13.14, S13.5: a stop that was not answered in time may have been done or not, and says so; the session is stopped all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_that_is_not_answered_stops_the_session() {
    let world = World::of(says([Reply::text("x")]).build()).await;
    let body = json!({"state": "requested", "recorded": true, "number": 1}).to_string();
    let (url, came) = mute_at_first(http("202 Accepted", "content-type: application/json\r\n", &body));
    let file = world.file("all.token");
    let args =
        ["stop", "s", "--now", "--timeout", "100ms", "--json", "--server", &url, "--token-file", &file];
    let stopped = said(world.binary(&args)).await;
    assert_eq!((stopped.code, &stopped.last()["status"]), (7, &json!("timed_out")), "{stopped:?}");
    assert!(stopped.out.contains("it is not known whether this was done"), "{stopped:?}");
    let what = [(); 2].map(|()| came.recv_timeout(patience()).unwrap());
    assert!(what[0].contains("\"turn\"") && what[1].contains("\"session\""), "{what:?}");
    world.end().await;
}

/// S7.70: a build with a server and without a placement says how one with it is built.
#[cfg(all(feature = "serve", not(feature = "graphile"), not(feature = "restate")))]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_placement_that_this_build_has_not_is_refused() {
    let world = World::of(says([Reply::text("x")]).build()).await;
    let (store, tokens) = (world.file("own.db"), world.file("own.toml"));
    let serve = ["serve", "--listen", "127.0.0.1:0", "--store", &store, "--tokens", &tokens, "--placement"];
    for (placement, feature) in [("graphile", "graphile"), ("restate=http://localhost:8080", "restate")] {
        let refused = said(world.binary(&[&serve[..], &[placement]].concat())).await;
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.err.contains(&format!("--features {feature}")), "{refused:?}");
    }
    let refused = said(world.binary(&[&serve[..], &["there"]].concat())).await;
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("`here`"), "{refused:?}");
    world.end().await;
}

//! A stop while a call of a server runs: who waits, who is notified, what the receipt says.

use std::time::Duration;

use safepoint::{
    Agent, RunHandle,
    event::EventKind,
    ids::CallId,
    receipt::{CallStatus, QuietReport, RemoteStopState, SideEffect, StopSupport},
};
use safepoint_testkit::{
    mcp::{HttpServer, McpManners, McpSeen, ServerStart, Speaks},
    script::{Reply, Script},
    scripted::ScriptedModel,
};
use safepoint_tools::mcp::{Annotations, Server};
use serde_json::json;

use crate::mcp::support::{Place, Reported, Running, agent, call, got, no_args, start, stdio, until};

/// Far less than any server takes that is waited for.
/// Far less than any wait that a stop could fall into, and far more than a busy machine takes for none.
const AT_ONCE: Duration = Duration::from_secs(4);

fn is_stopped(reported: &Reported, effect: SideEffect) {
    assert_eq!(
        (reported.report.status, reported.report.effect),
        (CallStatus::Stopped, effect),
        "{}",
        reported.text
    );
    assert!(reported.report.remote.is_none(), "{:?}", reported.report.remote);
}

/// The server had the call and was notified of the stop; no fact says that its work has ended.
async fn may_go_on(reported: &Reported, handle: &RunHandle) {
    let report = &reported.report;
    assert_eq!(
        (report.status, report.effect),
        (CallStatus::LeftRunning, SideEffect::Unknown),
        "{}",
        reported.text
    );
    let remote = report.remote.as_ref().unwrap();
    assert_eq!((remote.stop, remote.grade), (Some(RemoteStopState::Requested), StopSupport::CallerSide));
    let quiet = handle.quiet().await;
    assert!(matches!(quiet, QuietReport::NotQuiet(_)), "{quiet:?}");
    assert_eq!(quiet.receipt().survivors, ["remote work at mcp:test"]);
    let shown = quiet.receipt().to_string();
    assert!(
        shown.contains("stop requested, no answer, may still be running")
            && shown.contains("side effects unknown")
    );
}

/// S4.10, S2.7, S3.8. T13, modelcontextprotocol/python-sdk#2507: the server is notified, and the stop does
/// not wait for it.
/// aaif-goose/goose PR#3865: the waiting caller and the cancelling caller own one handle.
#[tokio::test]
async fn over_pipes_a_stop_sends_cancelled_and_waits_for_nothing() {
    for speaks in [Speaks::Older, Speaks::Newest] {
        let place = Place::new();
        let client = place.server(McpManners { speaks, ..McpManners::default() }).connect().await.unwrap();
        let running = start(&client, "deaf", no_args()).await;
        until("the call is there", || place.received("tools/call") == 1).await;
        let (reported, took) = running.stop().await;
        may_go_on(&reported, &running.handle).await;
        assert!(took < AT_ONCE, "{took:?}");
        until("the server is told", || place.received("notifications/cancelled") == 1).await;
        let log = safepoint_testkit::mcp::read_log(&place.log());
        let of = |method: &str| log.iter().find(|(_, got)| got["method"] == method).unwrap().1.clone();
        assert_eq!(of("notifications/cancelled")["params"]["requestId"], of("tools/call")["id"]);
    }
}

/// T13, modelcontextprotocol/rust-sdk#857: a client that goes is not noticed by the call; here the server's side sees it.
/// S4.10: over HTTP the newest protocol has the close of the request's stream as its only word for it.
#[tokio::test]
async fn over_http_the_newest_protocol_closes_the_requests_stream() {
    let http =
        HttpServer::start(McpManners { speaks: Speaks::Newest, ..McpManners::default() }).await.unwrap();
    let client = Server::http("test", http.url()).connect().await.unwrap();
    let running = start(&client, "deaf", no_args()).await;
    got(&http, "tools/call").await;
    let (reported, took) = running.stop().await;
    may_go_on(&reported, &running.handle).await;
    assert!(took < AT_ONCE, "{took:?}");
    let gave_up =
        |seen: &McpSeen| matches!(seen, McpSeen::GaveUp(request) if request["method"] == "tools/call");
    until("the stream is closed", || http.seen().iter().any(|(_, seen)| gave_up(seen))).await;
    let is_notice = |seen: &McpSeen| matches!(seen, McpSeen::Got(message) if message["method"] == "notifications/cancelled");
    assert!(!http.seen().iter().any(|(_, seen)| is_notice(seen)), "and no notification");
}

/// S4.10: over HTTP the older protocol needs a notification, since a lost stream means nothing there.
#[tokio::test]
async fn over_http_the_older_protocol_sends_the_notification() {
    let http = HttpServer::start(McpManners::default()).await.unwrap();
    let client = Server::http("test", http.url()).connect().await.unwrap();
    let running = start(&client, "deaf", no_args()).await;
    got(&http, "tools/call").await;
    let (reported, took) = running.stop().await;
    may_go_on(&reported, &running.handle).await;
    assert!(took < AT_ONCE, "{took:?}");
    got(&http, "notifications/cancelled").await;
}

/// S4.10. T13, modelcontextprotocol/rust-sdk PR#1194: a stop waits for no first byte of an answer either.
#[tokio::test]
async fn over_http_a_call_without_any_answer_yet_is_stopped_at_once() {
    for speaks in [Speaks::Older, Speaks::Newest] {
        let manners = McpManners { speaks, start: ServerStart::Wedge, ..McpManners::default() };
        let http = HttpServer::start(manners).await.unwrap();
        let client = Server::http("test", http.url()).connect().await.unwrap();
        let running = start(&client, "deaf", no_args()).await;
        got(&http, "tools/call").await;
        let (reported, took) = running.stop().await;
        may_go_on(&reported, &running.handle).await;
        assert!(took < AT_ONCE, "{took:?}");
        let reported = |seen: &McpSeen| match (seen, speaks) {
            (McpSeen::GaveUp(request), Speaks::Newest) => request["method"] == "tools/call",
            (McpSeen::Got(message), Speaks::Older) => message["method"] == "notifications/cancelled",
            _ => false,
        };
        until("the server is told", || http.seen().iter().any(|(_, seen)| reported(seen))).await;
    }
}

/// S4.10, S3.5. T13, openai/codex#20925: a late answer is dropped, and the next call gets the answer to
/// itself.
#[tokio::test]
async fn an_answer_after_the_stop_is_nobodys() {
    let place = Place::new();
    let client = place.server(McpManners::default()).connect().await.unwrap();
    let running = start(&client, "late", no_args()).await;
    until("the call is there", || place.received("tools/call") == 1).await;
    let (reported, _) = running.stop().await;
    assert_eq!(reported.report.effect, SideEffect::Unknown, "{}", reported.text);
    assert!(!reported.text.contains("too late"), "{}", reported.text);
    until("the server is told", || place.received("notifications/cancelled") == 1).await;
    let next = call(&client, "echo", serde_json::json!({"text": "next"})).await.good();
    assert!(next.contains("next") && !next.contains("too late"), "{next}");
}

/// S3.5, S4.10. T13, openai/codex#20925: while the run continues, the audit says that an answer came after
/// its call's end; the model does not get it.
#[tokio::test]
async fn a_late_answer_is_told_in_the_audit() {
    let place = Place::new();
    let client = place.server(McpManners::default()).connect().await.unwrap();
    let late = Reply::default().and_call_as("c1", "test__late", no_args());
    let next = Reply::default().and_call_as("c2", "test__echo", json!({"text": "next"}));
    let model = ScriptedModel::new(Script::of([late, next, Reply::text("done")]));
    let agent = Agent::builder(model).tools(client.tools().await.unwrap()).build();
    let handle = agent.run("do both").detach();
    until("the call is there", || place.received("tools/call") == 1).await;
    assert!(handle.stop_call(&CallId::from("c1"), safepoint::StopRequest::now()).is_some());
    // The server reads the cancel before the second call, so its late answer comes before that call's.
    let outcome = handle.done().await;
    assert_eq!(outcome.answer(), Some("done"));
    assert!(!format!("{:?}", outcome.history()).contains("too late"), "{outcome:?}");
    let quiet = handle.quiet().await;
    assert!(matches!(quiet, QuietReport::Quiet(_)), "{quiet:?}");
    let remote = quiet.receipt().calls[0].remote.clone().unwrap();
    assert!(remote.ended_at.is_some() && !remote.may_go_on(), "the answer says that its work is over");
    let mut reported = Vec::new();
    let mut audit = handle.audit();
    while let Some(event) = audit.next().await {
        if let EventKind::Late(what) = event.kind {
            reported.push(what);
        }
    }
    assert_eq!(reported, ["call c1 was answered by the MCP server test with a result"]);
}

/// S3.6, S4.9: a process that is gone, with all that it had started, works on nothing any more.
#[tokio::test]
async fn the_end_of_its_process_ends_a_servers_work() {
    let place = Place::new();
    let client = place.server(McpManners::default()).connect().await.unwrap();
    let calls = [("c1", "test__deaf"), ("c2", "test__crash"), ("c3", "test__echo")];
    let replies = calls.map(|(id, tool)| Reply::default().and_call_as(id, tool, no_args()));
    let model = ScriptedModel::new(Script::of(replies.into_iter().chain([Reply::text("done")])));
    let agent = Agent::builder(model).tools(client.tools().await.unwrap()).build();
    let handle = agent.run("do all").detach();
    until("the call is there", || place.received("tools/call") == 1).await;
    assert!(handle.stop_call(&CallId::from("c1"), safepoint::StopRequest::now()).is_some());
    // The third call is answered by the next process, which is started when the first is gone.
    let quiet = handle.quiet().await;
    assert!(matches!(quiet, QuietReport::Quiet(_)), "{quiet:?}");
    let call = &quiet.receipt().calls[0];
    assert_eq!((call.status, call.effect), (CallStatus::LeftRunning, SideEffect::Unknown));
    assert!(call.remote.as_ref().unwrap().ended_at.is_some());
}

/// S4.10. T13, aaif-goose/goose#4125, modelcontextprotocol/java-sdk#130: a server that reads nothing any more delays no stop.
#[tokio::test]
async fn a_server_that_reads_nothing_delays_no_stop() {
    let place = Place::new();
    let client = place
        .server(McpManners { start: ServerStart::Wedge, ..McpManners::default() })
        .connect()
        .await
        .unwrap();
    let mut running = start(&client, "deaf", no_args()).await;
    running.called().await;
    let (reported, took) = running.stop().await;
    // Whether the call had been handed over when the stop came is not known here.
    match &reported.report.remote {
        Some(_) => may_go_on(&reported, &running.handle).await,
        None => is_stopped(&reported, SideEffect::Unknown),
    }
    assert!(took < AT_ONCE, "{took:?}");
    client.close().await;
}

/// S3.8: a tool that the server says only reads, and that is believed, has done nothing when it is stopped.
#[tokio::test]
async fn a_stopped_call_that_only_reads_had_no_effect() {
    let place = Place::new();
    let wedged = McpManners { start: ServerStart::Wedge, ..McpManners::default() };
    let server = place.server(wedged).annotations(Annotations::Trusted);
    let client = server.connect().await.unwrap();
    let mut running = start(&client, "look", no_args()).await;
    running.called().await;
    is_stopped(&running.stop().await.0, SideEffect::None);
}

/// S2.8, S4.10: a stop ends the wait for a server that is being started again.
#[tokio::test]
async fn a_stop_ends_the_wait_for_a_lost_server() {
    let place = Place::new();
    let client = place.server(McpManners::default()).connect().await.unwrap();
    let agent = agent(&client, "test__deaf", no_args()).await;
    assert!(client.call("crash", no_args(), |_| {}).await.is_err());
    let mut running = Running::of(agent.run("do it").detach());
    running.called().await;
    assert_eq!(client.pid(), None, "it is lost, and waits before it is started again");
    let (reported, took) = running.stop().await;
    assert!(took < AT_ONCE, "{took:?}");
    is_stopped(&reported, SideEffect::Unknown);
    assert_eq!(place.received("tools/call"), 1);
}

/// T13, turnstonelabs/turnstone#951: calls that were stopped wedge nothing: a hundred of them, then one that works.
#[tokio::test]
async fn a_hundred_stopped_calls_leave_a_server_that_works() {
    let place = Place::new();
    let client = place.server(McpManners::default()).connect().await.unwrap();
    for round in 1..=100 {
        let running = start(&client, "deaf", no_args()).await;
        until("the call is there", || place.received("tools/call") == round).await;
        let _asked = running.handle.stop(safepoint::StopRequest::now());
        assert!(matches!(running.handle.done().await, safepoint::Outcome::Stopped(_)));
    }
    assert!(call(&client, "echo", serde_json::json!({"text": "on"})).await.good().contains("on"));
    until("each was told", || place.received("notifications/cancelled") == 100).await;
}

/// The server is also notified when a manual call is dropped midway.
#[tokio::test]
async fn a_call_that_is_dropped_is_told() {
    let place = Place::new();
    let client = place.server(McpManners::default()).connect().await.unwrap();
    let call = client.call("deaf", no_args(), |_| {});
    assert!(tokio::time::timeout(Duration::from_millis(50), call).await.is_err());
    until("the server is told", || place.received("notifications/cancelled") == 1).await;
    drop(stdio(&McpManners::default()));
}

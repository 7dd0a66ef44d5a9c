//! The process of a server: how it starts or does not, and that nothing is left of it.

use std::{path::Path, time::Duration};

use safepoint_testkit::mcp::{McpManners, ServerStart};
use safepoint_tools::mcp::{Protocol, Server};
use serde_json::json;

use crate::mcp::support::{Place, call, guarded, no_args, stdio, until};

fn exists(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// S4.10: a server that hangs in its handshake, whichever it is asked for, is given up after its time, and nothing is left
/// of it.
#[tokio::test]
async fn a_server_that_hangs_at_its_start_is_given_up_and_gone() {
    for (protocol, first) in [(Protocol::Auto, "server/discover"), (Protocol::Initialize, "initialize")] {
        let (place, processes) = (Place::new(), guarded());
        let hangs =
            place.server(McpManners { start: ServerStart::Hang, ..McpManners::default() }).protocol(protocol);
        let limit = Duration::from_millis(300);
        let error = hangs.under(&processes).start_within(limit).connect().await.unwrap_err();
        assert!(error.is_timeout(), "{error}");
        assert_eq!(place.received(first), 1, "{first}");
        let guard = i32::try_from(processes.guard_pid().unwrap()).unwrap();
        until("nothing is left", || below(guard).is_empty()).await;
    }
}

/// S2.8: the wait for a server can be dropped, and takes its process with it.
#[tokio::test]
async fn a_start_that_is_dropped_leaves_nothing() {
    let place = Place::new();
    let processes = guarded();
    let hangs =
        place.server(McpManners { start: ServerStart::Hang, ..McpManners::default() }).under(&processes);
    let start = tokio::spawn(hangs.connect());
    until("it is being asked", || place.received("server/discover") == 1).await;
    start.abort();
    let guard = i32::try_from(processes.guard_pid().unwrap()).unwrap();
    until("its keeper is gone", || below(guard).is_empty()).await;
}

/// The processes below a guard.
fn below(pid: i32) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let parent = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse::<i32>().ok()
    };
    pids.filter(|child| parent(*child) == Some(pid)).collect()
}

#[tokio::test]
async fn a_server_that_does_not_start_says_why() {
    let dies =
        stdio(&McpManners { start: ServerStart::Die, ..McpManners::default() }).connect().await.unwrap_err();
    assert!(dies.to_string().contains("I will not start"), "{dies}");
    let missing = Server::stdio("test", "/no/such/program").under(&guarded()).connect().await.unwrap_err();
    assert!(missing.is_unreachable() && missing.to_string().contains("/no/such/program"), "{missing}");
}

/// S4.10: standard error is read all the time, and kept bounded: a flood of it blocks nothing.
#[tokio::test]
async fn a_flood_on_standard_error_holds_up_nothing() {
    let client =
        stdio(&McpManners { start: ServerStart::Flood, ..McpManners::default() }).connect().await.unwrap();
    assert!(call(&client, "echo", json!({"text": "dry"})).await.good().contains("dry"));
    client.close().await;
}

/// S4.9, S4.10: closed, a server ends by itself; one that will not climbs the ladder.
#[tokio::test]
async fn a_closed_server_is_gone() {
    for start in [ServerStart::Well, ServerStart::Stubborn] {
        let client = stdio(&McpManners { start, ..McpManners::default() }).connect().await.unwrap();
        let pid = client.pid().unwrap();
        let closed = client.close().await;
        let process = closed.process.unwrap();
        assert!(process.survivors.is_empty() && !exists(pid), "{process:?}");
        assert_eq!(process.rungs.is_empty(), start == ServerStart::Well, "{process:?}");
        let error = client.tools().await.err().unwrap();
        assert!(error.to_string().contains("was closed"), "{error}");
    }
}

/// T5, anthropics/claude-code#26658: with the last tool and the last handle gone, so is the server.
#[tokio::test]
async fn a_server_that_nobody_uses_ends() {
    let client = stdio(&McpManners::default()).connect().await.unwrap();
    let tools = client.tools().await.unwrap();
    let pid = client.pid().unwrap();
    drop(client);
    assert!(exists(pid), "its tools keep it");
    drop(tools);
    until("it is gone", || !exists(pid)).await;
}

/// S4.10: a server that dies early every time is not started again in a hurry.
#[tokio::test]
async fn a_server_that_keeps_dying_is_started_again_with_pauses() {
    let client = stdio(&McpManners::default()).connect().await.unwrap();
    let began = std::time::Instant::now();
    for _ in 0..4 {
        call(&client, "crash", no_args()).await.failed();
    }
    // 0.1, 0.2 and 0.4 seconds between the four lives.
    assert!(began.elapsed() >= Duration::from_millis(700), "{:?}", began.elapsed());
    assert!(call(&client, "echo", json!({"text": "alive"})).await.good().contains("alive"));
}

/// S4.1: a server that cannot be started again is unreachable, after a few tries.
#[tokio::test]
async fn a_server_that_cannot_be_started_again_is_unreachable() {
    let place = Place::new();
    let program = place.folder.path().join("server");
    std::os::unix::fs::symlink(std::env::current_exe().unwrap(), &program).unwrap();
    let server = Server::stdio("test", &program)
        .args(["--exact", "mcp::support::this_program_is_a_server_when_it_is_asked_to_be", "--nocapture"])
        .env(safepoint_testkit::mcp::ASKED, McpManners::default().to_json())
        .under(&guarded());
    let client = server.connect().await.unwrap();
    std::fs::remove_file(&program).unwrap();
    call_failed(&client, "crash").await;
    let failure = client.call("echo", no_args(), |_| {}).await.unwrap_err();
    assert!(failure.is_unreachable() && failure.had_no_effect(), "{failure}");
}

async fn call_failed(client: &safepoint_tools::mcp::Client, tool: &str) {
    assert!(client.call(tool, no_args(), |_| {}).await.is_err());
}

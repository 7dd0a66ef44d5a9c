//! What a provider did itself in a message: its tools, and where the answer is from.

use std::{io::Write as _, process::Stdio};

use serde_json::{Value, json};

use crate::{Practice, run, safepoint};

const PAGE: &str = "https://example.com/a/page/about/agents/and/their/safe/points";

/// One block of a message: how it begins, and what comes behind.
fn block(index: usize, begins: &Value, deltas: &[Value]) -> Vec<Value> {
    let mut events = vec![json!({"type": "content_block_start", "index": index, "content_block": begins})];
    let more = |delta: &Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    events.extend(deltas.iter().map(more));
    events.push(json!({"type": "content_block_stop", "index": index}));
    events
}

/// A message that searches, runs a program and fails with a third tool, and cites two places.
fn searches() -> String {
    let text = |text: &str| json!({"type": "text_delta", "text": text});
    let cites = |url: &str, title: &str| {
        let place =
            json!({"type": "web_search_result_location", "url": url, "title": title, "cited_text": "x"});
        json!({"type": "citations_delta", "citation": place})
    };
    let uses = |id: &str, name: &str| json!({"type": "server_tool_use", "id": id, "name": name, "input": {}});
    let input = |input: Value| json!({"type": "input_json_delta", "partial_json": input.to_string()});
    let found = json!([{"type": "web_search_result", "title": "Safe points", "url": PAGE}]);
    let ran = json!({"type": "code_execution_result", "stdout": "42\n", "stderr": "", "return_code": 0});
    let failed = json!({"type": "web_fetch_tool_error", "error_code": "url_not_accessible"});
    let gave =
        |kind: &str, id: &str, content: Value| json!({"type": kind, "tool_use_id": id, "content": content});
    let empty = json!({"type": "text", "text": ""});
    let blocks = [
        (empty.clone(), vec![text("Let me look.")]),
        (uses("s1", "web_search"), vec![input(json!({"query": "safe points of agents"}))]),
        (gave("web_search_tool_result", "s1", found), vec![]),
        (uses("s2", "code_execution"), vec![input(json!({"code": "x = 6 * 7\nprint(x)"}))]),
        (gave("code_execution_tool_result", "s2", ran), vec![]),
        (uses("s3", "web_fetch"), vec![input(json!({"url": "https://example.com/gone"}))]),
        (gave("web_fetch_tool_result", "s3", failed), vec![]),
        (empty.clone(), vec![cites(PAGE, "Safe points"), text(" An agent stops at one,")]),
        (empty, vec![cites("https://example.com/b", "B"), cites(PAGE, "Safe points"), text(" or now.")]),
    ];
    let mut events =
        vec![json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}})];
    let blocks = blocks.iter().enumerate();
    events.extend(blocks.flat_map(|(index, (begins, deltas))| block(index, begins, deltas)));
    events.push(
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}),
    );
    events.push(json!({"type": "message_stop"}));
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let answer = json!({"answer": {"content_type": "text/event-stream", "body": body}});
    json!({"replies": [{ "fault": answer }]}).to_string()
}

/// What stands on stderr of it, in this order.
fn expected() -> [String; 9] {
    [
        "▸ web_search (by the provider) safe points of agents".into(),
        format!("▪ web_search: completed: Safe points {PAGE}"),
        "▸ code_execution (by the provider) x = 6 * 7 print(x)".into(),
        "▪ code_execution: completed: 42".into(),
        "▸ web_fetch (by the provider) https://example.com/gone".into(),
        "▪ web_fetch: failed: url_not_accessible".into(),
        "sources:".into(),
        format!("  1. Safe points  {PAGE}"),
        "  2. B  https://example.com/b".into(),
    ]
}

/// S4.24: what the provider's tools were given and gave is shown as it happens, and below the answer where it is from, each place
/// once; stdout has the answer alone.
#[test]
fn a_run_shows_what_the_provider_did() {
    let server = Practice::start(&searches());
    let output = run(&["run", "--base-url", &server.url, "--model", "anthropic:x", "hi"]);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!((&*out, output.status.code()), ("Let me look. An agent stops at one, or now.\n", Some(0)));
    assert_eq!(err.lines().collect::<Vec<_>>(), expected(), "{err}");
}

/// S4.24: so does a chat without a terminal.
#[test]
fn a_chat_shows_what_the_provider_did() {
    let server = Practice::start(&searches());
    let mut child = safepoint(&["chat", "--base-url", &server.url, "--model", "anthropic:x"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"hi\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(out, "Let me look. An agent stops at one, or now.\n");
    let shown: Vec<&str> = err.lines().skip_while(|line| !line.starts_with('▸')).collect();
    assert_eq!(shown, expected(), "{err}");
}

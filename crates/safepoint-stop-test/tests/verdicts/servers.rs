//! The reference agent as a server: of OpenAI's Responses, and as an endpoint of no protocol.

use std::{fs, path::PathBuf, process::Output};

use serde_json::Value;
use tempfile::TempDir;

use super::{assert_each, run, seen, verdicts};

fn served(door: &str, manner: &str) -> String {
    format!("{door}:{} serve {manner}", env!("CARGO_BIN_EXE_stop-test-reference"))
}

fn next(seen: &Value) -> &Value {
    &seen["rows"][0]["trials"][0]["judged"]["facts"]["next"]
}

/// A request file of these lines, and its folder.
fn file(lines: &[&str]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("there is a place");
    let path = folder.path().join("request.toml");
    fs::write(&path, lines.join("\n")).expect("it can be written");
    (folder, path)
}

/// Runs the test against the endpoint of the reference agent.
fn asked(manner: &str, lines: &[&str], args: &[&str]) -> Value {
    let (_folder, path) = file(lines);
    let path = path.to_str().expect("it is text");
    seen(&served("http", manner), &[args, &["--request", path]].concat())
}

const PATH: &str = "path = '/chat'";
const BODY: &str = "body = '''{\"message\": \"{TEXT}\", \"thread\": \"{CONVERSATION}\"}'''";
/// A body of which no later message can be a part.
const LONE: &str = "body = '''{\"message\": \"{TEXT}\"}'''";
const FIELD: &str = "id.field = 'run.id'";
const HEADER: &str = "id.header = 'x-run-id'";
const CANCEL: &str = "[cancel]\npath = '/runs/{ID}/cancel'";
const LATER: &str = "[cancel]\npath = '/runs/{ID}/cancel-later'";
const SAYS: &str = "says = 'stopped'";

const TOOL: [&str; 2] = ["--only", "tool"];

/// S15.8: a server is judged by the status in its cancel's answer, or else by the one in its stream.
#[test]
fn a_response_is_stopped_by_its_cancel() {
    const SOME: [&str; 6] = ["--only", "tool", "--only", "command", "--only", "twice"];
    for manner in ["ends", "ends-late", "says-so", "lets-go", "lies"] {
        assert_each(&seen(&served("responses", manner), &SOME), &[], manner);
    }
    assert_each(&seen(&served("responses", "goes-on"), &TOOL), &[], "goes-on");
    assert_each(&seen(&served("responses", "hangs"), &TOOL), &[], "breaks");
    let quiet =
        ["--only", "control", "--only", "after-end", "--only", "at-once", "--only", "headers-awaited"];
    assert_each(&seen(&served("responses", "ends"), &quiet), &[], "ends");
}

/// S15.8: the next message names the response before it, so that the model learns of what ran, and a history without a result is refused.
#[test]
fn a_message_behind_a_stopped_response_continues_it() {
    assert_eq!(next(&seen(&served("responses", "ends"), &TOOL)), "accepted");
    let forgets = seen(&served("responses", "forgets"), &TOOL);
    assert!(next(&forgets)["refused"].is_string(), "{forgets:#}");
}

/// S15.9: a reader that is gone is a stop where it is asked for by name, and nothing is said by it.
#[test]
fn a_reader_of_a_response_is_gone_where_that_is_named() {
    let ways = seen(&served("responses", "ends"), &["--only", "stream-silent"]);
    assert_eq!(ways["rows"].as_array().unwrap().len(), 1, "{ways:#}");
    const GONE: [&str; 6] = ["--only", "stream-silent", "--only", "tool", "--way", "reader-gone"];
    assert_each(&seen(&served("responses", "lies"), &GONE), &[], "lets-go");
    // The server learns of it a moment after its reader has control.
    let ends = seen(&served("responses", "ends"), &GONE);
    assert!(verdicts(&ends).iter().all(|(_, verdict)| verdict.starts_with("ends")), "{ends:#}");
    assert_eq!(ends["rows"][0]["trials"][0]["judged"]["claims"]["says"], "nothing");
}

/// S15.10: without a file, or with a wrong one, an endpoint is not driven, and the reason says what to do.
#[test]
fn an_endpoint_wants_a_right_file() {
    let words = |output: &Output| {
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        format!("{out}{err}")
    };
    let without = run(&served("http", "ends"), &TOOL);
    assert_eq!(without.status.code(), Some(3), "{}", words(&without));
    assert!(words(&without).contains("wants `--request FILE`"), "{}", words(&without));
    let (_folder, path) = file(&[PATH, CANCEL]);
    let wrong = run(&served("http", "ends"), &["--request", path.to_str().unwrap()]);
    assert_eq!(wrong.status.code(), Some(2), "{}", words(&wrong));
    assert!(words(&wrong).contains("`body` holds no `{TEXT}`"), "{}", words(&wrong));
}

/// S15.11: an endpoint is stopped by its connection closed and by its route, and judged by what its documentation says of the answer.
#[test]
fn an_endpoint_is_stopped_by_its_connection_and_by_its_route() {
    let cancel = [&TOOL[..], &["--way", "cancel"]].concat();
    let both = asked("ends", &[PATH, BODY, FIELD, CANCEL, SAYS], &["--only", "stream-silent"]);
    let ways = |seen: &Value| -> Vec<Value> {
        seen["rows"].as_array().unwrap().iter().map(|row| row["way"].clone()).collect()
    };
    assert_eq!(ways(&both), ["closed", "cancel"]);
    assert!(verdicts(&both).iter().all(|(_, verdict)| verdict.starts_with("ends")), "{both:#}");
    assert_eq!(ways(&asked("ends", &[PATH, BODY], &["--only", "stream-silent"])), ["closed"]);
    for manner in ["ends-late", "says-so", "lies"] {
        assert_each(&asked(manner, &[PATH, BODY, HEADER, CANCEL, SAYS], &cancel), &[], manner);
    }
    assert_each(&asked("lies", &[PATH, BODY, FIELD, CANCEL], &cancel), &[], "lets-go");
    assert_each(&asked("lies", &[PATH, BODY], &TOOL), &[], "lets-go");
}

/// S15.11: a cancel that is only taken gives no control: the stream does, once it is over.
#[test]
fn a_cancel_that_is_only_taken_waits_for_the_stream() {
    let cancel = [&TOOL[..], &["--way", "cancel"]].concat();
    let ends = asked("ends", &[PATH, BODY, FIELD, LATER, SAYS], &cancel);
    assert_each(&ends, &[], "ends");
    assert_eq!(ends["rows"][0]["trials"][0]["judged"]["claims"]["says"], "done", "{ends:#}");
    assert_each(&asked("goes-on", &[PATH, BODY, FIELD, LATER, SAYS], &cancel), &[], "goes-on");
}

/// S15.11: the next message is of the same conversation, or is not sent, and that is said.
#[test]
fn the_next_message_of_an_endpoint_is_one_of_its_conversation() {
    let cancel = [&TOOL[..], &["--way", "cancel"]].concat();
    assert_eq!(next(&asked("ends", &[PATH, BODY, FIELD, CANCEL], &cancel)), "accepted");
    let lone = asked("ends", &[PATH, LONE, FIELD, CANCEL], &cancel);
    let why = next(&lone)["not-sent"].as_str().unwrap_or_default().to_owned();
    assert!(why.contains("does not say how a conversation is continued"), "{lone:#}");
}

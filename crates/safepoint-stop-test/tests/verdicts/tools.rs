//! The reference as a server of tools, whose calls are cancelled by the test.

use serde_json::Value;

use super::{assert_each, beside, run, seen, verdicts};

fn tools(manner: &str) -> String {
    format!("mcp:{} tools {manner}", env!("CARGO_BIN_EXE_stop-test-reference"))
}

/// A server that answers each of the first requests alike: it has no tools.
const TOOLLESS: &str = r#"mcp:sh -c 'n=0; while read -r line; do case $line in *\"id\"*) n=$((n+1)); \
    echo "{\"jsonrpc\":\"2.0\",\"id\":$n,\"result\":{\"tools\":[]}}";; esac; done' sh"#;

const SOME: [&str; 6] = ["--only", "tool", "--only", "command", "--only", "twice"];

fn by(way: &'static str) -> Vec<&'static str> {
    [&SOME[..], &["--way", way]].concat()
}

/// Of a server that ends all: where control comes back at once, a busy machine may see the end later.
fn assert_ends(seen: &Value) {
    let rows = verdicts(seen);
    assert!(!rows.is_empty() && rows.iter().all(|(_, verdict)| verdict.starts_with("ends")), "{seen:#}");
}

/// S15.20: a cancel of the protocol says nothing, so that work that goes on is let go, whatever its server thinks of it.
#[test]
fn a_call_that_is_cancelled_is_judged_by_its_work() {
    const WAY: &str = "notifications/cancelled";
    assert_ends(&seen(&tools("ends"), &by(WAY)));
    beside(
        [("ends-late", "ends-late"), ("lets-go", "lets-go"), ("lies", "lets-go"), ("crashes", "breaks")]
            .map(|(manner, verdict)| move || assert_each(&seen(&tools(manner), &by(WAY)), &[], verdict)),
    );
}

/// S15.20: the answer to the cancel of a task is a claim.
#[test]
fn a_task_that_is_cancelled_is_judged_by_what_its_answer_says() {
    const WAY: &str = "tasks/cancel";
    beside(
        [("ends", "ends"), ("says-so", "says-so"), ("lies", "lies")]
            .map(|(manner, verdict)| move || assert_each(&seen(&tools(manner), &by(WAY)), &[], verdict)),
    );
    // One that does not answer, and one that refuses: neither gives control.
    beside(["goes-on", "garbles"].map(|manner| {
        move || assert_each(&seen(&tools(manner), &["--only", "tool", "--way", WAY]), &[], "goes-on")
    }));
}

/// S15.20: a closed input is a caller that is gone; a call after its end, and a turn without a stop, are no harm.
#[test]
fn a_server_of_tools_is_judged_by_each_way() {
    let seen = seen(&tools("ends"), &["--only", "control", "--only", "after-end", "--only", "one-of-three"]);
    let ways: Vec<&str> =
        seen["rows"].as_array().unwrap().iter().filter_map(|row| row["way"].as_str()).collect();
    for way in ["none", "notifications/cancelled", "input-closed", "tasks/cancel"] {
        assert!(ways.contains(&way), "{way}: {ways:?}");
    }
    assert_ends(&seen);
}

/// S15.21: a command that begins after the stop was not stopped.
#[test]
fn a_command_that_begins_after_the_stop_is_seen() {
    let seen = seen(&tools("goes-on"), &["--only", "at-once", "--way", "notifications/cancelled"]);
    assert_each(&seen, &[], "lets-go");
}

/// S15.20: what needs a model is no moment of a server of tools, and one without a tool that can be called is not driven.
#[test]
fn a_server_of_tools_has_no_moments_of_a_model() {
    let output = run(&tools("ends"), &["--only", "stream-silent", "--only", "tool", "--times", "1"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("stream-silent: cannot be expressed: a server of tools asks no model"), "{text}");
    let retry = verdicts(&seen(&tools("ends"), &["--only", "retry"]));
    assert!(!retry.is_empty() && retry.iter().all(|(_, verdict)| verdict == "none"), "{retry:?}");
    let none = run(TOOLLESS, &["--only", "tool", "--times", "1"]);
    let text = String::from_utf8_lossy(&none.stdout);
    assert_eq!(none.status.code(), Some(3), "{text}");
    assert!(text.contains("it offers no tool that fetches an address"), "{text}");
}

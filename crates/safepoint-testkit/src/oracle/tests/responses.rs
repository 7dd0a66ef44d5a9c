//! Responses' rules, each kept and broken.

use serde_json::{Value, json};

use crate::oracle::{HistoryRule, responses};

fn input(items: &Value) -> Value {
    json!({"store": false, "input": items})
}

fn user() -> Value {
    json!({"role": "user", "content": "hi"})
}

fn says(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": text})
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"})
}

fn output(id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": "x"})
}

fn thought() -> Value {
    json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"})
}

fn without(mut item: Value, field: &str) -> Value {
    item[field].take();
    item
}

/// S5.1: what Responses takes.
#[test]
fn good_inputs_are_taken() {
    for items in [
        json!("hi"),
        json!([user(), user()]),
        json!([{"role": "developer", "content": [{"type": "input_text", "text": "d"}]}, user(), says("ho")]),
        json!([user(), call("a"), call("b"), output("b"), output("a"), user()]),
        json!([user(), call("a"), says("meanwhile"), output("a")]),
        json!([user(), thought(), says("t"), user(), thought(), thought(), call("a"), output("a")]),
        json!([user(), call("a"), {"type": "function_call_output", "call_id": "a", "output": ""}]),
    ] {
        assert_eq!(responses(&input(&items)), Ok(()), "{items}");
    }
    let stored = json!({"input": [user(), without(thought(), "encrypted_content"), says("t")]});
    assert_eq!(responses(&stored), Ok(()));
}

/// S5.1: what Responses refuses, which rule it breaks, and where.
#[test]
fn bad_inputs_are_refused() {
    for (items, index, rule, words) in [
        (json!([]), 0, HistoryRule::SomeMessages, "empty array"),
        (
            json!([user(), call("a")]),
            1,
            HistoryRule::CallUnanswered,
            "No tool output found for function call a.",
        ),
        (
            json!([call("a"), call("b"), output("b"), user()]),
            0,
            HistoryRule::CallUnanswered,
            "function call a.",
        ),
        (json!([output("a"), call("a")]), 0, HistoryRule::ResultWithoutCall, "No tool call found"),
        (json!([call("a"), output("a"), output("a")]), 2, HistoryRule::ResultWithoutCall, "call_id a."),
        (json!([call("a"), output("a"), call("a")]), 2, HistoryRule::OwnId, "Duplicate"),
        (
            json!([call("a"), {"type": "function_call_output", "call_id": "a", "output": [{"type": "image"}]}]),
            1,
            HistoryRule::ResultContent,
            "input[1].output[0].type",
        ),
        (json!([call("")]), 0, HistoryRule::OwnId, "input[0].call_id"),
        (json!([without(call("a"), "name")]), 0, HistoryRule::WellFormedCall, "input[0].name"),
        (json!([without(call("a"), "arguments")]), 0, HistoryRule::WellFormedCall, "input[0].arguments"),
        (json!([call("a"), without(output("a"), "output")]), 1, HistoryRule::SomeContent, "input[1].output"),
        (json!([user(), thought()]), 1, HistoryRule::ReasoningFollowed, "'rs_1' of type 'reasoning'"),
        (json!([user(), thought(), user()]), 1, HistoryRule::ReasoningFollowed, "required following item"),
        (
            json!([call("a"), thought(), output("a")]),
            1,
            HistoryRule::ReasoningFollowed,
            "required following item",
        ),
        (
            json!([user(), without(thought(), "encrypted_content"), says("t")]),
            1,
            HistoryRule::SignedThinking,
            "`store` is set to false",
        ),
        (
            json!([user(), without(thought(), "summary"), says("t")]),
            1,
            HistoryRule::SignedThinking,
            "summary",
        ),
        (json!([{"role": "robot", "content": "x"}]), 0, HistoryRule::KnownRole, "'robot'"),
        (json!([{"type": "thing"}]), 0, HistoryRule::KnownRole, "'thing'"),
        (json!([user(), says("")]), 1, HistoryRule::SomeContent, "input[1].content"),
    ] {
        let refused = responses(&input(&items)).expect_err(&items.to_string());
        assert_eq!((refused.index, refused.rule), (index, rule), "{items}: {refused}");
        assert!(refused.message.contains(words), "{items}: {refused}");
        assert_eq!(refused.openai_body()["error"]["param"], "input");
    }
    let nothing = responses(&json!({})).expect_err("no input");
    assert!(nothing.to_string().starts_with("input[0]: One of"), "{nothing}");
}

//! Gemini's rules, each kept and broken.

use serde_json::{Value, json};

use crate::oracle::{HistoryRule, gemini};

fn contents(contents: &Value) -> Value {
    json!({ "contents": contents })
}

fn user(parts: Value) -> Value {
    json!({"role": "user", "parts": parts})
}

fn model(parts: Value) -> Value {
    json!({"role": "model", "parts": parts})
}

fn hi() -> Value {
    user(json!([{"text": "hi"}]))
}

fn call() -> Value {
    json!({"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "s"})
}

fn bare() -> Value {
    json!({"functionCall": {"name": "f", "args": {}}})
}

fn response() -> Value {
    json!({"functionResponse": {"name": "f", "response": {"output": "x"}}})
}

/// S5.1: what Gemini takes.
#[test]
fn good_contents_are_taken() {
    for list in [
        json!([{"parts": [{"text": "hi"}]}]),
        json!([hi(), model(json!([{"text": "ho"}])), hi(), hi()]),
        json!([hi(), model(json!([{"text": "t"}, call(), bare()])), user(json!([response(), response()]))]),
        json!([hi(), model(json!([call()])), user(json!([response()])), hi()]),
        json!([hi(), model(json!([call()])), user(json!([response(), {"text": "and"}]))]),
        json!([
            hi(),
            model(json!([call()])),
            user(json!([response()])),
            model(json!([call()])),
            user(json!([response()]))
        ]),
        json!([hi(), model(json!([{"text": "", "thoughtSignature": "s"}])), hi()]),
        // An older turn's calls need no signature.
        json!([hi(), model(json!([bare()])), user(json!([response()])), hi()]),
    ] {
        assert_eq!(gemini(&contents(&list)), Ok(()), "{list}");
    }
}

/// S5.1: what Gemini refuses, which rule it breaks, and where.
#[test]
fn bad_contents_are_refused() {
    let one = || model(json!([call()]));
    let back = || user(json!([response()]));
    let of = |part: Value| json!([hi(), model(json!([part])), hi()]);
    for (list, index, rule, words) in [
        (json!([]), 0, HistoryRule::SomeMessages, "not specified"),
        (json!([hi(), {"role": "robot", "parts": [{"text": "x"}]}]), 1, HistoryRule::KnownRole, "valid role"),
        (json!([hi(), model(json!([])), hi()]), 1, HistoryRule::SomeContent, "must not be empty"),
        (of(json!({"text": ""})), 1, HistoryRule::SomeText, "parts[0].data"),
        (of(json!({})), 1, HistoryRule::SomeText, "oneof"),
        (json!([hi(), one()]), 1, HistoryRule::CallUnanswered, "number of function response parts"),
        (json!([hi(), one(), hi()]), 1, HistoryRule::CallUnanswered, "number of function response parts"),
        (
            json!([hi(), model(json!([call(), bare()])), back()]),
            1,
            HistoryRule::CallUnanswered,
            "number of function response parts",
        ),
        (json!([hi(), back()]), 1, HistoryRule::ResultWithoutCall, "immediately after a function call"),
        (json!([hi(), one(), back(), back()]), 3, HistoryRule::ResultWithoutCall, "immediately after"),
        (json!([one(), back()]), 0, HistoryRule::RolesAlternate, "immediately after a user turn"),
        (
            json!([hi(), model(json!([{"text": "t"}])), one(), back()]),
            2,
            HistoryRule::RolesAlternate,
            "immediately after a user turn",
        ),
        (
            json!([hi(), model(json!([{"text": "t"}]))]),
            1,
            HistoryRule::RolesAlternate,
            "end with a user role",
        ),
    ] {
        is_refused(&list, index, rule, words);
    }
}

/// S5.1: what Gemini refuses of calls, their results and their seals.
#[test]
fn bad_calls_are_refused() {
    let one = || model(json!([call()]));
    let back = || user(json!([response()]));
    let of = |part: Value| json!([hi(), model(json!([part])), hi()]);
    for (list, index, rule, words) in [
        (
            of(json!({"functionCall": {"name": "f", "args": "{}"}})),
            1,
            HistoryRule::WellFormedCall,
            "function_call.args",
        ),
        (of(json!({"functionCall": {"args": {}}})), 1, HistoryRule::WellFormedCall, "Name cannot be empty"),
        (
            json!([hi(), one(), user(json!([{"functionResponse": {"name": "f", "response": "x"}}]))]),
            2,
            HistoryRule::SomeContent,
            "function_response.response",
        ),
        (
            json!([
                hi(),
                one(),
                user(json!([{"functionResponse": {"name": "f", "response": {},
                "parts": [{"fileData": {"fileUri": "https://e.com/a"}}]}}]))
            ]),
            2,
            HistoryRule::ResultContent,
            "function_response.parts",
        ),
        (
            json!([hi(), model(json!([bare()])), back()]),
            1,
            HistoryRule::SignedThinking,
            "`default_api:f` , position 2.",
        ),
        (
            json!([
                hi(),
                one(),
                back(),
                model(json!([bare(), call()])),
                user(json!([response(), response()]))
            ]),
            3,
            HistoryRule::SignedThinking,
            "position 4.",
        ),
    ] {
        is_refused(&list, index, rule, words);
    }
}

fn is_refused(list: &Value, index: usize, rule: HistoryRule, words: &str) {
    let refused = gemini(&contents(list)).expect_err(&list.to_string());
    assert_eq!((refused.index, refused.rule), (index, rule), "{list}: {refused}");
    assert!(refused.message.contains(words), "{list}: {refused}");
    assert_eq!(refused.gemini_body()["error"]["status"], "INVALID_ARGUMENT");
}

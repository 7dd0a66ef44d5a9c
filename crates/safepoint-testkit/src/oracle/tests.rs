//! Each rule with a history that keeps it and one that breaks it.

use serde_json::{Value, json};

use super::{anthropic, openai};

fn chat(messages: Value) -> Value {
    json!({ "messages": messages })
}

fn talk(messages: Value) -> Value {
    json!({ "max_tokens": 1, "messages": messages })
}

fn call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}})
}

/// S5.1: what OpenAI takes.
#[test]
fn good_chats_are_taken() {
    for messages in [
        json!([{"role": "user", "content": "hi"}]),
        json!([{"role": "system", "content": "s"}, {"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]),
        json!([{"role": "user", "content": "hi"}, {"role": "assistant", "content": null, "tool_calls": [call("a"), call("b")]},
               {"role": "tool", "tool_call_id": "b", "content": ""}, {"role": "tool", "tool_call_id": "a", "content": "x"}]),
    ] {
        assert_eq!(openai(&chat(messages.clone())), Ok(()), "{messages}");
    }
}

/// S5.1: what OpenAI refuses.
#[test]
fn bad_chats_are_refused() {
    let asked = json!({"role": "assistant", "content": null, "tool_calls": [call("a")]});
    for (messages, says) in [
        (json!([asked]), "did not have response messages: a"),
        (json!([asked, {"role": "user", "content": "next"}]), "did not have response messages"),
        (json!([{"role": "tool", "tool_call_id": "a", "content": ""}]), "must be a response"),
        (
            json!([asked, {"role": "tool", "tool_call_id": "a", "content": ""}, {"role": "tool", "tool_call_id": "a", "content": ""}]),
            "must be a response",
        ),
        (json!([{"role": "assistant", "content": ""}]), "expected a string"),
        (json!([{"role": "assistant", "content": null, "tool_calls": [call("a"), call("a")]}]), "Duplicate"),
        (json!([{"role": "assistant", "content": null, "tool_calls": [call("")]}]), "id"),
        (json!([{"role": "robot", "content": "x"}]), "role"),
        (json!([]), "too short"),
    ] {
        let refused = openai(&chat(messages.clone())).expect_err(&messages.to_string());
        assert!(refused.message.contains(says), "{messages}: {refused}");
    }
}

fn used(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "f", "input": {}})
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "x"})
}

/// S5.1: what Anthropic takes.
#[test]
fn good_messages_are_taken() {
    for messages in [
        json!([{"role": "user", "content": "hi"}]),
        json!([{"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"type": "text", "text": "t"}, used("a")]},
               {"role": "user", "content": [result("a"), {"type": "text", "text": "and"}]}]),
        json!([{"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "s"}, used("a")]},
               {"role": "user", "content": [result("a")]}]),
    ] {
        assert_eq!(anthropic(&talk(messages.clone())), Ok(()), "{messages}");
    }
}

/// S5.1: what Anthropic refuses.
#[test]
fn bad_messages_are_refused() {
    let user = json!({"role": "user", "content": "hi"});
    let asks = |blocks: Value| json!({"role": "assistant", "content": blocks});
    for (messages, says) in [
        (json!([]), "first message"),
        (json!([asks(json!("x"))]), "first message"),
        (json!([user, user]), "alternate"),
        (json!([user, asks(json!([used("a")]))]), "without `tool_result`"),
        (json!([user, asks(json!([used("a")])), user]), "without `tool_result`"),
        (
            json!([user, asks(json!([used("a")])), {"role": "user", "content": [{"type": "text", "text": "x"}, result("a")]}]),
            "before text",
        ),
        (
            json!([user, asks(json!([used("a"), {"type": "text", "text": "x"}])), {"role": "user", "content": [result("a")]}]),
            "after `tool_use`",
        ),
        (json!([{"role": "user", "content": [result("a")]}]), "unexpected `tool_use_id`"),
        (json!([user, asks(json!([{"type": "text", "text": ""}]))]), "non-empty"),
        (json!([user, asks(json!("x "))]), "trailing whitespace"),
        (json!([user, asks(json!([{"type": "thinking", "thinking": "t"}]))]), "signature"),
        (json!([user, asks(json!([used("a"), used("a")]))]), "unique"),
    ] {
        let refused = anthropic(&talk(messages.clone())).expect_err(&messages.to_string());
        assert!(refused.message.contains(says), "{messages}: {refused}");
    }
    assert!(anthropic(&json!({"messages": [user]})).is_err());
}

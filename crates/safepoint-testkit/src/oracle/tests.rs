//! Each rule with histories that keep it and histories that break it.

use serde_json::{Value, json};

use super::{HistoryRule, anthropic, openai};

mod answer_schema;
mod gemini;
mod requests;
mod responses;

fn chat(messages: Value) -> Value {
    json!({ "messages": messages })
}

fn talk(messages: Value) -> Value {
    json!({ "max_tokens": 1, "messages": messages })
}

fn call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}})
}

fn answer(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "x"})
}

fn user() -> Value {
    json!({"role": "user", "content": "hi"})
}

fn asks(calls: Value) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

/// S5.1: what OpenAI takes.
#[test]
fn good_chats_are_taken() {
    for messages in [
        json!([user()]),
        json!([{"role": "system", "content": "s"}, {"role": "developer", "content": "d"}, user()]),
        json!([user(), {"role": "assistant", "content": "ho"}, user()]),
        json!([user(), user(), {"role": "assistant", "content": [{"type": "text", "text": "parts"}]}]),
        json!([user(), asks(json!([call("a"), call("b")])), answer("b"), answer("a")]),
        json!([user(), asks(json!([call("a")])), answer("a"), asks(json!([call("a")])), answer("a"), user()]),
        json!([user(), {"role": "assistant", "content": "", "tool_calls": [call("a")]},
               {"role": "tool", "tool_call_id": "a", "content": ""}]),
        json!([user(), {"role": "assistant", "content": null, "refusal": "no"}]),
    ] {
        assert_eq!(openai(&chat(messages.clone())), Ok(()), "{messages}");
    }
}

/// S5.1: what OpenAI refuses, which rule it breaks, and where.
#[test]
fn bad_chats_are_refused() {
    let asked = asks(json!([call("a")]));
    let broken = |field: &str, value: Value| {
        let mut call = call("a");
        call["function"][field] = value;
        json!([asks(json!([call]))])
    };
    for (messages, index, rule, says) in [
        (json!([]), 0, HistoryRule::SomeMessages, "empty array"),
        (json!([asked]), 0, HistoryRule::CallUnanswered, "did not have response messages: a"),
        (json!([user(), asked, user()]), 1, HistoryRule::CallUnanswered, "messages: a"),
        (json!([asked, user(), answer("a")]), 0, HistoryRule::CallUnanswered, "messages: a"),
        (
            json!([asks(json!([call("a"), call("b")])), answer("a"), asked]),
            0,
            HistoryRule::CallUnanswered,
            "messages: b",
        ),
        (json!([answer("a")]), 0, HistoryRule::ResultWithoutCall, "must be a response to a preceeding"),
        (json!([asked, answer("b")]), 1, HistoryRule::ResultWithoutCall, "must be a response"),
        (json!([asked, answer("a"), answer("a")]), 2, HistoryRule::ResultWithoutCall, "must be a response"),
        (json!([asked, {"role": "tool", "content": "x"}]), 1, HistoryRule::ResultWithoutCall, "tool_call_id"),
        (json!([asked, {"role": "tool", "tool_call_id": "a"}]), 1, HistoryRule::SomeContent, "got null"),
        (json!([{"role": "assistant", "content": ""}]), 0, HistoryRule::SomeContent, "expected a string"),
        (json!([{"role": "assistant", "content": null}]), 0, HistoryRule::SomeContent, "got null"),
        (json!([{"role": "assistant", "content": []}]), 0, HistoryRule::SomeContent, "expected a string"),
        (json!([{"role": "user", "content": null}]), 0, HistoryRule::SomeContent, "got null"),
        (
            json!([{"role": "assistant", "content": "t", "tool_calls": []}]),
            0,
            HistoryRule::WellFormedCall,
            "minimum",
        ),
        (json!([asks(json!([call("a"), call("a")]))]), 0, HistoryRule::OwnId, "Duplicate"),
        (json!([asks(json!([call("")]))]), 0, HistoryRule::OwnId, "messages[0].tool_calls[0].id"),
        (broken("arguments", json!({})), 0, HistoryRule::WellFormedCall, "expected a string"),
        (broken("name", json!("")), 0, HistoryRule::WellFormedCall, "function.name"),
        (
            json!([asked, {"role": "tool", "tool_call_id": "a", "content": [{"type": "image_url"}]}]),
            1,
            HistoryRule::ResultContent,
            "only allowed for messages with role 'user'",
        ),
        (json!([{"role": "robot", "content": "x"}]), 0, HistoryRule::KnownRole, "'robot'"),
        (json!([user(), {"role": "system", "content": "s"}]), 1, HistoryRule::SystemFirst, "beginning"),
    ] {
        let refused = openai(&chat(messages.clone())).expect_err(&messages.to_string());
        assert_eq!((refused.index, refused.rule), (index, rule), "{messages}: {refused}");
        assert!(refused.message.contains(says), "{messages}: {refused}");
    }
    assert_eq!(openai(&json!({})).map_err(|refused| refused.rule), Err(HistoryRule::SomeMessages));
}

fn used(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "f", "input": {}})
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "x"})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn thought() -> Value {
    json!({"type": "thinking", "thinking": "", "signature": "s"})
}

fn says(blocks: Value) -> Value {
    json!({"role": "assistant", "content": blocks})
}

fn brings(blocks: Value) -> Value {
    json!({"role": "user", "content": blocks})
}

/// S5.1: what Anthropic takes.
#[test]
fn good_messages_are_taken() {
    for messages in [
        json!([user()]),
        json!([user(), says(json!("prefill"))]),
        json!([user(), says(json!([text("t"), used("a")])), brings(json!([result("a"), text("and")]))]),
        json!([user(), says(json!([used("a"), used("b")])), brings(json!([result("b"), result("a")]))]),
        json!([user(), says(json!([thought(), used("a")])), brings(json!([result("a")]))]),
        json!([user(), says(json!([{"type": "redacted_thinking", "data": "d"}, text("t ")])), user()]),
    ] {
        assert_eq!(anthropic(&talk(messages.clone())), Ok(()), "{messages}");
    }
}

/// S5.1: what Anthropic refuses, which rule it breaks, and where.
#[test]
#[expect(clippy::too_many_lines, reason = "a table, a rule a row")]
fn bad_messages_are_refused() {
    let one = says(json!([used("a")]));
    let back = brings(json!([result("a")]));
    for (messages, index, rule, words) in [
        (json!([]), 0, HistoryRule::SomeMessages, "at least one message"),
        (json!([says(json!("x"))]), 0, HistoryRule::RolesAlternate, "first message"),
        (json!([user(), user()]), 1, HistoryRule::RolesAlternate, "multiple \"user\""),
        (json!([user(), {"role": "system", "content": "s"}]), 1, HistoryRule::KnownRole, "\"system\""),
        (json!([user(), one]), 1, HistoryRule::CallUnanswered, "immediately after: a."),
        (json!([user(), one, user()]), 1, HistoryRule::CallUnanswered, "immediately after: a."),
        (
            json!([user(), one, user(), says(json!("t"))]),
            1,
            HistoryRule::CallUnanswered,
            "immediately after: a.",
        ),
        (
            json!([user(), says(json!([used("a"), used("b")])), back]),
            1,
            HistoryRule::CallUnanswered,
            "immediately after: b.",
        ),
        (
            json!([user(), one, brings(json!([text("x"), result("a")]))]),
            1,
            HistoryRule::ResultsFirst,
            "immediately after: a.",
        ),
        (
            json!([user(), says(json!([used("a"), text("x")])), back]),
            1,
            HistoryRule::CallsLast,
            "immediately after: a.",
        ),
        (
            json!([user(), says(json!([used("a"), thought()])), back]),
            1,
            HistoryRule::CallsLast,
            "immediately after: a.",
        ),
        (json!([back]), 0, HistoryRule::ResultWithoutCall, "messages.0.content.0: unexpected `tool_use_id`"),
        (json!([user(), says(json!("t")), back]), 2, HistoryRule::ResultWithoutCall, "unexpected"),
        (
            json!([user(), one, brings(json!([result("a"), result("a")]))]),
            2,
            HistoryRule::ResultWithoutCall,
            "single result",
        ),
        (
            json!([
                user(),
                one,
                brings(json!([{"type": "tool_result", "tool_use_id": "a", "is_error": true,
                "content": [{"type": "image"}]}]))
            ]),
            2,
            HistoryRule::ResultContent,
            "if \"is_error\" is true",
        ),
        (
            json!([
                user(),
                one,
                brings(json!([{"type": "tool_result", "tool_use_id": "a",
                "content": [{"type": "tool_use"}]}]))
            ]),
            2,
            HistoryRule::ResultContent,
            "Input tag 'tool_use'",
        ),
        (json!([user(), says(json!([text("")]))]), 1, HistoryRule::SomeText, "non-empty"),
        (json!([user(), says(json!([text(" \n")]))]), 1, HistoryRule::SomeText, "non-whitespace"),
        (json!([user(), says(json!([]))]), 1, HistoryRule::SomeContent, "non-empty content"),
        (json!([user(), says(json!(""))]), 1, HistoryRule::SomeContent, "non-empty content"),
        (json!([user(), says(json!("x "))]), 1, HistoryRule::NoTrailingSpace, "trailing whitespace"),
        (
            json!([user(), says(json!([{"type": "thinking", "thinking": "t"}, text("x")]))]),
            1,
            HistoryRule::SignedThinking,
            "messages.1.content.0.thinking.signature",
        ),
        (json!([user(), says(json!([used("a"), used("a")]))]), 1, HistoryRule::OwnId, "unique"),
        (json!([user(), one, back, one, back]), 3, HistoryRule::OwnId, "unique"),
        (json!([user(), says(json!([used("a b")]))]), 1, HistoryRule::OwnId, "pattern"),
        (
            json!([user(), says(json!([{"type": "tool_use", "id": "a", "name": "f", "input": "{}"}]))]),
            1,
            HistoryRule::WellFormedCall,
            "dictionary",
        ),
    ] {
        let refused = anthropic(&talk(messages.clone())).expect_err(&messages.to_string());
        assert_eq!((refused.index, refused.rule), (index, rule), "{messages}: {refused}");
        assert!(refused.message.contains(words), "{messages}: {refused}");
    }
    let unbounded = anthropic(&json!({"messages": [user()]}));
    assert_eq!(unbounded.map_err(|refused| refused.rule), Err(HistoryRule::MaxTokens));
}

/// S5.1: with thinking on, a tool loop begins with its thinking; an older turn need not.
#[test]
fn thinking_comes_first_where_it_is_on() {
    let thinking = |messages: Value| {
        let mut body = talk(messages);
        body["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
        anthropic(&body)
    };
    let back = brings(json!([result("a")]));
    let bare = json!([user(), says(json!([used("a")])), back]);
    let refused = thinking(bare.clone()).expect_err("a call without its thinking");
    assert_eq!((refused.index, refused.rule), (1, HistoryRule::ThinkingFirst));
    assert!(refused.message.starts_with("messages.1.content.0.type: Expected `thinking`"), "{refused}");
    assert_eq!(anthropic(&talk(bare)), Ok(()));
    assert_eq!(thinking(json!([user(), says(json!([thought(), used("a")])), back])), Ok(()));
    assert_eq!(
        thinking(json!([user(), says(json!([used("a")])), back, says(json!([text("done")])), user()])),
        Ok(())
    );
}

/// The bodies are those of the providers.
#[test]
fn a_violation_speaks_as_its_provider() {
    let refused = openai(&chat(json!([user(), asks(json!([call("a")]))]))).expect_err("unanswered");
    let error = &refused.openai_body()["error"];
    assert_eq!(
        (&error["type"], &error["param"], &error["code"]),
        (&json!("invalid_request_error"), &json!("messages.[1].role"), &Value::Null)
    );
    let refused = anthropic(&talk(json!([user(), user()]))).expect_err("twice the user");
    let body = refused.anthropic_body();
    assert_eq!((&body["type"], &body["error"]["type"]), (&json!("error"), &json!("invalid_request_error")));
}

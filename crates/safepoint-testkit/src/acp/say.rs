//! What an agent writes: the messages of the protocol.

use serde_json::{Value, json};

use super::brain::Step;

pub(super) fn result(id: &Value, result: Value) -> Step {
    Step::Say(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

pub(super) fn error(id: &Value, code: i64, message: &str) -> Step {
    Step::Say(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
}

/// The end of a turn.
pub(super) fn end(prompt: &Value, reason: &str) -> Step {
    result(prompt, json!({ "stopReason": reason }))
}

pub(super) fn update(session: &str, update: Value) -> Step {
    Step::Say(json!({
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {"sessionId": session, "update": update},
    }))
}

pub(super) fn chunk(session: &str, text: &str) -> Step {
    let content = json!({"type": "text", "text": text});
    update(session, json!({"sessionUpdate": "agent_message_chunk", "content": content}))
}

pub(super) fn thought(session: &str, text: &str) -> Step {
    let content = json!({"type": "text", "text": text});
    update(session, json!({"sessionUpdate": "agent_thought_chunk", "content": content}))
}

/// A tool call of the agent's own, under way.
pub(super) fn calls(session: &str, call: &str, title: &str) -> Step {
    update(
        session,
        json!({
            "sessionUpdate": "tool_call", "toolCallId": call, "title": title, "kind": "execute",
            "status": "in_progress",
        }),
    )
}

/// How that call stands now.
pub(super) fn called(session: &str, call: &str, status: &str) -> Step {
    update(session, json!({"sessionUpdate": "tool_call_update", "toolCallId": call, "status": status}))
}

/// A question whether a payment may be made.
pub(super) fn may_i(session: &str, id: &str) -> Step {
    let options = json!([
        {"optionId": "yes", "name": "Pay", "kind": "allow_once"},
        {"optionId": "ever", "name": "Pay, and never ask again", "kind": "allow_always"},
        {"optionId": "no", "name": "Do not pay", "kind": "reject_once"},
    ]);
    asks(session, id, options)
}

/// The same question, with these answers to choose from.
pub(super) fn asks(session: &str, id: &str, options: Value) -> Step {
    let call = json!({
        "toolCallId": "pay1", "title": "Pay the rent", "kind": "execute", "rawInput": {"amount": 900},
    });
    Step::Say(json!({
        "jsonrpc": "2.0", "id": id, "method": "session/request_permission",
        "params": {"sessionId": session, "toolCall": call, "options": options},
    }))
}

//! What an agent does at each step, and the messages of the protocol that it writes.

use serde_json::{Value, json};

/// What is to be done.
#[derive(Clone, Debug)]
pub(super) enum AcpStep {
    Say(Value),
    /// A line that is no message.
    Raw(String),
    /// Words on standard error, then the end of the agent.
    Die(&'static str, i32),
    /// Much on standard error.
    Flood,
    /// A step, again and again for as long as anybody reads.
    Gush(Box<AcpStep>),
    /// It reads and does nothing more.
    Wedge,
    /// A grandchild that lives on by itself.
    Spawn,
    /// A command that runs until a signal or the end of the agent ends it.
    Command,
    /// Its commands end.
    EndCommands,
    /// It hands its work to this hub.
    HandOver(String),
}

pub(super) fn result(id: &Value, result: Value) -> AcpStep {
    AcpStep::Say(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

pub(super) fn error(id: &Value, code: i64, message: &str) -> AcpStep {
    AcpStep::Say(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
}

/// The end of a turn.
pub(super) fn end(prompt: &Value, reason: &str) -> AcpStep {
    result(prompt, json!({ "stopReason": reason }))
}

pub(super) fn update(session: &str, update: Value) -> AcpStep {
    AcpStep::Say(json!({
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {"sessionId": session, "update": update},
    }))
}

/// A piece of a message of this kind.
pub(super) fn piece(session: &str, kind: &str, text: &str) -> AcpStep {
    let content = json!({"type": "text", "text": text});
    update(session, json!({"sessionUpdate": kind, "content": content}))
}

pub(super) fn chunk(session: &str, text: &str) -> AcpStep {
    piece(session, "agent_message_chunk", text)
}

pub(super) fn thought(session: &str, text: &str) -> AcpStep {
    piece(session, "agent_thought_chunk", text)
}

/// A tool call of the agent's own, under way.
pub(super) fn calls(session: &str, call: &str, title: &str) -> AcpStep {
    let begun = json!({"sessionUpdate": "tool_call", "toolCallId": call, "title": title, "kind": "execute",
        "status": "in_progress"});
    update(session, begun)
}

/// How that call stands now.
pub(super) fn called(session: &str, call: &str, status: &str) -> AcpStep {
    update(session, json!({"sessionUpdate": "tool_call_update", "toolCallId": call, "status": status}))
}

/// A question whether a payment may be made.
pub(super) fn may_i(session: &str, id: &str) -> AcpStep {
    let options = json!([
        {"optionId": "yes", "name": "Pay", "kind": "allow_once"},
        {"optionId": "ever", "name": "Pay, and never ask again", "kind": "allow_always"},
        {"optionId": "no", "name": "Do not pay", "kind": "reject_once"},
    ]);
    asks(session, id, options)
}

/// The same question, with these answers to choose from.
pub(super) fn asks(session: &str, id: &str, options: Value) -> AcpStep {
    let call = json!({
        "toolCallId": "pay1", "title": "Pay the rent", "kind": "execute", "rawInput": {"amount": 900},
    });
    AcpStep::Say(json!({
        "jsonrpc": "2.0", "id": id, "method": "session/request_permission",
        "params": {"sessionId": session, "toolCall": call, "options": options},
    }))
}

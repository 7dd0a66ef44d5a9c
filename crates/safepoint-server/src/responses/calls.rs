//! A call of the agent as an item of a response: one of a tool that the server runs itself, so that no client tries to run it.

use serde_json::{Value, json};

/// A call, as far as the record that named it says.
#[derive(Clone, Debug)]
pub(super) struct CallItem {
    id: String,
    agent: String,
    name: String,
    /// As JSON.
    args: String,
    /// The question about it.
    pub(super) approval: Option<String>,
}

impl CallItem {
    /// A call that a record names.
    pub(super) fn started(data: &Value, agent: &str) -> Self {
        let text = |name: &str| data[name].as_str().unwrap_or_default().to_owned();
        let args = if data["args"].is_null() { "{}".to_owned() } else { data["args"].to_string() };
        Self { id: text("call_id"), agent: agent.to_owned(), name: text("name"), args, approval: None }
    }

    /// The same, of a question about it.
    pub(super) fn asked(data: &Value, agent: &str) -> Self {
        let approval = data["approval_id"].as_str().map(str::to_owned);
        Self { approval, ..Self::started(data, agent) }
    }

    /// The same, behind this question.
    pub(super) fn behind(self, approval: Option<String>) -> Self {
        Self { approval, ..self }
    }

    /// The question as an item.
    pub(super) fn request(&self) -> Value {
        json!({"type": "mcp_approval_request", "id": self.approval, "server_label": self.agent,
               "name": self.name, "arguments": self.args})
    }

    /// The call as an item, with what its end says.
    pub(super) fn item(&self, status: &str, ended: Option<&Value>) -> Value {
        let said = ended.map(|ended| ended["output"].clone()).unwrap_or_default();
        let failed = || json!({"type": "mcp_tool_execution_error", "content": said});
        let (output, error) =
            if status == "failed" { (Value::Null, failed()) } else { (said.clone(), Value::Null) };
        json!({"type": "mcp_call", "id": format!("mcp_{}", self.id), "server_label": self.agent,
               "name": self.name, "arguments": self.args, "status": status, "output": output,
               "error": error, "approval_request_id": self.approval})
    }
}

//! The tool with which an agent keeps its to-do list in view.

use std::sync::Arc;

use safepoint::{
    Tool,
    stop::Failure,
    tool::{EffectClass, from_fn},
};

use crate::render::chat::todo::{LIST_TOOL, TodoList};

const DESCRIPTION: &str = "Keeps the to-do list that the user sees while you work. Use it for work of three steps or more: list \
     the steps before you begin, mark exactly one as active while you do it, and as done as soon as it is. Each call replaces the \
     whole list. It does nothing else.";

/// The tool: the screen shows what a call is given.
pub(crate) fn tool() -> Arc<dyn Tool> {
    let tool = from_fn(LIST_TOOL, DESCRIPTION, |_cx, list: TodoList| async move {
        match list.flaw() {
            Some(flaw) => Err(Failure::new(format!("{flaw}; the list is as it was")).into()),
            None => Ok(format!("The user sees the list: {}.", list.summary())),
        }
    });
    Arc::new(tool.with(|spec| spec.effect(EffectClass::ReadOnly)))
}

#[cfg(test)]
mod tests {
    use safepoint::{Agent, receipt::CallStatus};
    use safepoint_testkit::{
        script::{Reply, Script},
        scripted::ScriptedModel,
    };
    use serde_json::json;

    use super::*;

    /// The model learns how far its list is, and why one is not taken.
    #[tokio::test]
    async fn a_list_is_taken_or_refused_with_a_reason() {
        let item = |text: &str| json!({"text": text, "state": "active"});
        let replies = [
            Reply::call(LIST_TOOL, json!({"items": [item("read"), {"text": "write", "state": "done"}]})),
            Reply::call(LIST_TOOL, json!({"items": [item(" ")]})),
            Reply::call(LIST_TOOL, json!({"items": [{"text": "x", "state": "later"}]})),
            Reply::text("done"),
        ];
        let model = ScriptedModel::new(Script::of(replies));
        let outcome = Agent::builder(model).tools([tool()]).build().run("go").await;
        let status: Vec<_> = outcome.receipt().calls.iter().map(|call| call.status).collect();
        assert_eq!(status, [CallStatus::Completed, CallStatus::Failed, CallStatus::Failed]);
        let said = format!("{:?}", outcome.history().entries());
        assert!(said.contains("1 of 2 done") && said.contains("an item has no text"), "{said}");
    }
}

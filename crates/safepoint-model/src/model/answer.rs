//! The form of a typed answer, as a model is asked for it.

use std::sync::Arc;

use serde_json::Value;

/// The form that the final answer of a typed run must have.
///
/// A model whose wire can be held to a JSON Schema asks by that: it leaves the tool out of the request and sends the
/// schema in the wire's own field. Every other model ignores this: the tool stands among the spec's tools already. The
/// engine takes either, so a model may decide for each conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerFormat {
    /// The tool by which the model answers where its wire takes no schema; one of the spec's tools.
    pub tool: String,
    /// The JSON Schema of the answer, an object. It is that of the tool's arguments.
    pub schema: Arc<Value>,
}

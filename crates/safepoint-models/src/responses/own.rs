//! What the provider does itself in a response, such as a search: items of the provider's tools and annotations of its texts,
//! kept as they came and sent back with the message.

use safepoint::message::Block;
use serde_json::{Value, json};

const ITEM: &str = "responses_item";
const ANNOTATED: &str = "responses_annotations";

/// The items of the provider's tools. Other items (such as `computer_call`) want an answer from the program, and there is none here.
const OWN: [&str; 6] = [
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
    "mcp_list_tools",
];

/// Whether an item of this kind is one of the provider's own tools.
pub(super) fn is_one(kind: &str) -> bool {
    OWN.contains(&kind)
}

/// The seal of such an item.
pub(super) fn item(item: Value) -> Value {
    json!({"type": ITEM, "item": item})
}

/// The seal behind a text of this length in bytes; none if it has no annotations.
pub(super) fn annotated(bytes: usize, annotations: Value) -> Option<Value> {
    let has_any = annotations.as_array().is_some_and(|all| !all.is_empty());
    has_any.then(|| json!({"type": ANNOTATED, "of_bytes": bytes, "annotations": annotations}))
}

/// The item as it is sent, if the block is one.
pub(super) fn sent(seal: &Value) -> Option<&Value> {
    (seal["type"] == ITEM).then(|| &seal["item"])
}

/// The annotations of the text before this block, and how many of its last bytes they are of.
pub(super) fn annotations_of(block: Option<&Block>) -> Option<(usize, &Value)> {
    let Some(Block::Reasoning(reasoning)) = block else { return None };
    let seal = reasoning.seal.as_ref().filter(|seal| seal["type"] == ANNOTATED)?;
    Some((usize::try_from(seal["of_bytes"].as_u64()?).ok()?, &seal["annotations"]))
}

//! What the provider does itself in a response, such as a search: items of the provider's tools and annotations of its texts,
//! kept as they came and sent back with the message.

use safepoint::{
    message::{Block, Citation, ProviderPart, ResultStatus},
    model::{Delta, ModelError},
};
use serde_json::{Value, json};

use super::Stateless;
use crate::{
    provider_blocks::{self, citation, gave, said, used},
    wired::Wire as _,
};

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

/// Such an item: the use of a tool, and behind it what it gave, where that can be read.
pub(super) fn item(item: Value) -> Vec<Delta> {
    let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
    let (id, kind) = (text("id"), text("type"));
    let tool = match kind.as_str() {
        "code_interpreter_call" => "code_execution",
        "mcp_call" => item["name"].as_str().unwrap_or("mcp"),
        kind => kind.strip_suffix("_call").unwrap_or(kind),
    };
    let status = match text("status").as_str() {
        "completed" => Some(ResultStatus::Ok),
        "failed" | "incomplete" => Some(ResultStatus::Error),
        _ => None,
    };
    let input = said(&item["action"]).or_else(|| said(&item)).unwrap_or_else(|| text("arguments"));
    let found = found(&item);
    let (use_status, result) = match found.is_empty() {
        true => (status, None),
        false => (None, Some(gave(&id, tool, status.unwrap_or(ResultStatus::Ok), found))),
    };
    let part = used(&id, tool, input, use_status);
    let raw = json!({"type": ITEM, "item": item});
    let mut deltas = vec![provider_blocks::delta(Stateless::NAME, part, raw)];
    deltas.extend(result.map(|part| provider_blocks::delta(Stateless::NAME, part, Value::Null)));
    deltas
}

/// What a use gave, for people: what a program wrote, and the files that were found.
fn found(item: &Value) -> String {
    let list = |name: &str| item[name].as_array().map_or(&[][..], Vec::as_slice);
    let logs = list("outputs").iter().filter_map(|output| output["logs"].as_str());
    let files = list("results").iter().filter_map(|result| result["filename"].as_str());
    let given = item["output"].as_str().or(item["error"].as_str());
    logs.chain(files).chain(given).collect::<Vec<_>>().join("\n")
}

/// The annotations behind a text of this length in bytes; none if it has none.
///
/// # Errors
/// That one of them is malformed.
pub(super) fn annotated(bytes: usize, annotations: Value) -> Result<Option<Delta>, ModelError> {
    let all = annotations.as_array().ok_or_else(|| provider_blocks::malformed(&annotations))?;
    if all.is_empty() {
        return Ok(None);
    }
    let read = |one: &Value| citation(one, ("url", &["title", "filename"], "quote"));
    let cited: Vec<Citation> = all.iter().map(read).collect::<Result<_, _>>()?;
    let raw = json!({"type": ANNOTATED, "of_bytes": bytes, "annotations": annotations});
    Ok(Some(provider_blocks::delta(Stateless::NAME, ProviderPart::Citations(cited), raw)))
}

/// The item as it is sent, if the block is one.
pub(super) fn sent(seal: &Value) -> Option<&Value> {
    (seal["type"] == ITEM).then(|| &seal["item"])
}

/// The annotations of the text before this block, and how many of its last bytes they are of.
pub(super) fn annotations_of(block: Option<&Block>) -> Option<(usize, &Value)> {
    let seal = provider_blocks::raw(block?, Stateless::NAME).filter(|seal| seal["type"] == ANNOTATED)?;
    Some((usize::try_from(seal["of_bytes"].as_u64()?).ok()?, &seal["annotations"]))
}

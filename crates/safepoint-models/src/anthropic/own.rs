//! What the provider does itself in a message, such as a search: blocks of the provider's tools and citations, kept as they came
//! and sent back with the message, without which the provider does not know what it had found.

use std::collections::HashSet;

use safepoint::{
    message::{AssistantMessage, Block},
    model::ModelError,
};
use serde_json::{Value, json};

use crate::error;

/// The type of the seal that stands behind a cited text.
const CITED: &str = "citations";

/// Whether a block of this type is one of the provider's own tools.
pub(super) fn is_one(kind: &str) -> bool {
    is_use(kind) || kind.ends_with("_tool_result")
}

fn is_use(kind: &str) -> bool {
    matches!(kind, "server_tool_use" | "mcp_tool_use")
}

/// A whole block: as it began, with the input that came behind.
///
/// # Errors
/// If it is not JSON, or becomes too large as a value.
pub(super) fn block(begun: &str, input: &str) -> Result<Value, ModelError> {
    let mut block = error::value(begun)?;
    if !input.is_empty() {
        block["input"] = error::value(input)?;
    }
    Ok(block)
}

/// The seal behind a text of this length in bytes that has these citations.
///
/// # Errors
/// As [`block`].
pub(super) fn cited(bytes: usize, citations: &[String]) -> Result<Value, ModelError> {
    let citations = citations.iter().map(|citation| error::value(citation)).collect::<Result<Vec<_>, _>>()?;
    Ok(json!({"type": CITED, "of_bytes": bytes, "citations": citations}))
}

/// The citations of the text before this block, and how many of its last bytes they are of.
pub(super) fn citations_of(block: Option<&Block>) -> Option<(usize, &Value)> {
    let Some(Block::Reasoning(reasoning)) = block else { return None };
    let seal = reasoning.seal.as_ref().filter(|seal| seal["type"] == CITED)?;
    Some((usize::try_from(seal["of_bytes"].as_u64()?).ok()?, &seal["citations"]))
}

/// The blocks of a message that are uses of the provider's own tools, or what these gave. The provider refuses a use
/// without its result, as a cut message leaves it: only those that have one are sent.
pub(super) fn whole(message: &AssistantMessage) -> HashSet<&str> {
    let seals = || message.blocks.iter().filter_map(seal);
    let uses: HashSet<&str> = seals()
        .filter(|seal| seal["type"].as_str().is_some_and(is_use))
        .filter_map(|seal| seal["id"].as_str())
        .collect();
    seals().filter_map(|seal| seal["tool_use_id"].as_str()).filter(|id| uses.contains(id)).collect()
}

/// The block as it is sent, if it is one of these and has its counterpart in the message.
pub(super) fn sent<'b>(block: &'b Block, whole: &HashSet<&str>) -> Option<&'b Value> {
    let seal = seal(block)?;
    let kind = seal["type"].as_str().filter(|kind| is_one(kind))?;
    let id = if is_use(kind) { &seal["id"] } else { &seal["tool_use_id"] };
    whole.contains(id.as_str()?).then_some(seal)
}

fn seal(block: &Block) -> Option<&Value> {
    match block {
        Block::Reasoning(reasoning) => reasoning.seal.as_ref(),
        Block::Text { .. } | Block::Call(_) => None,
    }
}

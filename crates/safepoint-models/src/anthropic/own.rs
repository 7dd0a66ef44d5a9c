//! What the provider does itself in a message, such as a search: blocks of the provider's tools and citations, kept as they came
//! and sent back with the message, without which the provider does not know what it had found.

use std::collections::HashSet;

use safepoint::{
    message::{AssistantMessage, Block, Citation, ProviderPart, ResultStatus},
    model::{Delta, ModelError, ModelErrorKind},
};
use serde_json::{Value, json};

use super::Messages;
use crate::{
    error,
    provider_blocks::{self, citation, gave, readable, used},
    wired::Wire as _,
};

/// The type of the seal that stands behind a cited text.
const CITED: &str = "citations";

/// Whether a block of this type is one of the provider's own tools.
pub(super) fn is_one(kind: &str) -> bool {
    is_use(kind) || kind.ends_with("_tool_result")
}

fn is_use(kind: &str) -> bool {
    matches!(kind, "server_tool_use" | "mcp_tool_use")
}

/// That the provider gave its tools no more time in this message: the message is not the whole answer.
pub(super) fn paused() -> ModelError {
    let says = "the provider paused its message before its own tools were done";
    ModelError::new(ModelErrorKind::Provider, says)
        .with_hint("what they found is kept: continue on the run's history, or let them do less")
}

/// A whole block: as it began, with the input that came behind.
///
/// # Errors
/// If it is not JSON, or becomes too large as a value.
pub(super) fn block(begun: &str, input: &str) -> Result<Delta, ModelError> {
    let mut block = error::value(begun)?;
    if !input.is_empty() {
        block["input"] = error::value(input)?;
    }
    Ok(provider_blocks::delta(Messages::NAME, part(&block), block))
}

/// What a block says: a use of a tool, or what it gave.
fn part(block: &Value) -> ProviderPart {
    let text = |name: &str| block[name].as_str().unwrap_or_default();
    let kind = text("type");
    if is_use(kind) {
        return used(text("id"), text("name"), readable(&block["input"]), None);
    }
    let content = &block["content"];
    let is_error = block["is_error"] == true || content["error_code"].is_string();
    let status = if is_error { ResultStatus::Error } else { ResultStatus::Ok };
    gave(text("tool_use_id"), kind.strip_suffix("_tool_result").unwrap_or(kind), status, given(content))
}

/// What a result says, for people: the pages that were found, what a program wrote, or what went wrong.
fn given(content: &Value) -> String {
    let all = content.as_array().map_or(std::slice::from_ref(content), Vec::as_slice);
    let said = all.iter().flat_map(|one| {
        ["title", "url", "text", "stdout", "stderr", "error_code"]
            .into_iter()
            .filter_map(|name| one[name].as_str())
    });
    said.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The citations behind a text of this length in bytes.
///
/// # Errors
/// As [`block`], or if a citation is malformed.
pub(super) fn cited(bytes: usize, citations: &[String]) -> Result<Delta, ModelError> {
    let citations = citations.iter().map(|citation| error::value(citation)).collect::<Result<Vec<_>, _>>()?;
    let read = |one: &Value| citation(one, ("url", &["title", "document_title"], "cited_text"));
    let from: Vec<Citation> = citations.iter().map(read).collect::<Result<_, _>>()?;
    let raw = json!({"type": CITED, "of_bytes": bytes, "citations": citations});
    Ok(provider_blocks::delta(Messages::NAME, ProviderPart::Citations(from), raw))
}

/// The citations of the text before this block, and how many of its last bytes they are of.
pub(super) fn citations_of(block: Option<&Block>) -> Option<(usize, &Value)> {
    let seal = seal(block?).filter(|seal| seal["type"] == CITED)?;
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
    provider_blocks::raw(block, Messages::NAME)
}

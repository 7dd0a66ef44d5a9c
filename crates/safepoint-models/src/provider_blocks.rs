//! What providers did themselves, read from their forms, and the note that another wire gets of it.

use safepoint::{
    message::{Block, Citation, ProviderBlock, ProviderPart, ResultStatus},
    model::{Delta, ModelError},
};
use serde_json::Value;

use crate::error;

/// A provider's block as a delta.
pub(crate) fn delta(wire: &str, part: ProviderPart, raw: Value) -> Delta {
    Delta::Provider(Box::new(ProviderBlock::new(wire, part, raw)))
}

/// A use of a provider's tool.
pub(crate) fn used(id: &str, tool: &str, input: String, result: Option<ResultStatus>) -> ProviderPart {
    ProviderPart::Use { id: id.to_owned(), tool: tool.to_owned(), input, result }
}

/// What a use gave.
pub(crate) fn gave(id: &str, tool: &str, status: ResultStatus, text: String) -> ProviderPart {
    ProviderPart::Result { id: id.to_owned(), tool: tool.to_owned(), status, text }
}

/// A citation, of which each field may be missing but must be a text where it is there.
///
/// # Errors
/// That it is no object, or that a field is no text.
pub(crate) fn citation(
    raw: &Value,
    (url, titles, cited): (&str, &[&str], &str),
) -> Result<Citation, ModelError> {
    let fields = raw.as_object().ok_or_else(|| malformed(raw))?;
    let text = |name: &str| match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(malformed(raw)),
    };
    let mut title = None;
    for name in titles {
        title = title.or(text(name)?);
    }
    Ok(Citation::new(text(url)?, title, text(cited)?))
}

pub(crate) fn malformed(citation: &Value) -> ModelError {
    error::malformed(format_args!("a citation is {}", error::shown(&citation.to_string())))
}

/// What a tool was given, for people: the one field that says it, or all of it.
pub(crate) fn readable(input: &Value) -> String {
    let has_any = input.as_object().is_some_and(|fields| !fields.is_empty());
    said(input).or_else(|| has_any.then(|| input.to_string())).unwrap_or_default()
}

/// The one field of an input that says it.
pub(crate) fn said(input: &Value) -> Option<String> {
    const SAY_IT: [&str; 5] = ["query", "queries", "code", "command", "url"];
    SAY_IT.iter().find_map(|name| match &input[name] {
        Value::String(text) => Some(text.clone()),
        Value::Array(all) => Some(all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; ")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    })
}

/// What a block of another wire's provider says, in its place; none for a block of this wire, and of what is no such block.
pub(crate) fn foreign(block: &Block, wire: &str) -> Option<String> {
    match block {
        Block::Provider(block) if block.wire != wire => Some(block.note()).filter(|note| !note.is_empty()),
        Block::Provider(_) | Block::Text { .. } | Block::Reasoning(_) | Block::Call(_) => None,
    }
}

/// The provider's own form in a block that is of this wire, or that an earlier release kept as sealed reasoning.
pub(crate) fn raw<'b>(block: &'b Block, wire: &str) -> Option<&'b Value> {
    match block {
        Block::Reasoning(reasoning) => reasoning.seal.as_ref(),
        Block::Provider(block) if block.wire == wire => Some(&block.raw),
        Block::Provider(_) | Block::Text { .. } | Block::Call(_) => None,
    }
}

//! What the provider does itself in a reply, such as a search: parts of its tools, kept as they came and sent back, and
//! where the answer is from, which the provider does not take back.

use safepoint::{
    message::{Citation, ProviderPart, ResultStatus},
    model::{Delta, ModelError},
};
use serde_json::{Value, json};

use super::GenerateContent;
use crate::{
    provider_blocks::{self, citation, gave, readable, used},
    wired::Wire as _,
};

/// The type of what is kept of a part of a tool of the provider's own.
const OWN_PART: &str = "gemini_part";
/// The type of what is kept of where an answer comes from.
const GROUNDING: &str = "gemini_grounding";
const CODE: &str = "code_execution";
const SEARCH: &str = "web_search";

/// The part as it is sent, if what is kept is one.
pub(super) fn sent(raw: &Value) -> Option<&Value> {
    (raw["type"] == OWN_PART).then(|| &raw["part"])
}

/// What of a reply the provider did itself, so far.
#[derive(Debug, Default)]
pub(super) struct OwnReader {
    /// Whether searches come as parts of their own, and are not read from the grounding a second time.
    has_calls: bool,
    /// The searches that were named: the grounding names them with each chunk.
    searches: String,
}

impl OwnReader {
    /// A part of a tool: its use, or what it gave.
    pub(super) fn part(&mut self, part: Value) -> Delta {
        let said = if let code @ Value::Object(_) = &part["executableCode"] {
            used("", CODE, readable(code), None)
        } else if let result @ Value::Object(_) = &part["codeExecutionResult"] {
            let is_ok = result["outcome"] == "OUTCOME_OK";
            let status = if is_ok { ResultStatus::Ok } else { ResultStatus::Error };
            gave("", CODE, status, text(result, "output"))
        } else if let call @ Value::Object(_) = &part["toolCall"] {
            self.has_calls = true;
            used(&text(call, "id"), &tool(call), readable(&call["args"]), None)
        } else {
            let response = &part["toolResponse"];
            gave(&text(response, "id"), &tool(response), ResultStatus::Ok, String::new())
        };
        provider_blocks::delta(GenerateContent::NAME, said, json!({"type": OWN_PART, "part": part}))
    }

    /// Where the answer is from, and what was searched for it.
    ///
    /// # Errors
    /// That a source is malformed.
    pub(super) fn grounded(&mut self, grounding: Value) -> Result<Vec<Delta>, ModelError> {
        let list = |name: &str| grounding[name].as_array().map_or(&[][..], Vec::as_slice);
        let mut sources: Vec<Citation> = Vec::new();
        for chunk in list("groundingChunks") {
            let found = ["web", "retrievedContext", "maps"].into_iter().map(|kind| &chunk[kind]);
            // A source of a kind that this release does not know is kept in the provider's form alone.
            if let Some(source) = found.into_iter().find(|source| !source.is_null()) {
                sources.push(citation(source, ("uri", &["title"], "text"))?);
            } else if !chunk.is_object() {
                return Err(provider_blocks::malformed(chunk));
            }
        }
        let searches: Vec<&str> = list("webSearchQueries").iter().filter_map(Value::as_str).collect();
        let searches = searches.join("; ");
        let mut deltas = Vec::new();
        if !searches.is_empty() && searches != self.searches && !self.has_calls {
            self.searches.clone_from(&searches);
            let part = used("", SEARCH, searches, Some(ResultStatus::Ok));
            deltas.push(provider_blocks::delta(GenerateContent::NAME, part, Value::Null));
        }
        if grounding.as_object().is_some_and(|fields| !fields.is_empty()) {
            let raw = json!({"type": GROUNDING, "of": grounding});
            deltas.push(provider_blocks::delta(GenerateContent::NAME, ProviderPart::Citations(sources), raw));
        }
        Ok(deltas)
    }
}

fn text(of: &Value, name: &str) -> String {
    of[name].as_str().unwrap_or_default().to_owned()
}

/// The tool in the words of every wire: the provider writes `GOOGLE_SEARCH_WEB` and the like.
fn tool(of: &Value) -> String {
    let kind = text(of, "toolType").to_lowercase();
    if kind.starts_with("google_search") { SEARCH.to_owned() } else { kind }
}

//! Gemini's `generateContent`, streamed as server-sent events.
//!
//! On a stop the response is dropped: an HTTP/1 connection closes, an HTTP/2 stream is reset. Usage is cumulative on
//! the chunks, so the figures of a cut call are what the provider had named last, or a floor where more had arrived.

use http::HeaderMap;
use safepoint::{
    History,
    model::{Conversation, ModelSpec, Parameter, PromptCache, ReasoningEffort},
};
use serde_json::{Map, Value, json};

use crate::{
    config::{Auth, ConfigError, ToolChoice},
    conversation::HttpConversation,
    embedding::HttpEmbedder,
    encoded_history::EncodedHistory,
    parts,
    wired::{HttpModel, Wire, sealed::Sealed},
};

mod embed;
mod encode;
pub(crate) mod read;

pub use embed::GeminiEmbedder;

use encode::Contents;
use read::GeminiReader;

/// A model that speaks Gemini's `generateContent`.
///
/// ```
/// let model = safepoint_models::gemini::model("gemini-3-pro-preview").max_tokens(4096).thinking_level("low");
/// ```
pub type Gemini = HttpModel<GenerateContent>;

/// The wire of Gemini's `generateContent`.
#[derive(Clone, Debug, Default)]
pub struct GenerateContent(());

/// A model by name, without a key; add one with [`HttpModel::api_key`] where the server wants it.
pub fn model(name: impl Into<String>) -> Gemini {
    HttpModel::new(name)
}

/// A model with the key of `GEMINI_API_KEY` and, where it is set, the base URL of `GEMINI_BASE_URL`.
///
/// # Errors
/// If neither is set: without a base URL a key is needed.
pub fn from_env(name: impl Into<String>) -> Result<Gemini, ConfigError> {
    HttpModel::from_env(name)
}

/// An embedder by the name of its model, without a key; see [`embed`](crate::embed).
///
/// ```
/// let embedder = safepoint_models::gemini::embedder("gemini-embedding-001").dimensions(256);
/// ```
pub fn embedder(model: impl Into<String>) -> GeminiEmbedder {
    HttpEmbedder::new(model)
}

/// An embedder with the key of `GEMINI_API_KEY` and, where it is set, the base URL of `GEMINI_BASE_URL`.
///
/// # Errors
/// If neither is set: without a base URL a key is needed.
pub fn embedder_from_env(model: impl Into<String>) -> Result<GeminiEmbedder, ConfigError> {
    HttpEmbedder::from_env(model)
}

impl Sealed for GenerateContent {}

impl Wire for GenerateContent {
    const NAME: &'static str = "gemini";
    const DEFAULT_BASE: &'static str = "https://generativelanguage.googleapis.com/v1beta";
    const KEY_VARIABLE: &'static str = "GEMINI_API_KEY";
    const BASE_VARIABLE: &'static str = "GEMINI_BASE_URL";

    fn wire_name(given: String) -> String {
        given.strip_prefix("models/").map(str::to_owned).unwrap_or(given)
    }

    fn defaults(&self) -> Map<String, Value> {
        Map::new()
    }

    fn say(&self, fields: &mut Map<String, Value>, parameter: &Parameter) -> Result<(), &'static str> {
        let (name, value) = match parameter {
            Parameter::MaxTokens(tokens) => ("maxOutputTokens", json!(tokens)),
            Parameter::Temperature(temperature) => ("temperature", json!(temperature)),
            Parameter::TopP(share) => ("topP", json!(share)),
            Parameter::Seed(seed) => {
                let seed = i32::try_from(*seed).map_err(|_large| "its seed is at most 2147483647")?;
                ("seed", json!(seed))
            }
            Parameter::StopSequences(texts) => ("stopSequences", json!(texts)),
            Parameter::ReasoningEffort(
                ReasoningEffort::None | ReasoningEffort::XHigh | ReasoningEffort::Max,
            ) => {
                return Err("its levels are minimal to high");
            }
            Parameter::ReasoningEffort(effort) => {
                generation(fields)["thinkingConfig"]["thinkingLevel"] = effort.as_str().into();
                return Ok(());
            }
            // It does so by itself.
            Parameter::PromptCache(PromptCache::Prefix) => return Ok(()),
            _ => return Err("`generateContent` has no such setting"),
        };
        generation(fields)[name] = value;
        Ok(())
    }

    fn tool_choice(fields: &mut Map<String, Value>, choice: &ToolChoice) {
        let config = match choice {
            ToolChoice::Auto => json!({"mode": "AUTO"}),
            ToolChoice::None => json!({"mode": "NONE"}),
            ToolChoice::Required => json!({"mode": "ANY"}),
            ToolChoice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
        };
        fields.insert("toolConfig".into(), json!({ "functionCallingConfig": config }));
    }

    fn one_call(_fields: &mut Map<String, Value>) {
        // The provider has no such setting.
    }

    fn open(model: &Gemini, spec: &ModelSpec) -> Box<dyn Conversation> {
        Box::new(model.conversation(spec))
    }
}

/// What the model is to do with all that, in the wire's own object.
fn generation(fields: &mut Map<String, Value>) -> &mut Value {
    fields.entry("generationConfig").or_insert_with(|| json!({}))
}

impl HttpModel<GenerateContent> {
    /// Sets how hard the model thinks, in the provider's words (`low`, `high`): for models from Gemini 3 on.
    pub fn thinking_level(mut self, level: impl Into<String>) -> Self {
        generation(&mut self.set.change().fields)["thinkingConfig"]["thinkingLevel"] =
            Value::String(level.into());
        self
    }
    /// Lets the model think for at most this number of tokens: for models before Gemini 3.
    pub fn thinking_budget(mut self, tokens: u64) -> Self {
        generation(&mut self.set.change().fields)["thinkingConfig"]["thinkingBudget"] = tokens.into();
        self
    }
    /// Asks for a summary of the thoughts.
    pub fn thoughts(mut self) -> Self {
        generation(&mut self.set.change().fields)["thinkingConfig"]["includeThoughts"] = true.into();
        self
    }

    fn prefix(&self, spec: &ModelSpec) -> Vec<u8> {
        let mut fields = self.settings(spec);
        if let Some(system) = spec.system.as_deref().filter(|system| !system.trim().is_empty()) {
            fields.set("systemInstruction", json!({"parts": [{"text": system}]}));
        }
        let declared = spec.tools.iter().map(|tool| {
            json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters})
        });
        if !spec.tools.is_empty() {
            fields.set("tools", json!([{ "functionDeclarations": declared.collect::<Vec<_>>() }]));
        }
        self.opened(fields, "contents")
    }

    fn conversation(&self, spec: &ModelSpec) -> HttpConversation<Contents, GeminiReader> {
        HttpConversation {
            prepared: self.prepared(spec, |set| {
                let path = format!("models/{}:streamGenerateContent?alt=sse", set.wire_name);
                set.endpoint.prepare(&path, Auth::GoogKey, HeaderMap::new())
            }),
            output_bytes: spec.output_bytes,
            wire: (GenerateContent::NAME, parts::gemini),
            encoder: EncodedHistory::new(
                self.set.prefix(spec, || self.prefix(spec)),
                Contents::for_model(&self.set.wire_name),
            ),
            reader: GeminiReader::default,
        }
    }
}

/// The encoded request body, for tests of the encoding.
#[doc(hidden)]
pub fn encoded(model: &Gemini, spec: &ModelSpec, histories: &[&History]) -> Vec<Vec<u8>> {
    model.conversation(spec).encoded(histories)
}

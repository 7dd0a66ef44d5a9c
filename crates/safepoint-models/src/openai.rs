//! OpenAI chat completions, and every server that speaks them.
//!
//! On a stop the response is dropped: an HTTP/1 connection closes, an HTTP/2 stream is reset. The provider names no
//! usage of a cut stream, so the figures of a cut call are a floor, marked estimated.

use http::HeaderMap;
use safepoint::{
    History,
    model::{AnswerFormat, Conversation, ModelSpec, Parameter, PromptCache, ProviderTool},
};
use serde_json::{Map, Value, json};

use crate::{
    config::{Auth, ConfigError, ToolChoice},
    conversation::HttpConversation,
    embedding::HttpEmbedder,
    encoded_history::EncodedHistory,
    openai_schema, parts,
    providers::Dialect,
    strict_schema,
    wired::{HttpModel, Wire, sealed::Sealed},
};

pub(crate) mod embed;
mod encode;
pub(crate) mod read;

pub use embed::OpenAiEmbedder;

use encode::ChatEncoder;
use read::ChatReader;

/// A model that speaks OpenAI chat completions.
///
/// ```
/// let model = safepoint_models::openai::model("gpt-5.2").base_url("http://127.0.0.1:8080/v1").temperature(0.2);
/// ```
pub type OpenAi = HttpModel<Chat>;

/// The wire of OpenAI chat completions.
#[derive(Clone, Debug, Default)]
pub struct Chat {
    /// That of the server.
    dialect: Dialect,
}

/// A model by name, without a key; add one with [`HttpModel::api_key`] where the server wants it.
pub fn model(name: impl Into<String>) -> OpenAi {
    HttpModel::new(name)
}

/// A model with the key of `OPENAI_API_KEY` and, where it is set, the base URL of `OPENAI_BASE_URL`.
///
/// # Errors
/// If neither is set: without a base URL a key is needed.
pub fn from_env(name: impl Into<String>) -> Result<OpenAi, ConfigError> {
    HttpModel::from_env(name)
}

/// An embedder by the name of its model, without a key; see [`embed`](crate::embed).
///
/// ```
/// let embedder = safepoint_models::openai::embedder("text-embedding-3-small").dimensions(256);
/// ```
pub fn embedder(model: impl Into<String>) -> OpenAiEmbedder {
    HttpEmbedder::new(model)
}

/// An embedder with the key of `OPENAI_API_KEY` and, where it is set, the base URL of `OPENAI_BASE_URL`.
///
/// # Errors
/// If neither is set: without a base URL a key is needed.
pub fn embedder_from_env(model: impl Into<String>) -> Result<OpenAiEmbedder, ConfigError> {
    HttpEmbedder::from_env(model)
}

impl Sealed for Chat {}

impl Chat {
    /// The wire as such a server speaks it.
    pub(crate) fn of(dialect: Dialect) -> Self {
        Self { dialect }
    }
}

impl Wire for Chat {
    const NAME: &'static str = "openai";
    const DEFAULT_BASE: &'static str = "https://api.openai.com/v1";
    const KEY_VARIABLE: &'static str = "OPENAI_API_KEY";
    const BASE_VARIABLE: &'static str = "OPENAI_BASE_URL";

    fn defaults(&self) -> Map<String, Value> {
        let asks = self.dialect.is_asked_for_usage;
        asks.then(|| ("stream_options".to_owned(), json!({"include_usage": true}))).into_iter().collect()
    }

    fn say(&self, fields: &mut Map<String, Value>, parameter: &Parameter) -> Result<(), &'static str> {
        if self.dialect.lacks.contains(&parameter.name()) {
            return Err("this provider has none");
        }
        let (name, value) = match parameter {
            Parameter::MaxTokens(tokens) => (self.dialect.max_tokens, json!(tokens)),
            Parameter::Temperature(temperature) => ("temperature", json!(temperature)),
            Parameter::TopP(share) => ("top_p", json!(share)),
            Parameter::Seed(seed) => (self.dialect.seed, json!(seed)),
            Parameter::StopSequences(texts) => ("stop", json!(texts)),
            Parameter::ReasoningEffort(effort) => ("reasoning_effort", json!(effort.as_str())),
            Parameter::ServiceTier(tier) => ("service_tier", json!(tier)),
            Parameter::PromptCache(PromptCache::Key(key)) => ("prompt_cache_key", json!(key)),
            // It does so by itself.
            Parameter::PromptCache(PromptCache::Prefix) => return Ok(()),
            Parameter::PromptCache(PromptCache::PrefixForAnHour) => {
                return Err("it has no setting for how long to cache");
            }
            _ => return Err("chat completions have no such setting"),
        };
        fields.insert(name.to_owned(), value);
        Ok(())
    }

    fn tool_choice(fields: &mut Map<String, Value>, choice: &ToolChoice) {
        let choice = match choice {
            ToolChoice::Auto => json!("auto"),
            ToolChoice::None => json!("none"),
            ToolChoice::Required => json!("required"),
            ToolChoice::Tool(name) => json!({"type": "function", "function": {"name": name}}),
        };
        fields.insert("tool_choice".into(), choice);
    }

    fn one_call(fields: &mut Map<String, Value>) {
        fields.insert("parallel_tool_calls".into(), false.into());
    }

    const ANSWER_FIELD: &'static str = "response_format";

    fn takes_schemas(model: &str, _spec: &ModelSpec) -> bool {
        openai_schema::takes_schemas(model)
    }

    fn strict(schema: &Value) -> Option<Value> {
        strict_schema::strict(schema, &openai_schema::STRICT)
    }

    fn ask_schema(fields: &mut Map<String, Value>, answer: &AnswerFormat) {
        let schema = json!({"name": answer.tool, "strict": true, "schema": *answer.schema});
        fields.insert(Self::ANSWER_FIELD.into(), json!({"type": "json_schema", "json_schema": schema}));
    }

    fn provider_tool(_tool: &ProviderTool) -> Result<Value, &'static str> {
        Err("chat completions have no tools of the provider; the Responses wire has them")
    }

    fn open(model: &OpenAi, spec: &ModelSpec) -> Box<dyn Conversation> {
        Box::new(model.conversation(spec))
    }
}

impl HttpModel<Chat> {
    /// Sets how hard the model thinks, in the provider's words: `low`, `medium`, `high`.
    pub fn reasoning_effort(mut self, effort: impl Into<String>) -> Self {
        self.set.change().fields.insert("reasoning_effort".into(), effort.into().into());
        self
    }
    /// Marks the stable prefix for the provider's prompt cache.
    pub fn prompt_cache_key(mut self, key: impl Into<String>) -> Self {
        self.set.change().fields.insert("prompt_cache_key".into(), key.into().into());
        self
    }

    fn prefix(&self, spec: &ModelSpec) -> Vec<u8> {
        let mut fields = self.settings(spec);
        fields.set("model", self.set.wire_name.as_str());
        fields.set("stream", true);
        fields.set_tools(spec, |tool| {
            json!({"type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": tool.parameters}})
        });
        let mut bytes = self.opened(fields, "messages");
        if let Some(system) = &spec.system {
            encode::system(&mut bytes, system);
        }
        bytes
    }

    fn conversation(&self, spec: &ModelSpec) -> HttpConversation<ChatEncoder, ChatReader> {
        HttpConversation {
            prepared: self.prepared(spec, |set| {
                set.endpoint.prepare("chat/completions", Auth::Bearer, HeaderMap::new())
            }),
            output_bytes: spec.output_bytes,
            wire: (Chat::NAME, parts::chat),
            encoder: EncodedHistory::new(
                self.set.prefix(spec, || self.prefix(&self.asked(spec))),
                ChatEncoder::behind(spec.system.as_deref()),
            ),
            reader: ChatReader::default,
        }
    }
}

/// The encoded request body, for tests of the encoding.
#[doc(hidden)]
pub fn encoded(model: &OpenAi, spec: &ModelSpec, histories: &[&History]) -> Vec<Vec<u8>> {
    model.conversation(spec).encoded(histories)
}

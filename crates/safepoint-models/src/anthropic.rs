//! Anthropic messages.
//!
//! On a stop the response is dropped: an HTTP/1 connection closes, an HTTP/2 stream is reset. Input tokens of a cut
//! call are exact (they are named at its start), output is what was named last or a floor.

use http::{HeaderName, HeaderValue};
use safepoint::{
    History,
    model::{Conversation, ModelSpec, Parameter, Parameters, PromptCache, ReasoningEffort},
};
use serde_json::{Map, Value, json};

use crate::{
    config::{Auth, ConfigError, ToolChoice},
    conversation::HttpConversation,
    encoded_history::EncodedHistory,
    parts,
    wired::{HttpModel, Wire, sealed::Sealed},
};

mod encode;
mod own;
pub(crate) mod read;

use encode::MessageEncoder;
use read::MessagesReader;

const VERSION: &str = "2023-06-01";
const DEFAULT_MAX_TOKENS: u64 = 8192;

/// A model that speaks Anthropic messages.
///
/// ```
/// let model = safepoint_models::anthropic::model("claude-sonnet-4-5").max_tokens(4096).cache();
/// ```
pub type Anthropic = HttpModel<Messages>;

/// The wire of Anthropic messages.
#[derive(Clone, Debug, Default)]
pub struct Messages(());

/// A model by name, without a key; add one with [`HttpModel::api_key`] where the server wants it.
pub fn model(name: impl Into<String>) -> Anthropic {
    HttpModel::new(name)
}

/// A model with the key of `ANTHROPIC_API_KEY` and, where it is set, the base URL of `ANTHROPIC_BASE_URL`.
///
/// # Errors
/// If neither is set: without a base URL a key is needed.
pub fn from_env(name: impl Into<String>) -> Result<Anthropic, ConfigError> {
    HttpModel::from_env(name)
}

impl Sealed for Messages {}

impl Wire for Messages {
    const NAME: &'static str = "anthropic";
    const DEFAULT_BASE: &'static str = "https://api.anthropic.com/v1";
    const KEY_VARIABLE: &'static str = "ANTHROPIC_API_KEY";
    const BASE_VARIABLE: &'static str = "ANTHROPIC_BASE_URL";

    fn defaults(&self) -> Map<String, Value> {
        Map::from_iter([("max_tokens".to_owned(), json!(DEFAULT_MAX_TOKENS))])
    }

    fn say(&self, fields: &mut Map<String, Value>, parameter: &Parameter) -> Result<(), &'static str> {
        let (name, value) = match parameter {
            Parameter::MaxTokens(tokens) => ("max_tokens", json!(tokens)),
            Parameter::Temperature(temperature) => ("temperature", json!(temperature)),
            Parameter::TopP(share) => ("top_p", json!(share)),
            Parameter::StopSequences(texts) => ("stop_sequences", json!(texts)),
            Parameter::ReasoningEffort(ReasoningEffort::None | ReasoningEffort::Minimal) => {
                return Err(
                    "its levels are low to max; without one and without `thinking` it does not think",
                );
            }
            Parameter::ReasoningEffort(effort) => {
                fields.entry("output_config").or_insert_with(|| json!({}))["effort"] = effort.as_str().into();
                return Ok(());
            }
            Parameter::ServiceTier(tier) => ("service_tier", json!(tier)),
            // The wire marks it where it stands.
            Parameter::PromptCache(PromptCache::Prefix) => return Ok(()),
            Parameter::PromptCache(PromptCache::Key(_)) => {
                return Err("messages cache the prefix that is marked, and have no key for it");
            }
            _ => return Err("messages have no such setting"),
        };
        fields.insert(name.to_owned(), value);
        Ok(())
    }

    fn tool_choice(fields: &mut Map<String, Value>, choice: &ToolChoice) {
        let choice = match choice {
            ToolChoice::Auto => json!({"type": "auto"}),
            ToolChoice::None => json!({"type": "none"}),
            ToolChoice::Required => json!({"type": "any"}),
            ToolChoice::Tool(name) => json!({"type": "tool", "name": name}),
        };
        fields.insert("tool_choice".into(), choice);
    }

    /// It refuses to be made to call a tool while it thinks.
    fn may_force(fields: &Map<String, Value>) -> bool {
        !fields.contains_key("thinking")
    }

    fn one_call(fields: &mut Map<String, Value>) {
        let choice = fields.entry("tool_choice").or_insert_with(|| json!({"type": "auto"}));
        // The provider refuses it beside `none`.
        if choice["type"] != "none" {
            choice["disable_parallel_tool_use"] = true.into();
        }
    }

    fn open(model: &Anthropic, spec: &ModelSpec) -> Box<dyn Conversation> {
        Box::new(model.conversation(spec))
    }
}

impl HttpModel<Messages> {
    /// Lets the model think, for at most this number of tokens.
    pub fn thinking(mut self, budget_tokens: u64) -> Self {
        self.set
            .change()
            .fields
            .insert("thinking".into(), json!({"type": "enabled", "budget_tokens": budget_tokens}));
        self
    }
    /// Marks instructions, tools and the newest message for the provider's prompt cache.
    pub fn cache(self) -> Self {
        self.parameters(Parameters::new().prompt_cache(PromptCache::Prefix))
    }

    fn prefix(&self, spec: &ModelSpec) -> Vec<u8> {
        let mut fields = self.settings(spec);
        fields.set("model", self.set.wire_name.as_str());
        fields.set("stream", true);
        let is_cached = self.caches_prefix(spec);
        let mark = |mut value: Value| {
            if is_cached && let Some(object) = value.as_object_mut() {
                object.insert("cache_control".into(), json!({"type": "ephemeral"}));
            }
            value
        };
        if let Some(system) = spec.system.as_deref().filter(|system| !system.trim().is_empty()) {
            fields.set("system", vec![mark(json!({"type": "text", "text": system}))]);
        }
        let tools = spec.tools.iter().map(|tool| {
            json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters})
        });
        let mut tools: Vec<Value> = tools.collect();
        if let Some(last) = tools.pop() {
            tools.push(mark(last));
            fields.set("tools", tools);
        }
        self.opened(fields, "messages")
    }

    fn conversation(&self, spec: &ModelSpec) -> HttpConversation<MessageEncoder, MessagesReader> {
        HttpConversation {
            prepared: self.prepared(spec, |set| {
                let version =
                    [(HeaderName::from_static("anthropic-version"), HeaderValue::from_static(VERSION))];
                set.endpoint.prepare("messages", Auth::ApiKey, version.into_iter().collect())
            }),
            output_bytes: spec.output_bytes,
            wire: (Messages::NAME, parts::anthropic),
            encoder: EncodedHistory::new(
                self.set.prefix(spec, || self.prefix(spec)),
                MessageEncoder::new(self.caches_prefix(spec)),
            ),
            reader: MessagesReader::default,
        }
    }
}

/// The encoded request body, for tests of the encoding.
#[doc(hidden)]
pub fn encoded(model: &Anthropic, spec: &ModelSpec, histories: &[&History]) -> Vec<Vec<u8>> {
    model.conversation(spec).encoded(histories)
}

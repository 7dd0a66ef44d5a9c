//! Anthropic messages.
//!
//! On a stop the response is dropped: an HTTP/1 connection closes, an HTTP/2 stream is reset. Input tokens of a cut
//! call are exact (they are named at its start), output is what was named last or a floor.

use safepoint::{
    History, Model,
    model::{Conversation, DeltaStream, ModelSpec},
};
use secrecy::SecretString;
use serde_json::{Map, Value, json};

use crate::{
    config::{Auth, ConfigError, Endpoint, Fields, ToolChoice},
    http::{Patience, exchange},
    outgoing::Outgoing,
};

mod encode;
mod read;

use encode::Encoder;

const DEFAULT_BASE: &str = "https://api.anthropic.com/v1";
const VERSION: &str = "2023-06-01";
const DEFAULT_MAX_TOKENS: u64 = 8192;

/// A model that speaks Anthropic messages.
///
/// ```
/// let model = safepoint_models::anthropic::model("claude-sonnet-4-5").max_tokens(4096).cache();
/// ```
#[derive(Clone, Debug)]
pub struct Anthropic {
    wire_name: String,
    name: String,
    endpoint: Endpoint,
    fields: Fields,
    extra: Map<String, Value>,
    caching: Caching,
}

/// Whether the stable prefix is marked for the provider's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caching {
    Off,
    On,
}

/// A model by name, without a key; add one with [`Anthropic::api_key`] where the server wants it.
#[must_use]
pub fn model(name: impl Into<String>) -> Anthropic {
    let wire_name = name.into();
    let name = format!("anthropic:{wire_name}");
    let endpoint = Endpoint::new(DEFAULT_BASE);
    let mut fields = Fields::default();
    fields.set("max_tokens", DEFAULT_MAX_TOKENS);
    Anthropic { wire_name, name, endpoint, fields, extra: Map::new(), caching: Caching::Off }
}

/// A model with the key of `ANTHROPIC_API_KEY` and, where it is set, the base URL of `ANTHROPIC_BASE_URL`.
///
/// # Errors
/// If neither is set: without a base URL a key is needed.
pub fn from_env(name: impl Into<String>) -> Result<Anthropic, ConfigError> {
    let key = std::env::var("ANTHROPIC_API_KEY").ok().filter(|key| !key.is_empty());
    let base = std::env::var("ANTHROPIC_BASE_URL").ok().filter(|base| !base.is_empty());
    if key.is_none() && base.is_none() {
        return Err(ConfigError::missing_key("ANTHROPIC_API_KEY"));
    }
    let mut model = model(name);
    if let Some(base) = base {
        model = model.base_url(base);
    }
    if let Some(key) = key {
        model = model.api_key(SecretString::from(key));
    }
    Ok(model)
}

impl Anthropic {
    /// The part of the address before `/messages`; it includes `/v1`.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.endpoint.base_url = url.into();
        self
    }
    /// Sets the key.
    #[must_use]
    pub fn api_key(mut self, key: SecretString) -> Self {
        self.endpoint.key = Some(key);
        self
    }
    /// Adds a header to each request.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.endpoint.headers.push((name.into(), value.into()));
        self
    }
    /// Sets how long to wait and how often to try.
    #[must_use]
    pub fn patience(mut self, patience: Patience) -> Self {
        self.endpoint.patience = patience;
        self
    }
    /// Sets the temperature.
    #[must_use]
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.fields.set("temperature", temperature);
        self
    }
    /// Sets the most tokens of one reply. Default 8,192: this wire wants a figure.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.fields.set("max_tokens", tokens);
        self
    }
    /// Lets the model think, for at most so many tokens.
    #[must_use]
    pub fn thinking(mut self, budget_tokens: u64) -> Self {
        self.fields.set("thinking", json!({"type": "enabled", "budget_tokens": budget_tokens}));
        self
    }
    /// Sets which tool it must use.
    #[must_use]
    pub fn tool_choice(mut self, choice: &ToolChoice) -> Self {
        let choice = match choice {
            ToolChoice::Auto => json!({"type": "auto"}),
            ToolChoice::None => json!({"type": "none"}),
            ToolChoice::Required => json!({"type": "any"}),
            ToolChoice::Tool(name) => json!({"type": "tool", "name": name}),
        };
        self.fields.set("tool_choice", choice);
        self
    }
    /// Marks instructions, tools and the newest message for the provider's prompt cache.
    #[must_use]
    pub fn cache(mut self) -> Self {
        self.caching = Caching::On;
        self
    }
    /// Adds a field to each request as it is, over what is set otherwise.
    #[must_use]
    pub fn extra(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra.insert(name.into(), value.into());
        self
    }

    fn prefix(&self, spec: &ModelSpec) -> Vec<u8> {
        let mut fields = self.fields.clone();
        fields.set("model", self.wire_name.as_str());
        fields.set("stream", true);
        let mark = |mut value: Value| {
            if self.caching == Caching::On
                && let Some(object) = value.as_object_mut()
            {
                object.insert("cache_control".into(), json!({"type": "ephemeral"}));
            }
            value
        };
        if let Some(system) = spec.system.as_deref().filter(|system| !system.trim().is_empty()) {
            fields.set("system", vec![mark(json!({"type": "text", "text": system}))]);
        }
        let mut tools: Vec<Value> = spec
            .tools
            .iter()
            .map(|tool| {
                json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters})
            })
            .collect();
        if let Some(last) = tools.pop() {
            tools.push(mark(last));
            fields.set("tools", tools);
        }
        fields.merge(&self.extra);
        let mut bytes = fields.open();
        bytes.extend_from_slice(b",\"messages\":[");
        bytes
    }

    fn talk(&self, spec: &ModelSpec) -> Talk {
        let mut endpoint = self.endpoint.clone();
        endpoint.headers.insert(0, ("anthropic-version".into(), VERSION.into()));
        Talk { endpoint, encoder: Encoder::new(self.prefix(spec), self.caching == Caching::On) }
    }
}

impl Model for Anthropic {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&self, spec: ModelSpec) -> Box<dyn Conversation> {
        Box::new(self.talk(&spec))
    }
}

/// A conversation: the encoded messages so far.
struct Talk {
    endpoint: Endpoint,
    encoder: Encoder,
}

impl Conversation for Talk {
    fn stream(&mut self, history: &History) -> DeltaStream {
        let body = self.encoder.encode(history);
        let outgoing = self.endpoint.prepare("messages", Auth::ApiKey);
        exchange(outgoing.map(|outgoing| Outgoing { body, ..outgoing }), read::Reader::default())
    }
}

/// The encoded request body, for tests of the encoding.
#[doc(hidden)]
pub fn encoded(model: &Anthropic, spec: &ModelSpec, histories: &[&History]) -> Vec<Vec<u8>> {
    let mut talk = model.talk(spec);
    histories.iter().map(|history| talk.encoder.encode(history).into_bytes()).collect()
}

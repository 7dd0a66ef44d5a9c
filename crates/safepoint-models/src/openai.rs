//! OpenAI chat completions, and every server that speaks them.
//!
//! On a stop the response is dropped: an HTTP/1 connection closes, an HTTP/2 stream is reset. The provider names no
//! usage of a cut stream, so the figures of a cut call are a floor, marked estimated.

use safepoint::{
    History, Model,
    model::{Conversation, DeltaStream, ModelSpec},
};
use secrecy::SecretString;
use serde_json::{Map, Value, json};

use crate::{
    body::Growing,
    config::{Auth, ConfigError, Endpoint, Fields, ToolChoice},
    cursor::{Cursor, Fresh},
    http::{Patience, exchange},
};

mod encode;
mod read;

const DEFAULT_BASE: &str = "https://api.openai.com/v1";

/// A model that speaks OpenAI chat completions.
///
/// ```
/// let model = safepoint_models::openai::model("gpt-5.2").base_url("http://127.0.0.1:8080/v1").temperature(0.2);
/// ```
#[derive(Clone, Debug)]
pub struct OpenAi {
    wire_name: String,
    name: String,
    endpoint: Endpoint,
    fields: Fields,
    extra: Map<String, Value>,
}

/// A model by name, without a key; add one with [`OpenAi::api_key`] where the server wants it.
#[must_use]
pub fn model(name: impl Into<String>) -> OpenAi {
    let wire_name = name.into();
    let name = format!("openai:{wire_name}");
    OpenAi {
        name,
        wire_name,
        endpoint: Endpoint::new(DEFAULT_BASE),
        fields: Fields::default(),
        extra: Map::new(),
    }
}

/// A model with the key of `OPENAI_API_KEY` and, where it is set, the base URL of `OPENAI_BASE_URL`.
///
/// # Errors
/// If neither is set: without a base URL a key is needed.
pub fn from_env(name: impl Into<String>) -> Result<OpenAi, ConfigError> {
    let key = std::env::var("OPENAI_API_KEY").ok().filter(|key| !key.is_empty());
    let base = std::env::var("OPENAI_BASE_URL").ok().filter(|base| !base.is_empty());
    let mut model = model(name);
    match (key, base) {
        (None, None) => return Err(ConfigError::missing_key("OPENAI_API_KEY")),
        (key, base) => {
            if let Some(base) = base {
                model = model.base_url(base);
            }
            if let Some(key) = key {
                model = model.api_key(SecretString::from(key));
            }
        }
    }
    Ok(model)
}

impl OpenAi {
    /// The part of the address before `/chat/completions`; it includes `/v1`.
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
    /// Sets the most tokens of one reply. Sent as `max_completion_tokens`; for servers that know only the older
    /// `max_tokens`, use [`OpenAi::extra`].
    #[must_use]
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.fields.set("max_completion_tokens", tokens);
        self
    }
    /// Sets how hard the model thinks, in the provider's words: `low`, `medium`, `high`.
    #[must_use]
    pub fn reasoning_effort(mut self, effort: impl Into<String>) -> Self {
        self.fields.set("reasoning_effort", effort.into());
        self
    }
    /// Sets which tool it must use.
    #[must_use]
    pub fn tool_choice(mut self, choice: &ToolChoice) -> Self {
        let choice = match choice {
            ToolChoice::Auto => json!("auto"),
            ToolChoice::None => json!("none"),
            ToolChoice::Required => json!("required"),
            ToolChoice::Tool(name) => json!({"type": "function", "function": {"name": name}}),
        };
        self.fields.set("tool_choice", choice);
        self
    }
    /// Marks the stable prefix for the provider's prompt cache.
    #[must_use]
    pub fn prompt_cache_key(mut self, key: impl Into<String>) -> Self {
        self.fields.set("prompt_cache_key", key.into());
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
        fields.set("stream_options", json!({"include_usage": true}));
        let tools: Vec<Value> = spec
            .tools
            .iter()
            .map(|tool| {
                json!({"type": "function", "function": {
                    "name": tool.name, "description": tool.description, "parameters": tool.parameters}})
            })
            .collect();
        if !tools.is_empty() {
            fields.set("tools", tools);
        }
        fields.merge(&self.extra);
        let mut bytes = fields.open();
        bytes.extend_from_slice(b",\"messages\":[");
        if let Some(system) = &spec.system {
            encode::system(&mut bytes, system);
        }
        bytes
    }
}

impl Model for OpenAi {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&self, spec: ModelSpec) -> Box<dyn Conversation> {
        Box::new(Talk::new(self, &spec))
    }
}

fn grown(prefix: Vec<u8>) -> Growing {
    let mut body = Growing::default();
    body.push(prefix);
    body
}

/// A conversation: the encoded messages so far.
struct Talk {
    endpoint: Endpoint,
    prefix: Vec<u8>,
    body: Growing,
    /// Whether a message stands before the next one, so that a comma must.
    started: bool,
    cursor: Cursor,
}

impl Talk {
    fn new(model: &OpenAi, spec: &ModelSpec) -> Self {
        let prefix = model.prefix(spec);
        let started = starts_with_a_message(&prefix);
        let (endpoint, body) = (model.endpoint.clone(), grown(prefix.clone()));
        Self { endpoint, prefix, body, started, cursor: Cursor::default() }
    }

    fn encode(&mut self, history: &History) -> crate::body::Parts {
        let entries = match self.cursor.advance(history) {
            Fresh::Rest(entries) => entries,
            Fresh::All(entries) => {
                self.body = grown(self.prefix.clone());
                self.started = starts_with_a_message(&self.prefix);
                entries
            }
        };
        let mut bytes = Vec::new();
        for entry in entries {
            self.started = encode::entry(&mut bytes, entry, self.started);
        }
        self.body.push(bytes);
        self.body.with_tail(b"]}".to_vec())
    }
}

impl Conversation for Talk {
    fn stream(&mut self, history: &History) -> DeltaStream {
        let body = self.encode(history);
        let outgoing = self.endpoint.prepare("chat/completions", Auth::Bearer);
        exchange(
            outgoing.map(|outgoing| crate::outgoing::Outgoing { body, ..outgoing }),
            read::Reader::default(),
        )
    }
}

/// The encoded request body, for tests of the encoding.
#[doc(hidden)]
pub fn encoded(model: &OpenAi, spec: &ModelSpec, histories: &[&History]) -> Vec<Vec<u8>> {
    let mut talk = Talk::new(model, spec);
    histories.iter().map(|history| talk.encode(history).into_bytes()).collect()
}

/// Whether the prefix ends behind a message (the instructions), not at the list's bracket.
fn starts_with_a_message(prefix: &[u8]) -> bool {
    prefix.last() == Some(&b'}')
}

//! Gemini's `generateContent`, streamed as server-sent events.
//!
//! On a stop the response is dropped: an HTTP/1 connection closes, an HTTP/2 stream is reset. Usage is cumulative on
//! the chunks, so the figures of a cut call are what the provider had named last, or a floor where more had arrived.

use safepoint::{
    History, Model,
    model::{Conversation, DeltaStream, ModelSpec},
};
use secrecy::SecretString;
use serde_json::{Map, Value, json};

use crate::{
    config::{Auth, ConfigError, Endpoint, Fields, ToolChoice},
    grown::Grown,
    http::{Patience, exchange},
    outgoing::Outgoing,
};

mod encode;
mod read;

use encode::{Contents, Unsigned};

const DEFAULT_BASE: &str = "https://generativelanguage.googleapis.com/v1beta";

/// A model that speaks Gemini's `generateContent`.
///
/// ```
/// let model = safepoint_models::gemini::model("gemini-3-pro-preview").max_tokens(4096).thinking_level("low");
/// ```
#[derive(Clone, Debug)]
pub struct Gemini {
    wire_name: String,
    name: String,
    endpoint: Endpoint,
    fields: Fields,
    generation: Map<String, Value>,
    thinking: Map<String, Value>,
    extra: Map<String, Value>,
}

/// A model by name, without a key; add one with [`Gemini::api_key`] where the server wants it.
#[must_use]
pub fn model(name: impl Into<String>) -> Gemini {
    let given = name.into();
    let wire_name = given.strip_prefix("models/").unwrap_or(&given).to_owned();
    Gemini {
        name: format!("gemini:{wire_name}"),
        wire_name,
        endpoint: Endpoint::new(DEFAULT_BASE),
        fields: Fields::default(),
        generation: Map::new(),
        thinking: Map::new(),
        extra: Map::new(),
    }
}

/// A model with the key of `GEMINI_API_KEY` and, where it is set, the base URL of `GEMINI_BASE_URL`.
///
/// # Errors
/// If neither is set: without a base URL a key is needed.
pub fn from_env(name: impl Into<String>) -> Result<Gemini, ConfigError> {
    let endpoint = Endpoint::from_env(DEFAULT_BASE, "GEMINI_API_KEY", "GEMINI_BASE_URL")?;
    Ok(Gemini { endpoint, ..model(name) })
}

impl Gemini {
    /// The part of the address before `/models`; it includes `/v1beta`.
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
        self.generation.insert("temperature".into(), temperature.into());
        self
    }
    /// Sets the most tokens of one reply, thoughts included.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.generation.insert("maxOutputTokens".into(), tokens.into());
        self
    }
    /// Sets how hard the model thinks, in the provider's words (`low`, `high`): for models from Gemini 3 on.
    #[must_use]
    pub fn thinking_level(mut self, level: impl Into<String>) -> Self {
        self.thinking.insert("thinkingLevel".into(), level.into().into());
        self
    }
    /// Lets the model think for at most so many tokens: for models before Gemini 3.
    #[must_use]
    pub fn thinking_budget(mut self, tokens: u64) -> Self {
        self.thinking.insert("thinkingBudget".into(), tokens.into());
        self
    }
    /// Asks for a summary of the thoughts.
    #[must_use]
    pub fn thoughts(mut self) -> Self {
        self.thinking.insert("includeThoughts".into(), true.into());
        self
    }
    /// Sets which tool it must use.
    #[must_use]
    pub fn tool_choice(mut self, choice: &ToolChoice) -> Self {
        let config = match choice {
            ToolChoice::Auto => json!({"mode": "AUTO"}),
            ToolChoice::None => json!({"mode": "NONE"}),
            ToolChoice::Required => json!({"mode": "ANY"}),
            ToolChoice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
        };
        self.fields.set("toolConfig", json!({ "functionCallingConfig": config }));
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
        if let Some(system) = spec.system.as_deref().filter(|system| !system.trim().is_empty()) {
            fields.set("systemInstruction", json!({"parts": [{"text": system}]}));
        }
        let mut generation = self.generation.clone();
        if !self.thinking.is_empty() {
            generation.insert("thinkingConfig".into(), self.thinking.clone().into());
        }
        if !generation.is_empty() {
            fields.set("generationConfig", generation);
        }
        let tools: Vec<Value> = spec
            .tools
            .iter()
            .map(|tool| {
                json!({"name": tool.name, "description": tool.description,
                    "parametersJsonSchema": tool.parameters})
            })
            .collect();
        if !tools.is_empty() {
            fields.set("tools", json!([{ "functionDeclarations": tools }]));
        }
        fields.merge(&self.extra);
        let mut bytes = fields.open();
        bytes.extend_from_slice(if bytes.len() > 1 { b",\"contents\":[" } else { b"\"contents\":[" });
        bytes
    }

    fn talk(&self, spec: &ModelSpec) -> Talk {
        let empty = Contents::new(Unsigned::of(&self.wire_name));
        let path = format!("models/{}:streamGenerateContent?alt=sse", self.wire_name);
        Talk { endpoint: self.endpoint.clone(), path, encoder: Grown::new(self.prefix(spec), empty) }
    }
}

impl Model for Gemini {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&self, spec: ModelSpec) -> Box<dyn Conversation> {
        Box::new(self.talk(&spec))
    }
}

/// A conversation: the encoded contents so far.
struct Talk {
    endpoint: Endpoint,
    path: String,
    encoder: Grown<Contents>,
}

impl Conversation for Talk {
    fn stream(&mut self, history: &History) -> DeltaStream {
        let body = self.encoder.encode(history);
        let outgoing = self.endpoint.prepare(&self.path, Auth::GoogKey);
        exchange(outgoing.map(|outgoing| Outgoing { body, ..outgoing }), read::Reader::default())
    }
}

/// The encoded request body, for tests of the encoding.
#[doc(hidden)]
pub fn encoded(model: &Gemini, spec: &ModelSpec, histories: &[&History]) -> Vec<Vec<u8>> {
    let mut talk = model.talk(spec);
    histories.iter().map(|history| talk.encoder.encode(history).into_bytes()).collect()
}

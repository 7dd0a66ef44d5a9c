//! OpenAI Responses, stateless: each request carries the whole history, and encrypted reasoning goes back with it.
//!
//! On a stop the response is dropped: an HTTP/1 connection closes, an HTTP/2 stream is reset, and the provider stops
//! generating. A response in the [background](Responses::background) does not end with its connection: a stop also
//! sends its cancel, and a connection that breaks is taken up again where it broke. No usage is named of a cut stream,
//! so the figures of a cut call are a floor, marked estimated.

use futures_util::future::BoxFuture;
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
    outgoing::{self, Outgoing},
};

mod encode;
mod handle;
mod read;

use encode::Items;
use handle::{Handle, Keeps};

const DEFAULT_BASE: &str = "https://api.openai.com/v1";

/// A model that speaks OpenAI Responses.
///
/// ```
/// let model = safepoint_models::responses::model("gpt-5.2").reasoning_effort("low").background();
/// ```
#[derive(Clone, Debug)]
pub struct Responses {
    wire_name: String,
    name: String,
    endpoint: Endpoint,
    fields: Fields,
    reasoning: Map<String, Value>,
    extra: Map<String, Value>,
    keeps: Keeps,
}

/// A model by name, without a key; add one with [`Responses::api_key`] where the server wants it.
#[must_use]
pub fn model(name: impl Into<String>) -> Responses {
    let wire_name = name.into();
    let name = format!("responses:{wire_name}");
    let mut fields = Fields::default();
    fields.set("store", false);
    fields.set("include", json!(["reasoning.encrypted_content"]));
    Responses {
        wire_name,
        name,
        endpoint: Endpoint::new(DEFAULT_BASE),
        fields,
        reasoning: Map::new(),
        extra: Map::new(),
        keeps: Keeps::Nothing,
    }
}

/// A model with the key of `OPENAI_API_KEY` and, where it is set, the base URL of `OPENAI_BASE_URL`.
///
/// # Errors
/// If neither is set: without a base URL a key is needed.
pub fn from_env(name: impl Into<String>) -> Result<Responses, ConfigError> {
    let endpoint = Endpoint::from_env(DEFAULT_BASE, "OPENAI_API_KEY", "OPENAI_BASE_URL")?;
    Ok(Responses { endpoint, ..model(name) })
}

impl Responses {
    /// The part of the address before `/responses`; it includes `/v1`.
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
    /// Sets the most tokens of one reply, reasoning included.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.fields.set("max_output_tokens", tokens);
        self
    }
    /// Sets how hard the model thinks, in the provider's words: `low`, `medium`, `high`.
    #[must_use]
    pub fn reasoning_effort(mut self, effort: impl Into<String>) -> Self {
        self.reasoning.insert("effort".into(), effort.into().into());
        self
    }
    /// Asks for a summary of the reasoning, in the provider's words: `auto`, `concise`, `detailed`.
    #[must_use]
    pub fn reasoning_summary(mut self, summary: impl Into<String>) -> Self {
        self.reasoning.insert("summary".into(), summary.into().into());
        self
    }
    /// Sets which tool it must use.
    #[must_use]
    pub fn tool_choice(mut self, choice: &ToolChoice) -> Self {
        let choice = match choice {
            ToolChoice::Auto => json!("auto"),
            ToolChoice::None => json!("none"),
            ToolChoice::Required => json!("required"),
            ToolChoice::Tool(name) => json!({"type": "function", "name": name}),
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
    /// Lets the provider run each response in the background: it outlives its connection, so a connection that breaks
    /// is taken up again at the next event, and a stop sends the response's cancel. The provider stores the response.
    #[must_use]
    pub fn background(mut self) -> Self {
        self.fields.set("background", true);
        self.fields.set("store", true);
        self.keeps = Keeps::Running;
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
        if let Some(system) = &spec.system {
            fields.set("instructions", &**system);
        }
        if !self.reasoning.is_empty() {
            fields.set("reasoning", self.reasoning.clone());
        }
        let tools: Vec<Value> = spec
            .tools
            .iter()
            .map(|tool| {
                json!({"type": "function", "name": tool.name, "description": tool.description,
                    "parameters": tool.parameters, "strict": false})
            })
            .collect();
        if !tools.is_empty() {
            fields.set("tools", tools);
        }
        fields.merge(&self.extra);
        let mut bytes = fields.open();
        bytes.extend_from_slice(b",\"input\":[");
        bytes
    }

    fn talk(&self, spec: &ModelSpec) -> Talk {
        let (endpoint, keeps) = (self.endpoint.clone(), self.keeps);
        Talk {
            endpoint,
            keeps,
            latest: Handle::default(),
            encoder: Grown::new(self.prefix(spec), Items::default()),
        }
    }
}

impl Model for Responses {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&self, spec: ModelSpec) -> Box<dyn Conversation> {
        Box::new(self.talk(&spec))
    }
}

/// A conversation: the encoded items so far, and the response that is under way.
struct Talk {
    endpoint: Endpoint,
    keeps: Keeps,
    latest: Handle,
    encoder: Grown<Items>,
}

impl Talk {
    fn prepare(&self) -> Result<Outgoing, safepoint::model::ModelError> {
        self.endpoint.prepare("responses", Auth::Bearer)
    }
}

impl Conversation for Talk {
    fn stream(&mut self, history: &History) -> DeltaStream {
        let body = self.encoder.encode(history);
        self.latest = Handle::new(self.keeps);
        let reader = read::Reader::new(self.latest.clone());
        exchange(self.prepare().map(|outgoing| Outgoing { body, ..outgoing }), reader)
    }

    /// A response in the background is called off at its own address.
    fn part(&mut self) -> Option<BoxFuture<'static, ()>> {
        let id = self.latest.take()?;
        let outgoing = self.prepare().ok()?;
        Some(Box::pin(outgoing::tell(outgoing, format!("/{id}/cancel"))))
    }
}

/// The encoded request body, for tests of the encoding.
#[doc(hidden)]
pub fn encoded(model: &Responses, spec: &ModelSpec, histories: &[&History]) -> Vec<Vec<u8>> {
    let mut talk = model.talk(spec);
    histories.iter().map(|history| talk.encoder.encode(history).into_bytes()).collect()
}

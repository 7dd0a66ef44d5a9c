//! A model behind HTTP: the settings that every wire has, in one place; a wire adds its own.

use std::fmt;

use safepoint::{
    Model,
    model::{AnswerFormat, Conversation, ModelError, ModelSpec, ProviderTool},
};
use secrecy::SecretString;
use serde_json::{Map, Value};

use crate::{
    config::{ConfigError, Endpoint, Fields, ToolChoice},
    http::Patience,
    made::Settled,
};

pub(crate) mod answers;
mod provider_tools;

use answers::TypedAnswers;

/// A model that is reached over HTTP, on the wire `W`.
#[derive(Clone, Debug)]
#[must_use = "a setting returns the changed value"]
pub struct HttpModel<W> {
    name: String,
    pub(crate) set: Settled<Set<W>>,
}

/// What is set of a model.
#[derive(Clone, Debug)]
pub(crate) struct Set<W> {
    /// The model's name as the provider knows it.
    pub(crate) wire_name: String,
    pub(crate) endpoint: Endpoint,
    pub(crate) fields: Map<String, Value>,
    extra: Map<String, Value>,
    choice: Option<ToolChoice>,
    answers: TypedAnswers,
    /// Whether a reply may ask for one call only.
    is_single_call: bool,
    pub(crate) wire: W,
}

/// A wire format: what differs between models behind HTTP. Sealed: the wires are those of this crate.
pub trait Wire: sealed::Sealed + Clone + Default + fmt::Debug + Send + Sync + Sized + 'static {
    /// Its name, as in `openai:gpt-5.2`.
    const NAME: &'static str;
    /// The part of the provider's address before the wire's own path.
    const DEFAULT_BASE: &'static str;
    /// The variable that holds the key.
    const KEY_VARIABLE: &'static str;
    /// The variable that holds another base URL.
    const BASE_VARIABLE: &'static str;

    /// The model's name as the provider knows it.
    #[doc(hidden)]
    fn wire_name(given: String) -> String {
        given
    }

    /// The fields that are set from the start.
    #[doc(hidden)]
    fn defaults() -> Map<String, Value>;

    /// Says the temperature.
    #[doc(hidden)]
    fn temperature(fields: &mut Map<String, Value>, temperature: f64) {
        fields.insert("temperature".into(), temperature.into());
    }

    /// Says the most tokens of a reply.
    #[doc(hidden)]
    fn max_tokens(fields: &mut Map<String, Value>, tokens: u64);

    /// Says which tool must be used.
    #[doc(hidden)]
    fn tool_choice(fields: &mut Map<String, Value>, choice: &ToolChoice);

    /// Whether the provider takes a choice that forces a tool, beside these settings.
    #[doc(hidden)]
    fn may_force(_fields: &Map<String, Value>) -> bool {
        true
    }

    /// Says that a reply may ask for one call only.
    #[doc(hidden)]
    fn one_call(fields: &mut Map<String, Value>);

    /// The field that says which form the answer has.
    #[doc(hidden)]
    const ANSWER_FIELD: &'static str;

    /// Whether a model of this name, at the provider's own address, is known to take a schema beside all else of the spec.
    #[doc(hidden)]
    fn takes_schemas(model: &str, spec: &ModelSpec) -> bool;

    /// A schema as the provider takes it, if it can be said so.
    #[doc(hidden)]
    fn strict(schema: &Value) -> Option<Value>;

    /// Asks for an answer of this form.
    #[doc(hidden)]
    fn ask_schema(fields: &mut Map<String, Value>, answer: &AnswerFormat);

    /// A tool of the provider's own, as the wire declares it.
    ///
    /// # Errors
    /// Why it cannot.
    #[doc(hidden)]
    fn provider_tool(tool: &ProviderTool) -> Result<Value, &'static str>;

    /// Whether a model of this name takes the provider's tools beside all else of the spec.
    ///
    /// # Errors
    /// Why it does not.
    #[doc(hidden)]
    fn may_combine(_model: &str, _spec: &ModelSpec) -> Result<(), &'static str> {
        Ok(())
    }

    /// Begins a conversation.
    #[doc(hidden)]
    fn open(model: &HttpModel<Self>, spec: &ModelSpec) -> Box<dyn Conversation>;
}

pub(crate) mod sealed {
    /// Keeps the list of wires this crate's own.
    #[expect(unnameable_types, reason = "code outside must not name it")]
    pub trait Sealed {}
}

impl<W: Wire> HttpModel<W> {
    /// A model by name, without a key; add one with [`HttpModel::api_key`] where the server wants it.
    pub fn new(name: impl Into<String>) -> Self {
        let wire_name = W::wire_name(name.into());
        let name = format!("{}:{wire_name}", W::NAME);
        let set = Set {
            wire_name,
            endpoint: Endpoint::new(W::DEFAULT_BASE),
            fields: W::defaults(),
            extra: Map::new(),
            choice: None,
            answers: TypedAnswers::default(),
            is_single_call: false,
            wire: W::default(),
        };
        Self { name, set: Settled::new(set) }
    }

    /// A model with the key and, where it is set, the base URL of the wire's variables.
    ///
    /// # Errors
    /// If neither is set: without a base URL a key is needed.
    pub fn from_env(name: impl Into<String>) -> Result<Self, ConfigError> {
        let endpoint = Endpoint::from_env(W::DEFAULT_BASE, W::KEY_VARIABLE, W::BASE_VARIABLE)?;
        let mut model = Self::new(name);
        model.set.change().endpoint = endpoint;
        Ok(model)
    }

    /// The part of the address before the wire's own path (`/chat/completions`, `/responses`, `/messages`, `/models`); it
    /// includes `/v1`, or `/v1beta`.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.set.change().endpoint.base_url = url.into();
        self
    }

    /// Sets the key.
    pub fn api_key(mut self, key: SecretString) -> Self {
        self.set.change().endpoint.key = Some(key);
        self
    }

    /// Adds a header to each request.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.set.change().endpoint.headers.push((name.into(), value.into()));
        self
    }

    /// Sets how long to wait and how often to try.
    pub fn patience(mut self, patience: Patience) -> Self {
        self.set.change().endpoint.patience = patience;
        self
    }

    /// Sets the temperature.
    pub fn temperature(mut self, temperature: f64) -> Self {
        W::temperature(&mut self.set.change().fields, temperature);
        self
    }

    /// Sets the most tokens of one reply, reasoning included: `max_completion_tokens` of chat completions (for servers
    /// that know only the older `max_tokens`, use [`HttpModel::extra`]), `max_output_tokens` of Responses,
    /// `maxOutputTokens` of Gemini, `max_tokens` of messages, where it is 8,192 unless set: that wire wants a figure.
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        W::max_tokens(&mut self.set.change().fields, tokens);
        self
    }

    /// Sets which tool it must use.
    pub fn tool_choice(mut self, choice: &ToolChoice) -> Self {
        W::tool_choice(&mut self.set.change().fields, choice);
        self.set.change().choice = Some(choice.clone());
        self
    }

    /// Lets a reply ask for one call only: `parallel_tool_calls` of chat completions and Responses,
    /// `disable_parallel_tool_use` of messages. Gemini has no such setting, and gets none. How many calls run at once
    /// is another matter: see [`Limits::parallel_calls`](safepoint::Limits).
    pub fn one_call_at_a_time(mut self) -> Self {
        self.set.change().is_single_call = true;
        self
    }

    /// Adds a field to each request as it is, over what is set otherwise. Only `tools` is added to what is there: the
    /// agent's own tools stay, and the provider's (such as a search) stand behind them.
    pub fn extra(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.set.change().extra.insert(name.into(), value.into());
        self
    }

    /// What is set, to which the wire adds what is of this conversation.
    pub(crate) fn settings(&self, spec: &ModelSpec) -> Fields {
        let mut fields = self.set.fields.clone();
        if !spec.tools.is_empty() {
            if let (None, Some(choice), true) = (&self.set.choice, &spec.choice, W::may_force(&fields)) {
                W::tool_choice(&mut fields, choice);
            }
            if self.set.is_single_call {
                W::one_call(&mut fields);
            }
        }
        if let Some(answer) = &spec.answer {
            W::ask_schema(&mut fields, answer);
        }
        Fields(fields)
    }

    /// The body up to its list of messages, which comes last so that it can grow: what is extra over these fields.
    pub(crate) fn opened(&self, mut fields: Fields, list: &str) -> Vec<u8> {
        fields.merge(&self.set.extra);
        let mut bytes = fields.open();
        let comma = if bytes.len() > 1 { "," } else { "" };
        bytes.extend_from_slice(format!("{comma}\"{list}\":[").as_bytes());
        bytes
    }
}

impl<W: Wire> Model for HttpModel<W> {
    fn name(&self) -> &str {
        &self.name
    }

    fn accepts(&self, spec: &ModelSpec) -> Result<(), ModelError> {
        self.fits(spec)
    }

    fn open(&self, spec: ModelSpec) -> Box<dyn Conversation> {
        W::open(self, &spec)
    }
}

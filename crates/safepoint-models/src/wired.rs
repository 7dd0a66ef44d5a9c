//! A model behind HTTP: the settings that every wire has, in one place; a wire adds its own.

use std::{borrow::Cow, fmt, sync::Arc};

use safepoint::{
    Model,
    model::{
        AnswerFormat, Conversation, ModelError, ModelErrorKind, ModelSpec, Parameter, Parameters,
        PromptCache, ProviderTool,
    },
};
use secrecy::SecretString;
use serde_json::{Map, Value};

use crate::{
    config::{ConfigError, Endpoint, Fields, ToolChoice},
    http::{Patience, outgoing::Prepared},
    made::Settled,
    transport::Transport,
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
    /// The wire's own fields.
    pub(crate) fields: Map<String, Value>,
    parameters: Parameters,
    choice: Option<ToolChoice>,
    answers: TypedAnswers,
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
    fn defaults(&self) -> Map<String, Value>;

    /// Says a parameter in the wire's own field.
    ///
    /// # Errors
    /// Why the wire has no form for it.
    #[doc(hidden)]
    fn say(&self, fields: &mut Map<String, Value>, parameter: &Parameter) -> Result<(), &'static str>;

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
        Self::of((W::NAME, name.into()), Endpoint::new(W::DEFAULT_BASE), W::default())
    }

    /// A model of a provider by name.
    pub(crate) fn of((provider, name): (&str, String), endpoint: Endpoint, wire: W) -> Self {
        let wire_name = W::wire_name(name);
        let name = format!("{provider}:{wire_name}");
        let (fields, parameters, answers) = (wire.defaults(), Parameters::new(), TypedAnswers::default());
        let set = Set { wire_name, endpoint, fields, parameters, choice: None, answers, wire };
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

    /// Sets how requests travel: proxy, trust, times.
    pub fn transport(mut self, transport: Transport) -> Self {
        self.set.change().endpoint.transport = Some(transport);
        self
    }

    /// Sets parameters, over those that were set before. One that the wire has no form for is an error when an agent is
    /// built ([`Model::check`]).
    ///
    /// ```
    /// use safepoint::model::{Parameters, ReasoningEffort};
    /// let parameters = Parameters::new().reasoning_effort(ReasoningEffort::Low).service_tier("flex");
    /// let model = safepoint_models::responses::model("gpt-5.2").parameters(parameters);
    /// ```
    pub fn parameters(mut self, parameters: Parameters) -> Self {
        let set = self.set.change();
        set.parameters = set.parameters.with(&parameters);
        self
    }

    /// Sets the temperature.
    pub fn temperature(self, temperature: f64) -> Self {
        self.parameters(Parameters::new().temperature(temperature))
    }

    /// Sets the most tokens of one reply, reasoning included: `max_completion_tokens` of chat completions (for servers
    /// that know only the older `max_tokens`, use [`HttpModel::extra`]), `max_output_tokens` of Responses,
    /// `maxOutputTokens` of Gemini, `max_tokens` of messages, where it is 8,192 unless set: that wire wants a figure.
    pub fn max_tokens(self, tokens: u64) -> Self {
        self.parameters(Parameters::new().max_tokens(tokens))
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
    pub fn one_call_at_a_time(self) -> Self {
        self.parameters(Parameters::new().one_call_at_a_time())
    }

    /// Adds a field to each request as it is, over what is set otherwise. Only `tools` is added to what is there: the
    /// agent's own tools stay, and the provider's (such as a search) stand behind them.
    pub fn extra(self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.parameters(Parameters::new().extra(name, value))
    }

    /// What is set, to which the wire adds what is of this conversation.
    pub(crate) fn settings(&self, spec: &ModelSpec) -> Fields {
        let parameters = self.parameters_of(spec);
        // Of a conversation with a parameter that the wire has no form for nothing is sent.
        let mut fields = self.said(&parameters).unwrap_or_default();
        if !spec.tools.is_empty() {
            if let (None, Some(choice), true) = (&self.set.choice, &spec.choice, W::may_force(&fields)) {
                W::tool_choice(&mut fields, choice);
            }
            if parameters.iter().any(|parameter| matches!(parameter, Parameter::OneCallAtATime)) {
                W::one_call(&mut fields);
            }
        }
        if let Some(answer) = &spec.answer {
            W::ask_schema(&mut fields, answer);
        }
        Fields::new(fields, parameters.extras().clone())
    }

    /// What the provider is to keep of a conversation.
    pub(crate) fn prompt_cache(&self, spec: &ModelSpec) -> Option<PromptCache> {
        self.parameters_of(spec).iter().find_map(|parameter| match parameter {
            Parameter::PromptCache(cache) => Some(cache.clone()),
            _ => None,
        })
    }

    /// The body up to its list of messages, which comes last so that it can grow: what is extra over these fields.
    pub(crate) fn opened(&self, fields: Fields, list: &str) -> Vec<u8> {
        let mut bytes = fields.open();
        let comma = if bytes.len() > 1 { "," } else { "" };
        bytes.extend_from_slice(format!("{comma}\"{list}\":[").as_bytes());
        bytes
    }

    /// What all requests have in common.
    ///
    /// # Errors
    /// If they cannot be made so, or the wire has no form for one of the parameters.
    pub(crate) fn prepared(
        &self,
        spec: &ModelSpec,
        prepare: impl FnOnce(&Set<W>) -> Result<Prepared, ModelError>,
    ) -> Result<Arc<Prepared>, ModelError> {
        self.fits(spec)?;
        let parameters = self.parameters_of(spec);
        if !parameters.is_empty() {
            self.said(&parameters)?;
        }
        self.set.prepared(prepare)
    }

    /// Its own parameters, and over them those of the conversation.
    pub(crate) fn parameters_of(&self, spec: &ModelSpec) -> Cow<'_, Parameters> {
        match &spec.parameters {
            None => Cow::Borrowed(&self.set.parameters),
            Some(over) => Cow::Owned(self.set.parameters.with(over)),
        }
    }

    /// The wire's own fields, with these parameters in theirs.
    ///
    /// # Errors
    /// The first that the wire has no form for.
    fn said(&self, parameters: &Parameters) -> Result<Map<String, Value>, ModelError> {
        let mut fields = self.set.fields.clone();
        let flaw = parameters.flaw();
        for parameter in parameters.iter() {
            let name = parameter.name();
            let said = match (flaw, parameter) {
                (Some((flawed, why)), _) if flawed == name => Err(why),
                // Only beside tools: see `settings`.
                (_, Parameter::OneCallAtATime) => Ok(()),
                (_, parameter) => self.set.wire.say(&mut fields, parameter),
            };
            said.map_err(|why| {
                let message = format!("`{name}` cannot be said to {}: {why}", self.name);
                ModelError::new(ModelErrorKind::Refused, message)
                    .with_hint("leave it out, or set the provider's own field with `extra`")
            })?;
        }
        Ok(fields)
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

    fn check(&self, parameters: &Parameters) -> Result<(), ModelError> {
        self.said(&self.set.parameters.with(parameters))?;
        self.set.endpoint.transport.as_ref().map_or(Ok(()), |transport| transport.client().map(drop))
    }
}

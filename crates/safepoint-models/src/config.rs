//! What is configured of a model, and what is wrong with it.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};
pub use safepoint::model::ToolChoice;
use safepoint::model::{ModelError, ModelErrorKind, ModelSpec, ToolDecl};
use safepoint_http::HttpClient;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value};
use url::Url;

use crate::{
    address,
    http::{
        Patience,
        outgoing::{self, Prepared},
    },
    transport::Transport,
};

/// A model cannot be configured so, and what to do instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl ConfigError {
    pub(crate) fn new(what: String) -> Self {
        Self(what)
    }

    pub(crate) fn missing_key(variable: &str) -> Self {
        Self(format!("no API key: set {variable}, or name another server with a base URL"))
    }
}

/// The header with which Anthropic wants to be asked.
pub(crate) fn anthropic_version() -> HeaderMap {
    let version = (HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));
    HeaderMap::from_iter([version])
}

/// Where requests go and how: the same for every wire.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) base_url: String,
    pub(crate) key: Option<SecretString>,
    /// How the key is sent, where it is not as the wire sends it.
    pub(crate) auth: Option<Auth>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) patience: Patience,
    pub(crate) transport: Option<Transport>,
}

/// Without its secrets: neither the headers nor what may be one in the address is shown.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("base_url", &address::shown(&self.base_url)).finish_non_exhaustive()
    }
}

impl Endpoint {
    pub(crate) fn new(base_url: &str) -> Self {
        let (base_url, headers) = (base_url.to_owned(), Vec::new());
        Self { base_url, key: None, auth: None, headers, patience: Patience::default(), transport: None }
    }

    /// An endpoint with the key and the base URL of these variables.
    pub(crate) fn from_env(default_base: &str, key: &str, base: &str) -> Result<Self, ConfigError> {
        let set = |variable| std::env::var(variable).ok().filter(|value| !value.is_empty());
        let (found_key, found_base) = (set(key), set(base));
        if found_key.is_none() && found_base.is_none() {
            return Err(ConfigError::missing_key(key));
        }
        let mut endpoint = Self::new(found_base.as_deref().unwrap_or(default_base));
        endpoint.key = found_key.map(SecretString::from);
        Ok(endpoint)
    }

    /// An endpoint that wants no key, at the base URL of this variable where it is set.
    pub(crate) fn local(default_base: &str, base: &str) -> Self {
        let found = std::env::var(base).ok().filter(|value| !value.is_empty());
        Self::new(found.as_deref().unwrap_or(default_base))
    }

    /// Everything of a request but its body, with a wire's own headers under those that are set.
    pub(crate) fn prepare(&self, path: &str, auth: Auth, own: HeaderMap) -> Result<Prepared, ModelError> {
        let text = address::below(&self.base_url, &format!("/{path}"));
        let url = Url::parse(&text).map_err(|error| {
            bad(format!("the base URL {} is none: {error}", address::shown(&self.base_url)))
                .with_hint("it looks like http://127.0.0.1:8080/v1")
        })?;
        let mut headers = own;
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        headers.entry("accept").or_insert(HeaderValue::from_static("text/event-stream"));
        if let Some(key) = &self.key {
            let (name, value) = match self.auth.unwrap_or(auth) {
                Auth::Bearer => ("authorization", format!("Bearer {}", key.expose_secret())),
                Auth::ApiKey => ("x-api-key", key.expose_secret().to_owned()),
                Auth::GoogKey => ("x-goog-api-key", key.expose_secret().to_owned()),
                Auth::AzureKey => ("api-key", key.expose_secret().to_owned()),
            };
            let mut value = HeaderValue::from_str(&value).map_err(|_unprintable| {
                bad("the API key has characters that no header can hold".to_owned())
            })?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let of_transport = self.transport.iter().flat_map(|transport| &transport.headers);
        for (name, value) in of_transport.chain(&self.headers) {
            let parsed = HeaderName::try_from(name).ok().zip(HeaderValue::from_str(value).ok());
            let (name, value) = parsed.ok_or_else(|| bad(format!("`{name}` is not a header")))?;
            headers.insert(name, value);
        }
        let mut patience = self.patience.clone();
        if let Some(most) = self.transport.as_ref().and_then(|transport| transport.read_timeout) {
            patience.idle = most;
        }
        Ok(Prepared::new(self.client()?, url, headers, patience))
    }

    /// The client that sends its requests.
    ///
    /// # Errors
    /// If there can be none as it is configured.
    fn client(&self) -> Result<HttpClient, ModelError> {
        self.transport.as_ref().map_or_else(outgoing::client, Transport::client)
    }
}

/// How a key is sent. Exhaustive: the ways of the wires.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Auth {
    Bearer,
    ApiKey,
    GoogKey,
    AzureKey,
}

fn bad(message: String) -> ModelError {
    ModelError::new(ModelErrorKind::Refused, message)
}

/// Fields that hold more than the form of an answer: what is extra in them stands beside it.
pub(crate) const SHARED_FIELDS: [&str; 2] = ["text", "output_config"];

/// The field of every wire that lists tools.
const TOOLS: &str = "tools";

/// A JSON object of what is set, with extra fields merged over it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    set: Map<String, Value>,
    extra: Map<String, Value>,
}

impl Fields {
    pub(crate) fn new(set: Map<String, Value>, extra: Map<String, Value>) -> Self {
        Self { set, extra }
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.set.insert(name.to_owned(), value.into());
    }

    /// Sets the tools, each as the wire writes it; nothing where there is none.
    pub(crate) fn set_tools(&mut self, spec: &ModelSpec, write: impl FnMut(&ToolDecl) -> Value) {
        if !spec.tools.is_empty() {
            self.set(TOOLS, spec.tools.iter().map(write).collect::<Vec<_>>());
        }
    }

    /// What is set under a name, to be changed; null where nothing is.
    pub(crate) fn entry(&mut self, name: &str) -> &mut Value {
        self.set.entry(name).or_insert(Value::Null)
    }

    /// Adds tools behind those that are set.
    pub(crate) fn add_tools(&mut self, more: Vec<Value>) {
        match self.set.get_mut(TOOLS) {
            Some(Value::Array(tools)) => tools.extend(more),
            Some(_) | None => self.set(TOOLS, more),
        }
    }

    /// Puts what is extra over what is set; tools stand beside each other.
    fn merge(&mut self) {
        for (name, value) in std::mem::take(&mut self.extra) {
            match (self.set.get_mut(&name), value) {
                (Some(Value::Array(own)), Value::Array(more)) if name == TOOLS => {
                    own.extend(more);
                }
                (Some(Value::Array(own)), one @ Value::Object(_)) if name == TOOLS => own.push(one),
                (Some(Value::Object(own)), Value::Object(more)) if SHARED_FIELDS.contains(&name.as_str()) => {
                    own.extend(more)
                }
                (_, value) => self.set(&name, value),
            }
        }
    }

    /// All of it as an object without its closing brace, so that more can follow.
    pub(crate) fn open(mut self) -> Vec<u8> {
        self.merge();
        let mut bytes = serde_json::to_vec(&self.set).expect("a map of JSON values is JSON");
        bytes.pop();
        bytes
    }
}

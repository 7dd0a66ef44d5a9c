//! Responses in the background as a remote agent: the provider works alone, with its own tools, and the
//! adapter reads the response until it has ended.
//!
//! The same wire serves as a *model* (`safepoint_models::responses::model(..).background()`), whose calls are
//! repeated after a crash. Here the response is the work of a call. The engine records its id, so after a
//! crash the adapter reads the response and does not begin it again.
//!
//! # What a stop does and what the receipt reports
//!
//! The adapter cancels the response at its own address. A provider that answers `cancelled` says no more than
//! that. So the stop is *acknowledged* by default, and the receipt lists the work among what may be alive.
//! For a provider that ends its work before it says so, declare [`StopSupport::Hard`]: the stop is then
//! *confirmed*. An error is *refused*, and a provider that cannot be reached is *unreachable*. If the answer
//! does not arrive, or does not name the response, the stop is *requested*.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use ::http::{HeaderMap, header::AUTHORIZATION};
use safepoint::{
    ToolContext,
    raw::remote::{AfterWord, Reattach, Remote, RemoteCall, RemoteSpec, RemoteTask},
    receipt::StopSupport,
    tool::EffectClass,
};
use secrecy::SecretString;
use serde_json::{Map, Value};
use url::Url;

use crate::{conversation_ids::ConversationIds, exchange};

mod call;
mod http;
mod limits;
mod reading;
mod stopping;

use self::{call::ResponseCall, http::Http};

/// An agent that is a provider's response in the background.
///
/// ```no_run
/// # use safepoint::Agent;
/// # use safepoint_remote::responses::Responses;
/// # fn research(key: secrecy::SecretString) -> Result<Agent, safepoint_remote::responses::ProviderAddressError> {
/// let deep = Responses::model("o4-mini-deep-research")?
///     .key(&key)?
///     .field("tools", serde_json::json!([{ "type": "web_search" }]));
/// Ok(Agent::remote(deep).build())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a setting returns the changed value"]
pub struct Responses {
    spec: RemoteSpec,
    provider: Arc<Provider>,
}

/// Why an address is not that of a provider.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderAddressError {
    /// It is not a URL, or not an http or https one.
    #[error("`{0}` is no http or https address")]
    NotWeb(String),
    /// The key cannot be sent.
    #[error("the key holds what no header may hold")]
    Key,
    /// HTTP could not be set up on this machine.
    #[error("could not set up HTTP: {0}")]
    Http(String),
}

/// What all calls of one provider share.
#[derive(Clone)]
struct Provider {
    http: Http,
    model: String,
    fields: Map<String, Value>,
    known: Arc<ConversationIds>,
    look_every: Duration,
}

/// The address of OpenAI.
const OPENAI: &str = "https://api.openai.com/v1";
/// The name for models and rules.
const NAME: &str = "background";
const DESCRIPTION: &str = "Another agent, which works by itself for as long as it takes. Give it a complete task, with \
                           all that it needs to know; its answer comes back when it is done.";

impl Responses {
    /// A model of OpenAI, without a key. Sends nothing.
    ///
    /// # Errors
    /// [`ProviderAddressError::Http`], if there is no HTTP on this machine.
    pub fn model(name: impl Into<String>) -> Result<Self, ProviderAddressError> {
        let model = name.into();
        let peer = format!("responses:{model}");
        let spec = RemoteSpec::new(NAME, DESCRIPTION, peer)
            .grade(StopSupport::CallerSide)
            .rejoin(Reattach::ByTaskId);
        let http = Http::new(address(OPENAI)?).map_err(ProviderAddressError::Http)?;
        let provider = Provider {
            http,
            model,
            fields: Map::new(),
            known: Arc::default(),
            look_every: limits::LOOK_EVERY,
        };
        Ok(Self { spec, provider: Arc::new(provider) })
    }

    /// Sets the provider's address: the part before `/responses`.
    ///
    /// # Errors
    /// [`ProviderAddressError::NotWeb`], if it is no address.
    pub fn base_url(mut self, base: &str) -> Result<Self, ProviderAddressError> {
        let (shown, base_url, headers) = exchange::apart(base, address(base)?);
        self.spec.peer = format!("responses:{} at {shown}", self.provider.model);
        Ok(self.with(|provider| {
            provider.http.base = base_url;
            provider.http.headers.extend(headers);
        }))
    }

    /// Sends this key as a bearer token.
    ///
    /// # Errors
    /// [`ProviderAddressError::Key`], if it cannot be sent.
    pub fn key(self, key: &SecretString) -> Result<Self, ProviderAddressError> {
        let value = exchange::bearer(key).ok_or(ProviderAddressError::Key)?;
        Ok(self.with(|provider| provider.http.headers = HeaderMap::from_iter([(AUTHORIZATION, value)])))
    }

    /// Sets a field of each request, by the provider's name for it: `tools`, `instructions`, `reasoning`.
    pub fn field(self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        let (name, value) = (name.into(), value.into());
        self.with(|provider| drop(provider.fields.insert(name, value)))
    }

    /// Sets how often the adapter reads a response. Default: every 2 s.
    pub fn look_every(self, time: Duration) -> Self {
        self.with(|provider| provider.look_every = time)
    }

    /// Stores in this folder the last response of a conversation, so that the conversation continues from
    /// there after a restart. By default it is remembered as long as this value lives.
    pub fn remember_in(self, folder: impl Into<PathBuf>) -> Self {
        let known = Arc::new(ConversationIds::kept_in(folder.into()));
        self.with(|provider| provider.known = known)
    }

    /// Sets the name for models and rules.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.spec.name = name.into();
        self
    }

    /// Sets the description for models.
    pub fn described(mut self, description: impl Into<String>) -> Self {
        self.spec.description = description.into();
        self
    }

    /// Sets what a stop does at the provider. Default: [`StopSupport::CallerSide`]; see the [module](self).
    pub fn grade(mut self, grade: StopSupport) -> Self {
        self.spec = self.spec.grade(grade);
        self
    }

    /// Sets what the work may change with the provider's tools. Default: [`EffectClass::Unsafe`].
    pub fn effect(mut self, effect: EffectClass) -> Self {
        self.spec = self.spec.effect(effect);
        self
    }

    /// Sets how long the provider has to answer a stop. Default: 2 s.
    pub fn stop_within(mut self, time: Duration) -> Self {
        self.spec = self.spec.stop_within(time);
        self
    }

    /// Sets how long the adapter reads the response after that.
    pub fn listen(mut self, time: Duration) -> Self {
        self.spec = self.spec.listen(time);
        self
    }

    /// Sets whether the adapter also does so once the provider has answered. Default: [`AfterWord::Listens`].
    pub fn after_word(mut self, then: AfterWord) -> Self {
        self.spec = self.spec.after_word(then);
        self
    }

    fn with(mut self, change: impl FnOnce(&mut Provider)) -> Self {
        change(Arc::make_mut(&mut self.provider));
        self
    }
}

fn address(base: &str) -> Result<Url, ProviderAddressError> {
    exchange::web_address(base).ok_or_else(|| ProviderAddressError::NotWeb(base.to_owned()))
}

impl Remote for Responses {
    fn spec(&self) -> &RemoteSpec {
        &self.spec
    }

    fn open(&self, brief: RemoteTask, _: &ToolContext) -> Box<dyn RemoteCall> {
        Box::new(ResponseCall::new(Arc::clone(&self.provider), brief, self.spec.grade))
    }
}

impl fmt::Debug for Responses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Responses").field("spec", &self.spec).finish_non_exhaustive()
    }
}

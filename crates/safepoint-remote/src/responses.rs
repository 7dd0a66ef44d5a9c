//! Responses in the background as a remote agent: the provider works by itself, with the tools that it has, and is
//! looked at until it has ended.
//!
//! The same wire serves as a *model* (`safepoint_models::responses::model(..).background()`), whose calls are repeated
//! after a crash. Here the response is the work of a call: its id is recorded, so that after a crash it is asked for and
//! not begun again.
//!
//! # What a stop does, and what is said of it
//!
//! The response is cancelled at its own address. A provider that answers `cancelled` says no more than that, so it is
//! *acknowledged* by default, and the work is named among what may be alive. Of a provider that is known to end its work
//! before it says so, declare [`StopSupport::Hard`]: then it is *confirmed*. An error is *refused*; a provider that cannot be
//! told is *unreachable*.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use reqwest::{
    Url,
    header::{AUTHORIZATION, HeaderMap, HeaderValue},
};
use safepoint::{
    receipt::StopSupport,
    remote::{AfterWord, Reattach, Remote, RemoteCall, RemoteSpec, RemoteTask},
    tool::{EffectClass, ToolContext},
};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value};

use crate::{exchange, known::Known};

mod http;
mod limits;
mod line;
mod reading;
mod stopping;

use self::{http::Http, line::Talk};

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
pub struct Responses {
    spec: RemoteSpec,
    provider: Arc<Provider>,
}

/// Why there is no provider at an address.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderAddressError {
    /// It is no URL, or not one of the web.
    #[error("`{0}` is no http or https address")]
    NotWeb(String),
    /// The key cannot be sent.
    #[error("the key holds what no header may hold")]
    Key,
    /// There is no HTTP on this machine.
    #[error("could not set up HTTP: {0}")]
    Http(String),
}

/// What all talks with a provider share.
#[derive(Clone)]
struct Provider {
    http: Http,
    model: String,
    fields: Map<String, Value>,
    known: Arc<Known>,
    look_every: Duration,
}

/// Where OpenAI is.
const OPENAI: &str = "https://api.openai.com/v1";
/// What models and rules call it.
const NAME: &str = "background";
const DESCRIPTION: &str = "Another agent, which works by itself for as long as it takes. Give it a task of its own, with \
                           all that it needs to know; its answer comes back when it is done.";

impl Responses {
    /// A model of OpenAI's, without a key. Nothing is sent.
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

    /// Sets where the provider is: the part before `/responses`.
    ///
    /// # Errors
    /// [`ProviderAddressError::NotWeb`], if it is no address.
    pub fn base_url(mut self, base: &str) -> Result<Self, ProviderAddressError> {
        let (shown, base_url, headers) =
            exchange::apart(base, address(base)?).map_err(ProviderAddressError::Http)?;
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
        let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose_secret()))
            .map_err(|_unsendable| ProviderAddressError::Key)?;
        value.set_sensitive(true);
        Ok(self.with(|provider| provider.http.headers = HeaderMap::from_iter([(AUTHORIZATION, value)])))
    }

    /// Sets a field of each request, as the provider names it: `tools`, `instructions`, `reasoning`.
    #[must_use]
    pub fn field(self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        let (name, value) = (name.into(), value.into());
        self.with(|provider| drop(provider.fields.insert(name, value)))
    }

    /// Sets how often a response is looked at. Default: every 2 s.
    #[must_use]
    pub fn look_every(self, time: Duration) -> Self {
        self.with(|provider| provider.look_every = time)
    }

    /// Remembers in this folder which response a conversation came to last, so that it goes on from there also after a
    /// restart. Default: remembered as long as this lives.
    #[must_use]
    pub fn remember_in(self, folder: impl Into<PathBuf>) -> Self {
        let known = Arc::new(Known::kept_in(folder.into()));
        self.with(|provider| provider.known = known)
    }

    /// Sets the name that models and rules use.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.spec.name = name.into();
        self
    }

    /// Sets what it does, for models.
    #[must_use]
    pub fn described(mut self, description: impl Into<String>) -> Self {
        self.spec.description = description.into();
        self
    }

    /// Sets what a stop does there. Default: [`StopSupport::CallerSide`]; see the [module](self).
    #[must_use]
    pub fn grade(mut self, grade: StopSupport) -> Self {
        self.spec = self.spec.grade(grade);
        self
    }

    /// Sets what its work may change, by the tools that it has there. Default: [`EffectClass::Unsafe`].
    #[must_use]
    pub fn effect(mut self, effect: EffectClass) -> Self {
        self.spec = self.spec.effect(effect);
        self
    }

    /// Sets how long it has, after a stop, to answer. Default: 2 s.
    #[must_use]
    pub fn stop_within(mut self, time: Duration) -> Self {
        self.spec = self.spec.stop_within(time);
        self
    }

    /// Sets how long after that our end still looks.
    #[must_use]
    pub fn listen(mut self, time: Duration) -> Self {
        self.spec = self.spec.listen(time);
        self
    }

    /// Sets whether it also does so once the peer has answered. Default: [`AfterWord::Listens`].
    #[must_use]
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
    let url = Url::parse(base).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.ok_or_else(|| ProviderAddressError::NotWeb(base.to_owned()))
}

impl Remote for Responses {
    fn spec(&self) -> &RemoteSpec {
        &self.spec
    }

    fn open(&self, brief: RemoteTask, _: &ToolContext) -> Box<dyn RemoteCall> {
        Box::new(Talk::new(Arc::clone(&self.provider), brief, self.spec.grade))
    }
}

impl fmt::Debug for Responses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Responses").field("spec", &self.spec).finish_non_exhaustive()
    }
}

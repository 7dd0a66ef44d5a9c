//! Agents behind the A2A protocol, 1.0, 0.3 and 0.2, over JSON-RPC.
//!
//! A message is sent exactly once. If its stream breaks, or is silent, the task is looked at by its name, and its stream is
//! taken up again while that is worth it. What comes of both is merged by its place: each piece of the answer is told once.
//!
//! # What a stop does, and what is said of it
//!
//! The peer is asked to cancel the task, once it has named one; before that it cannot be told, which is what is said. What it answers is its word: by the wire, a task that is
//! `canceled` looks the same whether the work behind it has ended or goes on, and servers of both kinds are in use. So
//! `canceled` is *acknowledged* by default, the work is named among what may be alive, and our end listens on: what the
//! peer says after that is told as late. Of a peer that is known to end its work *before* it says so, declare
//! [`StopSupport::Hard`]: then its `canceled` is *confirmed*. An error is *refused*, whatever the task looks like after it, and
//! a peer that cannot be told, or hangs up on being told, is *unreachable*.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use reqwest::{
    Url,
    header::{AUTHORIZATION, HeaderMap, HeaderValue},
};
use safepoint::{
    Failure,
    receipt::StopSupport,
    remote::{AfterWord, Reattach, Remote, RemoteCall, RemoteSpec, RemoteTask},
    tool::{EffectClass, ToolContext},
};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::OnceCell;

mod asking;
mod bounds;
mod card;
mod hearing;
mod http;
mod line;
mod look;
mod questions;
mod stopping;
mod text;
mod wire;

pub use bounds::Bounds;

use self::{card::Place, http::Http, line::Talk};
use crate::{exchange, known::Known};

/// An agent behind the A2A protocol.
///
/// ```no_run
/// # use safepoint::{Agent, Model, remote::RemoteTool};
/// # use safepoint_remote::a2a::A2a;
/// # async fn team(big: impl Model) -> Result<Agent, Box<dyn std::error::Error>> {
/// let researcher = A2a::at("http://localhost:9000")?.discover().await.map_err(|failure| failure.to_string())?;
/// let alone = Agent::remote(researcher.clone()).build(); // an agent that is the remote one
/// let team = Agent::builder(big).tool(RemoteTool::new(researcher)).build(); // one that may ask it
/// # drop(alone);
/// # Ok(team) }
/// ```
#[derive(Clone)]
pub struct A2a {
    spec: RemoteSpec,
    peer: Arc<Peer>,
}

/// Why an address is none of an agent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// It is no URL, or not one of the web.
    #[error("`{0}` is no http or https address")]
    NotWeb(String),
    /// The token cannot be sent.
    #[error("the token holds what no header may hold")]
    Token,
    /// There is no HTTP on this machine.
    #[error("could not set up HTTP: {0}")]
    Http(String),
}

/// What all talks with an agent share.
pub(crate) struct Peer {
    pub(crate) http: Http,
    url: Url,
    place: OnceCell<Place>,
    /// The peer's own names for conversations that it did not call as we do.
    contexts: Arc<Known>,
}

/// What an agent is called where its card has not been read.
const NAME: &str = "remote_agent";
/// The longest name that every provider takes for a tool.
const LONGEST_NAME: usize = 64;

impl A2a {
    /// An agent at this address: its own, that of its card, or of the server that it alone lives on. Nothing is sent.
    /// A user and a password in it are sent with each request, and shown nowhere.
    ///
    /// # Errors
    /// [`AddressError`], if it is no address.
    pub fn at(url: &str) -> Result<Self, AddressError> {
        let parsed = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let parsed = parsed.ok_or_else(|| AddressError::NotWeb(url.to_owned()))?;
        let (shown, parsed, headers) = exchange::apart(url, parsed).map_err(AddressError::Http)?;
        let http = Http::new(headers, Bounds::default()).map_err(AddressError::Http)?;
        let spec = RemoteSpec::new(NAME, "An agent of somebody else.", format!("a2a:{shown}"));
        let spec = spec.grade(StopSupport::CallerSide).rejoin(Reattach::ByTaskId);
        Ok(Self { spec, peer: Arc::new(Peer::new(http, parsed, Arc::default())) })
    }

    /// Sends this token as a bearer token, to the address that was given and to no other.
    ///
    /// # Errors
    /// [`AddressError::Token`], if it cannot be sent.
    pub fn bearer(self, token: &SecretString) -> Result<Self, AddressError> {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()))
            .map_err(|_unsendable| AddressError::Token)?;
        value.set_sensitive(true);
        let mut headers = self.peer.http.headers.clone();
        headers.insert(AUTHORIZATION, value);
        let bounds = self.peer.http.bounds.clone();
        self.with(headers, bounds)
    }

    /// Sets the bounds of what the peer may send and how long it may take.
    ///
    /// # Errors
    /// [`AddressError::Http`], if there is no HTTP on this machine.
    pub fn bounds(self, bounds: Bounds) -> Result<Self, AddressError> {
        let headers = self.peer.http.headers.clone();
        self.with(headers, bounds)
    }

    fn with(self, headers: HeaderMap, bounds: Bounds) -> Result<Self, AddressError> {
        let http = Http::new(headers, bounds).map_err(AddressError::Http)?;
        let peer = Peer::new(http, self.peer.url.clone(), Arc::clone(&self.peer.contexts));
        Ok(Self { peer: Arc::new(peer), ..self })
    }

    /// Remembers in this folder what the peer calls a conversation, where it has names of its own for them, so that it
    /// goes on in the same one also after a restart. Default: remembered as long as this lives.
    #[must_use]
    pub fn remember_in(self, folder: impl Into<PathBuf>) -> Self {
        let (http, url) = (self.peer.http.clone(), self.peer.url.clone());
        let peer = Peer::new(http, url, Arc::new(Known::kept_in(folder.into())));
        Self { peer: Arc::new(peer), ..self }
    }

    /// Sets the name that models and rules use, made of what every provider takes.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        let fit = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
        let name: String = name.trim().chars().map(fit).take(LONGEST_NAME).collect();
        if !name.is_empty() {
            self.spec.name = name;
        }
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

    /// Sets what its work may change. Default: [`EffectClass::Unsafe`].
    #[must_use]
    pub fn effect(mut self, effect: EffectClass) -> Self {
        self.spec = self.spec.effect(effect);
        self
    }

    /// Sets how long it has, after a stop, to answer.
    #[must_use]
    pub fn stop_within(mut self, time: Duration) -> Self {
        self.spec = self.spec.stop_within(time);
        self
    }

    /// Sets how long after that our end still listens.
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

    /// Reads its card, and takes name and description from there. Without it the card is read before the first message.
    ///
    /// # Errors
    /// If there is no card, or no way to talk in it.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn discover(self) -> Result<Self, Failure> {
        let place = self.peer.place().await?.clone();
        let named = self.named(&place.name);
        Ok(if place.description.is_empty() { named } else { named.described(place.description) })
    }
}

impl Remote for A2a {
    fn spec(&self) -> &RemoteSpec {
        &self.spec
    }

    fn open(&self, brief: RemoteTask, _: &ToolContext) -> Box<dyn RemoteCall> {
        Box::new(Talk::new(Arc::clone(&self.peer), brief, self.spec.grade))
    }
}

impl Peer {
    fn new(http: Http, url: Url, contexts: Arc<Known>) -> Self {
        Self { http, url, place: OnceCell::new(), contexts }
    }

    /// Where the agent is talked to, from its card.
    pub(crate) async fn place(&self) -> Result<&Place, Failure> {
        self.place.get_or_try_init(|| card::find(&self.http, &self.url)).await
    }

    /// What the peer calls a conversation.
    pub(crate) fn context_of(&self, conversation: &str) -> String {
        self.contexts.name_of(conversation).unwrap_or_else(|| conversation.to_owned())
    }

    /// The peer calls a conversation this.
    pub(crate) fn calls(&self, conversation: &str, context: &str) {
        if conversation != context {
            self.contexts.note(conversation, context);
        }
    }
}

impl fmt::Debug for A2a {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("A2a").field("spec", &self.spec).finish_non_exhaustive()
    }
}

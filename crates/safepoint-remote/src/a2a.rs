//! Agents behind the A2A protocol, 1.0, 0.3 and 0.2, over JSON-RPC.
//!
//! The adapter sends a message exactly once. If its stream breaks or is silent, the adapter reads the task by
//! its name. It also subscribes to the task's stream again while that is useful. The adapter merges both
//! sources by place, so it reports each piece of the answer once.
//!
//! # What a stop does and what the receipt reports
//!
//! The adapter asks the remote agent to cancel the task once the agent has named it. Before that no cancel is
//! possible, and the receipt reports so. On the wire a `canceled` task looks the same whether its work has
//! ended or continues. Servers of both kinds are in use, so `canceled` is *acknowledged* by default. The
//! receipt then lists the work among what may be alive, the adapter keeps listening, and later events are
//! late. For a remote agent that ends its work *before* it says so, declare [`StopSupport::Hard`]: its
//! `canceled` is then *confirmed*. An error is *refused*, whatever the task looks like after it. A remote
//! agent that cannot be reached is *unreachable*. If the cancel was sent, but its answer does not arrive or
//! does not name the task, the stop is *requested*.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use ::http::header::AUTHORIZATION;
use safepoint::{
    ToolContext,
    raw::remote::{AfterWord, Reattach, Remote, RemoteCall, RemoteSpec, RemoteTask},
    receipt::StopSupport,
    stop::Failure,
    tool::EffectClass,
};
use secrecy::SecretString;
use tokio::sync::OnceCell;
use url::Url;

mod bounds;
mod call;
mod card;
mod events;
mod http;
mod look;
mod questions;
mod requests;
mod state;
mod stopping;
mod text;
mod wire;

pub use bounds::Bounds;

use self::{card::Place, http::Http, state::TaskCall};
use crate::{
    conversation_ids::ConversationIds,
    exchange::{self, Broke},
};

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
#[must_use = "a setting returns the changed value"]
pub struct A2a {
    spec: RemoteSpec,
    peer: Arc<Peer>,
}

/// Why an address is not that of an agent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// It is not a URL, or not an http or https one.
    #[error("`{0}` is no http or https address")]
    NotWeb(String),
    /// The token cannot be sent.
    #[error("the token holds what no header may hold")]
    Token,
    /// HTTP could not be set up on this machine.
    #[error("could not set up HTTP: {0}")]
    Http(String),
}

/// What all calls of one remote agent share.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) http: Http,
    url: Url,
    place: OnceCell<Place>,
    /// The remote agent's names for conversations that it names differently.
    contexts: Arc<ConversationIds>,
}

/// The agent's name while its card has not been read.
const NAME: &str = "remote_agent";
/// The longest tool name that every provider accepts.
const LONGEST_NAME: usize = 64;

impl A2a {
    /// An agent at this address: its own, that of its card, or that of a server with this agent alone. Sends
    /// nothing. The adapter sends a user and a password in the address with each request and shows them
    /// nowhere, and no query of it either.
    ///
    /// # Errors
    /// [`AddressError`], if it is no address.
    pub fn at(url: &str) -> Result<Self, AddressError> {
        let parsed = exchange::web_address(url).ok_or_else(|| AddressError::NotWeb(url.to_owned()))?;
        let (shown, url, headers) = exchange::apart(url, parsed);
        let http = Http::new(headers, Bounds::default()).map_err(AddressError::Http)?;
        let spec = RemoteSpec::new(NAME, "Another agent, behind a protocol.", format!("a2a:{shown}"));
        let spec = spec.grade(StopSupport::CallerSide).rejoin(Reattach::ByTaskId);
        let peer = Peer { http, url, place: OnceCell::new(), contexts: Arc::default() };
        Ok(Self { spec, peer: Arc::new(peer) })
    }

    /// Sends this token as a bearer token, only to the address that the caller gave.
    ///
    /// # Errors
    /// [`AddressError::Token`], if it cannot be sent.
    pub fn bearer(self, token: &SecretString) -> Result<Self, AddressError> {
        let value = exchange::bearer(token).ok_or(AddressError::Token)?;
        Ok(self.with(|peer| drop(peer.http.headers.insert(AUTHORIZATION, value))))
    }

    /// Sets limits on the size and the time of the remote agent's answers.
    ///
    /// # Errors
    /// [`AddressError::Http`], if there is no HTTP on this machine.
    pub fn bounds(self, bounds: Bounds) -> Result<Self, AddressError> {
        Ok(self.with(|peer| peer.http.bounds = bounds))
    }

    /// The same agent with a change; its card is then read anew.
    fn with(mut self, change: impl FnOnce(&mut Peer)) -> Self {
        let peer = Arc::make_mut(&mut self.peer);
        peer.place = OnceCell::new();
        change(peer);
        self
    }

    /// Stores in this folder the remote agent's names for conversations, where it has different ones. The
    /// same conversation then continues after a restart. By default the names last as long as this value.
    pub fn remember_in(self, folder: impl Into<PathBuf>) -> Self {
        let contexts = Arc::new(ConversationIds::kept_in(folder.into()));
        self.with(|peer| peer.contexts = contexts)
    }

    /// Sets the name for models and rules, in characters that every provider accepts.
    pub fn named(mut self, name: &str) -> Self {
        let fit = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
        let name: String = name.trim().chars().map(fit).take(LONGEST_NAME).collect();
        if !name.is_empty() {
            self.spec.name = name;
        }
        self
    }

    /// Sets the description for models.
    pub fn described(mut self, description: impl Into<String>) -> Self {
        self.spec.description = description.into();
        self
    }

    /// Sets what a stop does at the remote agent. Default: [`StopSupport::CallerSide`]; see the
    /// [module](self).
    pub fn grade(mut self, grade: StopSupport) -> Self {
        self.spec = self.spec.grade(grade);
        self
    }

    /// Sets what the agent's work may change. Default: [`EffectClass::Unsafe`].
    pub fn effect(mut self, effect: EffectClass) -> Self {
        self.spec = self.spec.effect(effect);
        self
    }

    /// Sets how long the remote agent has to answer a stop.
    pub fn stop_within(mut self, time: Duration) -> Self {
        self.spec = self.spec.stop_within(time);
        self
    }

    /// Sets how long the adapter listens after that.
    pub fn listen(mut self, time: Duration) -> Self {
        self.spec = self.spec.listen(time);
        self
    }

    /// Sets whether the adapter also listens after the remote agent has answered. Default:
    /// [`AfterWord::Listens`].
    pub fn after_word(mut self, then: AfterWord) -> Self {
        self.spec = self.spec.after_word(then);
        self
    }

    /// Reads the card and takes name and description from it. Otherwise the adapter reads the card before the
    /// first message.
    ///
    /// # Errors
    /// If there is no card, or the card offers no supported transport.
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
        Box::new(TaskCall::new(Arc::clone(&self.peer), brief, self.spec.grade))
    }
}

impl Peer {
    /// The agent's endpoint, from its card.
    pub(crate) async fn place(&self) -> Result<&Place, Failure> {
        self.place.get_or_try_init(|| card::find(&self.http, &self.url)).await
    }

    /// The same, where one that is not found is an agent that cannot be reached.
    pub(crate) async fn reached(&self) -> Result<&Place, Broke> {
        self.place().await.map_err(|failure| Broke::Unreachable(failure.to_string()))
    }

    /// The remote agent's name for a conversation.
    pub(crate) fn context_of(&self, conversation: &str) -> String {
        self.contexts.name_of(conversation).unwrap_or_else(|| conversation.to_owned())
    }

    /// Remembers the remote agent's name for a conversation.
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

//! The sessions of the protocol's clients over HTTP, up to 2025-11-25: who has each, and how it ended. They are no sessions of ours.
//!
//! **Invariants**: a session is its principal's, with its agent, and exists for no other.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use axum::http::{HeaderValue, StatusCode};
use futures_core::Stream;
use rmcp::{
    model::{ClientJsonRpcMessage, ClientNotification, RequestId, ServerJsonRpcMessage},
    transport::{
        StreamableHttpServerConfig, WorkerTransport,
        streamable_http_server::{
            SessionId, SessionManager,
            session::{
                ServerSseMessage,
                local::{LocalSessionManager, LocalSessionManagerError, LocalSessionWorker},
            },
        },
    },
};
use serde::Deserialize as _;
use serde_json::Value;
use tokio::sync::watch;

use super::{
    asked::{IN_USE, IN_USE_DETAIL},
    link::{self, LinkState, Linked},
    said::{AskedRequest, SaidEvents},
};
use crate::{
    access::Principal,
    problem::{Answered, Problem},
};

/// How long a session may be silent.
const SILENT: Duration = Duration::from_secs(3_600);
/// How many sessions one principal may have with one agent.
const MOST: usize = 256;

/// Those of a host.
pub(crate) struct McpSessions {
    /// Held for one look or one entry; no other lock is taken under it.
    known: Arc<Mutex<HashMap<SessionId, KnownSession>>>,
    /// Ends with the host.
    config: StreamableHttpServerConfig,
}

/// Whose session it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SessionOwner {
    agent: String,
    principal: String,
}

struct KnownSession {
    owner: SessionOwner,
    /// It alone.
    inner: Arc<LocalSessionManager>,
    said: Arc<SaidEvents>,
    link: watch::Sender<LinkState>,
}

/// The one of a request.
pub(super) struct OwnSession {
    inner: Arc<LocalSessionManager>,
    said: Arc<SaidEvents>,
    /// The request itself, if it asks in a session.
    asked: Option<AskedRequest>,
    /// As those of the host: held for one look or one entry; no other lock is taken under it.
    known: Arc<Mutex<HashMap<SessionId, KnownSession>>>,
    owner: SessionOwner,
    link: watch::Sender<LinkState>,
}

impl Default for McpSessions {
    fn default() -> Self {
        Self { known: Arc::default(), config: StreamableHttpServerConfig::default().disable_allowed_hosts() }
    }
}

impl SessionOwner {
    pub(super) fn of(agent: &str, who: &Principal) -> Self {
        Self { agent: agent.to_owned(), principal: who.name().to_owned() }
    }
}

impl McpSessions {
    /// Nothing is answered any more.
    pub(crate) fn end(&self) {
        self.config.cancellation_token.cancel();
    }

    /// What ends with the host: sessions, and the streams that no request has.
    pub(super) fn config(&self) -> StreamableHttpServerConfig {
        self.config.clone()
    }

    /// # Errors
    /// `no_such_session`: it is not the owner's.
    pub(super) fn check(&self, owner: &SessionOwner, id: &str) -> Answered<()> {
        let is_own = lock(&self.known).get(id).is_some_and(|known| known.owner == *owner);
        if is_own { Ok(()) } else { Err(Problem::no_such("session")) }
    }

    /// # Errors
    /// `too_many_sessions`.
    pub(super) fn has_room(&self, owner: &SessionOwner) -> Answered<()> {
        if lock(&self.known).values().filter(|known| known.owner == *owner).count() < MOST {
            return Ok(());
        }
        let detail = format!("there are {MOST} sessions of this token: end some with DELETE");
        Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_sessions", detail)
            .retry_after(Duration::from_secs(1)))
    }

    /// Whether a reader of this session may read on behind this event.
    ///
    /// # Errors
    /// `unknown_event`.
    pub(super) fn knows(&self, id: &str, last: &HeaderValue) -> Answered<()> {
        let last = last.to_str().unwrap_or_default();
        if lock(&self.known).get(id).is_some_and(|known| known.said.knows(last)) {
            return Ok(());
        }
        let detail = "this session does not know the event of `Last-Event-ID`, or does not any more: ask again without it";
        Err(Problem::new(StatusCode::BAD_REQUEST, "unknown_event", detail))
    }

    /// A request of this session, whose id it has alone until it is answered; none: the message asks for nothing.
    ///
    /// # Errors
    /// `id_in_use`.
    pub(super) fn asks(&self, id: &str, message: &Value) -> Answered<Option<AskedRequest>> {
        let named = message.get("method").and_then(|_asks| RequestId::deserialize(&message["id"]).ok());
        let said = lock(&self.known).get(id).map(|known| Arc::clone(&known.said));
        let (Some(named), Some(said)) = (named, said) else { return Ok(None) };
        match said.begin(named) {
            Some(asked) => Ok(Some(asked)),
            None => {
                let refused = Problem::new(StatusCode::BAD_REQUEST, IN_USE, IN_USE_DETAIL);
                Err(refused.with("id", message["id"].clone()))
            }
        }
    }

    /// Its client closes it.
    pub(super) fn close(&self, id: &str) {
        if let Some(known) = lock(&self.known).get(id) {
            link::end(&known.link, LinkState::Closed);
        }
    }

    /// The session of this id, or one that is made, for this owner and with this link; and what is asked in it.
    pub(super) fn of(
        &self,
        owner: SessionOwner,
        link: watch::Sender<LinkState>,
        (id, asked): (Option<&str>, Option<AskedRequest>),
    ) -> OwnSession {
        let known = lock(&self.known);
        let found = id.and_then(|id| known.get(id));
        let found = found.map(|known| (Arc::clone(&known.inner), Arc::clone(&known.said)));
        drop(known);
        let (inner, said) = found.unwrap_or_else(|| {
            let said = Arc::new(SaidEvents::default());
            let mut alone = LocalSessionManager::default().with_event_store(said.clone());
            alone.session_config.keep_alive = Some(SILENT);
            (Arc::new(alone), said)
        });
        OwnSession { inner, said, asked, known: Arc::clone(&self.known), owner, link }
    }
}

fn lock(known: &Mutex<HashMap<SessionId, KnownSession>>) -> MutexGuard<'_, HashMap<SessionId, KnownSession>> {
    known.lock().expect("no code under this lock panics")
}

impl SessionManager for OwnSession {
    type Error = LocalSessionManagerError;
    type Transport = Linked<WorkerTransport<LocalSessionWorker>>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, worker) = self.inner.create_session().await?;
        self.link.send_replace(LinkState::Open);
        let (owner, link) = (self.owner.clone(), self.link.clone());
        let (inner, said) = (Arc::clone(&self.inner), Arc::clone(&self.said));
        let known = KnownSession { owner, inner, said, link };
        lock(&self.known).insert(id.clone(), known);
        Ok((id, Linked::new(worker, self.link.clone(), LinkState::Lost)))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.inner.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.inner.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        lock(&self.known).remove(id);
        self.inner.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        // First: what was handed on may be answered, whether this is awaited to its end or not.
        self.asked.iter().for_each(AskedRequest::handed_on);
        self.inner.create_stream(id, message).await
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        if let ClientJsonRpcMessage::Notification(notice) = &message
            && let ClientNotification::CancelledNotification(cancel) = &notice.notification
            && let Some(cancelled) = &cancel.params.request_id
        {
            self.said.cancel(cancelled);
        }
        self.inner.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.inner.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.inner.resume(id, last_event_id).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S13.10: a session is its owner's, whose sessions are counted; it is counted no more once it is closed.
    #[tokio::test]
    async fn sessions_are_counted_by_their_owner() {
        let sessions = McpSessions::default();
        let owner = |name: &str| SessionOwner::of("helper", &Principal::new(name, []));
        let own = |name: &str| sessions.of(owner(name), watch::Sender::new(LinkState::Single), (None, None));
        let mut last = None;
        for _ in 0..MOST {
            assert!(sessions.has_room(&owner("one")).is_ok());
            // Its worker ends where it is dropped.
            last = Some(own("one").create_session().await.unwrap().0);
        }
        let last = last.unwrap();
        assert_eq!(sessions.has_room(&owner("one")).unwrap_err().code(), "too_many_sessions");
        assert!(sessions.has_room(&owner("two")).is_ok());
        assert!(sessions.check(&owner("one"), &last).is_ok());
        assert_eq!(sessions.check(&owner("two"), &last).unwrap_err().code(), "no_such_session");
        own("one").close_session(&last).await.unwrap();
        assert!(sessions.has_room(&owner("one")).is_ok());
        assert_eq!(sessions.check(&owner("one"), &last).unwrap_err().code(), "no_such_session");
    }
}

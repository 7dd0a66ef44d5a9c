//! Requests to a remote agent: a message, the task's state, or a new subscription to its stream.

use std::sync::{Arc, atomic::Ordering};

use futures_core::future::BoxFuture;
use serde_json::{Value, json};

use super::{
    Peer,
    card::Answers,
    http::{Broke, Opened},
    state::{Feed, Purpose, TaskCall, Words},
    wire::{Message, Method},
};

impl TaskCall {
    /// Sends a message and waits for the answer.
    pub(super) fn message(&self, text: String, id: String) -> BoxFuture<'static, Result<Opened, Broke>> {
        let (peer, sent, task) = (Arc::clone(&self.peer), Arc::clone(&self.sent), self.task.clone());
        let conversation = self.brief.conversation.clone();
        let is_alone = conversation == self.brief.key;
        Box::pin(async move {
            let place = peer.place().await.map_err(|failure| Broke::Unreachable(failure.to_string()))?;
            let context = (!is_alone).then(|| peer.context_of(&conversation));
            let message = Message { id, text: &text, task: task.as_deref(), context: context.as_deref() };
            let mut params = place.wire.message(&message);
            if let Some(tenant) = &place.tenant {
                params["tenant"] = tenant.as_str().into();
            }
            let method = match place.answers {
                Answers::Streams => Method::SendAndStream,
                Answers::Looks => Method::Send,
            };
            // Before the first byte: a stop that finds it unset knows that nothing was sent. Relaxed: the
            // same task reads it.
            sent.store(true, Ordering::Relaxed);
            let method = place.wire.method(method);
            peer.http.open((&place.url, place.wire), (method, params), peer.http.bounds.idle).await
        })
    }

    /// Sends a request about the task.
    pub(super) fn ask(&self, method: Method) -> BoxFuture<'static, Result<Value, Broke>> {
        let (peer, params) = (Arc::clone(&self.peer), self.named());
        Box::pin(async move { about(&peer, method, params).await })
    }

    /// Subscribes to the task's stream again.
    pub(super) fn rejoin(&mut self) {
        let (peer, params) = (Arc::clone(&self.peer), self.named());
        let opening = Box::pin(async move {
            let place = peer.place().await.map_err(|failure| Broke::Unreachable(failure.to_string()))?;
            let params = with_tenant(params, place.tenant.as_deref());
            let method = place.wire.method(Method::Subscribe);
            peer.http.open((&place.url, place.wire), (method, params), peer.http.bounds.deaf).await
        });
        self.feed = Feed::Opening(opening, Purpose::Rejoin(Words::None));
        self.watch.silence(&self.peer.http.bounds);
    }

    pub(super) fn named(&self) -> Value {
        json!({"id": self.task.as_deref().unwrap_or_default()})
    }

    /// Requests the task's state.
    pub(super) fn look(&mut self) {
        self.watch.ask(self.ask(Method::Get));
    }
}

/// Sends a request about a task.
pub(super) async fn about(peer: &Peer, method: Method, params: Value) -> Result<Value, Broke> {
    let place = peer.place().await.map_err(|failure| Broke::Unreachable(failure.to_string()))?;
    let params = with_tenant(params, place.tenant.as_deref());
    peer.http.ask((&place.url, place.wire), place.wire.method(method), params).await
}

fn with_tenant(mut params: Value, tenant: Option<&str>) -> Value {
    if let Some(tenant) = tenant {
        params["tenant"] = tenant.into();
    }
    params
}

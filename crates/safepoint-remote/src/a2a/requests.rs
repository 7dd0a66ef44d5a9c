//! Requests to a remote agent: a message, the task's state, or a new subscription to its stream.

use std::sync::{Arc, atomic::Ordering};

use futures_core::future::BoxFuture;
use serde_json::{Value, json};

use super::{
    Peer,
    http::{Broke, Opened},
    state::{Feed, Purpose, TaskCall},
    wire::{Message, Method},
};

impl TaskCall {
    /// Sends a message and waits for the answer.
    pub(super) fn message(&self, text: String, id: String) -> BoxFuture<'static, Result<Opened, Broke>> {
        let (peer, sent, task) = (Arc::clone(&self.peer), Arc::clone(&self.sent), self.task.clone());
        let conversation = self.brief.conversation.clone();
        let is_alone = conversation == self.brief.key;
        Box::pin(async move {
            let place = peer.reached().await?;
            let context = (!is_alone).then(|| peer.context_of(&conversation));
            let message = Message { id, text: &text, task: task.as_deref(), context: context.as_deref() };
            let method = if place.is_streaming { Method::SendAndStream } else { Method::Send };
            // Before the first byte: a stop that finds it unset knows that nothing was sent. Relaxed: the
            // same task reads it.
            sent.store(true, Ordering::Relaxed);
            peer.http.open(place.request(method, place.wire.message(&message)), peer.http.bounds.idle).await
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
            let request = peer.reached().await?.request(Method::Subscribe, params);
            peer.http.open(request, peer.http.bounds.deaf).await
        });
        self.feed = Feed::Opening(opening, Purpose::Rejoin { has_word: false });
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
    peer.http.ask(peer.reached().await?.request(method, params)).await
}

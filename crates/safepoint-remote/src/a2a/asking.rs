//! What is asked of a peer: a message, the task as it stands, or its stream once more.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_core::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    card::Answers,
    http::{Broke, Opened},
    line::{Feed, Purpose, Talk},
    wire::{Message, Method},
};

impl Talk {
    /// Sends a message, and waits for what it is answered with.
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
            sent.store(true, Ordering::Relaxed);
            peer.http.open((&place.url, place.wire), place.wire.method(method), params).await
        })
    }

    /// Asks something about the task.
    pub(super) fn ask(&self, method: Method, after: Duration) -> BoxFuture<'static, Result<Value, Broke>> {
        let (peer, params) = (Arc::clone(&self.peer), self.named());
        Box::pin(async move {
            sleep(after).await;
            let place = peer.place().await.map_err(|failure| Broke::Unreachable(failure.to_string()))?;
            let params = with_tenant(params, place.tenant.as_deref());
            peer.http.ask((&place.url, place.wire), place.wire.method(method), params).await
        })
    }

    pub(super) fn rejoin(&mut self, after: Duration) {
        let (peer, params) = (Arc::clone(&self.peer), self.named());
        let opening = Box::pin(async move {
            sleep(after).await;
            let place = peer.place().await.map_err(|failure| Broke::Unreachable(failure.to_string()))?;
            let params = with_tenant(params, place.tenant.as_deref());
            let method = match place.answers {
                Answers::Streams => Method::Subscribe,
                Answers::Looks => Method::Get,
            };
            peer.http.open((&place.url, place.wire), place.wire.method(method), params).await
        });
        self.feed = Feed::Opening(opening, Purpose::Rejoin);
    }

    fn named(&self) -> Value {
        json!({"id": self.task.as_deref().unwrap_or_default()})
    }

    /// Looks at the task after a while.
    pub(super) fn look(&mut self, after: Duration) {
        self.feed = Feed::Looking(self.ask(Method::Get, after));
    }
}

fn with_tenant(mut params: Value, tenant: Option<&str>) -> Value {
    if let Some(tenant) = tenant {
        params["tenant"] = tenant.into();
    }
    params
}

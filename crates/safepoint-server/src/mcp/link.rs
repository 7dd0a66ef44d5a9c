//! The connection of a client, and whether the client is there as far as it shows that.

use rmcp::{
    RoleServer,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::sync::watch;

/// Whether a client is there. Exhaustive: the request has no connection but its own response, the connection is open, the client has
/// closed it, or it has ended by itself and the client may be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkState {
    Single,
    Open,
    Closed,
    Lost,
}

/// A connection that says how it ended before its reader learns that.
pub(super) struct Linked<T> {
    inner: T,
    link: watch::Sender<LinkState>,
    /// How it is once it gives no message any more.
    ends: LinkState,
}

impl<T> Linked<T> {
    pub(super) fn new(inner: T, link: watch::Sender<LinkState>, ends: LinkState) -> Self {
        Self { inner, link, ends }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Linked<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let message = self.inner.receive().await;
        if message.is_none() {
            end(&self.link, self.ends);
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

/// An open connection has ended like this; the first end counts.
pub(super) fn end(link: &watch::Sender<LinkState>, how: LinkState) {
    link.send_if_modified(|state| {
        let is_open = *state == LinkState::Open;
        if is_open {
            *state = how;
        }
        is_open
    });
}

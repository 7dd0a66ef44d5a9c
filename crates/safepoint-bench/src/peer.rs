//! What the comparison asks of each kind of loop.

use std::future::Future;

/// One kind of loop.
pub(crate) trait Peer: Clone + Send + Sync + 'static {
    type Run: Running;
    /// Begins a conversation of a new agent.
    fn begin(&self, ask: String) -> Self::Run;
}

/// A conversation.
pub(crate) trait Running: Send + Sync + 'static {
    fn stop(&self);
    /// Waits for its end; whether it was the natural one.
    fn ended(self) -> impl Future<Output = bool> + Send;
}

//! A drain that another process asks for in the store (S7.45), as `POST /v1/drain` asks for it here.

use std::{sync::Weak, time::Duration};

use safepoint::raw::store::NodeState;
use tokio::time::timeout;

use super::HostState;

/// How often the store is asked.
const LOOK: Duration = Duration::from_secs(1);

/// Looks until a drain is asked, or the host drains or is gone.
pub(super) async fn watch(host: Weak<HostState>) {
    let Some(mut draining) = host.upgrade().map(|host| host.draining()) else { return };
    while timeout(LOOK, draining.wait_for(Option::is_some)).await.is_err() {
        let Some(host) = host.upgrade() else { return };
        let node = host.node.read().await.as_ref().map(|node| node.id().clone());
        let Some(node) = node else { return };
        // A store that does not answer is asked again.
        let rows = host.store.nodes().await.unwrap_or_default();
        if rows.iter().any(|row| row.node.id == node && row.state == NodeState::Draining) {
            return host.ask_drain();
        }
    }
}

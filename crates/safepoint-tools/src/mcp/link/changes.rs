//! Hearing of changed tools: since 2026-07-28 a server says so only on a stream that it was asked for.

use std::{convert::Infallible, future::pending, time::Instant};

use rmcp::{Peer, RoleClient, model::SubscriptionFilter, service::ServiceError};
use tokio::{sync::watch, time::sleep};

use crate::limits;

/// Keeps such a stream open for as long as it is polled. What comes on it is counted on its way in, with what older
/// servers say unasked; what may have been missed between two streams counts as one change.
///
/// A server that does not tell such things, or that refuses, is not asked, or not again.
///
/// # Cancel safety
/// The server gets a notice that the client no longer listens.
pub(super) async fn hear(peer: Peer<RoleClient>, changes: &watch::Sender<u64>) -> Infallible {
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    let (mut pause, mut missed) = (limits::MCP_PAUSE, 0);
    while offers_changes(&peer) {
        let began = Instant::now();
        match peer.listen(filter.clone()).await {
            Ok(mut stream) => {
                changes.send_if_modified(|count| {
                    *count += missed;
                    missed > 0
                });
                while let Ok(Some(_counted_on_its_way_in)) = stream.next().await {}
            }
            Err(ServiceError::McpError(error)) => {
                tracing::debug!(%error, "an MCP server does not say when its tools change");
                break;
            }
            Err(error) => tracing::debug!(%error, "an MCP server could not be listened to"),
        }
        missed = 1;
        if began.elapsed() >= limits::MCP_WELL {
            pause = limits::MCP_PAUSE;
        }
        sleep(pause).await;
        pause = (pause * 2).min(limits::MCP_HEAR_PAUSE_LONG);
    }
    pending().await
}

fn offers_changes(peer: &Peer<RoleClient>) -> bool {
    let Some(server) = peer.peer_info() else { return false };
    let tools = server.capabilities.tools.as_ref();
    !server.protocol_version.has_initialize() && tools.is_some_and(|tools| tools.list_changed == Some(true))
}

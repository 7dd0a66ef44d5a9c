//! The servers of tools that a run uses.

use std::sync::Arc;

use futures_util::future::join_all;
use safepoint::Tool;
use safepoint_tools::mcp::{Client, McpError, Offer, Server};

use crate::output;

/// The servers that a run uses, until it is over, each with what it offered at first.
#[derive(Default)]
pub(crate) struct Used {
    clients: Vec<(Client, Vec<Arc<dyn Tool>>)>,
}

impl Used {
    /// Starts or reaches servers, all at once. Each that failed is given to `failed`.
    pub(crate) async fn start(servers: Vec<Server>, mut failed: impl FnMut(&McpError)) -> Self {
        let started = join_all(servers.into_iter().map(|server| async {
            let client = server.connect().await?;
            let offer = client.offer().await?;
            warn(client.name(), &offer);
            Ok::<_, McpError>((client, offer.tools))
        }));
        let mut used = Self::default();
        for result in started.await {
            match result {
                Ok(of_one) => used.clients.push(of_one),
                Err(error) => failed(&error),
            }
        }
        used
    }

    /// What they offered at first.
    pub(crate) fn offered(&self) -> impl Iterator<Item = Arc<dyn Tool>> {
        self.clients.iter().flat_map(|(_, offered)| offered).cloned()
    }

    /// The name of each, and how many tools it offered at first.
    pub(crate) fn counted(&self) -> Vec<(String, usize)> {
        self.clients.iter().map(|(client, offered)| (client.name().to_owned(), offered.len())).collect()
    }

    /// How often one of them has changed its tools.
    pub(crate) fn changes(&self) -> u64 {
        self.clients.iter().map(|(client, _)| client.changes()).sum()
    }

    /// What they offer now; of one that cannot be asked, what it offered at first.
    pub(crate) async fn offers(&self) -> Vec<Arc<dyn Tool>> {
        let asked = self
            .clients
            .iter()
            .map(|(client, offered)| async { client.tools().await.unwrap_or_else(|_gone| offered.clone()) });
        join_all(asked).await.concat()
    }

    /// Ends them, all at once.
    pub(crate) async fn close(&self) {
        join_all(self.clients.iter().map(|(client, _)| client.close())).await;
    }
}

/// Warns of each name in a server's entry that matches no tool.
pub(crate) fn warn(name: &str, offer: &Offer) {
    for what in &offer.unmatched {
        output::tell(format_args!("safepoint: [mcp.{name}] {}", what));
    }
}

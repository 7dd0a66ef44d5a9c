//! One agent in a host of this process, for a client that has started it.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use safepoint_server::Host;

use super::agents::{ServedAgent, WantedAgents, wanted};
use crate::{args::agent::AgentArgs, exit::Usage, settings::store::open_store};

/// An agent, and the host in which it works.
pub(in crate::command) struct LocalAgent {
    pub(in crate::command) host: Host,
    pub(in crate::command) name: String,
    served: Arc<ServedAgent>,
}

impl LocalAgent {
    /// The agent of this name; the only one, if none is named.
    ///
    /// # Errors
    /// If there is none, and why it cannot be made.
    ///
    /// # Cancel safety
    /// What was begun ends.
    pub(in crate::command) async fn of(
        named: Option<&str>,
        args: AgentArgs,
        store: Option<PathBuf>,
    ) -> anyhow::Result<Self> {
        let WantedAgents { mut agents, .. } = wanted(&args, store.as_ref())?;
        let names: Vec<&str> = agents.iter().map(|one| one.name.as_str()).collect();
        let found = match named {
            Some(named) => agents.iter().position(|one| one.name == named),
            None if agents.len() == 1 => Some(0),
            None => None,
        };
        let Some(found) = found else {
            let names = names.join(", ");
            return Err(match named {
                Some(named) => Usage(format!("there is no agent `{named}`; there are: {names}")),
                None => Usage(format!("name one of the agents with --agent: {names}")),
            }
            .into());
        };
        let one = agents.swap_remove(found);
        let served = Arc::new(ServedAgent::of(&one.name, one.settings).await?);
        let lives = Arc::clone(&served);
        let host = Host::builder(open_store(store)?)
            .described(&one.name, one.description, served.agent.clone())
            .on_lease(move |until| lives.deadline.extend(until))
            .only_when_asked();
        let host = host.start().await.context("the store cannot be joined")?;
        Ok(Self { host, name: one.name, served })
    }

    /// Stops what is left, gives every session back, and closes the servers of tools.
    ///
    /// # Cancel safety
    /// What was stopped stays stopped.
    pub(in crate::command) async fn end(self, within: Duration) {
        self.host.drain(within).await;
        self.served.close().await;
    }
}

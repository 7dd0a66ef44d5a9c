//! One agent in a host of this process, for a client that has started it.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use safepoint_server::Host;

use super::agents::{ServedAgent, WantedAgents, wanted};
use crate::{
    args::local::LocalArgs,
    command::unless::unless,
    exit::Usage,
    settings::store::open_store,
    signals::{Signal, Signals},
};

/// How long what is left may take to stop at the end.
const DRAIN: Duration = Duration::from_secs(2);

/// An agent, and the host in which it works.
pub(in crate::command) struct LocalAgent {
    pub(in crate::command) host: Host,
    pub(in crate::command) name: String,
    served: Arc<ServedAgent>,
}

impl LocalAgent {
    /// The agent of this name; the only one, if none is named. Instead, the signal that came before it was there.
    ///
    /// # Errors
    /// If there is none, and why it cannot be made.
    ///
    /// # Cancel safety
    /// What was begun ends.
    pub(in crate::command) async fn of(
        args: LocalArgs,
        signals: &mut Signals,
    ) -> anyhow::Result<Result<Self, Signal>> {
        unless(signals, Self::made(args)).await.map_or_else(|got| Ok(Err(got)), |made| made.map(Ok))
    }

    async fn made(args: LocalArgs) -> anyhow::Result<Self> {
        let LocalArgs { named, agent, store } = args;
        let WantedAgents { mut agents, .. } = wanted(&agent, store.as_ref())?;
        let names: Vec<&str> = agents.iter().map(|one| one.name.as_str()).collect();
        let found = match &named {
            Some(named) => agents.iter().position(|one| one.name == *named),
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
        let host = Host::builder(open_store(store).await?)
            .described(&one.name, one.description, served.agent.clone())
            .on_lease(move |until| lives.deadline.extend(until))
            .only_when_asked();
        let host = host.start().await.context("the store cannot be joined")?;
        Ok(Self { host, name: one.name, served })
    }

    /// Serves its client until that closes its input, or until a signal. Then stops what is left, gives every session back, and
    /// closes the servers of tools, or ends at once by another signal.
    ///
    /// # Cancel safety
    /// What was stopped stays stopped.
    pub(in crate::command) async fn serves(self, served: impl Future<Output = ()>, signals: &mut Signals) {
        if unless(signals, served).await.is_err() {
            // What was not said is not said any more; what runs is stopped by the drain.
        }
        let ending = async {
            self.host.drain(DRAIN).await;
            self.served.close().await;
        };
        if unless(signals, ending).await.is_err() {
            // What is left ends with the program.
        }
    }
}

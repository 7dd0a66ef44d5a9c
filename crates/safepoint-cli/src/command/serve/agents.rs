//! The agents of the server, each made of its settings.

use std::sync::Arc;

use safepoint::{Agent, raw::remote::AfterWord};
use safepoint_testkit::server::ModelServer;
use safepoint_tools::process::Deadline;

use crate::{
    agent::{
        backend,
        current::{Asking, Making, build},
        helpers::Helpers,
        mcp::Used,
        mode::{CurrentMode, PlanEnd},
        model::Chosen,
        tools,
    },
    output,
    session::processes,
    settings::AgentSettings,
};

/// An agent, and what lives as long as it.
pub(super) struct ServedAgent {
    pub(super) agent: Agent,
    /// Until when its commands may live.
    pub(super) deadline: Deadline,
    servers: Used,
    _practice: Option<Arc<ModelServer>>,
}

impl ServedAgent {
    /// Makes it. What asks waits for a decision: there is no terminal.
    ///
    /// # Errors
    /// If the settings make no agent.
    ///
    /// # Cancel safety
    /// What was begun ends.
    pub(super) async fn of(name: &str, settings: AgentSettings) -> anyhow::Result<Self> {
        settings.args.check()?;
        let (processes, deadline) = processes::processes(&settings).await;
        let note = |word: &str| output::tell(format_args!("safepoint: {name}: {word}"));
        let Chosen { builder, notice, _server, .. } =
            backend::choose(&settings, &processes, AfterWord::Listens).await?;
        notice.iter().for_each(|word| note(word));
        let sandbox = tools::sandbox(&settings, note, &processes).await?;
        let settings = AgentSettings { sandbox, ..settings };
        let (mut tools, servers) = tools::chosen(&settings, note, &processes).await?;
        tools.extend(servers.offered());
        let helpers = match settings.args.backend {
            Some(_) => Helpers::default(),
            None => Helpers::of(&settings, &tools, note).await,
        };
        let mode = CurrentMode::of(&settings.args, PlanEnd::Answer);
        let making = Making { settings: &settings, asking: &Asking::Later, mode: &mode, helpers: &helpers };
        let agent = build(builder, &tools, &making)?;
        Ok(Self { agent, deadline, servers, _practice: _server })
    }

    /// Closes its servers of tools.
    ///
    /// # Cancel safety
    /// They end with the program.
    pub(super) async fn close(&self) {
        self.servers.close().await;
    }
}

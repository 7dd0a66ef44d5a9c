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
    args::{agent::AgentArgs, place::StorePlace},
    output,
    session::processes,
    settings::{
        AgentSettings,
        config::{self, Config},
        server::{self, ServerSettings},
        store::kept_in,
    },
};

/// An agent before it is made.
pub(super) struct WantedAgent {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) surfaces: Vec<String>,
    pub(super) settings: AgentSettings,
}

/// What the config file and the flags say.
pub(super) struct WantedAgents {
    pub(super) of_server: ServerSettings,
    pub(super) agents: Vec<WantedAgent>,
}

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
        settings.project.lines().for_each(|line| note(&line));
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

/// Reads the config file; without agents there, the flags and the rest of the file make one.
///
/// # Errors
/// What is wrong with it.
pub(super) fn wanted(args: &AgentArgs, store: Option<&StorePlace>) -> anyhow::Result<WantedAgents> {
    let file = config::text(args.config.as_deref())?;
    let (config, agents) = match &file {
        Some((path, text)) => (Config::read(path.clone(), text)?, server::agents(path, text)?),
        None => (Config::default(), Vec::new()),
    };
    let of_server = config.server.clone();
    let kept_in = kept_in(Some(&String::new()), store)?;
    let filled = |config: Config| AgentSettings {
        kept_in: kept_in.clone(),
        ..AgentSettings::around(args.clone(), config, None)
    };
    if agents.is_empty() {
        let (name, description) = ("default".to_owned(), String::new());
        let settings = filled(config);
        let agents = vec![WantedAgent { name, description, surfaces: Vec::new(), settings }];
        return Ok(WantedAgents { of_server, agents });
    }
    let agents = agents.into_iter().map(|one| {
        let settings = filled(one.config);
        WantedAgent { name: one.name, description: one.description, surfaces: one.surfaces, settings }
    });
    Ok(WantedAgents { of_server, agents: agents.collect() })
}

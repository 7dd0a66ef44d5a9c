//! Who does the work: a model, or with `--backend` somebody else's agent. Each kind of those is one line here.

use clap::{Args, ValueEnum};
use safepoint::{Agent, receipt::Grade};
use safepoint_remote::{a2a::A2a, acp::Acp};
use safepoint_tools::process::Processes;
use serde::{Deserialize, Serialize};

use crate::{
    args::{AgentArgs, Usage},
    model::{self, Chosen},
};

/// How a backend is named.
const KINDS: &str = "acp:\"COMMAND\" or a2a:URL";

/// What is known of somebody else's agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Known {
    /// What a stop does to the work of an A2A agent: `hard` believes it when it says that its task is canceled
    #[arg(long, value_name = "GRADE", requires = "backend", default_value = "caller-side")]
    pub(crate) backend_stops: Stops,
    /// The variable that holds the token of an A2A agent
    #[arg(long, value_name = "NAME", requires = "backend")]
    pub(crate) backend_key_env: Option<String>,
}

/// What a stop does there. Exhaustive: the three grades.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Stops {
    /// It ends the work, and then says so
    Hard,
    /// It says so, and the work may go on
    #[default]
    CallerSide,
    /// It is not supported
    None,
}

/// Chooses the backend that the arguments name, else a model.
pub(crate) async fn choose(args: &AgentArgs, processes: &Processes) -> anyhow::Result<Chosen> {
    let Some(named) = &args.backend else { return model::choose(args).await };
    args.check()?;
    let Some((kind, place)) = named.split_once(':').filter(|(_, place)| !place.trim().is_empty()) else {
        return Err(Usage(format!("--backend {named}: write {KINDS}")).into());
    };
    let builder = match kind {
        "acp" => {
            let mut agent = Acp::shell("acp", place).under(processes);
            if let Some(root) = &args.root {
                agent = agent.cwd(root);
            }
            if let Some(store) = &args.kept_in {
                // Beside the store, whose sessions its sessions belong to.
                let mut folder = store.clone().into_os_string();
                folder.push(".acp");
                agent = agent.remember_in(folder);
            }
            Agent::over(agent)
        }
        "a2a" => Agent::over(a2a(place, &args.known)?),
        other => return Err(Usage(format!("there is no backend `{other}`; write {KINDS}")).into()),
    };
    Ok(Chosen { builder, name: named.clone(), notice: None, replay: None, _server: None })
}

/// An agent behind A2A. Its card is read before its first message, so that one that is not there is a run that failed.
fn a2a(url: &str, known: &Known) -> anyhow::Result<A2a> {
    let usage = |why: &dyn std::fmt::Display| Usage(format!("--backend a2a:{url}: {why}"));
    let agent = A2a::at(url).map_err(|error| usage(&error))?.named("a2a");
    let agent = match &known.backend_key_env {
        None => agent,
        Some(name) => {
            let token = std::env::var(name)
                .map_err(|_unset| Usage(format!("--backend-key-env {name}: it is not set")))?;
            agent.bearer(&token.into()).map_err(|error| usage(&error))?
        }
    };
    Ok(agent.grade(match known.backend_stops {
        Stops::Hard => Grade::Hard,
        Stops::CallerSide => Grade::CallerSide,
        Stops::None => Grade::None,
    }))
}

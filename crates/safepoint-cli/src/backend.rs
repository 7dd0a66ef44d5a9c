//! Who does the work: a model, or with `--backend` somebody else's agent. Each kind of those is one line here.

use safepoint::Agent;
use safepoint_remote::acp::Acp;
use safepoint_tools::process::Processes;

use crate::{
    args::{AgentArgs, Usage},
    model::{self, Chosen},
};

/// How a backend is named.
const KINDS: &str = "acp:\"COMMAND\"";

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
        other => return Err(Usage(format!("there is no backend `{other}`; write {KINDS}")).into()),
    };
    Ok(Chosen { builder, name: named.clone(), notice: None, _server: None })
}

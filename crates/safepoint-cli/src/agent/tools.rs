//! Which tools a run has: ours by name, and those of the config file's servers.

use std::{path::PathBuf, sync::Arc};

use anyhow::Context as _;
use safepoint::Tool;
use safepoint_tools::{Root, SecretFiles, Toolbox, process::Processes};

use crate::{
    agent::mcp::Used,
    args::agent::SandboxSwitch,
    exit::Usage,
    settings::{AgentSettings, sandbox::Sandbox},
};

/// All servers, in a list of tools; one of them with its name behind a colon.
const SERVERS: &str = "mcp";

/// What `--tools` asks for: our own, and the servers with theirs. A server that was named and cannot be had is an error; one of all of them is left out with a
/// word to `note`.
pub(crate) async fn chosen(
    settings: &AgentSettings,
    note: impl Fn(&str),
    processes: &Processes,
) -> anyhow::Result<(Vec<Arc<dyn Tool>>, Used)> {
    let args = &settings.args;
    let list = args.tools.as_deref().unwrap_or("none");
    let items: Vec<&str> = list.split(',').map(str::trim).collect();
    let of_server = |item: &&str| item.split(':').next() == Some(SERVERS);
    let ours: Vec<&str> = items.iter().copied().filter(|item| !of_server(item)).collect();
    let tools = own(settings, &ours.join(","), processes)?;
    let mut servers = Vec::new();
    let mut missed = None;
    for item in items.iter().filter(|item| of_server(item) || **item == "all") {
        servers.extend(match item.split_once(':') {
            Some((_, name)) => vec![settings.servers.one(name)?],
            None => settings.servers.all()?,
        });
    }
    servers.dedup_by(|one, other| one.name() == other.name());
    let servers = servers.into_iter().map(|server| server.under(processes)).collect();
    let used = Used::start(servers, |error| {
        if items.iter().any(|item| item.split_once(':').is_some_and(|(_, name)| name == error.server())) {
            missed = Some(error.clone());
        } else {
            note(&format!("{error}; its tools are left out"));
        }
    });
    let used = used.await;
    match missed {
        Some(error) => Err(error.into()),
        None => Ok((tools, used)),
    }
}

fn own(settings: &AgentSettings, list: &str, processes: &Processes) -> anyhow::Result<Vec<Arc<dyn Tool>>> {
    if matches!(list.trim(), "none" | "") {
        return Ok(Vec::new());
    }
    let root = Root::open(root(settings)?).map_err(|error| Usage(format!("--root: {error}")))?;
    let secrets = SecretFiles::and(&settings.secret_files)
        .map_err(|error| Usage(format!("secret_files of the config file: {error}")))?;
    let (processes, mut list) = (processes.clone(), list.to_owned());
    let toolbox = match settings.sandbox.confinement() {
        Some(confinement) => {
            // Who may use the one may ask for the other.
            if has_shell(&list) && list.trim() != "all" {
                list.push_str(",shell_outside");
            }
            Toolbox::confining(root, processes, secrets, confinement.clone())
        }
        None => Toolbox::guarding(root, processes, secrets),
    };
    Ok(toolbox.select(&list).map_err(|error| Usage(format!("--tools: {error}")))?)
}

/// What confines the commands of these settings, where they have any; before [`chosen`]. Lines that the person must know
/// are given to `note`.
///
/// # Errors
/// If the working directory cannot be used.
pub(crate) async fn sandbox(
    settings: &AgentSettings,
    note: impl Fn(&str),
    processes: &Processes,
) -> anyhow::Result<Sandbox> {
    let is_off = settings.args.sandbox == Some(SandboxSwitch::Off);
    if is_off || !has_shell(settings.args.tools.as_deref().unwrap_or("none")) {
        return Ok(Sandbox::default());
    }
    let layers = processes.layers().await;
    Ok(Sandbox::of((settings, &root(settings)?), &layers, note))
}

fn has_shell(list: &str) -> bool {
    list.split(',').map(str::trim).any(|name| matches!(name, "all" | "shell" | "shell_outside"))
}

/// Where the tools work.
pub(super) fn root(settings: &AgentSettings) -> anyhow::Result<PathBuf> {
    match &settings.args.root {
        Some(root) => Ok(root.clone()),
        None => std::env::current_dir().context("the working directory cannot be used; name one with --root"),
    }
}

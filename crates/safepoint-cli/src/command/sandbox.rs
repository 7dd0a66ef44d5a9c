//! `safepoint sandbox`: a command of a person, confined as one of an agent.

use std::process::ExitCode;

use anyhow::Context as _;
use safepoint_tools::{Layers, Opening, process::Processes};
use tokio::{
    process::Command,
    signal::unix::{SignalKind, signal},
};

use crate::{
    args::sandbox::{Open, SandboxArgs},
    exit, output,
    settings::{config::Config, sandbox},
};

/// The code of a shell for a program that a signal ended, less the signal.
const BY_SIGNAL: i32 = 128;

/// Runs the command, or lists what is enforced.
///
/// # Errors
/// If there is no such root, or the command cannot be started.
pub(crate) async fn sandbox(args: SandboxArgs) -> anyhow::Result<ExitCode> {
    let SandboxArgs { root, open, config, command } = args;
    let layers = Processes::new(format!("sandbox_{}", uuid::Uuid::now_v7().simple())).layers().await;
    let root = root.map_or_else(std::env::current_dir, Ok).context("the working directory cannot be used")?;
    let Some((program, rest)) = command.split_first() else { return list(&layers) };
    let commands = Config::load(config.as_deref())?.commands;
    let hidden = sandbox::hidden(None, config.as_deref());
    if layers.is_empty() {
        let why = layers.missing().join("; ");
        return Err(exit::Usage(format!("nothing of the sandbox is enforced here: {why}")).into());
    }
    for lacking in layers.missing() {
        output::tell(format_args!("safepoint: warning: {lacking}"));
    }
    let confinement = sandbox::confined(&root, &layers, &commands, hidden).map_err(exit::Usage)?;
    let confinement = match open {
        Some(Open::Network) => confinement.open(Opening::Network),
        Some(Open::Files) => confinement.open(Opening::Files),
        None => confinement,
    };
    let usual = commands.environment([]);
    let given = std::env::vars_os().filter(|(name, _)| usual.gives(name));
    // The terminal signals the command too: that one decides what they mean.
    let _ignored = (signal(SignalKind::interrupt())?, signal(SignalKind::quit())?);
    let mut child = Command::new("/proc/self/exe")
        .args(confinement.command(program, rest))
        .env_clear()
        .envs(given)
        .env("TMPDIR", confinement.temporary())
        .current_dir(&root)
        .spawn()
        .context("the sandbox cannot be started")?;
    let status = child.wait().await.context("the command was lost")?;
    let by_signal = std::os::unix::process::ExitStatusExt::signal(&status).map(|signal| BY_SIGNAL + signal);
    let code = status.code().or(by_signal).and_then(|code| u8::try_from(code).ok());
    Ok(exit::with(code.unwrap_or(exit::code::OTHER)))
}

/// Says what is enforced.
fn list(layers: &Layers) -> anyhow::Result<ExitCode> {
    if layers.is_complete() {
        output::say(
            "all of the sandbox is enforced here: files, processes, sockets, and a separate network",
        )?;
        return Ok(exit::with(exit::code::ACCEPTED));
    }
    for lacking in layers.missing() {
        output::say(format_args!("not enforced: {lacking}"))?;
    }
    Ok(exit::with(exit::code::OTHER))
}

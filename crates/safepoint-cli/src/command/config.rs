//! `safepoint config`: what holds, where it comes from, and consent to a project's file.

use std::process::ExitCode;

use anyhow::Context as _;

use crate::{
    args::config::{ConfigArgs, ConfigCommand, PlaceArgs},
    exit::{self, Usage, code},
    output,
    settings::{
        config::{Config, place},
        project_files::{
            ProjectPlace, ProjectText,
            config::ProjectConfig,
            trust::{self, Consent},
        },
        sources,
    },
};

/// Does it.
///
/// # Errors
/// If a file is wrong, or the consent cannot be kept.
pub(crate) fn config(args: ConfigArgs) -> anyhow::Result<ExitCode> {
    match args.command.unwrap_or(ConfigCommand::Show) {
        ConfigCommand::Show => show(&args.place),
        ConfigCommand::Trust => decide(&args.place, Consent::Given),
        ConfigCommand::Distrust => decide(&args.place, Consent::Refused),
    }
}

fn show(args: &PlaceArgs) -> anyhow::Result<ExitCode> {
    let config = Config::load(args.config.as_deref())?;
    let around =
        ProjectPlace::around(args.root.as_deref()).context("the working directory cannot be used")?;
    let around = Some(around).filter(|_| config.reads_projects());
    output::say(format!("# {}", place(args.config.as_deref()).trim_end_matches(',')))?;
    let project = around.as_ref().and_then(|around| Some((around, around.config()?)));
    let project =
        project.map(|(around, path)| ProjectConfig::read(&path, around.root()).map_err(|why| (path, why)));
    match &project {
        Some(Ok(project)) => output::say(format!("# the project's file {}", project.path().display()))?,
        Some(Err((path, why))) => output::say(format!("# nothing of {} is taken: {why}", path.display()))?,
        None => output::say("# no file of a project (.safepoint/config.toml)")?,
    }
    let project = project.and_then(Result::ok);
    for line in sources::lines(args.config.as_deref(), project.as_ref())? {
        output::say(line)?;
    }
    let text = around.as_ref().map(ProjectText::read).unwrap_or_default();
    for file in text.instructions.files() {
        let cut = if file.is_cut { ", cut" } else { "" };
        output::say(format!("# instructions: {} ({} bytes{cut})", file.path.display(), file.bytes()))?;
    }
    for (name, what) in text.commands.list() {
        output::say(format!("# command: /{name}  {what}"))?;
    }
    for agent in &text.agents {
        output::say(format!("# agent: {}  {}", agent.name, agent.description))?;
    }
    let notes = project.iter().flat_map(ProjectConfig::notes).chain(text.notes);
    notes.for_each(|note| output::tell(format_args!("safepoint: {note}")));
    Ok(exit::with(code::ACCEPTED))
}

/// Keeps what the person says of the project's file as it is now.
fn decide(args: &PlaceArgs, consent: Consent) -> anyhow::Result<ExitCode> {
    let around =
        ProjectPlace::around(args.root.as_deref()).context("the working directory cannot be used")?;
    let none =
        || Usage(format!("there is no .safepoint/config.toml in {} or above", around.root().display()));
    let path = around.config().ok_or_else(none)?;
    let project = ProjectConfig::read(&path, around.root())
        .map_err(|why| Usage(format!("nothing of {} is taken: {why}", path.display())))?;
    trust::keep(project.digest(), consent).context("your answer cannot be kept")?;
    let path = path.display();
    output::say(match consent {
        Consent::Given => {
            format!("{path} is taken as it is now; a change of it needs `safepoint config trust` again")
        }
        Consent::Refused | Consent::NotAsked => format!("of {path} only what cannot weaken safety is taken"),
    })?;
    Ok(exit::with(code::ACCEPTED))
}

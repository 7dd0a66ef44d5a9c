//! What holds in a chat, for `/status`.

use crate::{
    agent::{current::CurrentAgent, tools},
    args::agent::{Approve, SandboxSwitch},
    render::chat::status::Status,
    settings::AgentSettings,
};

/// What holds for an agent with these settings, beside its mode and its servers.
pub(super) fn of(crew: &CurrentAgent, settings: &AgentSettings, servers: Vec<(String, usize)>) -> Status {
    let of_project = settings.project.instructions.files();
    Status {
        at: settings.args.base_url.clone(),
        root: tools::root(settings).unwrap_or_default(),
        mode: crew.modes().0,
        commands: commands(settings),
        approvals: approvals(settings),
        store: settings.kept_in.as_ref().map(ToString::to_string),
        servers,
        files: of_project.iter().map(|file| file.path.display().to_string()).collect(),
    }
}

fn commands(settings: &AgentSettings) -> String {
    let is_off = settings.args.sandbox == Some(SandboxSwitch::Off);
    let what = match (settings.sandbox.confinement(), settings.sandbox.is_complete()) {
        _ if settings.args.backend.is_some() => "those of the external agent: it confines them, or not",
        (Some(_), true) => "in the sandbox (`safepoint sandbox` says what of it is enforced)",
        (Some(_), false) => "in the sandbox in part, so each asks; `safepoint sandbox` says what is missing",
        (None, _) if is_off => "not confined: the sandbox is off",
        (None, _) => "not confined",
    };
    what.to_owned()
}

fn approvals(settings: &AgentSettings) -> String {
    let who = match settings.args.approve.unwrap_or(Approve::Ask) {
        Approve::Ask | Approve::Edits => "you are asked",
        Approve::Auto => "every call runs unasked",
        Approve::Deny => "calls that need one are denied",
    };
    match settings.rules.len() {
        0 => who.to_owned(),
        1 => format!("{who}; a rule of the config file comes first"),
        many => format!("{who}; {many} rules of the config file come first"),
    }
}

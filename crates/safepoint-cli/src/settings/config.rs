//! The config file: what the command line does not say.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Deserialize;
use toml::Spanned;

use crate::{
    args::{
        agent::{AgentArgs, Approve, OnFull, Restart, Unknown, fill},
        duration::parse_or_never,
        mode::StartMode,
    },
    exit::Usage,
    prices::{self, OwnPrice},
    render::chat::{attention::Notify, markdown::look::Theme},
    settings::{
        AgentSettings,
        commands::Commands,
        mcp::Servers,
        project_files::{ProjectPlace, ProjectText, config::ProjectConfig},
        rules::{Rules, Written},
        sandbox::Sandbox,
        server::ServerSettings,
    },
};

/// What a config file may say. The command line outranks it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    model: Option<String>,
    base_url: Option<String>,
    api_key_env: Option<String>,
    system: Option<String>,
    max_tokens: Option<u64>,
    temperature: Option<f64>,
    window: Option<u64>,
    on_full: Option<OnFull>,
    tools: Option<String>,
    parallel: Option<usize>,
    approve: Option<Approve>,
    mode: Option<StartMode>,
    unknown: Option<Unknown>,
    on_restart: Option<Restart>,
    approval_expiry: Option<String>,
    max_rounds: Option<u32>,
    pub(crate) mcp: Servers,
    pub(crate) commands: Commands,
    rules: Vec<Spanned<Written>>,
    secret_files: Vec<String>,
    snapshots: Option<bool>,
    prices: BTreeMap<String, OwnPrice>,
    /// Whether anything of a project is read; by default it is.
    project: Option<bool>,
    theme: Option<Theme>,
    notify: Option<Notify>,
    pub(crate) server: ServerSettings,
    /// Each as it is written: [`agents`](super::server::agents) reads them.
    agents: toml::Table,
    /// Whether a conversation on a terminal is stored, if it is not said.
    pub(crate) keep: Option<bool>,
    #[serde(skip)]
    expiry: Option<Duration>,
    #[serde(skip)]
    read: Rules,
}

impl Config {
    /// Reads the named file, or the usual one where it exists.
    pub(crate) fn load(named: Option<&Path>) -> anyhow::Result<Self> {
        match text(named)? {
            Some((path, text)) => Ok(Self::read(path, &text)?),
            None => Ok(Self::default()),
        }
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub(crate) fn read(path: PathBuf, text: &str) -> Result<Self, Usage> {
        let mut config: Self = toml::from_str(text).map_err(|error| {
            let why = error.to_string();
            let why = why.trim_end();
            let path = path.display();
            Usage(format!("invalid config {path}; fix it or pass --config\n{why}"))
        })?;
        let expiry = config.approval_expiry.as_deref().map(parse_or_never).transpose();
        config.expiry = expiry
            .map_err(|why| Usage(format!("approval_expiry in the config {}: {why}", path.display())))?;
        prices::check(&config.prices)?;
        config.read = Rules::read(path, text, std::mem::take(&mut config.rules))?;
        Ok(config)
    }

    pub(crate) fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    pub(crate) fn api_key_env(&self) -> Option<&str> {
        self.api_key_env.as_deref()
    }

    pub(crate) fn reads_projects(&self) -> bool {
        self.project != Some(false)
    }

    /// This file's settings together with those of a project, as far as they are taken, and what the person should know.
    pub(super) fn beside_project(self, place: Option<&ProjectPlace>) -> (Self, Vec<String>) {
        let Some(path) = place.and_then(ProjectPlace::config) else { return (self, Vec::new()) };
        let inside = place.map(ProjectPlace::root).unwrap_or(&path);
        match ProjectConfig::read(&path, inside) {
            Ok(project) => {
                let notes = project.notes();
                (self.under(project), notes)
            }
            Err(why) => (self, vec![format!("nothing of {} is taken: {why}", path.display())]),
        }
    }

    /// The project's settings over these; what adds something adds it.
    fn under(mut self, project: ProjectConfig) -> Self {
        let taken = project.taken();
        let mut it = project.config;
        let take = |key: &str| taken.iter().any(|taken| taken == key);
        macro_rules! over {
            ($($key:ident),+) => { $(if take(stringify!($key)) { self.$key = it.$key.take().or(self.$key); })+ };
        }
        over!(
            model,
            max_tokens,
            temperature,
            window,
            on_full,
            tools,
            parallel,
            approve,
            mode,
            unknown,
            on_restart,
            max_rounds,
            snapshots
        );
        if take("approval_expiry") {
            self.expiry = it.expiry.or(self.expiry);
        }
        if take("mcp") {
            self.mcp.add(it.mcp);
        }
        if take("commands") {
            self.commands.add(it.commands);
        }
        if take("rules") {
            self.read = self.read.beside(it.read);
        }
        if take("secret_files") {
            self.secret_files.append(&mut it.secret_files);
        }
        self
    }

    /// Fills in what the command line left open.
    pub(crate) fn fill(self, mut args: AgentArgs) -> AgentSettings {
        args.approval_expiry = args.approval_expiry.or(self.expiry);
        // Each of the two that was typed outranks both that are written here.
        let is_typed = args.mode.is_some() || args.approve.is_some();
        let (mode, approve) = if is_typed { (None, None) } else { (self.mode, self.approve) };
        (args.mode, args.approve) = (args.mode.or(mode), args.approve.or(approve));
        fill!(args, self: model, base_url, api_key_env, system, max_tokens, temperature, window, on_full);
        fill!(args, self: tools, parallel, unknown, on_restart, max_rounds);
        args.sandbox = args.sandbox.or(self.commands.sandbox);
        AgentSettings {
            args,
            servers: self.mcp,
            commands: self.commands,
            kept_in: None,
            remembered: None,
            secret_files: self.secret_files,
            sandbox: Sandbox::default(),
            rules: self.read,
            snapshots: self.snapshots,
            prices: self.prices,
            project: ProjectText::default(),
            theme: self.theme,
            notify: self.notify.unwrap_or_default(),
        }
    }
}

/// The path and the text of the config file, if there is one.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn text(named: Option<&Path>) -> Result<Option<(PathBuf, String)>, Usage> {
    let path = match (named, usual()) {
        (Some(path), _) => path.to_owned(),
        (None, Some(usual)) if usual.exists() => usual,
        (None, _) => return Ok(None),
    };
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Usage(format!("the config {} cannot be read: {error}", path.display())))?;
    Ok(Some((path, text)))
}

/// The usual config file, be it there or not.
pub(crate) fn user_file() -> Option<PathBuf> {
    usual()
}

/// The config file that is meant, in words, be it there or not.
pub(crate) fn place(named: Option<&Path>) -> String {
    match named.map(Path::to_owned).or_else(usual) {
        Some(path) if path.exists() => format!("the config file {}", path.display()),
        Some(path) => format!("the config file {}, which does not exist,", path.display()),
        None => "the config file (there is no home directory for it)".to_owned(),
    }
}

/// The folder of the usual config file.
pub(crate) fn folder() -> Option<PathBuf> {
    usual()?.parent().map(Path::to_owned)
}

/// `$XDG_CONFIG_HOME/safepoint/config.toml`, or below `~/.config`; none without a home directory.
fn usual() -> Option<PathBuf> {
    let named = |variable| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = named("XDG_CONFIG_HOME").or_else(|| named("HOME").map(|home| home.join(".config")))?;
    Some(folder.join("safepoint").join("config.toml"))
}

#[cfg(test)]
mod tests;

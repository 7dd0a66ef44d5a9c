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
        agent::{AgentArgs, Approve, OnFull, Unknown, fill},
        duration::parse_or_never,
    },
    exit::Usage,
    prices::OwnPrice,
    settings::{
        AgentSettings,
        chat::{ChatSettings, Notify},
        commands::Commands,
        mcp::Servers,
        rules::{Rules, Written},
        sandbox::Sandbox,
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
    unknown: Option<Unknown>,
    approval_expiry: Option<String>,
    max_rounds: Option<u32>,
    pub(crate) mcp: Servers,
    pub(crate) commands: Commands,
    rules: Vec<Spanned<Written>>,
    secret_files: Vec<String>,
    snapshots: Option<bool>,
    prices: BTreeMap<String, OwnPrice>,
    notify: Option<Notify>,
    #[serde(skip)]
    chat: ChatSettings,
    #[serde(skip)]
    expiry: Option<Duration>,
    #[serde(skip)]
    read: Rules,
}

impl Config {
    /// Reads the named file, or the usual one where it exists.
    pub(crate) fn load(named: Option<&Path>) -> anyhow::Result<Self> {
        let path = match (named, usual()) {
            (Some(path), _) => path.to_owned(),
            (None, Some(usual)) if usual.exists() => usual,
            (None, _) => return Ok(Self::default()),
        };
        let text = std::fs::read_to_string(&path)
            .map_err(|error| Usage(format!("the config {} cannot be read: {error}", path.display())))?;
        let mut config: Self = toml::from_str(&text).map_err(|error| {
            let why = error.to_string();
            let why = why.trim_end();
            let path = path.display();
            Usage(format!("invalid config {path}; fix it or pass --config\n{why}"))
        })?;
        let expiry = config.approval_expiry.as_deref().map(parse_or_never).transpose();
        config.expiry = expiry
            .map_err(|why| Usage(format!("approval_expiry in the config {}: {why}", path.display())))?;
        config.chat = ChatSettings::new(std::mem::take(&mut config.prices), config.notify)?;
        config.read = Rules::read(path, &text, std::mem::take(&mut config.rules))?;
        Ok(config)
    }

    /// Fills in what the command line left open.
    pub(crate) fn fill(self, mut args: AgentArgs) -> AgentSettings {
        args.approval_expiry = args.approval_expiry.or(self.expiry);
        fill!(args, self: model, base_url, api_key_env, system, max_tokens, temperature, window, on_full);
        fill!(args, self: tools, parallel, approve, unknown, max_rounds);
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
            chat: self.chat,
        }
    }
}

/// The config file that is meant, in words, be it there or not.
pub(crate) fn place(named: Option<&Path>) -> String {
    match named.map(Path::to_owned).or_else(usual) {
        Some(path) if path.exists() => format!("the config file {}", path.display()),
        Some(path) => format!("the config file {}, which does not exist,", path.display()),
        None => "the config file, which no home directory could hold,".to_owned(),
    }
}

/// The folder of the usual config file.
pub(super) fn folder() -> Option<PathBuf> {
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

//! What was typed, and what the config file and the session say beside it.

use std::path::{Path, PathBuf};

use safepoint::ids::SessionId;

use crate::{
    args::{agent::AgentArgs, names},
    output,
    settings::{
        chat::ChatSettings,
        commands::Commands,
        config::Config,
        mcp::Servers,
        remembered::Setup,
        rules::Rules,
        sandbox::Sandbox,
        store::{existing_store, row_of},
    },
};

pub(crate) mod chat;
pub(crate) mod commands;
pub(crate) mod config;
pub(crate) mod mcp;
pub(crate) mod remembered;
pub(crate) mod rules;
pub(crate) mod sandbox;
pub(crate) mod secrets;
pub(crate) mod snapshots;
pub(crate) mod store;

/// What works, and under which limits, once all is read that speaks of it.
#[derive(Clone, Debug)]
pub(crate) struct AgentSettings {
    /// What was typed, and in its gaps what was found elsewhere.
    pub(crate) args: AgentArgs,
    /// What the config file says of servers of tools.
    pub(crate) servers: Servers,
    /// What commands are given.
    pub(crate) commands: Commands,
    /// The store in which what is said is kept, if it is.
    pub(crate) kept_in: Option<PathBuf>,
    /// What the session remembers of all this from now on, if it is kept.
    pub(crate) remembered: Option<String>,
    /// Further files that commonly hold secrets, as lines of a `.gitignore`: the config file's.
    pub(crate) secret_files: Vec<String>,
    /// What it says of calls.
    pub(crate) rules: Rules,
    /// What commands are confined to, once it is known.
    pub(crate) sandbox: Sandbox,
    /// Whether a chat takes snapshots of the files around its turns, if the config file says so.
    pub(crate) snapshots: Option<bool>,
    /// What the config file says of the chat alone.
    pub(crate) chat: ChatSettings,
}

impl AgentSettings {
    /// Fills in what was not said: what the session remembers, where it is kept, then what the config file says. `usual`
    /// are the tools of this kind of command.
    ///
    /// # Errors
    /// If the config file is not right, the store cannot be used, or there can be no such session.
    pub(crate) async fn complete(
        mut args: AgentArgs,
        session: Option<&String>,
        path: Option<&PathBuf>,
        usual: Option<&str>,
    ) -> anyhow::Result<Self> {
        let config = Config::load(args.config.as_deref())?;
        if let Some(session) = session {
            let was = args.root.clone();
            let row = match existing_store(path.cloned())? {
                Some(store) => row_of(&*store, &SessionId::from(session.as_str())).await?,
                None => None,
            };
            match row {
                Some(row) => Setup::read(&row).fill(&mut args)?,
                None => names::check(session)?,
            }
            args.root.iter().filter(|_| was.is_none()).for_each(|root| elsewhere(root, session));
        }
        let said = args.clone();
        let mut settings = config.fill(args);
        let tools = settings.args.tools.as_deref().or(usual);
        let is_kept = session.is_some() || path.is_some();
        settings.remembered = is_kept.then(|| Setup::from_now_on(&said, tools)).transpose()?;
        Ok(settings)
    }
}

/// Says so where a session works in another directory than this one.
fn elsewhere(root: &Path, session: &str) {
    if std::env::current_dir().is_ok_and(|here| here != root) {
        let root = root.display();
        output::tell(format_args!(
            "safepoint: works in {root}, as {session} did before (--root DIR changes that)"
        ));
    }
}

//! What was typed, and what the config file and the session say beside it.

use std::{collections::BTreeMap, path::Path};

use safepoint::ids::SessionId;

use crate::{
    args::{agent::AgentArgs, names, place::StorePlace},
    output,
    prices::OwnPrice,
    render::chat::{attention::Notify, markdown::look::Theme},
    settings::{
        commands::Commands,
        config::Config,
        mcp::Servers,
        project_files::{ProjectPlace, ProjectText},
        remembered::Setup,
        rules::Rules,
        sandbox::Sandbox,
        store::{existing_store, row_of},
    },
};

pub(crate) mod commands;
pub(crate) mod config;
pub(crate) mod inputs;
pub(crate) mod login;
pub(crate) mod mcp;
pub(crate) mod project;
pub(crate) mod project_files;
pub(crate) mod remembered;
pub(crate) mod rules;
pub(crate) mod sandbox;
pub(crate) mod secrets;
#[cfg_attr(not(any(feature = "serve", test)), expect(dead_code, reason = "`serve` alone uses what is read"))]
pub(crate) mod server;
pub(crate) mod snapshots;
pub(crate) mod sources;
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
    pub(crate) kept_in: Option<StorePlace>,
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
    /// The prices of models that the config file names.
    pub(crate) prices: BTreeMap<String, OwnPrice>,
    /// What the project, and the user for all projects, says to the agent.
    pub(crate) project: ProjectText,
    /// The background of the terminal, if the config file says it.
    pub(crate) theme: Option<Theme>,
    pub(crate) notify: Notify,
}

impl AgentSettings {
    /// The same with another model. What belongs to the wire that was named with the first one does not go to another.
    pub(crate) fn with_model(&self, named: &str) -> Self {
        let mut settings = self.clone();
        (settings.args.model, settings.args.backend) = (Some(named.to_owned()), None);
        let wire = |name: &str| name.split(':').next().map(str::to_owned);
        if self.args.model.as_deref().and_then(wire) != wire(named) {
            (settings.args.base_url, settings.args.api_key_env) = (None, None);
        }
        settings
    }

    /// The instructions of the agent: those that were set, and those of the project's files.
    pub(crate) fn instructions(&self) -> impl Iterator<Item = String> {
        self.args.system.iter().cloned().chain(self.project.instructions.text())
    }

    /// Fills in what was not said, with what the project around the working folder says in its files, then with what the config file
    /// says: every agent is made of this. `usual` are the tools of this kind of command.
    pub(crate) fn around(args: AgentArgs, config: Config, usual: Option<&str>) -> Self {
        let place = ProjectPlace::around(args.root.as_deref())
            .ok()
            .filter(|_| !args.no_project && config.reads_projects());
        let (config, notes) = config.beside_project(place.as_ref());
        let mut settings = config.fill(args);
        let tools = settings.args.tools.as_deref().or(usual);
        let is_ours = settings.args.backend.is_none()
            && tools.is_some_and(|tools| !matches!(tools.trim(), "none" | ""));
        if let Some(place) = place.filter(|_| is_ours) {
            settings.project = ProjectText::read(&place);
        }
        settings.project.notes.splice(0..0, notes);
        settings
    }

    /// Fills in what was not said: what the session remembers, where it is kept, then what the config file says. `usual`
    /// are the tools of this kind of command.
    ///
    /// # Errors
    /// If the config file is not right, the store cannot be used, or there can be no such session.
    pub(crate) async fn complete(
        mut args: AgentArgs,
        session: Option<&String>,
        path: Option<&StorePlace>,
        usual: Option<&str>,
    ) -> anyhow::Result<Self> {
        let config = Config::load(args.config.as_deref())?;
        let (named, mut project) = (args.root.clone(), None);
        if let Some(session) = session {
            let was = args.root.clone();
            let row = match existing_store(path.cloned()).await? {
                Some(store) => row_of(&*store, &SessionId::from(session.as_str())).await?,
                None => None,
            };
            match row {
                Some(row) => {
                    let setup = Setup::read(&row);
                    project = setup.project();
                    setup.fill(&mut args)?;
                }
                None => names::check(session)?,
            }
            args.root.iter().filter(|_| was.is_none()).for_each(|root| elsewhere(root, session));
        }
        let said = args.clone();
        let mut settings = Self::around(args, config, usual);
        let tools = settings.args.tools.as_deref().or(usual);
        let is_kept = session.is_some() || path.is_some();
        let project = project.filter(|_| named.is_none());
        settings.remembered = is_kept.then(|| Setup::from_now_on(&said, tools, project)).transpose()?;
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

//! The settings of a stored session, stored with it: a resume need not repeat them.
//!
//! A setting given now outranks a remembered one, which outranks the config file. The approval mode is not
//! remembered: the user of each run chooses it.

use std::{fmt, path::PathBuf, time::Duration};

use anyhow::Context as _;
use safepoint::store::SessionRow;
use serde::{Deserialize, Serialize};

use crate::{
    args::{
        agent::{AgentArgs, OnFull, fill},
        backend::BackendArgs,
    },
    exit::Usage,
    render::text,
    settings::project,
};

/// What is remembered. What an older release did not know is as if it had not been said.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Setup {
    backend: Option<String>,
    known: BackendArgs,
    model: Option<String>,
    base_url: Option<String>,
    api_key_env: Option<String>,
    system: Option<String>,
    max_tokens: Option<u64>,
    temperature: Option<f64>,
    window: Option<u64>,
    on_full: Option<OnFull>,
    tools: Option<String>,
    root: Option<PathBuf>,
    /// What the session is about; an older release does not know it.
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<PathBuf>,
    max_rounds: Option<u32>,
    timeout: Option<Duration>,
    /// Which of the addresses had a user and a password in it: those are not stored.
    withheld: Option<Withheld>,
}

/// What has to be said again. Exhaustive: the flags that take an address.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Withheld {
    Backend,
    BaseUrl,
}

impl Setup {
    /// What a session was last worked with; nothing, if its row has nothing that this release can read.
    pub(crate) fn read(row: &SessionRow) -> Self {
        let setup: Self = serde_json::from_str(&row.setup).unwrap_or_default();
        setup.without_passwords()
    }

    /// The directory that the session works in.
    pub(crate) fn root(&self) -> Option<PathBuf> {
        self.root.clone()
    }

    /// The project that the session is about; what an older release has stored is about its directory.
    pub(crate) fn project(&self) -> Option<PathBuf> {
        self.project.clone().or_else(|| self.root.as_deref().map(project::root_of))
    }

    /// What may be stored and shown: no address with a password in it.
    fn without_passwords(mut self) -> Self {
        let shown = self.backend.as_deref().map(text::shown);
        if shown != self.backend {
            (self.backend, self.withheld) = (shown, Some(Withheld::Backend));
        }
        if let Some(shown) = self.base_url.as_deref().and_then(text::without_user) {
            (self.base_url, self.withheld) = (Some(shown), Some(Withheld::BaseUrl));
        }
        self
    }

    /// Fills in what the command line left open. Settings that belong together come together: a model with
    /// its server, and tools with their directory.
    ///
    /// # Errors
    /// If the backend's address had a password, which is not stored.
    pub(crate) fn fill(self, args: &mut AgentArgs) -> Result<(), Usage> {
        // Whether it was left open who answers, and what is done where.
        let who = [&args.backend, &args.model, &args.base_url, &args.api_key_env];
        let works = who.iter().all(|said| said.is_none()) && args.replay.is_none();
        let acts = args.tools.is_none() && args.root.is_none();
        if works {
            self.withheld.map_or(Ok(()), |withheld| Err(withheld.again()))?;
            (args.backend, args.known) = (self.backend, self.known);
            (args.model, args.base_url, args.api_key_env) = (self.model, self.base_url, self.api_key_env);
        }
        if args.backend.is_none() {
            fill!(args, self: system, max_tokens, temperature, window, on_full);
        }
        // A limit belongs to the run: a resume that names a limit replaces it, and one that names none keeps
        // it.
        fill!(args, self: max_rounds, timeout);
        if acts {
            args.tools = self.tools.filter(|_| args.backend.is_none());
            args.root = self.root;
        }
        Ok(())
    }

    /// What is remembered from now on, where `tools` are those that the config file or the kind of command chose, and the session
    /// is about `project`; none if it is about the directory that it works in.
    ///
    /// # Errors
    /// If the working directory cannot be known.
    pub(crate) fn from_now_on(
        args: &AgentArgs,
        tools: Option<&str>,
        project: Option<PathBuf>,
    ) -> anyhow::Result<String> {
        const UNUSABLE: &str = "the working directory cannot be used";
        let project = match project {
            Some(project) => project,
            None => project::here(args.root.as_deref()).context(UNUSABLE)?,
        };
        let tools = args.tools.as_deref().or(tools).filter(|_| args.backend.is_none()).map(str::to_owned);
        let root = match &args.root {
            _ if tools.is_none() && args.backend.is_none() => None,
            Some(root) => Some(std::path::absolute(root)?),
            None => Some(std::env::current_dir().context(UNUSABLE)?),
        };
        let AgentArgs { backend, known, model, base_url, api_key_env, system, .. } = args.clone();
        let AgentArgs { max_tokens, temperature, window, on_full, max_rounds, timeout, .. } = *args;
        let setup = Self {
            backend,
            known,
            model,
            base_url,
            api_key_env,
            system,
            max_tokens,
            temperature,
            window,
            on_full,
            tools,
            root,
            project: Some(project),
            max_rounds,
            timeout,
            withheld: None,
        };
        Ok(serde_json::to_string(&setup.without_passwords())?)
    }
}

impl Withheld {
    fn again(self) -> Usage {
        let (flag, key) = match self {
            Self::Backend => ("--backend", "--backend-key-env"),
            Self::BaseUrl => ("--base-url", "--api-key-env"),
        };
        Usage(format!(
            "the password in the address of {flag} is not kept with the session: say {flag} again; a key that {key} \
             names need not be said again"
        ))
    }
}

/// One line, without long values and secrets.
impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools = self.tools.as_ref().map(|tools| format!("tools {tools}"));
        let root = self.root.as_ref().map(|root| format!("in {}", root.display()));
        let backend = self.backend.as_deref().map(text::shown);
        let who = backend.iter().chain(&self.model).cloned();
        let said: Vec<String> = who.chain(tools).chain(root).collect();
        f.write_str(&said.join(", "))
    }
}

#[cfg(test)]
mod tests;

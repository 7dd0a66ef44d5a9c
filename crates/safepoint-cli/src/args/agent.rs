//! The flags that say what works, and under which limits: the same for `run`, `resume` and `chat`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use safepoint_models::{ModelProvider, PROVIDERS};

use super::{
    backend::BackendArgs,
    duration::{parse as duration, parse_or_never as duration_or_never},
    mode::{StartMode, WorkMode},
};
use crate::exit::Usage;

/// Flags that need a model; an external agent has its own settings instead.
const OF_MODELS: [&str; 10] = [
    "model",
    "base_url",
    "api_key_env",
    "system",
    "max_tokens",
    "temperature",
    "window",
    "tools",
    "record",
    "replay",
];

/// Fills each field that one leaves open with the other's.
macro_rules! fill {
    ($open:ident, $other:ident: $($field:ident),+) => {
        $($open.$field = $open.$field.take().or($other.$field);)+
    };
}
pub(crate) use fill;

/// What works, and under which limits: the same for `run` and `chat`.
#[derive(Clone, Debug, Args)]
pub(crate) struct AgentArgs {
    /// An external agent instead of a model: acp:"COMMAND" starts an ACP agent, a2a:URL calls an A2A agent,
    /// responses:MODEL runs a provider's background response
    #[arg(long, value_name = "KIND:WHERE", conflicts_with_all = OF_MODELS)]
    pub(crate) backend: Option<String>,
    #[command(flatten)]
    pub(crate) known: BackendArgs,
    #[arg(long, value_name = "PROVIDER:NAME", help = model_help())]
    pub(crate) model: Option<String>,
    /// The part of the server's address before /chat/completions, /responses, /messages or /models; it includes /v1
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// The variable that holds the API key, if it is not the provider's usual variable
    #[arg(long, value_name = "NAME")]
    pub(crate) api_key_env: Option<String>,
    /// Instructions for the model
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// The most tokens of one reply; default: the provider's
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
    /// The temperature; default: the provider's
    #[arg(long, value_name = "X")]
    pub(crate) temperature: Option<f64>,
    /// The model's window in tokens, request and answer together; default: nothing is measured
    #[arg(long, value_name = "TOKENS")]
    pub(crate) window: Option<u64>,
    /// What happens when the conversation outgrows --window; default: refuse
    #[arg(long, value_enum)]
    pub(crate) on_full: Option<OnFull>,
    /// Tools by name, separated by commas, `all` (as in chat) or `none` (as in run): shell (with shell_outside), read_file, write_file, edit_file,
    /// list_dir, search, http_get, sleep; and `mcp` or mcp:NAME for those of the config file's servers
    #[arg(long, value_name = "LIST")]
    pub(crate) tools: Option<String>,
    /// The directory in which commands run and to which file tools are confined; default: the current directory
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Calls that may run at once; default 8
    #[arg(long, value_name = "N")]
    pub(crate) parallel: Option<usize>,
    /// The time limit of a call; default: none
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) tool_timeout: Option<Duration>,
    /// Whether commands are confined to the root and to no network; default: on, where this system can
    #[arg(long, value_name = "on|off", value_enum)]
    pub(crate) sandbox: Option<SandboxSwitch>,
    /// Who decides about calls with side effects that match no rule of the config file; default: ask
    #[arg(long, value_enum)]
    pub(crate) approve: Option<Approve>,
    /// How much the agent does without a question; Shift-Tab changes it in a chat. default: ask
    #[arg(long, value_enum)]
    pub(crate) mode: Option<StartMode>,
    /// What to do with a call that was cut off and whose side effects are unknown; default: tell
    #[arg(long, value_enum)]
    pub(crate) unknown: Option<Unknown>,
    /// What a turn does whose process ended, by a shutdown or a crash, when its session is opened again; default: wait
    #[arg(long, value_enum)]
    pub(crate) on_restart: Option<Restart>,
    /// How long an approval waits for an answer before the call is denied; default: 30d
    #[arg(long, value_name = "DUR|never", value_parser = duration_or_never)]
    pub(crate) approval_expiry: Option<Duration>,
    /// The config file
    #[arg(long, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
    /// Read nothing of the project: no AGENTS.md and no .safepoint folder; also: `project = false` in the config file
    #[arg(long)]
    pub(crate) no_project: bool,
    /// Record requests and replies of the model in this new file; it holds the messages, never the keys
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Replay a file of --record instead of calling a model; needs no key
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub(crate) replay: Option<PathBuf>,
    /// The most model calls of one turn; default 100
    #[arg(long, value_name = "N")]
    pub(crate) max_rounds: Option<u32>,
    /// The most wall time of one turn; default: none
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// How long the first Ctrl-C waits for a safe point; 0 = now
    #[arg(long, value_name = "DUR", value_parser = duration, default_value = "5s")]
    pub(crate) grace: Duration,
    /// The limit of all clean-up times of a stop together
    #[arg(long, value_name = "DUR", value_parser = duration, default_value = "10s")]
    pub(crate) cleanup_cap: Duration,
}

/// How a model is named.
fn model_help() -> String {
    let names: Vec<&str> = PROVIDERS.iter().map(ModelProvider::name).collect();
    format!("The model, such as openai:gpt-5.2. The providers: {}", names.join(", "))
}

impl AgentArgs {
    /// Checks values from the command line or the config file.
    pub(crate) fn check(&self) -> Result<(), Usage> {
        if let Some(temperature) = self.temperature.filter(|it| !it.is_finite() || *it < 0.0) {
            return Err(Usage(format!("--temperature {temperature}: it is a number, 0 or more")));
        }
        if self.parallel == Some(0) {
            return Err(Usage("--parallel 0: no call could run; 1 runs them one after the other".into()));
        }
        if let Some(root) = self.root.as_ref().filter(|root| !root.is_dir()) {
            return Err(Usage(format!("--root {}: there is no such directory", root.display())));
        }
        self.check_mode()?;
        let is_http = |url: &&String| {
            let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
            rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
        };
        if let Some(url) = self.base_url.as_ref().filter(|url| !is_http(url)) {
            return Err(Usage(format!("--base-url {url}: write it like http://127.0.0.1:8080/v1")));
        }
        Ok(())
    }
}

impl AgentArgs {
    fn check_mode(&self) -> Result<(), Usage> {
        let first = WorkMode::first(self.mode, self.approve);
        if first == WorkMode::Plan && self.backend.is_some() {
            let why = "--mode plan: an external agent has its own tools, which this program cannot hold back; set its own mode";
            return Err(Usage(why.into()));
        }
        let base = WorkMode::base(self.approve);
        if !first.fits(base) {
            let (mode, approve) = (first.name(), base.name());
            return Err(Usage(format!(
                "--mode {mode} and --approve {approve} contradict each other; name one of them"
            )));
        }
        Ok(())
    }
}

/// Whether commands are confined. Exhaustive: on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SandboxSwitch {
    /// As far as this system enforces it
    On,
    /// They can do what you can
    Off,
}

/// Who decides. Exhaustive: the four modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Approve {
    /// A person at the terminal; without a terminal, calls are denied
    Ask,
    /// As `ask`, but changes of files below the root and commands inside the sandbox run unasked
    Edits,
    /// Everything may run
    Auto,
    /// Calls that need approval are denied
    Deny,
}

/// Who decides about a call with unknown side effects. Exhaustive: it never runs again without a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unknown {
    /// The model learns that the side effects are unknown
    Tell,
    /// A person decides: run it again, supply its result, or give it up
    Ask,
}

/// What a turn does whose process ended. Exhaustive: it waits, or it is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Restart {
    /// It waits until it is resumed, or a newer message comes
    Wait,
    /// It is resumed; calls that were cut off are decided as --unknown says
    Resume,
}

/// What happens to a conversation that outgrows the model's window. Exhaustive: the three policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnFull {
    /// The run fails before anything is sent
    Refuse,
    /// The oldest rounds are no longer sent; a note says so
    Drop,
    /// The oldest rounds are no longer sent; the model writes a summary, which is sent instead
    Summarise,
}

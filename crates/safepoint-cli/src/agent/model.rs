//! Which model: named, configured, found in the environment, found on this machine, or the practice model.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
    time::Duration,
};

use safepoint::{
    Agent, AgentBuilder, Model,
    model::{Parameters, PromptCache},
    raw::Cleaned,
    window::Window,
};
use safepoint_models::{ConfigError, ModelBuilder, openai};
use safepoint_testkit::{
    replay::{RecordingModel, Replay},
    script::Script,
    server::{KeptExchanges, ModelServer, ServerOptions},
};
use secrecy::SecretString;
use tokio::time::timeout;

use crate::{
    args::agent::{AgentArgs, OnFull},
    exit::Usage,
    settings::{AgentSettings, secrets},
};

/// The name of the built-in one.
pub(crate) const PRACTICE: &str = "practice";

/// A model that was chosen, and what must live as long as it is used.
pub(crate) struct Chosen {
    pub(crate) builder: AgentBuilder,
    /// As `--model` would name it.
    pub(crate) name: String,
    /// What the user should know about the choice.
    pub(crate) notice: Option<String>,
    /// The recording that answers, where one does.
    pub(crate) replay: Option<Replay>,
    pub(crate) _server: Option<Arc<ModelServer>>,
}

impl Chosen {
    fn plain(name: &str, builder: AgentBuilder) -> Self {
        Self { builder, name: name.to_owned(), notice: None, replay: None, _server: None }
    }
}

/// Chooses in the order of the contract, with the window that the arguments name.
pub(crate) async fn choose(settings: &AgentSettings) -> anyhow::Result<Chosen> {
    settings.args.check()?;
    let window = window(&settings.args)?;
    let mut chosen = pick(settings).await?;
    if let Some(window) = window {
        chosen.builder = chosen.builder.window(window);
    }
    chosen.builder = chosen.builder.secrets(secrets::known(settings));
    Ok(chosen)
}

async fn pick(settings: &AgentSettings) -> anyhow::Result<Chosen> {
    let args = &settings.args;
    if let Some(path) = &args.replay {
        return replayed(path);
    }
    if args.model.as_deref() == Some(PRACTICE) {
        return Ok(Chosen { notice: None, ..practice_model(settings).await? });
    }
    if let Some(named) = &args.model {
        return named_model(settings, named);
    }
    if args.base_url.is_some() {
        let hint =
            "--model openai:NAME, responses:NAME, anthropic:NAME or gemini:NAME says which wire it speaks";
        return Err(Usage(format!("--base-url needs --model: {hint}")).into());
    }
    let set = |variable| std::env::var(variable).is_ok_and(|value| !value.is_empty());
    if set("OPENAI_API_KEY") || set("OPENAI_BASE_URL") {
        return named_model(settings, "openai:gpt-5.2");
    }
    if set("ANTHROPIC_API_KEY") {
        return named_model(settings, "anthropic:claude-sonnet-4-5");
    }
    if set("GEMINI_API_KEY") {
        return named_model(settings, "gemini:gemini-3-pro-preview");
    }
    if let Some(name) = local_model().await {
        let mut local = settings.clone();
        local.args.base_url = Some(LOCAL_URL.into());
        let mut chosen = named_model(&local, &format!("ollama:{name}"))?;
        chosen.notice = Some(format!("using the local model {name} at {LOCAL_URL}"));
        return Ok(chosen);
    }
    practice_model(settings).await
}

/// A model as its name and the arguments say; its key from its provider's variable where they name none.
fn configured(named: &str, args: &AgentArgs) -> anyhow::Result<Arc<dyn Model>> {
    let model = reached(named, args)?;
    // What is stable of a conversation is kept by the providers that can.
    let mut parameters = Parameters::new().prompt_cache(PromptCache::Prefix);
    if let Some(tokens) = args.max_tokens {
        parameters = parameters.max_tokens(tokens);
    }
    if let Some(temperature) = args.temperature {
        parameters = parameters.temperature(temperature);
    }
    Ok(model.parameters(parameters).build().map_err(|error| wrong(named, error))?)
}

/// Where a model is and with which key, as its name and the arguments say.
pub(super) fn reached(named: &str, args: &AgentArgs) -> anyhow::Result<ModelBuilder> {
    let mut model: ModelBuilder = named.parse().map_err(|error| wrong(named, error))?;
    if let Some(base) = &args.base_url {
        model = model.base_url(base);
    }
    if let Some(key) = key(args)? {
        model = model.api_key(key);
    }
    Ok(model)
}

fn wrong(named: &str, error: ConfigError) -> Usage {
    Usage(format!("--model {named}: {:#}", anyhow::Error::new(error)))
}

/// An agent around this model, recorded where the arguments say so.
fn built(model: impl Model, settings: &AgentSettings) -> anyhow::Result<AgentBuilder> {
    let Some(path) = &settings.args.record else { return Ok(Agent::builder(model)) };
    // What is recorded is clean, too.
    let recording = RecordingModel::new(Cleaned::new(model, secrets::known(settings)), path)
        .map_err(|error| Usage(not_recorded(path, &error)))?;
    Ok(Agent::builder(recording))
}

fn not_recorded(path: &Path, error: &std::io::Error) -> String {
    let is_there = error.kind() == std::io::ErrorKind::AlreadyExists;
    let hint = if is_there { "; name a new file, or remove this one; --replay FILE replays it" } else { "" };
    format!("--record {}: {error}{hint}", path.display())
}

/// The recorded model.
fn replayed(path: &Path) -> anyhow::Result<Chosen> {
    let replay =
        Replay::open(path).map_err(|error| Usage(format!("--replay {}: {error}", path.display())))?;
    let chosen = Chosen::plain("replay", Agent::builder(replay.clone()));
    Ok(Chosen { replay: Some(replay), ..chosen })
}

fn named_model(settings: &AgentSettings, named: &str) -> anyhow::Result<Chosen> {
    Ok(Chosen::plain(named, built(configured(named, &settings.args)?, settings)?))
}

/// The model's window, and what happens when the conversation outgrows it.
fn window(args: &AgentArgs) -> Result<Option<Window>, Usage> {
    let Some(tokens) = args.window else {
        return match args.on_full {
            None => Ok(None),
            Some(_) => Err(Usage("--on-full needs --window TOKENS: how much the model takes".into())),
        };
    };
    let mut window = Window::of(tokens);
    if let Some(answer) = args.max_tokens {
        window = window.keep_for_answer(answer);
    }
    if window.room() == 0 {
        return Err(Usage("--window leaves no room: what is kept for the answer is all of it".into()));
    }
    Ok(Some(match args.on_full.unwrap_or(OnFull::Refuse) {
        OnFull::Refuse => window,
        OnFull::Drop => window.drop_oldest(),
        OnFull::Summarise => window.summarise(),
    }))
}

fn key(args: &AgentArgs) -> Result<Option<SecretString>, Usage> {
    let Some(variable) = &args.api_key_env else { return Ok(None) };
    let key = from_env(variable);
    key.map(Some).ok_or_else(|| Usage(format!("--api-key-env {variable}: that variable is not set")))
}

fn from_env(variable: &str) -> Option<SecretString> {
    std::env::var(variable).ok().filter(|key| !key.is_empty()).map(SecretString::from)
}

const LOCAL_URL: &str = "http://127.0.0.1:11434/v1";

/// The first model of a local server on the usual port, if one answers at once.
async fn local_model() -> Option<String> {
    const PATIENCE: Duration = Duration::from_millis(300);
    let local: ModelBuilder = "ollama:any".parse().ok()?;
    let asked = timeout(PATIENCE, local.base_url(LOCAL_URL).list()).await;
    asked.ok()?.ok()?.into_iter().next()
}

async fn practice_model(settings: &AgentSettings) -> anyhow::Result<Chosen> {
    // A server of agents may use it for days: it keeps nothing of what it was asked.
    let options = ServerOptions { recording: KeptExchanges::Off, ..ServerOptions::default() };
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = ModelServer::start_with(Script::practice(), options, here).await?;
    let model = openai::model("practice").base_url(server.url());
    let notice = "no key and no local server: this is the built-in practice model, a script (set OPENAI_API_KEY, \
         ANTHROPIC_API_KEY or GEMINI_API_KEY for a real one; with --tools all it runs commands: try \"run: ls\")";
    let chosen = Chosen::plain(PRACTICE, built(model, settings)?);
    Ok(Chosen { notice: Some(notice.into()), _server: Some(Arc::new(server)), ..chosen })
}

//! Which model: named, configured, found in the environment, found on this machine, or the practice model.

use std::{sync::Arc, time::Duration};

use safepoint::{Agent, AgentBuilder};
use safepoint_models::{anthropic, openai};
use safepoint_testkit::{script::Script, server::ModelServer};
use secrecy::SecretString;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::args::{RunArgs, Usage};

/// A model that was chosen, and what must live as long as it is used.
pub(crate) struct Chosen {
    pub(crate) builder: AgentBuilder,
    /// What the user should know about the choice.
    pub(crate) notice: Option<String>,
    pub(crate) _server: Option<Arc<ModelServer>>,
}

impl Chosen {
    fn plain(builder: AgentBuilder) -> Self {
        Self { builder, notice: None, _server: None }
    }
}

/// Chooses in the order of the contract.
pub(crate) async fn choose(args: &RunArgs) -> anyhow::Result<Chosen> {
    if let Some(named) = &args.model {
        return named_model(args, named);
    }
    if args.base_url.is_some() {
        return Err(
            Usage("--base-url needs --model: openai:NAME or anthropic:NAME says which wire".into()).into()
        );
    }
    let set = |variable| std::env::var(variable).is_ok_and(|value| !value.is_empty());
    if set("OPENAI_API_KEY") || set("OPENAI_BASE_URL") {
        return named_model(args, "openai:gpt-5.2");
    }
    if set("ANTHROPIC_API_KEY") {
        return named_model(args, "anthropic:claude-sonnet-4-5");
    }
    if let Some(name) = local_model().await {
        let local = RunArgs { base_url: Some(LOCAL_URL.into()), ..args.clone() };
        let mut chosen = named_model(&local, &format!("openai:{name}"))?;
        chosen.notice = Some(format!("using the local model {name} at {LOCAL_URL}"));
        return Ok(chosen);
    }
    practice_model().await
}

fn named_model(args: &RunArgs, named: &str) -> anyhow::Result<Chosen> {
    let Some((wire, name)) = named.split_once(':').filter(|(_, name)| !name.is_empty()) else {
        return Err(Usage(format!("--model {named}: write openai:NAME or anthropic:NAME")).into());
    };
    let key = key(args)?;
    match wire {
        "openai" => {
            let mut model = match (&args.base_url, &key) {
                (None, None) => openai::from_env(name)?,
                (base, key) => {
                    let mut model = openai::model(name);
                    if let Some(base) = base {
                        model = model.base_url(base);
                    }
                    match key.clone().or_else(|| from_env("OPENAI_API_KEY")) {
                        Some(key) => model.api_key(key),
                        None => model,
                    }
                }
            };
            if let Some(tokens) = args.max_tokens {
                model = model.max_tokens(tokens);
            }
            if let Some(temperature) = args.temperature {
                model = model.temperature(temperature);
            }
            Ok(Chosen::plain(Agent::builder(model)))
        }
        "anthropic" => {
            let mut model = match (&args.base_url, &key) {
                (None, None) => anthropic::from_env(name)?,
                (base, key) => {
                    let mut model = anthropic::model(name);
                    if let Some(base) = base {
                        model = model.base_url(base);
                    }
                    match key.clone().or_else(|| from_env("ANTHROPIC_API_KEY")) {
                        Some(key) => model.api_key(key),
                        None => model,
                    }
                }
            };
            if let Some(tokens) = args.max_tokens {
                model = model.max_tokens(tokens);
            }
            if let Some(temperature) = args.temperature {
                model = model.temperature(temperature);
            }
            Ok(Chosen::plain(Agent::builder(model.cache())))
        }
        other => {
            Err(Usage(format!("there is no wire `{other}`; write openai:NAME or anthropic:NAME")).into())
        }
    }
}

fn key(args: &RunArgs) -> Result<Option<SecretString>, Usage> {
    let Some(variable) = &args.api_key_env else { return Ok(None) };
    match from_env(variable) {
        Some(key) => Ok(Some(key)),
        None => Err(Usage(format!("--api-key-env {variable}: that variable is not set"))),
    }
}

fn from_env(variable: &str) -> Option<SecretString> {
    std::env::var(variable).ok().filter(|key| !key.is_empty()).map(SecretString::from)
}

const LOCAL: &str = "127.0.0.1:11434";
const LOCAL_URL: &str = "http://127.0.0.1:11434/v1";

/// The first model of a local server on the usual port, if one answers at once.
async fn local_model() -> Option<String> {
    const PATIENCE: Duration = Duration::from_millis(300);
    const REQUEST: &[u8] = b"GET /v1/models HTTP/1.0\r\nhost: 127.0.0.1\r\n\r\n";
    let asked = async {
        let mut socket = TcpStream::connect(LOCAL).await.ok()?;
        socket.write_all(REQUEST).await.ok()?;
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).await.ok()?;
        let text = String::from_utf8(answer).ok()?;
        let (_, body) = text.split_once("\r\n\r\n")?;
        let models: serde_json::Value = serde_json::from_str(body).ok()?;
        Some(models["data"][0]["id"].as_str()?.to_owned())
    };
    timeout(PATIENCE, asked).await.ok().flatten()
}

async fn practice_model() -> anyhow::Result<Chosen> {
    let server = ModelServer::start(Script::practice()).await?;
    let model = openai::model("practice").base_url(server.url());
    Ok(Chosen {
        builder: Agent::builder(model),
        notice: Some(
            "no key and no local server: this is the built-in practice model, a script (set OPENAI_API_KEY or \
             ANTHROPIC_API_KEY for a real one)"
                .into(),
        ),
        _server: Some(Arc::new(server)),
    })
}

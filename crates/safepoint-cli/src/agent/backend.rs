//! Chooses what does the work: a model, or an external agent with `--backend`. Each kind of agent is one line here.

use std::path::PathBuf;

use safepoint::{Agent, raw::remote::AfterWord, receipt::StopSupport};
use safepoint_remote::{a2a::A2a, acp::Acp, responses::Responses};
use safepoint_tools::process::{Processes, Service};

use crate::{
    agent::model::{self, Chosen},
    args::backend::{BackendArgs, Stops},
    exit::Usage,
    render::text::shown,
    settings::{AgentSettings, secrets, store},
};

/// How a backend is named.
const KINDS: &str = "acp:\"COMMAND\", a2a:URL or responses:MODEL";

/// The default address of the provider of responses, and its key.
const BASE_VARIABLE: &str = "OPENAI_BASE_URL";
const KEY_VARIABLE: &str = "OPENAI_API_KEY";

/// Chooses the backend that the arguments name, else a model. `then` says whether the engine reads on after
/// an external agent has answered a stop.
pub(crate) async fn choose(
    settings: &AgentSettings,
    processes: &Processes,
    then: AfterWord,
) -> anyhow::Result<Chosen> {
    let args = &settings.args;
    let Some(named) = &args.backend else { return model::choose(settings).await };
    args.check()?;
    let Some((kind, place)) = named.split_once(':').filter(|(_, place)| !place.trim().is_empty()) else {
        return Err(Usage(format!("--backend {named}: write {KINDS}")).into());
    };
    let builder = match kind {
        "acp" => {
            let mut agent = Acp::shell("acp", place).under(processes);
            if let Some(root) = &args.root {
                agent = agent.cwd(root);
            }
            if let (Some(name), Some(key)) = (&args.known.backend_key_env, key(&args.known)?) {
                agent = agent.env(name, key);
            }
            if let Some(way) = &args.known.backend_auth {
                agent = agent.authenticate(way);
            }
            for service in services(&args.known)? {
                agent = agent.calls(service);
            }
            if let Some(folder) = beside(settings, ".acp") {
                agent = agent.remember_in(folder);
            }
            Agent::remote(agent)
        }
        "a2a" => {
            let agent = a2a(place, &args.known)?.after_word(then);
            Agent::remote(match beside(settings, ".a2a") {
                Some(folder) => agent.remember_in(folder),
                None => agent,
            })
        }
        "responses" => {
            let agent = responses(place, &args.known)?.after_word(then);
            Agent::remote(match beside(settings, ".responses") {
                Some(folder) => agent.remember_in(folder),
                None => agent,
            })
        }
        other => return Err(Usage(format!("there is no backend `{other}`; write {KINDS}")).into()),
    };
    let builder = builder.secrets(secrets::known(settings));
    Ok(Chosen { builder, name: shown(named), notice: None, replay: None, _server: None })
}

/// An agent behind A2A. Its card is read before its first message, so that one that is not there is a run that failed.
fn a2a(url: &str, known: &BackendArgs) -> anyhow::Result<A2a> {
    let usage =
        |why: &dyn std::fmt::Display| Usage(format!("--backend {}: {why}", shown(&format!("a2a:{url}"))));
    let agent = A2a::at(url).map_err(|error| usage(&error))?.named("a2a");
    let agent = match key(known)? {
        None => agent,
        Some(token) => agent.bearer(&token.into()).map_err(|error| usage(&error))?,
    };
    Ok(agent.grade(grade(known)))
}

/// A provider's response in the background.
fn responses(model: &str, known: &BackendArgs) -> anyhow::Result<Responses> {
    let usage = |why: &dyn std::fmt::Display| Usage(format!("--backend responses:{model}: {why}"));
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (key, base) = (key(known)?.or_else(|| set(KEY_VARIABLE)), set(BASE_VARIABLE));
    if key.is_none() && base.is_none() {
        return Err(
            usage(&format!("set {KEY_VARIABLE}, or {BASE_VARIABLE} for a provider of your own")).into()
        );
    }
    let mut agent = Responses::model(model).map_err(|error| usage(&error))?.named("responses");
    if let Some(base) = base {
        agent = agent.base_url(&base).map_err(|error| usage(&error))?;
    }
    if let Some(key) = key {
        agent = agent.key(&key.into()).map_err(|error| usage(&error))?;
    }
    Ok(agent.grade(grade(known)))
}

/// A folder beside the store, whose sessions the peer's own belong to.
fn beside(settings: &AgentSettings, suffix: &str) -> Option<PathBuf> {
    // Without a home directory there is none: what the peer remembers is forgotten with the program.
    store::beside(settings.kept_in.as_ref()?, suffix).ok()
}

/// The token or key, where one is named.
fn key(known: &BackendArgs) -> Result<Option<String>, Usage> {
    let Some(name) = &known.backend_key_env else { return Ok(None) };
    let value = std::env::var(name);
    value.map(Some).map_err(|_unset| Usage(format!("--backend-key-env {name}: it is not set")))
}

/// Local services that an agent calls and that do no work themselves.
fn services(known: &BackendArgs) -> Result<Vec<Service>, Usage> {
    let read = |place: &String| place.parse().map_err(|error| Usage(format!("--backend-calls: {error}")));
    known.backend_calls.iter().map(read).collect()
}

fn grade(known: &BackendArgs) -> StopSupport {
    match known.backend_stops {
        Stops::Hard => StopSupport::Hard,
        Stops::CallerSide => StopSupport::CallerSide,
        Stops::None => StopSupport::None,
    }
}

//! Who does the work: a model, or with `--backend` somebody else's agent. Each kind of those is one line here.

use std::path::PathBuf;

use safepoint::{Agent, receipt::StopSupport, remote::AfterWord};
use safepoint_remote::{a2a::A2a, acp::Acp, responses::Responses};
use safepoint_tools::process::{Processes, Service};

use crate::{
    args::{
        AgentArgs, Usage,
        backend::{Known, Stops},
    },
    model::{self, Chosen},
    secrets,
};

/// How a backend is named.
const KINDS: &str = "acp:\"COMMAND\", a2a:URL or responses:MODEL";

/// Where the provider of responses is, and its key, where nothing else is said.
const BASE_VARIABLE: &str = "OPENAI_BASE_URL";
const KEY_VARIABLE: &str = "OPENAI_API_KEY";

/// Chooses the backend that the arguments name, else a model; `then` says whether an agent elsewhere is heard once it has
/// answered a stop.
pub(crate) async fn choose(
    args: &AgentArgs,
    processes: &Processes,
    then: AfterWord,
) -> anyhow::Result<Chosen> {
    let Some(named) = &args.backend else { return model::choose(args).await };
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
            if let (Some(name), Some(key)) = (&args.known.backend_key_env, args.known.key()?) {
                agent = agent.env(name, key);
            }
            if let Some(way) = &args.known.backend_auth {
                agent = agent.authenticate(way);
            }
            for service in args.known.services()? {
                agent = agent.calls(service);
            }
            if let Some(folder) = beside(args, ".acp") {
                agent = agent.remember_in(folder);
            }
            Agent::remote(agent)
        }
        "a2a" => {
            let agent = a2a(place, &args.known)?.after_word(then);
            Agent::remote(match beside(args, ".a2a") {
                Some(folder) => agent.remember_in(folder),
                None => agent,
            })
        }
        "responses" => {
            let agent = responses(place, &args.known)?.after_word(then);
            Agent::remote(match beside(args, ".responses") {
                Some(folder) => agent.remember_in(folder),
                None => agent,
            })
        }
        other => return Err(Usage(format!("there is no backend `{other}`; write {KINDS}")).into()),
    };
    let builder = builder.secrets(secrets::known(args));
    Ok(Chosen { builder, name: shown(named), notice: None, replay: None, _server: None })
}

/// An agent behind A2A. Its card is read before its first message, so that one that is not there is a run that failed.
fn a2a(url: &str, known: &Known) -> anyhow::Result<A2a> {
    let usage =
        |why: &dyn std::fmt::Display| Usage(format!("--backend {}: {why}", shown(&format!("a2a:{url}"))));
    let agent = A2a::at(url).map_err(|error| usage(&error))?.named("a2a");
    let agent = match known.key()? {
        None => agent,
        Some(token) => agent.bearer(&token.into()).map_err(|error| usage(&error))?,
    };
    Ok(agent.grade(known.grade()))
}

/// A provider's response in the background.
fn responses(model: &str, known: &Known) -> anyhow::Result<Responses> {
    let usage = |why: &dyn std::fmt::Display| Usage(format!("--backend responses:{model}: {why}"));
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (key, base) = (known.key()?.or_else(|| set(KEY_VARIABLE)), set(BASE_VARIABLE));
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
    Ok(agent.grade(known.grade()))
}

/// A backend's name as it may be shown: without the user and password of its address.
pub(crate) fn shown(named: &str) -> String {
    let without = without_user(named).filter(|_| named.starts_with("a2a:"));
    without.unwrap_or_else(|| named.to_owned())
}

/// An address without the user and password that stand in it; none if none do.
pub(crate) fn without_user(address: &str) -> Option<String> {
    let (scheme, rest) = address.split_once("://")?;
    let (place, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (_user, host) = place.rsplit_once('@')?;
    Some(format!("{scheme}://{host}{path}"))
}

/// A folder beside the store, whose sessions the peer's own belong to.
fn beside(args: &AgentArgs, suffix: &str) -> Option<PathBuf> {
    let mut folder = args.kept_in.clone()?.into_os_string();
    folder.push(suffix);
    Some(folder.into())
}

impl Known {
    /// The token or key, where one is named.
    fn key(&self) -> Result<Option<String>, Usage> {
        let Some(name) = &self.backend_key_env else { return Ok(None) };
        let value = std::env::var(name);
        value.map(Some).map_err(|_unset| Usage(format!("--backend-key-env {name}: it is not set")))
    }

    /// What an agent calls that does no work of its own.
    fn services(&self) -> Result<Vec<Service>, Usage> {
        let read = |place: &String| place.parse().map_err(|error| Usage(format!("--backend-calls: {error}")));
        self.backend_calls.iter().map(read).collect()
    }

    fn grade(&self) -> StopSupport {
        match self.backend_stops {
            Stops::Hard => StopSupport::Hard,
            Stops::CallerSide => StopSupport::CallerSide,
            Stops::None => StopSupport::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    /// A password in an address is shown nowhere; a command is shown as it is.
    #[test]
    fn a_password_in_an_address_is_not_shown() {
        assert_eq!(shown("a2a:http://otter:s3cret@host:9000/a@b"), "a2a:http://host:9000/a@b");
        for plain in ["a2a:http://host:9000", "acp:agent --at http://x@y", "responses:m"] {
            assert_eq!(shown(plain), plain);
        }
    }
}

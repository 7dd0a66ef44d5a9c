//! What the config file says of `safepoint serve`: where it listens, and the agents by their names.

use std::{
    net::SocketAddr,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Duration,
};

use http::uri::Authority;
use serde::Deserialize;
use toml::Table;
use url::Url;

use super::config::Config;
use crate::{
    args::{duration::parse, placed::PlacementChoice},
    exit::Usage,
};

/// `[server]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServerSettings {
    pub(crate) listen: Option<SocketAddr>,
    /// Names beside the loopback's under which the server is reached.
    pub(crate) hosts: Vec<HostName>,
    /// Pages elsewhere that may call.
    pub(crate) origins: Vec<PageOrigin>,
    /// How many turns may run at once.
    pub(crate) running: Option<NonZeroUsize>,
    unload: Option<String>,
    drain: Option<String>,
    /// What brings the sessions that want an owner.
    pub(crate) placement: Option<PlacementChoice>,
    /// Where it is reached from elsewhere, if another program ends TLS before it.
    pub(crate) public_url: Option<WebAddress>,
    /// The file of the audit log.
    pub(crate) audit: Option<PathBuf>,
    pub(crate) restate: RestateSettings,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) webhooks: Vec<WebhookSettings>,
    pub(crate) jwks: Option<JwksSettings>,
}

/// `[server.jwks]`: the identity provider whose tokens are taken too.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JwksSettings {
    /// Where its keys are.
    pub(crate) url: WebAddress,
    pub(crate) issuer: String,
    pub(crate) audience: String,
}

/// `[server.restate]`: how that engine reaches this server, if it is the placement.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RestateSettings {
    pub(crate) listen: Option<SocketAddr>,
    /// Its public key: what it has not signed is refused.
    pub(crate) identity_key: Option<String>,
}

/// An address of the web, as text in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct WebAddress(pub(crate) Url);

impl TryFrom<String> for WebAddress {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        match Url::parse(&text) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(Self(url)),
            Ok(_) => Err(format!("{text} is no http: or https: address")),
            Err(error) => Err(format!("{text} is no address: {error}")),
        }
    }
}

/// A name as the header `Host` has it, with a port or without.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct HostName(pub(crate) String);

impl TryFrom<String> for HostName {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        if text.parse::<Authority>().is_ok() && !text.contains(['@', '*']) {
            return Ok(Self(text));
        }
        Err(format!("`{text}` is no name of a host: write it as agents.example.com, or with a port"))
    }
}

/// The origin of a page, as its browser sends it.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct PageOrigin(pub(crate) String);

impl TryFrom<String> for PageOrigin {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let WebAddress(url) = WebAddress::try_from(text.clone())?;
        let origin = url.origin().ascii_serialization();
        if url.path() == "/" && url.query().is_none() && url.fragment().is_none() && !text.contains('*') {
            return Ok(Self(origin));
        }
        Err(format!("`{text}` is no origin of a page: write it as {origin}"))
    }
}

/// `[server.tls]`: files in PEM.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TlsFiles {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

/// `[[server.webhooks]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebhookSettings {
    pub(crate) url: WebAddress,
    /// The variable of the environment that has the secret.
    pub(crate) secret_env: String,
    /// Whether its address may be one of this machine or of a private network.
    #[serde(default)]
    pub(crate) private: bool,
}

/// An agent of the config file.
pub(crate) struct NamedAgent {
    pub(crate) name: String,
    pub(crate) description: String,
    /// The protocols by which it is offered, beside the server's own API.
    pub(crate) surfaces: Vec<String>,
    /// The file as it is for this agent.
    pub(crate) config: Config,
}

impl ServerSettings {
    /// How long a session may be at rest before it is closed.
    ///
    /// # Errors
    /// If it is no duration.
    pub(crate) fn unload(&self) -> Result<Option<Duration>, Usage> {
        of("unload", self.unload.as_deref())
    }

    /// How long turns may take to stop at the end.
    ///
    /// # Errors
    /// If it is no duration.
    pub(crate) fn drain(&self) -> Result<Option<Duration>, Usage> {
        of("drain", self.drain.as_deref())
    }
}

fn of(key: &str, text: Option<&str>) -> Result<Option<Duration>, Usage> {
    let read = text.map(parse).transpose();
    read.map_err(|why| Usage(format!("{key} of [server] in the config: {why}")))
}

/// The agents of a config file, of which each says what is other than at the top of the file; none where it names none.
///
/// # Errors
/// What is wrong with one, and where.
pub(crate) fn agents(path: &Path, text: &str) -> Result<Vec<NamedAgent>, Usage> {
    let wrong = |why: String| Usage(format!("invalid config {}: {why}", path.display()));
    let mut top: Table = text.parse().map_err(|error: toml::de::Error| wrong(error.to_string()))?;
    let Some(toml::Value::Table(named)) = top.remove("agents") else { return Ok(Vec::new()) };
    top.remove("server");
    let mut all = Vec::new();
    for (name, table) in named {
        // It is a part of addresses, and the name of a tool.
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')) {
            return Err(wrong(format!(
                "[agents.\"{name}\"]: a name has letters, digits, `-`, `_` and `.` alone"
            )));
        }
        let toml::Value::Table(mut table) = table else {
            return Err(wrong(format!("[agents.{name}] is no table")));
        };
        let description = match table.remove("description") {
            None => String::new(),
            Some(toml::Value::String(text)) => text,
            Some(_) => return Err(wrong(format!("description of [agents.{name}] is no text"))),
        };
        let surfaces = match table.remove("surfaces") {
            None => Vec::new(),
            Some(names) => names
                .try_into()
                .map_err(|_no_names| wrong(format!("surfaces of [agents.{name}] are no names")))?,
        };
        if table.contains_key("server") || table.contains_key("agents") {
            return Err(wrong(format!("[agents.{name}] has no server and no agents")));
        }
        let mut own = top.clone();
        own.extend(table);
        let text = toml::to_string(&own).map_err(|error| wrong(error.to_string()))?;
        let config = Config::read(path.to_owned(), &text)
            .map_err(|Usage(why)| Usage(format!("[agents.{name}]: {why}")))?;
        all.push(NamedAgent { name, description, surfaces, config });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::config::Config;

    /// S13.1: an agent says what is other than at the top of the file, by the same keys.
    #[test]
    fn an_agent_takes_the_rest_from_the_top_of_the_file() {
        let text = "model = 'openai:a'\nmax_rounds = 5\n[server]\nlisten = '127.0.0.1:1'\n\
                    [agents.one]\ndescription = 'first'\nsurfaces = ['a2a']\n[agents.two]\nmodel = 'openai:b'\n";
        let all = agents(Path::new("c.toml"), text).unwrap();
        let of = |name: &str| all.iter().find(|one| one.name == name).unwrap();
        assert_eq!((of("one").config.model(), &*of("one").description), (Some("openai:a"), "first"));
        assert_eq!((&*of("one").surfaces, &*of("two").surfaces), (&["a2a".to_owned()][..], &[][..]));
        assert_eq!(of("two").config.model(), Some("openai:b"));
        assert!(agents(Path::new("c.toml"), "[agents.'a b']\n").is_err());
        let Err(Usage(why)) = agents(Path::new("c.toml"), "[agents.one]\nno_such_key = 1\n") else {
            panic!("it has no such key")
        };
        assert!(why.contains("agents.one") && why.contains("no_such_key"), "{why}");
        assert!(Config::read("c.toml".into(), text).is_ok());
    }

    /// S13.10: what would let no page and no name in is refused where it is written, and said.
    #[test]
    fn names_and_origins_are_what_a_request_has() {
        let read = |line: &str| toml::from_str::<ServerSettings>(line);
        let of = |line: &str| read(line).unwrap().origins.remove(0).0;
        assert_eq!(of("origins = ['https://app.example.com/']"), "https://app.example.com");
        assert_eq!(of("origins = ['HTTPS://App.example.com:8443']"), "https://app.example.com:8443");
        for wrong in [
            "origins = ['*']",
            "origins = ['https://*.a.com']",
            "origins = ['https://a.com/x']",
            "origins = ['a.com']",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        for right in ["hosts = ['agents.example.com']", "hosts = ['a.com:8443', '[::1]:1']"] {
            assert!(read(right).is_ok(), "{right}");
        }
        for wrong in [
            "hosts = ['https://a.com']",
            "hosts = ['a.com/x']",
            "hosts = ['a.com?x']",
            "hosts = ['me@a.com']",
            "hosts = ['*']",
            "hosts = ['']",
            "running = 0",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}

//! The servers of the config file: `[mcp.NAME]` with a `command` or a `url`.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use safepoint_tools::mcp::{Annotations, Protocol, Server};
use serde::Deserialize;

use crate::{args::duration, exit::Usage, settings::login};

/// Every `[mcp.NAME]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Servers {
    by_name: BTreeMap<String, Entry>,
}

/// One `[mcp.NAME]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Entry {
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    url: Option<String>,
    headers: BTreeMap<String, String>,
    include: Vec<String>,
    exclude: Vec<String>,
    rename: BTreeMap<String, String>,
    protocol: Option<Spoken>,
    trust_annotations: bool,
    start_timeout: Option<String>,
    timeout: Option<String>,
}

/// Exhaustive: the three ways to choose.
#[derive(Clone, Copy, Debug, Deserialize)]
enum Spoken {
    #[serde(rename = "auto")]
    Auto,
    #[serde(rename = "2025-11-25")]
    Older,
    #[serde(rename = "2026-07-28")]
    Newest,
}

impl Servers {
    pub(crate) fn all(&self) -> Result<Vec<Server>, Usage> {
        self.by_name.iter().map(|(name, entry)| entry.server(name)).collect()
    }

    pub(crate) fn one(&self, name: &str) -> Result<Server, Usage> {
        match self.by_name.get(name) {
            Some(entry) => entry.server(name),
            None if self.by_name.is_empty() => {
                Err(Usage(format!("there is no server `{name}`: the config file has no [mcp.{name}]")))
            }
            None => {
                let known: Vec<&str> = self.by_name.keys().map(String::as_str).collect();
                Err(Usage(format!("there is no server `{name}`; there are {}", known.join(", "))))
            }
        }
    }

    /// Adds those of a project; none replaces one of the user's.
    pub(super) fn add(&mut self, others: Self) {
        for (name, entry) in others.by_name {
            self.by_name.entry(name).or_insert(entry);
        }
    }

    /// Whether an entry can be a server, apart from what its environment lacks now.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn check(&self, name: &str) -> Result<(), Usage> {
        let Some(entry) = self.by_name.get(name) else { return Ok(()) };
        entry.is_of_one_kind().map_err(|what| Usage(format!("[mcp.{name}] {what}")))
    }

    /// The address of a server on the network.
    ///
    /// # Errors
    /// If there is no such server, or it is a program.
    pub(crate) fn address(&self, name: &str) -> Result<String, Usage> {
        drop(self.one(name)?);
        let url = self.by_name.get(name).and_then(|entry| entry.url.clone());
        url.ok_or_else(|| Usage(format!("[mcp.{name}] is a program: it has no login")))
    }

    /// The names of all of them.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// What the entries give their servers to prove who they are: values of headers, and of variables that are called so.
    pub(crate) fn secrets(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for (name, entry) in &self.by_name {
            let headers = entry.headers.iter();
            let env =
                entry.env.iter().filter(|(variable, _)| safepoint_tools::process::holds_secret(variable));
            for (what, value) in headers.chain(env) {
                let Ok(value) = expand(value) else { continue };
                // `Bearer TOKEN`: the token alone is the secret, too.
                let alone = value.rsplit(' ').next().unwrap_or_default().to_owned();
                found.extend([value, alone].map(|value| (format!("{what} of mcp.{name}"), value)));
            }
            let login = entry.url.as_deref().and_then(login::read);
            let tokens = login.iter().flat_map(|login| login.secrets());
            found.extend(tokens.map(|token| (format!("the login of mcp.{name}"), token)));
        }
        found
    }
}

impl Entry {
    fn server(&self, name: &str) -> Result<Server, Usage> {
        let wrong = |what: String| Usage(format!("[mcp.{name}] {what}"));
        let mut server = match (&self.command, &self.url) {
            (Some(command), None) => Server::stdio(name, command).args(&self.args),
            (None, Some(url)) => Server::http(name, url),
            (None, None) => return Err(wrong("needs a `command` or a `url`".into())),
            (Some(_), Some(_)) => return Err(wrong("has both a `command` and a `url`".into())),
        };
        self.is_of_one_kind().map_err(wrong)?;
        let expanded = |of: &str, name: &str, value: &str| {
            expand(value).map_err(|what| wrong(format!("has a value of `{of}.{name}` {what}")))
        };
        for (variable, value) in &self.env {
            server = server.env(variable, expanded("env", variable, value)?);
        }
        for (header, value) in &self.headers {
            server = server.header(header, expanded("headers", header, value)?);
        }
        let has_own = self.headers.keys().any(|header| header.eq_ignore_ascii_case("authorization"));
        if let Some(url) = self.url.as_ref().filter(|url| !has_own && login::read(url).is_some()) {
            server = server.bearer(login::source(name, url));
        }
        if let Some(cwd) = &self.cwd {
            server = server.cwd(cwd);
        }
        for (tool, offered) in &self.rename {
            server = server.rename(tool, offered);
        }
        if let Some(limit) = time(self.start_timeout.as_deref()).map_err(wrong)? {
            server = server.start_within(limit);
        }
        if let Some(limit) = time(self.timeout.as_deref()).map_err(wrong)? {
            server = server.call_within(limit);
        }
        if self.trust_annotations {
            server = server.annotations(Annotations::Trusted);
        }
        let protocol = match self.protocol {
            None | Some(Spoken::Auto) => Protocol::Auto,
            Some(Spoken::Older) => Protocol::Initialize,
            Some(Spoken::Newest) => Protocol::Newest,
        };
        Ok(server.include(&self.include).exclude(&self.exclude).protocol(protocol))
    }

    /// What goes with the other kind of server would be passed over: it is refused by name.
    fn is_of_one_kind(&self) -> Result<(), String> {
        let (of, beside, other) = if self.command.is_some() {
            ("command", vec![("headers", !self.headers.is_empty())], "url")
        } else {
            let args = ("args", !self.args.is_empty());
            ("url", vec![args, ("env", !self.env.is_empty()), ("cwd", self.cwd.is_some())], "command")
        };
        match beside.into_iter().find(|(_, is_set)| *is_set) {
            Some((key, _)) => Err(format!("has a `{of}`, and `{key}` goes with a `{other}`: take it out")),
            None => Ok(()),
        }
    }
}

fn time(text: Option<&str>) -> Result<Option<Duration>, String> {
    text.map(duration::parse).transpose()
}

/// Puts variables of the environment in for `${NAME}`, so that no secret need stand in the file.
fn expand(value: &str) -> Result<String, String> {
    let mut text = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((variable, behind)) = after.split_once('}') else {
            // Not the value: it may be a secret.
            return Err("with a `${` and no `}` behind it".to_owned());
        };
        let found = std::env::var(variable).map_err(|_unset| {
            let variable = variable.escape_debug();
            format!("that needs the variable {variable} of the environment, which is not set")
        })?;
        text.push_str(before);
        text.push_str(&found);
        rest = behind;
    }
    text.push_str(rest);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(text: &str) -> Servers {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn an_entry_is_a_program_or_an_address() {
        let servers =
            servers("[a]\ncommand = 'x'\nargs = ['y']\n[b]\nurl = 'http://x/'\nheaders = { a = 'b' }\n");
        assert_eq!(servers.all().unwrap().len(), 2);
        for wrong in ["[a]\n", "[a]\ncommand = 'x'\nurl = 'y'\n", "[a]\ncommand = 'x'\ntimeout = 'soon'\n"] {
            let wrong: Servers = toml::from_str(wrong).unwrap();
            assert!(wrong.one("a").unwrap_err().to_string().starts_with("[mcp.a] ") || wrong.all().is_err());
        }
        assert!(servers.one("c").unwrap_err().to_string().contains("there are a, b"));
    }

    /// A key for the other kind of server is refused by name, and no value is shown.
    #[test]
    fn what_would_be_passed_over_is_refused() {
        for (entry, key) in [
            ("[a]\ncommand = 'x'\nheaders = { a = 'b' }\n", "`headers`"),
            ("[a]\nurl = 'http://x/'\nargs = ['b']\n", "`args`"),
            ("[a]\nurl = 'http://x/'\nenv = { a = 'b' }\n", "`env`"),
            ("[a]\nurl = 'http://x/'\ncwd = '/'\n", "`cwd`"),
            ("[a]\nurl = 'http://x/'\nheaders = { auth = 'SECRET ${open' }\n", "`headers.auth`"),
        ] {
            let words = servers(entry).one("a").unwrap_err().to_string();
            assert!(words.contains(key) && !words.contains("SECRET"), "{words}");
        }
    }

    /// What the guide shows is a config file, and each key that it names is one.
    #[test]
    fn the_guides_config_is_right() {
        let guide = include_str!("../../../../docs/guides/mcp.md");
        let block = guide.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let shown: BTreeMap<String, Servers> = toml::from_str(block).unwrap();
        assert_eq!(shown["mcp"].one("files").unwrap().name(), "files");
        assert!(shown["mcp"].one("search").unwrap_err().to_string().contains("SEARCH_TOKEN"));
        let keys = guide.lines().filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
        let keys: Vec<&str> =
            keys.flat_map(|cell| cell.split(", ")).map(|key| key.trim_matches('`')).collect();
        let entry: Result<Entry, _> = toml::from_str("no_such_key = 1");
        let known = entry.unwrap_err().to_string();
        for key in keys {
            assert!(known.contains(&format!("`{key}`")), "{key}: {known}");
        }
    }

    #[test]
    fn a_variable_is_put_in_and_a_missing_one_is_named() {
        assert_eq!(expand("plain").unwrap(), "plain");
        let path = std::env::var("PATH").unwrap();
        assert_eq!(expand("a ${PATH} b").unwrap(), format!("a {path} b"));
        assert!(expand("${NO_SUCH_VARIABLE_HERE}").unwrap_err().contains("NO_SUCH_VARIABLE_HERE"));
        assert!(!expand("SECRET ${open").unwrap_err().contains("SECRET"));
    }
}

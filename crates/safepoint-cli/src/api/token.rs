//! The token that a request carries.
//!
//! **Invariants**: a token comes from a file or the environment; it is never shown, and the token that a server made for this
//! user goes to that server alone.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use http::HeaderValue;
use safepoint::secret::Secrets;

use super::address::ServerAddress;
use crate::{args::server::ServerArgs, control, exit::Usage, output};

/// What holds the token where the command line names no file.
const VARIABLE: &str = "SAFEPOINT_TOKEN";

/// A token, and where it is from.
pub(super) struct Token {
    pub(super) header: HeaderValue,
    /// For people.
    pub(super) from: String,
}

impl Token {
    /// The token for this server.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn of(args: &ServerArgs, server: &ServerAddress) -> anyhow::Result<Self> {
        if let Some(path) = &args.token_file {
            let text = fs::read_to_string(path)
                .with_context(|| format!("the token file {} cannot be read", path.display()))?;
            return Self::read(&text, path.display().to_string());
        }
        if let Ok(text) = std::env::var(VARIABLE)
            && !text.trim().is_empty()
        {
            return Self::read(&text, VARIABLE.to_owned());
        }
        let (path, text) = own(server)?;
        Self::read(&text, path.display().to_string())
    }

    fn read(text: &str, from: String) -> anyhow::Result<Self> {
        let token = text.trim();
        // A token that is sent back by a server is not shown either.
        output::hide(Secrets::of([("server token".to_owned(), token.to_owned())]));
        let is_one = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        let header = HeaderValue::from_str(&format!("Bearer {token}")).ok().filter(|_| is_one);
        let Some(mut header) = header else {
            return Err(Usage(format!(
                "there is no token in {from}: it holds one line, as `safepoint token new` prints it"
            ))
            .into());
        };
        header.set_sensitive(true);
        Ok(Self { header, from })
    }
}

/// The token that `safepoint serve` wrote for its user, if this server is the one that wrote it.
fn own(server: &ServerAddress) -> anyhow::Result<(PathBuf, String)> {
    let none = |why: String| {
        Usage(format!(
            "no token for {server}{why}: give --token-file FILE or set SAFEPOINT_TOKEN; `safepoint token new`, where the server is, \
             makes one"
        ))
    };
    if !server.is_local() {
        return Err(none(String::new()).into());
    }
    let folder = control::folder()?;
    let path = folder.join(control::SERVE_TOKEN);
    let Some(text) = existing(&path)? else { return Err(none(String::new()).into()) };
    let servers = control::served(&folder)?;
    if servers.iter().any(|listening| server.is_at(*listening)) {
        return Ok((path, text));
    }
    let others: Vec<String> = servers.iter().map(|other| format!("http://{other}")).collect();
    let whose = match &others[..] {
        [] => String::new(),
        others => format!(" (the one in {} is for {})", path.display(), others.join(", ")),
    };
    Err(none(whose).into())
}

/// What is in a file; none if it is not there.
fn existing(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        text => text.map(Some).with_context(|| format!("{} cannot be read", path.display())),
    }
}

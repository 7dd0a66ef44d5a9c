//! The tokens of the server: the file, and the one that a server makes for its own user.

use std::{
    fs,
    io::Write as _,
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use jiff::{SignedDuration, Timestamp};
use safepoint_server::{AccessScope, NewToken, Principal, TokenFile, TokenRow};

use crate::{
    args::serve::{NewTokenArgs, TokenArgs, TokenCommand},
    control,
    exit::{self, Usage, code},
    output,
    settings::config,
};

/// Only the user may read it.
const OWN: u32 = 0o600;

pub(crate) fn token(args: TokenArgs) -> anyhow::Result<ExitCode> {
    let file = TokenFile::new(place(args.tokens)?);
    match args.command {
        TokenCommand::New(new) => output::say(file.add(asked(new)?)?)?,
        TokenCommand::Ls => {
            for row in file.rows()? {
                output::say(line(&row))?;
            }
        }
        TokenCommand::Revoke { id } => {
            if !file.revoke(&id)? {
                output::tell(format_args!(
                    "safepoint: there is no token {id}; `safepoint token ls` lists them"
                ));
                return Ok(exit::with(code::NONE_SUCH));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The file of the tokens.
///
/// # Errors
/// If there is no place for it.
pub(super) fn place(named: Option<PathBuf>) -> Result<PathBuf, Usage> {
    let usual = || Some(config::folder()?.join("tokens.toml"));
    named
        .or_else(usual)
        .ok_or_else(|| Usage("there is no home directory for tokens; name a file with --tokens".into()))
}

fn asked(new: NewTokenArgs) -> anyhow::Result<NewToken> {
    let scopes = new.scope.iter().map(|scope| scope.trim().parse::<AccessScope>().map_err(Usage));
    let principal = Principal::new(new.name, scopes.collect::<Result<Vec<_>, _>>()?);
    let principal = if new.agent.is_empty() { principal } else { principal.only_agents(new.agent) };
    let principal = if new.see == "all" { principal.seeing_all() } else { principal };
    let until = |valid| -> anyhow::Result<Timestamp> {
        Ok(Timestamp::now().checked_add(SignedDuration::try_from(valid)?)?)
    };
    Ok(NewToken { principal, expires: new.expires.map(until).transpose()? })
}

fn line(row: &TokenRow) -> String {
    let scopes: Vec<&str> = row.scopes.iter().map(|scope| scope.as_str()).collect();
    let agents = row.agents.as_ref().map_or_else(|| "all agents".to_owned(), |agents| agents.join(","));
    let sees = if row.see_all { "sees all" } else { "sees its own" };
    let until = row.expires.map_or_else(|| "no end".to_owned(), |expires| format!("until {expires}"));
    format!("{}  {}  {}  {agents}  {sees}  {until}", row.id, row.name, scopes.join(","))
}

/// The file that the server reads the token of its user from.
///
/// # Errors
/// If there is no folder for it.
pub(super) fn own_file() -> anyhow::Result<PathBuf> {
    Ok(control::folder()?.join("serve.tokens.toml"))
}

/// Makes the token of the user who serves at this address: in a file that is returned, beside one with the address, because the
/// token goes to this server alone. It answers no question: the agent's own commands could read it.
///
/// # Errors
/// If they cannot be written.
pub(super) fn make_own(address: SocketAddr) -> anyhow::Result<PathBuf> {
    let (folder, read) = (control::folder()?, own_file()?);
    if let Err(error) = fs::remove_file(&read)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(error).with_context(|| format!("{} cannot be replaced", read.display()));
    }
    let principal = Principal::new("local", [AccessScope::Read, AccessScope::Talk, AccessScope::Stop]);
    let token = TokenFile::new(&read).add(NewToken { principal, expires: None })?;
    let shown = folder.join(control::SERVE_TOKEN);
    write(&shown, &token)?;
    write(&folder.join(control::SERVE_ADDRESS), &address.to_string())?;
    Ok(shown)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(OWN).open(path)?;
    Ok(file.write_all(text.as_bytes())?)
}

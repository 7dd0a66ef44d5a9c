//! The tokens of the server: the file, and the one that a server makes for its own user.

use std::{fs, io::Write as _, os::unix::fs::OpenOptionsExt as _, path::PathBuf, process::ExitCode};

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

/// A token of the user who serves, in files of the runtime folder: the token itself, and the file that the server reads. It
/// answers no question: the agent's own commands could read it.
///
/// # Errors
/// If they cannot be written.
pub(super) fn of_this_server() -> anyhow::Result<(PathBuf, PathBuf)> {
    let folder = control::folder()?;
    let (shown, read) = (folder.join("serve.token"), folder.join("serve.tokens.toml"));
    if let Err(error) = fs::remove_file(&read)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(error).with_context(|| format!("{} cannot be replaced", read.display()));
    }
    let principal = Principal::new("local", [AccessScope::Read, AccessScope::Talk, AccessScope::Stop]);
    let token = TokenFile::new(&read).add(NewToken { principal, expires: None })?;
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(OWN).open(&shown)?;
    file.write_all(token.as_bytes())?;
    Ok((shown, read))
}

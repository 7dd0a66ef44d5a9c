//! The tokens of the server, in their file.

use std::{path::PathBuf, process::ExitCode};

use jiff::{SignedDuration, Timestamp};
use safepoint_server::{AccessScope, NewToken, Principal, TokenFile, TokenRow};

use crate::{
    args::serve::{NewTokenArgs, TokenArgs, TokenCommand},
    exit::{self, Usage, code},
    output,
    settings::config,
};

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
fn place(named: Option<PathBuf>) -> Result<PathBuf, Usage> {
    let usual = || Some(config::folder()?.join("tokens.toml"));
    named
        .or_else(usual)
        .ok_or_else(|| Usage("there is no home directory for tokens; name a file with --tokens".into()))
}

/// What to do about a file that cannot be read.
const REPAIR: &str = "correct it, or remove the entry and make its token anew with `safepoint token new`";

/// The file of the tokens that a server accepts, which can be read now; what is wrong with it later is said.
///
/// # Errors
/// What is wrong with it, in which line, and what to do.
pub(super) fn served(named: Option<PathBuf>) -> Result<TokenFile, Usage> {
    let file = TokenFile::new(place(named)?);
    file.rows().map_err(|error| Usage(format!("{error}; {REPAIR}")))?;
    Ok(file.on_broken(|error| {
        output::tell(format_args!(
            "safepoint: {error}; none of its tokens is accepted until it can be read: {REPAIR}"
        ));
    }))
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

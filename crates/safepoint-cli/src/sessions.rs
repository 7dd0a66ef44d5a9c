//! `safepoint sessions`: one list of what the store keeps and of what runs.

use std::{collections::HashMap, process::ExitCode, sync::Arc};

use safepoint::{
    ids::SessionId,
    store::{Error, Store},
};
use serde_json::json;

mod listed;
mod receipts;
mod show;
mod state;

pub(crate) use listed::Listed;

use crate::{
    args::{
        Usage,
        sessions::LsArgs,
        sessions::{OneArgs, SessionsCommand},
    },
    control::client::{Running, running},
    conversation::existing_store,
    kept::{code, no_session},
    output::{self, Stream},
    told::Told,
    trace::cut,
};

/// Runs the command.
pub(crate) async fn sessions(command: SessionsCommand) -> anyhow::Result<ExitCode> {
    match command {
        SessionsCommand::Ls(args) => list(args).await,
        SessionsCommand::Show(args) => show::show(args).await,
        SessionsCommand::Rm(args) => remove(args).await,
    }
}

/// The newest kept sessions, and all that run: newest first.
///
/// # Errors
/// If the store or the directory of the sockets cannot be used.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn recent(store: Option<&Arc<dyn Store>>, most: usize) -> anyhow::Result<Vec<Listed>> {
    let mut live: HashMap<String, Running> =
        running().await?.into_iter().map(|running| (running.session.clone(), running)).collect();
    let mut rows = match store {
        Some(store) => store.list(most, None).await?,
        None => Vec::new(),
    };
    // One that runs is listed, however old it is.
    if let Some(store) = store {
        for id in live
            .keys()
            .filter(|id| rows.iter().all(|row| row.id.as_str() != **id))
            .cloned()
            .collect::<Vec<_>>()
        {
            match store.open(&SessionId::from(id)).await {
                Ok(row) => rows.push(row),
                Err(Error::NoSession(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    let mut kept = Vec::with_capacity(rows.len());
    for row in rows {
        kept.push(Listed::kept(store, row, &mut live).await?);
    }
    let mut listed: Vec<Listed> = live.into_values().map(Listed::unkept).collect();
    listed.sort_by(|one, other| other.id.cmp(&one.id));
    listed.extend(kept);
    Ok(listed)
}

async fn list(args: LsArgs) -> anyhow::Result<ExitCode> {
    let store = existing_store(args.place.store.clone())?;
    let listed = recent(store.as_ref(), args.most).await?;
    let mut told = Told::default();
    for one in &listed {
        if args.place.json {
            output::say_json(one.json(&mut told))?;
        } else {
            output::say(cut(&one.line(), width()))?;
        }
    }
    if args.place.json {
        return Ok(ExitCode::SUCCESS);
    }
    match listed.iter().filter(|one| one.is_kept()).count() {
        _ if listed.is_empty() => output::tell("no session is kept, and none runs"),
        count if count >= args.most => output::tell(format_args!("the newest {count}; -n N lists more")),
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}

async fn remove(args: OneArgs) -> anyhow::Result<ExitCode> {
    let store = existing_store(args.place.store.clone())?;
    let Some(one) = meant(store.as_ref(), &args.session).await? else {
        return no_session(&SessionId::from(args.session), &args.place);
    };
    let id = SessionId::from(one.id.as_str());
    let (number, said) = match (&store, one.is_kept()) {
        (Some(store), true) => match store.remove(&id).await {
            Ok(()) => (0, format!("{id} is removed")),
            Err(Error::NoSession(_)) => return no_session(&id, &args.place),
            Err(error @ Error::Held(..)) => (code::CONFLICT, format!("{error}; safepoint stop {id} ends it")),
            Err(error) => return Err(error.into()),
        },
        _ => (code::CONFLICT, format!("{id} is not kept, it runs; safepoint stop {id} ends it")),
    };
    if args.place.json {
        Told::default().say("removed", Some(id.as_str()), json!({"code": number, "said": said}))?;
    } else {
        output::tell(format_args!("safepoint: {said}"));
    }
    Ok(ExitCode::from(number))
}

/// The session that is meant: its id, or an end of it that no other of the newest has.
pub(crate) async fn meant(store: Option<&Arc<dyn Store>>, named: &str) -> anyhow::Result<Option<Listed>> {
    /// Less of an id says too little.
    const LEAST: usize = 4;
    const LOOKED_AT: usize = 1024;
    let mut listed = recent(store, LOOKED_AT).await?;
    if let Some(at) = listed.iter().position(|one| one.id == named) {
        return Ok(Some(listed.swap_remove(at)));
    }
    if let Some(store) = store {
        match store.open(&SessionId::from(named)).await {
            Ok(row) => return Ok(Some(Listed::kept(Some(store), row, &mut HashMap::new()).await?)),
            Err(Error::NoSession(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    listed.retain(|one| named.len() >= LEAST && one.id.ends_with(named));
    match listed.len() {
        0 | 1 => Ok(listed.pop()),
        _ => Err(Usage(format!("more than one session ends in {named}: write more of it")).into()),
    }
}

/// The columns of stdout, where it is a terminal.
fn width() -> usize {
    const LEAST: usize = 40;
    Stream::Out.columns().map_or(usize::MAX, |columns| columns.max(LEAST))
}

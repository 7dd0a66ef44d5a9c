//! `safepoint store prune`: removes stored sessions that have not changed for a time.
//!
//! **Invariants**: what is removed was listed first, with the reason why each other one stays. A session that a process owns is
//! never removed; one that waits for a person, or in which a message waits, only by its name.

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context as _;
use jiff::{SignedDuration, Timestamp};
use safepoint::{
    ids::SessionId,
    store::{Error, SessionRow, Store},
};
use serde_json::json;

use super::PAGE;
use crate::{
    args::{place::StorePlace, store::PruneArgs},
    control::{
        list::{Listed, ago, meant},
        state::State,
    },
    exit::{NoSession, code},
    output,
    render::{approval::is_open, reply_json::ReplyLines, text::one_line},
    session::snapshots,
    settings::{remembered::Setup, store::existing_store},
};

/// One that has not changed for long enough.
struct Old {
    row: SessionRow,
    /// Why it stays, if it does.
    stays: Option<String>,
}

/// Runs the command.
pub(crate) async fn prune(args: PruneArgs) -> anyhow::Result<ExitCode> {
    let path = args.place.store.clone();
    let Some(store) = existing_store(path.clone()).await? else {
        output::tell("safepoint: no stored sessions");
        return Ok(ExitCode::SUCCESS);
    };
    let mut also = Vec::new();
    for named in &args.also {
        let one = meant(Some(&store), named).await?.filter(Listed::is_kept);
        also.push(one.ok_or_else(|| NoSession(SessionId::from(named.as_str())))?.id);
    }
    let old = old(&store, args.older, &also).await?;
    for id in also.iter().filter(|id| old.iter().all(|old| old.row.id.as_str() != **id)) {
        output::tell(format_args!("safepoint: {id} has changed since then, so it stays"));
    }
    let mut lines = args.place.json.then(ReplyLines::default);
    let (mut gone, mut count): (BTreeMap<PathBuf, Vec<SessionId>>, usize) = (BTreeMap::new(), 0);
    for Old { row, stays } in old {
        let stays = match stays {
            None if args.yes => remove(&*store, &row.id).await?,
            stays => stays,
        };
        if stays.is_none() {
            count += 1;
            if let Some(root) = Setup::read(&row).root() {
                gone.entry(root).or_default().push(row.id.clone());
            }
        }
        say(lines.as_mut(), &row, (stays, args.yes))?;
    }
    if args.yes {
        forget(gone, path).await;
    }
    let sessions = if count == 1 { "session" } else { "sessions" };
    output::tell(match (count, args.yes) {
        (0, _) => "safepoint: nothing to remove".to_owned(),
        (_, true) => format!("safepoint: removed {count} {sessions}"),
        (_, false) => {
            format!("safepoint: {count} {sessions} would be removed; --yes removes what is listed so")
        }
    });
    Ok(ExitCode::SUCCESS)
}

/// The sessions that have not changed for so long, and those in which nothing was said, the oldest first.
async fn old(store: &Arc<dyn Store>, older: Duration, also: &[String]) -> anyhow::Result<Vec<Old>> {
    let age = SignedDuration::try_from(older).unwrap_or(SignedDuration::MAX);
    let until = Timestamp::now().checked_sub(age).unwrap_or(Timestamp::MIN);
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let rows = store.list(PAGE, before.take()).await.context("cannot list the sessions")?;
        let is_last = rows.len() < PAGE;
        before = rows.last().map(SessionRow::older);
        for row in rows {
            let is_unused = row.head == 0 && store.inbox(&row.id).await?.is_empty();
            if row.updated < until || is_unused {
                let is_named = also.iter().any(|id| id == row.id.as_str());
                let stays = stays(store, &row, is_named).await?;
                // An empty chat that is open is nothing that a person would look for.
                if !(is_unused && stays.is_some()) {
                    found.push(Old { row, stays });
                }
            }
        }
        if is_last {
            found.reverse();
            return Ok(found);
        }
    }
}

/// Why it stays; nothing if it may go.
async fn stays(store: &Arc<dyn Store>, row: &SessionRow, is_named: bool) -> anyhow::Result<Option<String>> {
    let one = Listed::kept(Some(store), row.clone(), &mut std::collections::HashMap::new()).await?;
    if let Some(owner) = one.owner() {
        return Ok(Some(format!("open in {owner}")));
    }
    if is_named {
        return Ok(None);
    }
    let is_asked = store.approvals(&row.id).await?.iter().any(is_open);
    let waits = match one.state() {
        State::Suspended => Some("waits for a decision"),
        _ if is_asked => Some("has open approvals"),
        _ if !store.inbox(&row.id).await?.is_empty() => Some("messages wait in it"),
        _ => None,
    };
    Ok(waits.map(|waits| format!("{waits}; --also {} removes it too", row.id)))
}

/// Removes it; returns why it stays, if a process has opened it meanwhile.
async fn remove(store: &dyn Store, id: &SessionId) -> anyhow::Result<Option<String>> {
    match store.remove(id).await {
        // Another process has removed it.
        Ok(()) | Err(Error::NoSession(_)) => Ok(None),
        Err(error @ Error::Held(..)) => Ok(Some(error.to_string())),
        Err(error) => Err(error).context(format!("cannot remove {id}")),
    }
}

/// The snapshots of files go with their sessions; what cannot be removed now goes by its age.
async fn forget(gone: BTreeMap<PathBuf, Vec<SessionId>>, store: Option<StorePlace>) {
    let forgotten = tokio::task::spawn_blocking(move || {
        let each = gone.iter().map(|(root, ids)| snapshots::forget(root, store.as_ref(), ids));
        each.filter_map(Result::err).map(|error| format!("{error:#}")).collect::<Vec<_>>()
    });
    for error in forgotten.await.unwrap_or_default() {
        output::tell(format_args!("safepoint: snapshots of files stay until they are too old: {error}"));
    }
}

fn say(
    lines: Option<&mut ReplyLines>,
    row: &SessionRow,
    (stays, is_done): (Option<String>, bool),
) -> anyhow::Result<()> {
    let id = row.id.as_str();
    let what = match (&stays, is_done) {
        (Some(why), _) => format!("stays: {why}"),
        (None, true) => "removed".to_owned(),
        (None, false) => "would be removed".to_owned(),
    };
    match lines {
        Some(lines) => {
            let number = if stays.is_some() { code::CONFLICT } else { code::ACCEPTED };
            lines.say("removed", Some(id), json!({"code": number, "said": what}))?;
        }
        None => {
            let title = one_line(&row.title);
            let title = if title.is_empty() { "(nothing was said)".to_owned() } else { title };
            output::say(format_args!("{}  {}  {title}\n  {what}", one_line(id), ago(row.updated)))?;
        }
    }
    Ok(())
}

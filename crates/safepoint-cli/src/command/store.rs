//! Commands on stored sessions, through the store alone: they work before, while and after an owner lives.

use std::{process::ExitCode, sync::Arc};

mod copy;
mod prune;

use anyhow::Context as _;
use safepoint::{
    ids::SessionId,
    raw::{
        self, StoredStop, decode_approval, decode_row,
        store::{ChainCheck, JournalEntry},
    },
    store::{Error, Store},
};
use serde_json::{Value, json};

use crate::{
    args::{
        names,
        store::{ExportArgs, StoreArgs},
    },
    exit::{self, NoSession, code},
    output::{self, Bulk},
    render::{reply_json::ReplyLines, text::one_line},
    settings::store::{existing, existing_store, open_store, usual_place},
};

pub(crate) use {copy::copy, prune::prune};

/// `safepoint store check`.
pub(crate) async fn check(place: StoreArgs) -> anyhow::Result<ExitCode> {
    let named = place.store.clone();
    let Some(open) = existing(place.store).await? else {
        if let Some(place) = named {
            anyhow::bail!("store {place} not found");
        }
        output::tell("safepoint: no stored sessions");
        return Ok(ExitCode::SUCCESS);
    };
    let store = open.store();
    let mut older = None;
    let mut bad = 0;
    let mut lines = place.json.then(ReplyLines::default);
    if let Some(flaw) = open.check_file().await? {
        bad += 1;
        match lines.as_mut() {
            Some(lines) => lines.say("checked", None, json!({"sound": false, "said": flaw}))?,
            None => output::say(format_args!("the file itself: {flaw}"))?,
        }
    }
    loop {
        let rows = store.list(PAGE, older.take()).await.context("cannot list the sessions")?;
        for row in &rows {
            bad += usize::from(!is_sound(&*store, &row.id, lines.as_mut()).await?);
        }
        match rows.last() {
            Some(last) if rows.len() == PAGE => older = Some(last.older()),
            _ => break,
        }
    }
    Ok(exit::with(u8::from(bad > 0)))
}

/// `safepoint store migrate`.
pub(crate) async fn migrate(place: StoreArgs) -> anyhow::Result<ExitCode> {
    let shown = match &place.store {
        Some(named) => named.to_string(),
        None => usual_place()?.to_string(),
    };
    open_store(place.store.clone()).await?;
    let said = format!("{shown} is of this release");
    show_outcome(
        &place,
        ("migrated", None),
        json!({"code": code::ACCEPTED, "said": said}),
        (code::ACCEPTED, &said),
    )
}

/// How many sessions are listed at once.
const PAGE: usize = 256;

async fn is_sound(
    store: &dyn Store,
    session: &SessionId,
    lines: Option<&mut ReplyLines>,
) -> anyhow::Result<bool> {
    let (sound, said) = match store.check(session).await? {
        ChainCheck::Intact(sound) => match flawed_row(store, session).await? {
            None => (true, format!("{} records, sound", sound.records)),
            Some(flaw) => (false, flaw),
        },
        ChainCheck::Damaged(damage) => (false, damage.to_string()),
    };
    match lines {
        Some(lines) => lines.say("checked", Some(session.as_str()), json!({"sound": sound, "said": said}))?,
        None => output::say(format_args!("{}  {said}", one_line(session.as_str())))?,
    }
    Ok(sound)
}

/// The first of the rows beside the journal that cannot be read, or is not what was put there.
async fn flawed_row(store: &dyn Store, session: &SessionId) -> Result<Option<String>, Error> {
    for row in store.inbox(session).await? {
        if let Err(why) = decode_row::<Value>(&row) {
            return Ok(Some(format!("item-{}: {why}", row.number)));
        }
    }
    for row in store.stops(session, 0).await? {
        if let Err(why) = StoredStop::from_bytes(&row.bytes) {
            return Ok(Some(format!("stop {}: {why}", row.number)));
        }
    }
    for row in store.approvals(session).await? {
        if let Err(why) = decode_approval(&row.asked.bytes, &row.asked.digest) {
            return Ok(Some(format!("approval {}: {why}", row.asked.id)));
        }
    }
    Ok(None)
}

/// `safepoint store export`: nothing else is on stdout.
pub(crate) async fn export(args: ExportArgs) -> anyhow::Result<ExitCode> {
    let session = SessionId::from(args.session);
    // On stdout there is nothing but records.
    let place = StoreArgs { store: args.store, json: false };
    let mut out = Bulk::default();
    let (mut damaged, mut written, mut lines) = (0, Ok(()), ReplyLines::default());
    let export = |entry: JournalEntry| {
        damaged += usize::from(entry.record.is_err());
        if written.is_ok() {
            written = out.json(exported(&mut lines, &session, entry));
        }
    };
    if found(&place, async |store| raw::store::export(store, &session, export).await).await?.is_none() {
        return no_session(&session, &place);
    }
    written.and_then(|()| out.flush())?;
    if damaged > 0 {
        output::tell(format_args!(
            "safepoint: {damaged} records cannot be read; each is marked in its place"
        ));
    }
    Ok(exit::with(u8::from(damaged > 0)))
}

fn exported(lines: &mut ReplyLines, session: &SessionId, entry: JournalEntry) -> Value {
    let mut line = lines.line("record", Some(session.as_str()), json!({"position": entry.position}));
    let (name, value) = match entry.record {
        Err(damage) => ("damage", json!(damage.to_string())),
        Ok(record) => {
            line["path"] = json!(record.path);
            line["kind"] = json!(record.kind);
            line["version"] = json!(record.version);
            match serde_json::from_slice::<Value>(&record.bytes) {
                Ok(value) => ("record", value),
                Err(_not_json) => ("bytes", json!(record.bytes)),
            }
        }
    };
    line[name] = value;
    line
}

/// The store, and what is read of a session in it; none if there is no such session.
///
/// # Errors
/// The store's.
pub(crate) async fn found<T>(
    place: &StoreArgs,
    read: impl AsyncFnOnce(&dyn Store) -> Result<T, Error>,
) -> anyhow::Result<Option<(Arc<dyn Store>, T)>> {
    let Some(store) = existing_store(place.store.clone()).await? else { return Ok(None) };
    match read(&*store).await {
        Err(Error::NoSession(_)) => Ok(None),
        read => Ok(Some((store, read?))),
    }
}

/// There is no such session, or can be none: said in the form that was asked for.
///
/// # Errors
/// If stdout does not take it.
pub(crate) fn no_session(session: &SessionId, place: &StoreArgs) -> anyhow::Result<ExitCode> {
    match names::check(session.as_str()) {
        Ok(()) => none_such((session, "no_such_session"), NoSession(session.clone()).to_string(), place),
        Err(why) => refused(session, (code::USAGE, "refused"), &why.to_string(), place),
    }
}

/// The same of anything else that is not there.
///
/// # Errors
/// If stdout does not take it.
pub(crate) fn none_such(
    (session, status): (&SessionId, &str),
    said: String,
    place: &StoreArgs,
) -> anyhow::Result<ExitCode> {
    refused(session, (code::NONE_SUCH, status), &said, place)
}

fn refused(
    session: &SessionId,
    (code, status): (u8, &str),
    said: &str,
    place: &StoreArgs,
) -> anyhow::Result<ExitCode> {
    let fields = json!({"code": code, "status": status, "message": said, "detail": {}, "last": true});
    let session = Some(session.as_str()).filter(|named| !named.is_empty());
    show_outcome(place, ("reply", session), fields, (code, &one_line(said)))
}

/// Says how a command came out, in the form that was asked for.
///
/// # Errors
/// If stdout does not take it.
pub(crate) fn show_outcome(
    place: &StoreArgs,
    (kind, session): (&str, Option<&str>),
    fields: Value,
    (code, said): (u8, &str),
) -> anyhow::Result<ExitCode> {
    if place.json {
        ReplyLines::default().say(kind, session, fields)?;
    } else {
        output::tell(format_args!("safepoint: {said}"));
    }
    Ok(exit::with(code))
}

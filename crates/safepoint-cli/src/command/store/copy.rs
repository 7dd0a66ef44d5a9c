//! `safepoint store copy`: sessions of one store in another one.
//!
//! **Invariants**: nothing of a session in the second store is lost: it takes the place of nothing, or of what it has all of. Each session
//! is copied in one transaction.

use std::{process::ExitCode, sync::Arc};

use anyhow::Context as _;
use safepoint::{
    ids::SessionId,
    raw::store::{ChainCheck, OverImage},
    store::{Error, Store},
};
use serde_json::json;

use super::PAGE;
use crate::{
    args::store::CopyArgs,
    control::list::{Listed, meant},
    exit::{self, NoSession, Usage, code},
    output,
    render::{reply_json::ReplyLines, text::one_line},
    settings::store::{existing_store, is_same_store, open_store},
};

/// What became of one session. Exhaustive: it is there, or why not.
enum Copied {
    Made(u64),
    Renewed(u64),
    Same,
    Refused(String),
}

/// Runs the command.
pub(crate) async fn copy(args: CopyArgs) -> anyhow::Result<ExitCode> {
    let CopyArgs { from, to, sessions, json } = args;
    if is_same_store(&from, &to) {
        return Err(Usage(format!("FROM and TO are one store: {from}")).into());
    }
    let named = from.to_string();
    let Some(source) = existing_store(Some(from)).await? else { anyhow::bail!("store {named} not found") };
    let ids = wanted(&source, &sessions).await?;
    let target = open_store(Some(to)).await?;
    for store in [&source, &target] {
        // A holder that is provably dead keeps no session from being copied.
        store.bury().await.context("the nodes cannot be looked at")?;
    }
    let mut lines = json.then(ReplyLines::default);
    let (mut count, mut refused) = (0_usize, 0_usize);
    for id in ids {
        let copied = one(&*source, &*target, &id).await?;
        match &copied {
            Copied::Refused(_) => refused += 1,
            Copied::Made(_) | Copied::Renewed(_) => count += 1,
            Copied::Same => {}
        }
        say(lines.as_mut(), &id, &copied)?;
    }
    let sessions = if count == 1 { "session" } else { "sessions" };
    let but = if refused == 0 { String::new() } else { format!(", {refused} refused") };
    output::tell(format_args!("safepoint: copied {count} {sessions}{but}"));
    Ok(exit::with(if refused > 0 { code::OTHER } else { code::ACCEPTED }))
}

/// The sessions that are meant, the oldest change first, so that lists of the second store have their order too.
async fn wanted(source: &Arc<dyn Store>, named: &[String]) -> anyhow::Result<Vec<SessionId>> {
    let mut ids = Vec::new();
    for named in named {
        let one = meant(Some(source), named).await?.filter(Listed::is_kept);
        let one = one.ok_or_else(|| NoSession(SessionId::from(named.as_str())))?;
        ids.push(SessionId::from(one.id.as_str()));
    }
    if !named.is_empty() {
        return Ok(ids);
    }
    let mut older = None;
    loop {
        let rows = source.list(PAGE, older.take()).await.context("cannot list the sessions")?;
        older = rows.last().map(|row| row.older());
        let is_last = rows.len() < PAGE;
        ids.extend(rows.into_iter().map(|row| row.id));
        if is_last {
            ids.reverse();
            return Ok(ids);
        }
    }
}

async fn one(source: &dyn Store, target: &dyn Store, id: &SessionId) -> anyhow::Result<Copied> {
    let image = match source.image(id).await {
        Ok(image) => image,
        Err(error @ (Error::Held(..) | Error::Damaged(..) | Error::Busy(_) | Error::NoSession(_))) => {
            return Ok(Copied::Refused(error.to_string()));
        }
        Err(error) => return Err(error).context(format!("cannot read {id}")),
    };
    let (over, head) = match target.image(id).await {
        Err(Error::NoSession(_)) => (OverImage::Nothing, image.row.head),
        Ok(there) if there.is_same(&image) => return Ok(Copied::Same),
        Ok(there) if there.is_part_of(&image) => (OverImage::Unchanged(there.stamp()), image.row.head),
        Ok(_) => {
            return Ok(Copied::Refused(
                "it has gone on in the second store, and is left there as it is".into(),
            ));
        }
        Err(error @ (Error::Held(..) | Error::Damaged(..) | Error::Busy(_))) => {
            return Ok(Copied::Refused(format!("in the second store: {error}")));
        }
        Err(error) => return Err(error).context(format!("cannot look for {id} in the second store")),
    };
    let is_new = over == OverImage::Nothing;
    match target.restore(image, over).await {
        Ok(_) => {}
        Err(error @ (Error::SessionExists(_) | Error::NoSession(_) | Error::Held(..))) => {
            return Ok(Copied::Refused(format!("it has changed in the second store meanwhile: {error}")));
        }
        Err(error) => return Err(error).context(format!("cannot write {id} into the second store")),
    }
    match target.check(id).await.with_context(|| format!("the copy of {id} cannot be read"))? {
        ChainCheck::Intact(_) if is_new => Ok(Copied::Made(head)),
        ChainCheck::Intact(_) => Ok(Copied::Renewed(head)),
        ChainCheck::Damaged(damage) => Ok(Copied::Refused(format!("the copy is damaged: {damage}"))),
    }
}

fn say(lines: Option<&mut ReplyLines>, id: &SessionId, copied: &Copied) -> anyhow::Result<()> {
    let (number, status, said) = match copied {
        Copied::Made(records) => (code::ACCEPTED, "copied", format!("copied, {records} records")),
        Copied::Renewed(records) => {
            (code::ACCEPTED, "renewed", format!("brought up to date, {records} records"))
        }
        Copied::Same => (code::ACCEPTED, "same", "there already".to_owned()),
        Copied::Refused(why) => (code::CONFLICT, "refused", format!("refused: {why}")),
    };
    match lines {
        Some(lines) => {
            let fields = json!({"code": number, "status": status, "said": said});
            lines.say("copied", Some(id.as_str()), fields)?;
        }
        None => output::say(format_args!("{}  {said}", one_line(id.as_str())))?,
    }
    Ok(())
}

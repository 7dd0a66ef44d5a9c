//! `safepoint trace`: shows the timeline of a stored session. It reads the store, or asks a server, and does not contact the
//! owner.

use std::{path::Path, process::ExitCode};

use anyhow::Context as _;
use safepoint::ids::SessionId;

use crate::{
    api::{ServerApi, sessions::failed},
    args::trace::TraceArgs,
    command::store::{found, no_session},
    output,
    render::trace::{fold, json, page, text, timeline::Timeline},
};

/// Tells what was recorded.
pub(crate) async fn trace(args: TraceArgs) -> anyhow::Result<ExitCode> {
    if let Some(server) = ServerApi::meant(&args.server, args.place.store.as_ref())? {
        let read = match server.timeline(&args.session).await {
            Ok(read) => read,
            Err(error) => return failed(&server, &error, &args.session, &args.place),
        };
        if args.place.json {
            read.say()?;
            return Ok(ExitCode::SUCCESS);
        }
        return shown(&read.story(), args.html.as_deref());
    }
    let session = SessionId::from(args.session);
    let read = found(&args.place, async |store| fold::read(store, &session).await);
    let Some((_, story)) = read.await? else { return no_session(&session, &args.place) };
    if args.place.json {
        json::say(&story)?;
        return Ok(ExitCode::SUCCESS);
    }
    shown(&story, args.html.as_deref())
}

/// As a page in this file, or as text.
fn shown(story: &Timeline, html: Option<&Path>) -> anyhow::Result<ExitCode> {
    if let Some(path) = html {
        let page = page::page(story);
        std::fs::write(path, &page).with_context(|| format!("{} cannot be written", path.display()))?;
        output::tell(format_args!("{} ({} KB)", path.display(), page.len() / 1024));
    } else {
        output::say(text::text(story).trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

//! `safepoint trace`: shows the timeline of a stored session. It reads the store and does not contact the owner.

use std::process::ExitCode;

use anyhow::Context as _;
use safepoint::ids::SessionId;

use crate::{
    args::trace::TraceArgs,
    command::store::{found, no_session},
    output,
    render::trace::{fold, json, page, text},
};

/// Tells what was recorded.
pub(crate) async fn trace(args: TraceArgs) -> anyhow::Result<ExitCode> {
    let session = SessionId::from(args.session);
    let read = found(&args.place, async |store| fold::read(store, &session).await);
    let Some((_, story)) = read.await? else { return no_session(&session, &args.place) };
    if let Some(path) = args.html {
        let page = page::page(&story);
        std::fs::write(&path, &page).with_context(|| format!("{} cannot be written", path.display()))?;
        output::tell(format_args!("{} ({} KB)", path.display(), page.len() / 1024));
        return Ok(ExitCode::SUCCESS);
    }
    if args.place.json {
        json::say(&story)?;
    } else {
        output::say(text::text(&story).trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

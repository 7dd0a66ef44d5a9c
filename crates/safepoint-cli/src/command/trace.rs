//! `safepoint trace`: shows the timeline of a stored session. It reads the store and does not contact the owner.

use std::process::ExitCode;

use anyhow::Context as _;
use safepoint::{ids::SessionId, store};

use crate::{
    args::trace::TraceArgs,
    command::store::no_session,
    output,
    render::trace::{fold, json, page, text},
    settings::store::existing_store,
};

/// Tells what was recorded.
pub(crate) async fn trace(args: TraceArgs) -> anyhow::Result<ExitCode> {
    let session = SessionId::from(args.session);
    let Some(store) = existing_store(args.place.store.clone())? else {
        return no_session(&session, &args.place);
    };
    let story = match fold::read(&*store, &session).await {
        Err(store::Error::NoSession(_)) => return no_session(&session, &args.place),
        story => story?,
    };
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

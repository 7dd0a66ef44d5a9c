//! `safepoint trace`: looks back on a kept session, through the store alone; whoever owns it is not disturbed.

use std::{
    io::{BufWriter, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::Context as _;
use clap::Args;
use safepoint::{ids::SessionId, store};

use crate::{
    conversation::existing_store,
    kept::{Where, no_session},
};

mod calls;
mod facts;
mod fold;
mod lines;
mod page;
mod story;
mod text;

pub(crate) use text::{cut, moment, one_line};

/// `safepoint trace`.
#[derive(Clone, Debug, Args)]
pub(crate) struct TraceArgs {
    /// The session
    session: String,
    /// Writes a page instead that needs nothing else: a browser opens it, without a network
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    html: Option<PathBuf>,
    #[command(flatten)]
    place: Where,
}

/// Tells what was recorded.
pub(crate) async fn trace(args: TraceArgs) -> anyhow::Result<ExitCode> {
    let session = SessionId::from(args.session);
    let Some(store) = existing_store(args.place.store.clone())? else {
        return no_session(&session, &args.place);
    };
    let story = match story::Story::read(&store, &session).await {
        Err(store::Error::NoSession(_)) => return no_session(&session, &args.place),
        story => story?,
    };
    if let Some(path) = args.html {
        let page = page::page(&story);
        std::fs::write(&path, &page).with_context(|| format!("{} cannot be written", path.display()))?;
        eprintln!("{} ({} KB)", path.display(), page.len() / 1024);
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = BufWriter::new(std::io::stdout().lock());
    let written = if args.place.json {
        lines::write(&story, &mut out)
    } else {
        out.write_all(text::text(&story).as_bytes())
    };
    match written.and_then(|()| out.flush()) {
        // Whoever read it has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        written => written.map(|()| ExitCode::SUCCESS).context("stdout cannot be written"),
    }
}

//! `/export`: the conversation in a file, as Markdown or as a page with its timeline.
//!
//! **Invariants**: a file that is there is replaced only if the person said so, and then as a whole.

use std::{
    env,
    fs::OpenOptions,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use safepoint::{ids::SessionId, store::Store};

use super::{
    conversations::{KeptNews, short},
    later::Later,
};
use crate::render::{
    chat::state::Tone,
    export::markdown,
    trace::{fold, page},
};

/// Writes it to a new file; where there is one already, the person is asked.
///
/// # Errors
/// The store's, or that the file cannot be written.
pub(super) async fn export(store: &dyn Store, id: &SessionId, file: Option<String>) -> anyhow::Result<Later> {
    let path = match file {
        Some(file) => meant(&file),
        None => PathBuf::from(format!("conversation-{}.md", short(id.as_str()))),
    };
    // Before it is made: a long conversation takes a moment.
    if path.symlink_metadata().is_ok() {
        return Ok(Later::Kept(KeptNews::Exists(path)));
    }
    let text = text(store, id, &path).await?;
    let to = path.clone();
    let written = tokio::task::spawn_blocking(move || {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&to)?;
        file.write_all(text.as_bytes()).map(|()| text.len())
    });
    match written.await? {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Later::Kept(KeptNews::Exists(path))),
        written => said(&path, written),
    }
}

/// Writes it in place of the file that is there.
///
/// # Errors
/// As above; the file that is there stays as it is then.
pub(super) async fn overwrite(store: &dyn Store, id: &SessionId, path: PathBuf) -> anyhow::Result<Later> {
    let text = text(store, id, &path).await?;
    let to = path.clone();
    let written = tokio::task::spawn_blocking(move || {
        // What a link leads to is replaced, and not the link.
        let to = to.canonicalize()?;
        let mut name = to.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let passing = to.with_file_name(name);
        let put = || {
            OpenOptions::new().write(true).create_new(true).open(&passing)?.write_all(text.as_bytes())?;
            std::fs::set_permissions(&passing, to.metadata()?.permissions())?;
            std::fs::rename(&passing, &to)
        };
        let put = put();
        if put.is_err() && std::fs::remove_file(&passing).is_err() {
            // It was not made, or its folder cannot be changed.
        }
        put.map(|()| text.len())
    });
    said(&path, written.await?)
}

fn said(path: &Path, written: io::Result<usize>) -> anyhow::Result<Later> {
    const KB: usize = 1024;
    let bytes = written.with_context(|| format!("{} cannot be written", path.display()))?;
    let said = format!("Exported to {} ({} KB)", path.display(), bytes.div_ceil(KB));
    Ok(Later::Message(Tone::Plain, said))
}

async fn text(store: &dyn Store, id: &SessionId, path: &Path) -> anyhow::Result<String> {
    let is_page = path.extension().is_some_and(|kind| kind.eq_ignore_ascii_case("html"));
    Ok(match is_page {
        true => page::page(&fold::read(store, id).await?),
        false => markdown(store, id).await?,
    })
}

/// The path that was typed; `~/` is the home directory, as in a shell.
fn meant(typed: &str) -> PathBuf {
    let home = env::var_os("HOME").filter(|home| !home.is_empty());
    match (typed.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => PathBuf::from(home).join(below),
        _ => PathBuf::from(typed),
    }
}

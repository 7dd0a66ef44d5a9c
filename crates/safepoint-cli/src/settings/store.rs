//! Where the store is, and the ways to open it.

use std::{path::PathBuf, sync::Arc};

use anyhow::Context as _;
use safepoint::{
    ids::SessionId,
    store::{Error, SessionRow, Store},
};
use safepoint_stores::SqliteStore;

use crate::exit::Usage;

/// Opens the store at `path`, or the usual one.
///
/// # Errors
/// If there is no place for it, or it cannot be used.
pub(crate) fn open_store(path: Option<PathBuf>) -> anyhow::Result<Arc<dyn Store>> {
    Ok(Arc::new(open_file(path)?))
}

fn open_file(path: Option<PathBuf>) -> anyhow::Result<SqliteStore> {
    let path = path.map_or_else(usual_store, Ok)?;
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("the folder {} cannot be made", folder.display()))?;
    }
    SqliteStore::open(&path).with_context(|| format!("the store {} cannot be opened", path.display()))
}

/// The same, but where there is no such file, or no place for one, it is not made: there is none.
///
/// # Errors
/// If it cannot be used.
pub(crate) fn existing_store(path: Option<PathBuf>) -> anyhow::Result<Option<Arc<dyn Store>>> {
    Ok(existing_file(path)?.map(|store| -> Arc<dyn Store> { Arc::new(store) }))
}

/// The same, of what only a file can be asked.
///
/// # Errors
/// As there.
pub(crate) fn existing_file(path: Option<PathBuf>) -> anyhow::Result<Option<SqliteStore>> {
    let path = match path.map_or_else(usual_store, Ok) {
        Ok(path) => path,
        Err(_no_home) => return Ok(None),
    };
    let is_there = path.try_exists();
    let is_there = is_there.with_context(|| format!("the store {} cannot be opened", path.display()))?;
    if is_there { open_file(Some(path)).map(Some) } else { Ok(None) }
}

/// The row of a session; none if there is no such session.
///
/// # Errors
/// The store's.
pub(crate) async fn row_of(store: &dyn Store, session: &SessionId) -> Result<Option<SessionRow>, Error> {
    match store.open(session).await {
        Err(Error::NoSession(_)) => Ok(None),
        row => row.map(Some),
    }
}

/// The store file of a session; none for a session in memory.
///
/// # Errors
/// If there is no place for it.
pub(crate) fn kept_in(session: Option<&String>, store: Option<&PathBuf>) -> anyhow::Result<Option<PathBuf>> {
    match (session, store) {
        (_, Some(path)) => Ok(Some(path.clone())),
        (Some(_), None) => usual_store().map(Some),
        (None, None) => Ok(None),
    }
}

/// `$XDG_DATA_HOME/safepoint/store.db`, or the same under `~/.local/share`.
pub(crate) fn usual_store() -> anyhow::Result<PathBuf> {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || {
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        home.map(|home| home.join(".local/share"))
    };
    let Some(data) = data.or_else(home) else {
        return Err(Usage("there is no home directory for the store; name a file with --store".into()).into());
    };
    Ok(data.join("safepoint").join("store.db"))
}

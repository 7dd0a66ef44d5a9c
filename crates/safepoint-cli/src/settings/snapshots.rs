//! Where snapshots of files are kept, and of which directory.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use safepoint_snapshot::{SnapshotLimits, Snapshots};

use crate::{
    args::place::StorePlace,
    exit::Usage,
    settings::store::{usual_file, usual_place},
};

/// The files beside a store: those of SQLite, and the one of its writers.
const BESIDE: [&str; 4] = ["-wal", "-shm", "-journal", "-turn"];

/// Opens the snapshots of the directory that an agent works in; the current one where none is named. The store of sessions and
/// the record of a model's replies are in none: they are open.
///
/// # Errors
/// If there is no place for them, or the directory cannot be used.
pub(crate) fn open(
    root: Option<&Path>,
    store: Option<&StorePlace>,
    record: Option<&Path>,
) -> anyhow::Result<Snapshots> {
    let root = match root {
        Some(root) => root.to_owned(),
        None => env::current_dir().context("the working directory cannot be used")?,
    };
    let mut limits = SnapshotLimits::default();
    let places = store.cloned().into_iter().chain(usual_place().ok());
    let stores = places.filter_map(|place| place.file().map(Path::to_owned)).chain(usual_file().ok());
    for path in stores.chain(record.map(Path::to_owned)) {
        let path = std::path::absolute(path)?;
        for beside in BESIDE {
            let mut name: OsString = path.clone().into_os_string();
            name.push(beside);
            limits = limits.excluding(name);
        }
        limits = limits.excluding(path);
    }
    Ok(Snapshots::open(root, folder()?, limits)?)
}

/// `$XDG_STATE_HOME/safepoint/snapshots`, or the same under `~/.local/state`.
fn folder() -> Result<PathBuf, Usage> {
    let state = env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let none = || Usage("there is no home directory for snapshots of files; set XDG_STATE_HOME".into());
    Ok(state.or_else(home).ok_or_else(none)?.join("safepoint").join("snapshots"))
}

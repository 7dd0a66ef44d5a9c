//! What confines the commands of a run, and what of it this system enforces.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use safepoint_tools::{Confinement, Layers};

use super::{AgentSettings, commands::Commands, config, store};
use crate::args::place::StorePlace;

/// Files of SQLite beside a store.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// What commands are confined to; by default they are not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sandbox {
    confinement: Option<Confinement>,
    /// Whether a command needs no question for what it does inside.
    is_complete: bool,
}

impl Sandbox {
    /// What commands in `root` are confined to, where `layers` are what this system enforces. Each line that a person must
    /// know is given to `note`.
    pub(crate) fn of(
        (settings, root): (&AgentSettings, &Path),
        layers: &Layers,
        note: impl Fn(&str),
    ) -> Self {
        if layers.is_empty() {
            let why = layers.missing().first().cloned().unwrap_or_default();
            note(&format!("commands are not confined here, and each of them asks: {why}"));
            return Self::default();
        }
        let hidden = hidden(settings.kept_in.as_ref(), settings.args.config.as_deref());
        let confinement = match confined(root, layers, &settings.commands, hidden) {
            Ok(confinement) => confinement,
            Err(why) => {
                note(&format!("commands are not confined here, and each of them asks: {why}"));
                return Self::default();
            }
        };
        let lacks = lacks(root, layers);
        if let Some(lacks) = &lacks {
            note(&format!("commands are confined in part only, and each of them asks: {lacks}"));
        }
        Self { confinement: Some(confinement), is_complete: lacks.is_none() }
    }

    pub(crate) fn confinement(&self) -> Option<&Confinement> {
        self.confinement.as_ref()
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }
}

/// A confinement to `root` that hides these and opens what the config file says.
///
/// # Errors
/// Why there is none.
pub(crate) fn confined(
    root: &Path,
    layers: &Layers,
    commands: &Commands,
    hidden: Vec<PathBuf>,
) -> Result<Confinement, String> {
    let confinement = Confinement::new(root, layers.clone()).map_err(|error| error.to_string())?;
    let confinement = commands.writable().iter().fold(confinement, Confinement::write);
    Ok(hidden.into_iter().fold(confinement, Confinement::hide))
}

/// What is missing before a command needs no question.
pub(crate) fn lacks(root: &Path, layers: &Layers) -> Option<String> {
    let home = std::env::var_os("HOME").map(PathBuf::from).and_then(|home| home.canonicalize().ok());
    let root = root.canonicalize().ok();
    if home.zip(root).is_some_and(|(home, root)| home.starts_with(root)) {
        let why = "the root holds your home directory, and programs of yours obey what is written there";
        return Some(why.to_owned());
    }
    Some(layers.missing().join("; ")).filter(|missing| !missing.is_empty())
}

/// What is ours alone: the store that is used, the usual folder of stores, and the folder of the config file.
pub(crate) fn hidden(kept_in: Option<&StorePlace>, config: Option<&Path>) -> Vec<PathBuf> {
    let usual = store::usual_file().ok().and_then(|store| store.parent().map(Path::to_owned));
    let places = kept_in.cloned().into_iter().chain(store::usual_place().ok());
    let files = places.filter_map(|place| place.file().map(Path::to_owned));
    let stores = files.flat_map(|store| {
        let beside = BESIDE.map(|ending| {
            let mut name = OsString::from(&store);
            name.push(ending);
            PathBuf::from(name)
        });
        beside.into_iter().chain([store])
    });
    let configs = config.map(Path::to_owned).into_iter().chain(config::folder());
    stores.chain(usual).chain(configs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S4.27, S8.15: in a home directory a command may not write unasked, whatever is enforced.
    #[test]
    fn a_root_that_holds_the_home_directory_is_not_complete() {
        let layers = Layers::read("end\n");
        let home = PathBuf::from(std::env::var_os("HOME").unwrap());
        assert!(lacks(&home, &layers).unwrap().contains("your home directory"));
        assert!(lacks(home.parent().unwrap(), &layers).is_some());
        let place = tempfile::tempdir().unwrap();
        assert_eq!(lacks(place.path(), &layers), None);
        assert!(lacks(place.path(), &Layers::none("a test")).unwrap().contains("any socket (a test)"));
    }

    /// S4.27
    #[test]
    fn the_store_is_hidden_with_what_sqlite_writes_beside_it() {
        let hidden = hidden(Some(&PathBuf::from("/a/store.db").into()), Some(Path::new("/a/c.toml")));
        for path in ["/a/store.db", "/a/store.db-wal", "/a/store.db-shm", "/a/store.db-journal", "/a/c.toml"]
        {
            assert!(hidden.contains(&PathBuf::from(path)), "{path}: {hidden:?}");
        }
    }
}

//! Where the store is, and the ways to open it.

use std::{path::PathBuf, sync::Arc};

use anyhow::Context as _;
use safepoint::{
    ids::SessionId,
    store::{Error, SessionRow, Store},
};
use safepoint_stores::SqliteStore;

use crate::{
    args::place::{DatabaseAddress, StorePlace},
    exit::Usage,
};

/// What names the store where the command line does not.
const VARIABLE: &str = "SAFEPOINT_STORE";

/// A store that is open.
pub(crate) enum OpenStore {
    File(Arc<SqliteStore>),
    Database(Arc<dyn Store>),
}

/// What is done where a database has no tables, or those of an earlier release. Exhaustive: they are made, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tables {
    Made,
    AsTheyAre,
}

/// Opens the store at this place, or the usual one.
///
/// # Errors
/// If there is no place for it, or it cannot be used.
///
/// # Cancel safety
/// It may have been made.
pub(crate) async fn open_store(place: Option<StorePlace>) -> anyhow::Result<Arc<dyn Store>> {
    aside(move || Ok(opened(&place.map_or_else(usual_place, Ok)?, Tables::Made)?.store())).await
}

/// The same, but where there is no such file, or no place for one, it is not made: there is none.
///
/// # Errors
/// If it cannot be used.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn existing_store(place: Option<StorePlace>) -> anyhow::Result<Option<Arc<dyn Store>>> {
    Ok(existing(place).await?.map(|open| open.store()))
}

/// The same, with what only a file can be asked.
///
/// # Errors
/// As there.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn existing(place: Option<StorePlace>) -> anyhow::Result<Option<OpenStore>> {
    aside(move || found(place, Tables::Made)).await
}

/// The same, where nothing is changed.
///
/// # Errors
/// As there, and if the tables of a database are missing or of an earlier release.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn unchanged(place: StorePlace) -> anyhow::Result<Option<OpenStore>> {
    aside(move || found(Some(place), Tables::AsTheyAre)).await
}

/// Opening waits for a disk or a network.
async fn aside<T: Send + 'static>(
    opens: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(opens).await?
}

fn found(place: Option<StorePlace>, tables: Tables) -> anyhow::Result<Option<OpenStore>> {
    let place = match place.map_or_else(usual_place, Ok) {
        Ok(place) => place,
        Err(_no_home) => return Ok(None),
    };
    let is_there = match place.file() {
        None => true,
        Some(path) => path.try_exists().with_context(|| format!("the store {place} cannot be opened"))?,
    };
    if is_there { opened(&place, tables).map(Some) } else { Ok(None) }
}

fn opened(place: &StorePlace, tables: Tables) -> anyhow::Result<OpenStore> {
    let path = match place {
        StorePlace::File(path) => path,
        StorePlace::Postgres(address) => return database(address, tables).map(OpenStore::Database),
    };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("the folder {} cannot be made", folder.display()))?;
    }
    let store = SqliteStore::open(path).with_context(|| format!("the store {place} cannot be opened"))?;
    Ok(OpenStore::File(Arc::new(store)))
}

#[cfg(feature = "postgres")]
fn database(address: &DatabaseAddress, tables: Tables) -> anyhow::Result<Arc<dyn Store>> {
    use safepoint_stores::{
        PostgresStore,
        postgres::{Migration, PostgresOptions},
    };

    let whole =
        address.whole().map_err(|why| Usage(format!("the address of the store cannot be read: {why}")))?;
    let mut options = PostgresOptions::default();
    options.migration = match tables {
        Tables::Made => Migration::Run,
        Tables::AsTheyAre => Migration::CheckOnly,
    };
    let shown = StorePlace::Postgres(address.clone());
    let store = PostgresStore::open_with(whole, options);
    Ok(Arc::new(store.with_context(|| format!("the store {shown} cannot be opened"))?))
}

/// A build without that store.
#[cfg(not(feature = "postgres"))]
fn database(_address: &DatabaseAddress, _tables: Tables) -> anyhow::Result<Arc<dyn Store>> {
    const ABSENT: &str = "this build stores sessions in files alone; one that uses a PostgreSQL database is built with \
         `cargo install safepoint-cli --features postgres`";
    Err(Usage(ABSENT.into()).into())
}

impl OpenStore {
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::File(store) => Arc::clone(store) as Arc<dyn Store>,
            Self::Database(store) => Arc::clone(store),
        }
    }

    /// What is wrong with its file, if it is one.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn check_file(&self) -> Result<Option<String>, Error> {
        match self {
            Self::File(store) => store.check_file().await,
            Self::Database(_) => Ok(None),
        }
    }

    /// Removes a session in which nothing was said.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// It may be removed.
    pub(crate) async fn remove_if_unused(&self, session: &SessionId) -> Result<(), Error> {
        let store = match self {
            Self::File(store) => return store.remove_if_unused(session).await.map(drop),
            Self::Database(store) => store,
        };
        if store.open(session).await?.head == 0 {
            // What another process may have pushed there meanwhile is looked at in the removal.
            store.remove_if_at_rest(session).await?;
        }
        Ok(())
    }
}

/// The row of a session; none if there is no such session.
///
/// # Errors
/// The store's.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn row_of(store: &dyn Store, session: &SessionId) -> Result<Option<SessionRow>, Error> {
    match store.open(session).await {
        Err(Error::NoSession(_)) => Ok(None),
        row => row.map(Some),
    }
}

/// The store of a session; none for a session in memory.
///
/// # Errors
/// If there is no place for it.
pub(crate) fn kept_in(
    session: Option<&String>,
    store: Option<&StorePlace>,
) -> anyhow::Result<Option<StorePlace>> {
    match (session, store) {
        (_, Some(place)) => Ok(Some(place.clone())),
        (Some(_), None) => usual_place().map(Some),
        (None, None) => Ok(None),
    }
}

/// Whether both are one store: the same file, or the same address.
pub(crate) fn is_same_store(one: &StorePlace, other: &StorePlace) -> bool {
    match (one.file(), other.file()) {
        (Some(one), Some(other)) => {
            one == other
                || one.canonicalize().ok().is_some_and(|one| other.canonicalize().is_ok_and(|it| it == one))
        }
        (None, None) => one.to_string() == other.to_string(),
        _ => false,
    }
}

/// What `SAFEPOINT_STORE` names, or the usual file.
///
/// # Errors
/// If there is no place for it.
pub(crate) fn usual_place() -> anyhow::Result<StorePlace> {
    let named = std::env::var_os(VARIABLE).filter(|named| !named.is_empty());
    named.map_or_else(|| usual_file().map(StorePlace::File), |named| Ok(named.into()))
}

/// The variable that names the store, if that is a database: no command is given its address.
pub(super) fn variable_of_database() -> Option<&'static str> {
    let place = std::env::var_os(VARIABLE).map(StorePlace::from)?;
    place.file().is_none().then_some(VARIABLE)
}

/// `store.db` in the [`folder`].
///
/// # Errors
/// If there is no place for it.
pub(crate) fn usual_file() -> anyhow::Result<PathBuf> {
    Ok(folder()?.join("store.db"))
}

/// A folder of this machine for what belongs to the sessions of a store: beside its file, or, of a database, in the usual folder.
///
/// # Errors
/// If there is no place for it.
pub(crate) fn beside(place: &StorePlace, suffix: &str) -> anyhow::Result<PathBuf> {
    let base = match place {
        StorePlace::File(path) => path.clone(),
        StorePlace::Postgres(address) => folder()?.join("databases").join(address.digest()),
    };
    let mut beside = base.into_os_string();
    beside.push(suffix);
    Ok(beside.into())
}

/// `$XDG_DATA_HOME/safepoint`, or the same under `~/.local/share`.
fn folder() -> anyhow::Result<PathBuf> {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || {
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        home.map(|home| home.join(".local/share"))
    };
    let Some(data) = data.or_else(home) else {
        return Err(Usage("there is no home directory for the store; name a file with --store".into()).into());
    };
    Ok(data.join("safepoint"))
}

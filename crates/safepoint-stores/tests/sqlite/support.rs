//! What the tests of the store in a file share.

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use safepoint::{
    raw::store::Environment,
    store::{MemoryStore, Store},
};
use safepoint_stores::{
    SqliteStore,
    sqlite::{Moment, SqliteOptions},
};
use safepoint_testkit::store_suite::{
    Population, Time, outside,
    play::{Picture, Player, script},
};
use tempfile::TempDir;

/// Makes stores in this folder, each open twice.
pub(crate) fn fresh(folder: &TempDir) -> impl Fn(Environment) -> [Arc<dyn Store>; 2] + Sync {
    let made = AtomicUsize::new(0);
    move |outside| {
        let path = folder.path().join(format!("{}.db", made.fetch_add(1, Ordering::Relaxed)));
        [0, 1].map(|_| {
            let store: Arc<dyn Store> = Arc::new(open(&path, &outside));
            store
        })
    }
}

pub(crate) fn options(outside: &Environment) -> SqliteOptions {
    let mut options = SqliteOptions::default();
    options.outside = outside.clone();
    options
}

pub(crate) fn open(path: &Path, outside: &Environment) -> SqliteStore {
    SqliteStore::open_with(path, options(outside)).unwrap()
}

/// Opens it with a probe that gets the number of each moment, counted from 0.
pub(crate) fn probed(
    path: &Path,
    outside: &Environment,
    probe: impl Fn(usize, Moment) -> io::Result<()> + Send + Sync + 'static,
) -> SqliteStore {
    let count = AtomicUsize::new(0);
    let mut options = options(outside);
    options.probe = Some(Arc::new(move |moment| probe(count.fetch_add(1, Ordering::SeqCst), moment)));
    SqliteStore::open_with(path, options).unwrap()
}

/// A separate clock, population and environment.
pub(crate) fn world() -> (Time, Population, Environment) {
    let (time, lives) = (Time::default(), Population::default());
    let outside = outside(&time, &lives);
    (time, lives, outside)
}

/// A model of a store in a separate environment, and that environment.
pub(crate) fn model() -> (Player, Environment) {
    let (time, lives, outside) = world();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(outside.clone()));
    (Player::of(store, &time, &lives), outside)
}

/// What is to be seen before the script's first step, and after each.
pub(crate) async fn course() -> Vec<Vec<Picture>> {
    let (mut model, _) = model();
    let mut course = vec![Vec::new()];
    for step in script() {
        // Some are refused, and change nothing.
        drop(model.play(&step).await);
        course.push(Picture::of(&*model.store).await.unwrap());
    }
    course
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

//! The file itself: full, read-only, older, newer, of another program. S7.6.

use std::{
    fs,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process,
    sync::Arc,
    time::Duration,
};

use rusqlite::Connection;
use safepoint::{
    raw::store::{ChainCheck, Durability, Liveness, NewSession, Record, Write},
    store::{Error, Store},
};
use safepoint_stores::{SqliteStore, sqlite::SqliteOptions};
use safepoint_testkit::store_suite::{
    acquire, give_back, item, owner,
    play::{Picture, Player, alike, script},
    record,
};

use super::{
    roles::{Process, command, reported, say, this_program},
    support::{course, open, options, runtime, world},
};

const TTL: Duration = Duration::from_secs(10);

/// S7.6: each write that needs room says that there is none; nothing is half-written, and all stays readable.
#[tokio::test]
async fn a_full_store_says_so_at_the_write_that_needs_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let (_, _, outside) = world();
    let mut bounded = options(&outside);
    bounded.most_bytes = Some(512 << 10);
    let store = SqliteStore::open_with(&path, bounded).unwrap();
    let session = store.create(NewSession::of("a")).await.unwrap().id;
    let lease = acquire(&store, &session, owner(1), TTL).await.unwrap();
    let large = || Record { bytes: vec![7; 20 << 10], ..record("") };
    let append = |records: usize| {
        let mut writes: Vec<Write> = (0..records).map(|_| Write::Record(large())).collect();
        writes.push(Write::Label("written".into()));
        store.append(&lease, writes, Durability::Durable)
    };
    let mut written = 0;
    let refused = loop {
        match append(2).await {
            Ok(appended) => written = appended.next,
            Err(refused) => break refused,
        }
    };
    assert!(matches!(refused, Error::Full(_)) && !refused.is_uncertain(), "{refused:?}");
    assert!(written > 10, "{written}");
    let before = Picture::of(&store).await.unwrap();
    assert_eq!(store.open(&session).await.unwrap().head, written);
    for number in 0..3 {
        let push =
            safepoint::raw::store::NewItem { bytes: vec![7; 60 << 10], ..item(&number.to_string(), "large") };
        assert!(matches!(store.push(&session, push).await, Err(Error::Full(_))));
        assert!(matches!(append(3).await, Err(Error::Full(_))));
    }
    alike("a full store", &Picture::of(&store).await.unwrap(), &before).unwrap();
    // Room is made: another handle may grow the file.
    let roomy = open(&path, &outside);
    assert_eq!(
        roomy.append(&lease, vec![Write::Record(large())], Durability::Durable).await.unwrap().first,
        written
    );
    assert!(Picture::of(&roomy).await.unwrap().iter().all(Picture::is_sound));
}

/// Reads a store that it may not write, and says what becomes of each write.
#[test]
fn reader_role() {
    let Some((path, _)) = reported("reader") else { return };
    let (_, _, outside) = world();
    let store = match SqliteStore::open_with(&path, options(&outside)) {
        Ok(store) => store,
        Err(error) => return say(format!("closed: {error}")),
    };
    runtime().block_on(async {
        let session = "a".into();
        let pictures = Picture::of(&store).await.unwrap();
        say(format!("reads {}", pictures.iter().filter(|picture| picture.is_sound()).count()));
        let refusals = [
            store.create(NewSession::of("c")).await.err(),
            store.remove(&session).await.err(),
            acquire(&store, &session, owner(3), TTL).await.err(),
            store.push(&session, item("9", "9")).await.err(),
            store.withdraw(&session, 1).await.err(),
        ];
        let is_said = refusals.iter().all(|error| matches!(error, Some(Error::ReadOnly(_))));
        say(if is_said { "refuses".to_owned() } else { format!("{refusals:?}") });
    });
}

/// A user without write permission, where this test may switch to one.
const UNPRIVILEGED: u32 = 65_534;

/// A process that may read the folder, and nothing more. This program is copied there, where it may be run.
fn reader(folder: &Path, path: &Path) -> Process {
    let program = folder.join("program");
    if !program.exists() {
        // By another process: what a sibling thread forks meanwhile would hold a file that is written here, and it could not be run.
        assert!(process::Command::new("cp").arg(this_program()).arg(&program).status().unwrap().success());
    }
    for (path, mode) in [(program.as_path(), 0o555), (path, 0o444), (folder, 0o555)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    for beside in ["a.db-wal", "a.db-shm"] {
        let beside = folder.join(beside);
        if beside.exists() {
            fs::set_permissions(beside, fs::Permissions::from_mode(0o444)).unwrap();
        }
    }
    let mut command = command(&program, "file", "reader", path, "");
    if rustix::process::geteuid().is_root() {
        command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
    }
    Process::start(command)
}

async fn played(path: &Path) -> SqliteStore {
    let (time, lives, outside) = world();
    let store: Arc<dyn Store> = Arc::new(open(path, &outside));
    let mut player = Player::of(Arc::clone(&store), &time, &lives);
    for step in script() {
        drop(player.play(&step).await);
    }
    drop((player, store));
    open(path, &outside)
}

/// S7.6: a store that can only be read is read, whether it was closed or is in use; each write says why it cannot.
#[tokio::test]
async fn a_store_that_can_only_be_read_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = played(&path).await;
    let sessions = store.list(10, None).await.unwrap().len();
    let mut in_use = reader(folder.path(), &path);
    assert_eq!(in_use.hear(), Some(format!("reads {sessions}")), "while another has it open");
    assert_eq!(in_use.hear().as_deref(), Some("refuses"));
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    store.close();
    let beside = folder.path().join("a.db-wal");
    while beside.exists() {
        // The handle that played is closed by its own threads, soon.
        open(&path, &world().2).close();
    }
    let mut closed = reader(folder.path(), &path);
    assert_eq!(closed.hear(), Some(format!("reads {sessions}")), "when no process has it open");
    assert_eq!(closed.hear().as_deref(), Some("refuses"));
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
}

fn made(sql: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    (folder, path)
}

fn version(path: &Path) -> i64 {
    Connection::open(path).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

/// S7.6: a store that was written by an older release opens in this one, with everything that it held.
#[tokio::test]
async fn a_store_of_an_older_release_opens() {
    let (_folder, path) = made(include_str!("../fixtures/1.sql"));
    assert_eq!(version(&path), 1);
    let (_, _, outside) = world();
    // Two processes may find it so at once.
    let (path, other) = (&path, &outside);
    let stores = std::thread::scope(|scope| {
        [0, 1].map(|_| scope.spawn(|| open(path, other))).map(|opened| opened.join().unwrap())
    });
    let store = &stores[0];
    assert_eq!(version(path), 7);
    let held = course().await.pop().unwrap();
    // That release did not keep who held a session.
    let held: Vec<Picture> = held.into_iter().map(Picture::without_nodes).collect();
    alike("what it held", &Picture::of(store).await.unwrap(), &held).unwrap();
    let lease = acquire(store, &"a".into(), owner(5), TTL).await.unwrap();
    store.append(&lease, vec![Write::Record(record("after"))], Durability::Durable).await.unwrap();
    assert!(Picture::of(&stores[1]).await.unwrap().iter().all(Picture::is_sound));
}

/// S7.6: a step that fails is undone: the store is as the older release left it, and opens once the cause is gone.
#[tokio::test]
async fn a_step_that_fails_leaves_the_older_store_as_it_was() {
    let (_folder, path) = made(include_str!("../fixtures/1.sql"));
    // The second step makes an index of this name.
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE approvals_open (a)").unwrap();
    let refused = SqliteStore::open(&path).unwrap_err();
    assert!(matches!(refused, Error::Failed(_)), "{refused:?}");
    assert_eq!(version(&path), 1);
    Connection::open(&path).unwrap().execute_batch("DROP TABLE approvals_open").unwrap();
    let held = course().await.pop().unwrap();
    let held: Vec<Picture> = held.into_iter().map(Picture::without_nodes).collect();
    let store = open(&path, &world().2);
    alike("what it held", &Picture::of(&store).await.unwrap(), &held).unwrap();
}

/// S7.6, S7.4, S7.46: a lease that an older release gave holds as it did, and what waited for an owner is due.
#[tokio::test]
async fn a_lease_of_an_older_release_still_holds() {
    let (_folder, path) = made(include_str!("../fixtures/5.sql"));
    let (time, lives, outside) = world();
    let store = open(&path, &outside);
    assert_eq!(version(&path), 7);
    let a = "a".into();
    let holder = store.open(&a).await.unwrap().holder.unwrap();
    assert_eq!(holder.owner, owner(1));
    assert_eq!(holder.expires, time.now().saturating_add(TTL).unwrap());
    assert_eq!(holder.until, Some(time.up() + TTL));
    let refused = acquire(&store, &a, owner(2), TTL).await.unwrap_err();
    assert!(matches!(&refused, Error::Held(_, held) if held.owner == owner(1)), "{refused:?}");
    let due: Vec<_> =
        store.due(10, Vec::new()).await.unwrap().into_iter().map(|due| due.session.to_string()).collect();
    assert!(due.is_empty(), "it last changed a second later than it is now here: {due:?}");
    time.pass(Duration::from_secs(1));
    let due: Vec<_> =
        store.due(10, Vec::new()).await.unwrap().into_iter().map(|due| due.session.to_string()).collect();
    assert_eq!(due, ["waits"]);
    lives.say(1, Liveness::Dead);
    let lease = acquire(&store, &a, owner(2), TTL).await.unwrap();
    assert_eq!(lease.epoch(), 5);
    let tenures = store.tenures(&a).await.unwrap();
    assert_eq!((tenures.len(), tenures[0].epoch), (1, 5));
    store.append(&lease, vec![Write::Record(record("after"))], Durability::Durable).await.unwrap();
    assert!(matches!(store.check(&a).await.unwrap(), ChainCheck::Intact(_)));
}

/// S7.6: a store that was written by a later release is not opened, and not touched.
#[tokio::test]
async fn a_store_of_a_later_release_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    SqliteStore::open(&path).unwrap().close();
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = fs::read(&path).unwrap();
    let refused = SqliteStore::open(&path).unwrap_err();
    assert!(matches!(refused, Error::Newer { found: 99, known } if known < 99), "{refused:?}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// S7.6, S7.7
#[tokio::test]
async fn a_file_of_another_program_is_not_touched() {
    let (folder, path) = made("CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)");
    let garbage = folder.path().join("garbage.db");
    fs::write(&garbage, "this is no database, and never was one".repeat(100)).unwrap();
    for path in [path, garbage] {
        let before = fs::read(&path).unwrap();
        let refused = SqliteStore::open(&path).unwrap_err();
        assert!(matches!(refused, Error::Failed(_)), "{refused:?}");
        assert_eq!(fs::read(&path).unwrap(), before, "{}", path.display());
    }
    let refused = SqliteStore::open(folder.path()).unwrap_err();
    assert!(refused.to_string().contains("is a directory"), "{refused}");
    let none = SqliteStore::open(folder.path().join("no such folder").join("a.db")).unwrap_err();
    assert!(matches!(none, Error::Failed(_)), "{none:?}");
}

#[tokio::test]
async fn a_new_store_is_its_owner_s_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a ?#%.db");
    let store = SqliteStore::open_with(&path, SqliteOptions::default()).unwrap();
    store.create(NewSession::of("a")).await.unwrap();
    for beside in ["", "-wal", "-shm"] {
        let file = PathBuf::from(format!("{}{beside}", path.display()));
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o077, 0, "{}", file.display());
    }
}

/// S7.40: a session in which nothing was said is removed, and no other: one with a record, one with an item that waits, and one
/// that a process owns stay.
#[tokio::test]
async fn only_a_session_in_which_nothing_was_said_is_removed_as_unused() {
    let folder = tempfile::tempdir().unwrap();
    let (_, _, outside) = world();
    let store = open(&folder.path().join("a.db"), &outside);
    for id in ["empty", "said", "waits", "held"] {
        store.create(NewSession::of(id)).await.unwrap();
    }
    let lease = acquire(&store, &"said".into(), owner(1), TTL).await.unwrap();
    store.append(&lease, vec![Write::Record(record("x"))], Durability::Durable).await.unwrap();
    give_back(&store, &lease).await.unwrap();
    store.push(&"waits".into(), item("x", "hello")).await.unwrap();
    let held = acquire(&store, &"held".into(), owner(1), TTL).await.unwrap();
    for (id, was_unused) in [("empty", true), ("said", false), ("waits", false)] {
        assert_eq!(store.remove_if_unused(&id.into()).await.unwrap(), was_unused, "{id}");
    }
    assert!(matches!(store.remove_if_unused(&"held".into()).await, Err(Error::Held(..))));
    assert!(matches!(store.remove_if_unused(&"empty".into()).await, Err(Error::NoSession(_))));
    give_back(&store, &held).await.unwrap();
    assert!(store.remove_if_unused(&"held".into()).await.unwrap());
    store.withdraw(&"waits".into(), 1).await.unwrap();
    assert!(store.remove_if_unused(&"waits".into()).await.unwrap(), "nothing waits any more");
}

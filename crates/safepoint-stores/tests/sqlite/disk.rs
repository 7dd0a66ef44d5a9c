//! A real disk that is full at each write, and a file that another program holds for long. S7.6.

use std::{
    fs::{self, File},
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use rusqlite::Connection;
use safepoint::{
    raw::store::{Durability, NewSession, Write},
    store::{Error, OwnerProcess, Store},
};
use safepoint_stores::SqliteStore;
use safepoint_testkit::{
    skipped,
    store_suite::{
        acquire, give_back, item,
        play::{Picture, Player, alike, script},
        record,
    },
    wait::until,
};

use super::{
    roles::{Process, command, reported, say, this_program},
    support::{model, open, options, runtime, world},
};

/// KiB of the disk that is filled up.
const DISK: usize = 1024;
const PAGE: usize = 4096;
const RECORDS: usize = 20;
const TTL: Duration = Duration::from_secs(600);

/// Fills a small disk before each step of the script in turn, plays until there is no room, makes room, and
/// continues.
#[test]
fn full_role() {
    let Some((folder, _)) = reported("full") else { return };
    runtime().block_on(async {
        let mut refusals = 0;
        for at in 0..script().len() {
            refusals += fill_up(&folder, at).await;
        }
        say(format!("full {refusals} times"));
    });
}

/// How often there was no room.
async fn fill_up(folder: &Path, at: usize) -> usize {
    let path = folder.join(format!("{at}.db"));
    let (time, lives, outside) = world();
    let store = Arc::new(open(&path, &outside));
    let ballast = Ballast(folder.join("ballast"));
    let mut player = Player::of(Arc::clone(&store) as Arc<dyn Store>, &time, &lives);
    let (mut model, _) = model();
    let mut refusals = 0;
    for (number, step) in script().into_iter().enumerate() {
        if number == at {
            ballast.take();
        }
        let mut answer = player.play(&step).await;
        if matches!(answer, Err(Error::Full(_))) {
            refusals += 1;
            let (is, should) = (Picture::of(&*player.store), Picture::of(&*model.store));
            alike("a full disk", &is.await.unwrap(), &should.await.unwrap()).unwrap();
            ballast.drop_it();
            answer = player.play(&step).await;
        }
        let wanted = model.play(&step).await;
        assert_eq!(format!("{answer:?}"), format!("{wanted:?}"), "full before {at}: {step:?}");
    }
    let (is, should) = (Picture::of(&*player.store), Picture::of(&*model.store));
    alike("at the end", &is.await.unwrap(), &should.await.unwrap()).unwrap();
    drop(player);
    // A store that is only dropped takes its files away later, on its own threads.
    Arc::into_inner(store).expect("the player was the only other owner").close();
    ballast.drop_it();
    for entry in fs::read_dir(folder).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    refusals
}

/// A file that uses up the free space.
struct Ballast(PathBuf);

impl Ballast {
    /// Takes all of it.
    fn take(&self) {
        let mut file = File::create(&self.0).unwrap();
        let full = loop {
            if let Err(full) = file.write_all(&[7; PAGE]) {
                break full;
            }
        };
        assert_eq!(full.kind(), ErrorKind::StorageFull);
    }

    fn drop_it(&self) {
        if fs::remove_file(&self.0).is_err() {
            // It has been dropped before.
        }
    }
}

/// What a process in this role prints on a separate small disk. None where the test may not make one, which
/// is printed; the store's own bound covers the same case.
fn on_a_small_disk(role: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o size={DISK}k none {}", folder.path().display());
    let within = |then: &str| {
        let mut unshare = Command::new("unshare");
        unshare.args(["-m", "sh", "-c", &format!("{mount} && {then}"), "sh"]);
        unshare
    };
    let why = match within("true").output() {
        Ok(out) if out.status.success() => None,
        Ok(out) => Some(String::from_utf8_lossy(&out.stderr).trim().to_owned()),
        Err(error) => Some(format!("unshare: {error}")),
    };
    if let Some(why) = why {
        skipped(format_args!("no separate disk may be made here: {why}"));
        return None;
    }
    let role = command(&this_program(), "disk", role, folder.path(), "");
    let mut wrapped = within("exec \"$@\"");
    wrapped.arg(role.get_program()).args(role.get_args());
    wrapped.envs(role.get_envs().filter_map(|(name, value)| Some((name, value?))));
    wrapped.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    Some(Process::start(wrapped).hear().unwrap_or_default())
}

/// S7.6, S7.7: a disk that is full, at each write of a long life: the error says so, nothing is half-written,
/// and once there is room the same store continues.
#[test]
fn a_disk_that_is_full_at_any_write_is_reported_and_loses_nothing() {
    let Some(said) = on_a_small_disk("full") else { return };
    let refusals: usize = said
        .strip_prefix("full ")
        .and_then(|rest| rest.strip_suffix(" times"))
        .and_then(|count| count.parse().ok())
        .unwrap_or_else(|| panic!("it said: {said}"));
    assert!(refusals > 5, "{refusals}");
}

/// On a full disk removes a session whose removal needs more than lies free beside the file, but not more than was written there.
#[test]
fn removes_role() {
    let Some((folder, _)) = reported("removes") else { return };
    runtime().block_on(async {
        let path = folder.join("a.db");
        let open = || SqliteStore::open(&path).unwrap();
        let store = open();
        for id in ["a", "b"] {
            store.create(NewSession::of(id)).await.unwrap();
            let lease = acquire(&store, &id.into(), OwnerProcess::here(), TTL).await.unwrap();
            let long = || Write::Record(record(&"long ".repeat(PAGE / 8)));
            let writes = (0..RECORDS).map(|_| long()).collect();
            store.append(&lease, writes, Durability::Recorded).await.unwrap();
            give_back(&store, &lease).await.unwrap();
        }
        // All of it is in the file, and what is changed from here on needs no new place in it.
        store.close();
        let store = open();
        store.remove(&"a".into()).await.unwrap();
        for id in ["1", "2", "3"] {
            store.push(&"b".into(), item(id, "in the place of what was removed")).await.unwrap();
        }
        let ballast = Ballast(folder.join("ballast"));
        ballast.take();
        say(match store.remove(&"b".into()).await {
            Ok(()) => format!("removed, and {} are left", store.list(9, None).await.unwrap().len()),
            Err(error) => error.to_string(),
        });
    });
}

/// S7.6: a session is removed where the disk is full, as long as what lies beside the file leaves room to write it.
#[test]
fn a_session_is_removed_from_a_full_disk() {
    let Some(said) = on_a_small_disk("removes") else { return };
    assert_eq!(said, "removed, and 0 are left");
}

/// S7.6: another program holds the file for long: each write reports that after its time limit, existing data
/// stays readable, and all writes continue once the file is free.
#[tokio::test]
async fn a_file_that_another_program_holds_is_reported_as_busy() {
    const BUSY: Duration = Duration::from_millis(20);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let (_, _, outside) = world();
    open(&path, &outside).create(NewSession::of("a")).await.unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut patient = options(&outside);
    (patient.busy, patient.patience) = (BUSY, BUSY);
    let store = SqliteStore::open_with(&path, patient).unwrap();
    let before = Picture::of(&store).await.unwrap();
    let refused = store.create(NewSession::of("b")).await.unwrap_err();
    assert!(matches!(refused, Error::Busy(_)) && !refused.is_uncertain(), "{refused:?}");
    assert!(refused.to_string().starts_with("the store is busy"), "{refused}");
    assert!(matches!(store.push(&"a".into(), item("1", "hello")).await, Err(Error::Busy(_))));
    alike("while it is held", &Picture::of(&store).await.unwrap(), &before).unwrap();
    other.execute_batch("ROLLBACK").unwrap();
    store.push(&"a".into(), item("1", "hello")).await.unwrap();
}

/// S7.4, S7.6: who opens a file while another has it to itself in a way that SQLite does not wait for, waits itself.
#[test]
fn a_file_that_is_held_for_a_moment_is_waited_for() {
    /// Long enough for an open that does not wait to have failed.
    const HELD: Duration = Duration::from_millis(300);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema").unwrap();
    let opening = std::thread::spawn({
        let path = path.clone();
        move || SqliteStore::open(&path).map(drop)
    });
    let began = Instant::now();
    until("it has waited for a while", || opening.is_finished() || began.elapsed() >= HELD);
    other.execute_batch("COMMIT").unwrap();
    opening.join().unwrap().unwrap();
}

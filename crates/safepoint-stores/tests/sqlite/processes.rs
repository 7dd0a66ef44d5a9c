//! Real processes on one file: S7.4, S7.5, S8.2, S8.4 as far as the store goes.

use std::{
    io::Read as _,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::StreamExt as _;
use safepoint::{
    ids::SessionId,
    raw::store::{
        ApprovalState, ApprovalsToWithdraw, DecisionResult, Durability, NewSession, NodeLease, Since,
        StopIntent, Write,
    },
    store::{Error, OwnerProcess, Store},
};
use safepoint_stores::{
    SqliteStore,
    sqlite::{Moment, SqliteOptions},
};
use safepoint_testkit::store_suite::{
    acquire, give_back, item,
    play::{ask, decision},
    record,
};

use super::{
    roles::{Process, command, reported, say, this_program},
    support::runtime,
};

const TTL: Duration = Duration::from_secs(600);
/// No wait of these tests is longer.
const BOUND: Duration = Duration::from_secs(60);

fn session() -> SessionId {
    "a".into()
}

fn start(role: &str, path: &Path, detail: &str) -> Process {
    Process::start(command(&this_program(), "processes", role, path, detail))
}

/// Wants the session; who gets it writes, and holds it until its standard input ends.
#[test]
fn contend_role() {
    let Some((path, says)) = reported("contend") else { return };
    let store = SqliteStore::open(path).unwrap();
    runtime().block_on(async {
        match acquire(&store, &session(), OwnerProcess::here(), TTL).await {
            Ok(lease) => {
                let writes = vec![Write::Record(record(&says)), ask("q"), Write::OpenInbox];
                match store.append(&lease, writes, Durability::Durable).await {
                    Ok(_) => say(format!("holds {}", std::process::id())),
                    Err(refused) => say(refused),
                }
            }
            Err(Error::Held(_, held)) => say(format!("conflict {}", held.owner.pid)),
            Err(other) => say(other),
        }
    });
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// Wants something of a session that it does not hold.
#[test]
fn outsider_role() {
    let Some((path, wants)) = reported("outsider") else { return };
    let store = SqliteStore::open(path).unwrap();
    let stop = StopIntent { bytes: b"stop".to_vec(), approvals: ApprovalsToWithdraw::Stay };
    runtime().block_on(async {
        match wants.as_str() {
            "stop" => say(store.ask_stop(&session(), stop).await.unwrap()),
            "push" => say(format!("{:?}", store.push(&session(), item("1", "hello")).await.unwrap())),
            who => say(format!("{:?}", store.decide(&session(), decision("q", who)).await.unwrap())),
        }
    });
}

async fn made(path: &Path) -> SqliteStore {
    let store = SqliteStore::open(path).unwrap();
    store.create(NewSession::of(session())).await.unwrap();
    store
}

/// S7.4: of processes that race, one works, and the others learn the owner; once it is killed, the next takes
/// over at once.
#[tokio::test]
async fn of_racing_processes_one_holds_and_a_killed_one_is_displaced() {
    const RACERS: usize = 6;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = made(&path).await;
    let mut racers: Vec<Process> = (0..RACERS).map(|_| start("contend", &path, "mine")).collect();
    let words: Vec<String> = racers.iter_mut().map(|racer| racer.hear().unwrap()).collect();
    let holder: Vec<usize> = (0..RACERS).filter(|number| words[*number].starts_with("holds")).collect();
    assert_eq!(holder.len(), 1, "{words:?}");
    let pid = racers[holder[0]].child.id();
    for (number, word) in words.iter().enumerate().filter(|(number, _)| *number != holder[0]) {
        assert_eq!(*word, format!("conflict {pid}"), "racer {number}");
    }
    let late = start("contend", &path, "too early").hear().unwrap();
    assert_eq!(late, format!("conflict {pid}"));
    racers[holder[0]].kill();
    let mut next = start("contend", &path, "too early");
    assert!(
        next.hear().unwrap().contains("there is an approval q"),
        "it holds, and is refused what is there"
    );
    assert_eq!(store.open(&session()).await.unwrap().holder.unwrap().owner.pid, next.child.id());
    assert_eq!(store.open(&session()).await.unwrap().head, 1, "one has written, once");
}

/// S7.5, S1.5: what another process wants is seen at the next look, and is there after everybody was killed.
#[tokio::test]
async fn another_process_s_wish_is_noticed_and_holds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = made(&path).await;
    let mut owner = start("contend", &path, "mine");
    assert!(owner.hear().unwrap().starts_with("holds"));
    let holder = store.open(&session()).await.unwrap().holder.unwrap();
    let mut changes = store.changes(&NodeLease::new(holder.node, TTL, Since::now()));
    for (wants, says) in [("stop", "1"), ("push", "Accepted(1)"), ("stop", "2")] {
        let before = store.notice(&session()).await.unwrap();
        assert_eq!(start("outsider", &path, wants).hear().unwrap(), says);
        let change = tokio::time::timeout(BOUND, changes.next()).await.unwrap().unwrap().unwrap();
        assert!(change.session == session() && change.changes.is_beyond(before), "{wants} is noticed");
    }
    let notice = store.notice(&session()).await.unwrap();
    assert_eq!((notice.stops, notice.items), (2, 1));
    owner.kill();
    store.close();
    let store = SqliteStore::open(&path).unwrap();
    let stops = store.stops(&session(), 0).await.unwrap();
    assert_eq!(
        stops.iter().map(|stop| (stop.number, stop.seen)).collect::<Vec<_>>(),
        [(1, false), (2, false)]
    );
    assert_eq!(store.inbox(&session()).await.unwrap().len(), 1);
}

/// S8.2, S8.4, T9: 16 processes answer after the asker was killed. One answer is taken; the others learn
/// whose it was.
#[tokio::test]
async fn of_deciding_processes_one_is_taken() {
    const DECIDERS: usize = 16;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = made(&path).await;
    let mut owner = start("contend", &path, "mine");
    assert!(owner.hear().unwrap().starts_with("holds"));
    owner.kill();
    let mut deciders: Vec<Process> =
        (0..DECIDERS).map(|number| start("outsider", &path, &format!("principal {number}"))).collect();
    let words: Vec<String> = deciders.iter_mut().map(|decider| decider.hear().unwrap()).collect();
    let taken: Vec<usize> =
        (0..DECIDERS).filter(|number| words[*number] == format!("{:?}", DecisionResult::Taken)).collect();
    assert_eq!(taken.len(), 1, "{words:?}");
    let winner = format!("principal {}", taken[0]);
    for (_, word) in words.iter().enumerate().filter(|(number, _)| *number != taken[0]) {
        assert!(word.starts_with("AlreadyDecided") && word.contains(&winner), "{word}");
    }
    let state = store.approval(&session(), &"q".into()).await.unwrap().unwrap().state;
    assert!(matches!(state, ApprovalState::Decided { principal, .. } if principal == winner));
}

/// Makes its own session, leases it, writes, and releases it, as any command does.
#[test]
fn works_role() {
    let Some((path, mine)) = reported("works") else { return };
    // Everybody begins when the gate opens.
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    say(match runtime().block_on(works(&path, &mine)) {
        Ok(()) => "worked".to_owned(),
        Err(error @ Error::Busy(_)) => format!("busy: {error}"),
        Err(error) => format!("failed: {error}"),
    });
}

async fn works(path: &Path, mine: &str) -> Result<(), Error> {
    let store = SqliteStore::open(path)?;
    store.create(NewSession::of(mine)).await?;
    let lease = acquire(&store, &mine.into(), OwnerProcess::here(), TTL).await?;
    for _ in 0..3 {
        store.append(&lease, vec![Write::Record(record(mine))], Durability::Durable).await?;
    }
    give_back(&store, &lease).await?;
    store.close();
    Ok(())
}

/// How many processes this machine can bear at once; more by the environment.
fn many() -> usize {
    const FEW: usize = 24;
    std::env::var("SAFEPOINT_STORE_MANY").ok().and_then(|many| many.parse().ok()).unwrap_or(FEW)
}

/// The output of `count` processes that start at once.
fn all_at_once(path: &Path, count: usize) -> Vec<String> {
    let began = Instant::now();
    let mut all: Vec<Process> =
        (0..count).map(|number| start("works", path, &format!("session-{number}"))).collect();
    all.iter_mut().for_each(|process| drop(process.child.stdin.take()));
    let started = began.elapsed();
    let words: Vec<String> = all.iter_mut().map(|process| process.hear().unwrap_or_default()).collect();
    let reported = |word: &str| words.iter().filter(|said| said.starts_with(word)).count();
    let (worked, busy) = (reported("worked"), reported("busy: "));
    println!("{count} processes: {worked} worked, {busy} found the store busy");
    println!("they were started after {started:?}, and done after {:?}", began.elapsed());
    words
}

/// Each worked, or got the error that the store is busy; where there are few, every one worked.
fn judge(words: &[String]) -> usize {
    const ALL_WORK: usize = 200;
    let is_busy = |word: &&String| word.starts_with("busy: the store is busy");
    let worked = words.iter().filter(|word| *word == "worked").count();
    let busy = words.iter().filter(is_busy).count();
    let strange: Vec<_> = words.iter().filter(|word| *word != "worked" && !is_busy(word)).collect();
    assert!(strange.is_empty(), "{strange:?}");
    assert!(busy == 0 || words.len() > ALL_WORK, "{busy} of {} found it busy", words.len());
    worked
}

/// S7.15, S7.6: many processes want one store at once; each works, or gets the error that it is busy. Up to
/// two hundred all work.
/// `SAFEPOINT_STORE_MANY=1000` tries as many.
#[test]
fn of_many_processes_on_one_store_none_fails() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let words = all_at_once(&path, many());
    let worked = judge(&words);
    let store = SqliteStore::open(&path).unwrap();
    let rows = runtime().block_on(store.list(words.len() + 1, None)).unwrap();
    assert!(rows.iter().filter(|row| row.head == 3).count() >= worked);
}

/// Takes the turn to write, and does nothing with it.
#[test]
fn pauses_role() {
    let Some((path, _)) = reported("pauses") else { return };
    let mut options = SqliteOptions::default();
    options.probe = Some(Arc::new(|moment| {
        if moment == Moment::Begin {
            say("paused");
            std::io::stdin().read_to_end(&mut Vec::new())?;
        }
        Ok(())
    }));
    let store = SqliteStore::open_with(path, options).unwrap();
    drop(runtime().block_on(store.create(NewSession::of(session()))));
}

/// S7.15: a process that is paused while it has the turn keeps none of many from working, and loses nothing itself.
#[test]
fn of_many_processes_none_fails_while_one_is_paused_with_the_turn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let mut paused = start("pauses", &path, "");
    assert_eq!(paused.hear().as_deref(), Some("paused"));
    judge(&all_at_once(&path, many()));
    drop(paused.child.stdin.take());
    assert!(paused.child.wait().unwrap().success());
    let store = SqliteStore::open(&path).unwrap();
    runtime().block_on(store.open(&session())).unwrap();
}

//! The disk fails at every moment of the writer's work: S7.6, S7.7.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::future::join_all;
use safepoint::{
    raw::store::{Durability, NewItem, NewSession, Write},
    store::{Error, Store},
};
use safepoint_stores::{SqliteStore, sqlite::Moment};
use safepoint_testkit::{
    store_suite::{
        acquire, item, owner,
        play::{Picture, Player, alike, script},
        record,
    },
    tool_gate::ToolGate,
};
use std::time::Duration;

use super::support::{model, options, probed, world};

const TTL: Duration = Duration::from_secs(10);

/// S7.6: an answer says whether the row was written, or that this is unknown, and it is so.
#[tokio::test]
async fn an_error_of_the_disk_at_any_moment_is_reported_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut unknown = 0;
    for at in 0.. {
        let path = folder.path().join(format!("{at}.db"));
        let (time, lives, outside) = world();
        let met = Arc::new(AtomicUsize::new(0));
        let meets = Arc::clone(&met);
        let store: Arc<dyn Store> = Arc::new(probed(&path, &outside, move |moment, _| {
            if moment != at {
                return Ok(());
            }
            meets.store(1, Ordering::SeqCst);
            Err(io::Error::other("the disk fails here"))
        }));
        let mut player = Player::of(store, &time, &lives);
        let (mut model, _) = model();
        for step in script() {
            let answer = player.play(&step).await;
            let what = format!("{step:?} with a fault at moment {at}: {answer:?}");
            match answer {
                Err(Error::Unknown(_)) => {
                    unknown += 1;
                    drop(model.play(&step).await);
                    let (is, should) = (Picture::of(&*player.store), Picture::of(&*model.store));
                    alike(&what, &is.await.unwrap(), &should.await.unwrap()).unwrap();
                    player = model.on(Arc::clone(&player.store)).within(&player);
                }
                Err(Error::Failed(_)) => {
                    let (is, should) = (Picture::of(&*player.store), Picture::of(&*model.store));
                    alike(&what, &is.await.unwrap(), &should.await.unwrap()).unwrap();
                    let again = player.play(&step).await;
                    assert_eq!(format!("{again:?}"), format!("{:?}", model.play(&step).await), "{what}");
                }
                answer => {
                    assert_eq!(format!("{answer:?}"), format!("{:?}", model.play(&step).await), "{what}");
                }
            }
        }
        let (is, should) = (Picture::of(&*player.store), Picture::of(&*model.store));
        alike("at the end", &is.await.unwrap(), &should.await.unwrap()).unwrap();
        if met.load(Ordering::SeqCst) == 0 {
            assert!(at > 100 && unknown > 20, "{at} moments, {unknown} of them uncertain");
            return;
        }
    }
}

/// A store whose writer stands still before its first transaction after the sessions are made.
async fn held_up(
    path: &std::path::Path,
    sessions: usize,
    most_bytes: Option<u64>,
) -> (SqliteStore, ToolGate, Vec<safepoint::raw::store::Lease>) {
    let (_, _, outside) = world();
    let gate = ToolGate::open();
    let shut = Arc::new(std::sync::Mutex::new(gate.clone()));
    let mut options = options(&outside);
    options.most_bytes = most_bytes;
    let gate = Arc::clone(&shut);
    options.probe = Some(Arc::new(move |moment| {
        if moment == Moment::Begin {
            let gate = gate.lock().unwrap().clone();
            gate.pass_blocking();
        }
        Ok(())
    }));
    let store = SqliteStore::open_with(path, options).unwrap();
    let mut leases = Vec::new();
    for number in 0..sessions {
        let session = store.create(NewSession::of(format!("session {number}"))).await.unwrap().id;
        leases.push(acquire(&store, &session, owner(1), TTL).await.unwrap());
    }
    let gate = ToolGate::shut();
    *shut.lock().unwrap() = gate.clone();
    (store, gate, leases)
}

/// S7.1: callers that wait during a transaction share the next one, and its sync.
#[tokio::test]
async fn sessions_share_commits() {
    const SESSIONS: usize = 64;
    let folder = tempfile::tempdir().unwrap();
    let (store, gate, leases) = held_up(&folder.path().join("a.db"), SESSIONS, None).await;
    let before = store.commits();
    let append = |lease| store.append(lease, vec![Write::Record(record("said"))], Durability::Durable);
    let appends: Vec<_> = leases.iter().map(append).collect();
    gate.open_for_all();
    for appended in join_all(appends).await {
        assert_eq!(appended.unwrap().first, 0);
    }
    let shared = store.commits().durable - before.durable;
    assert!((1..=2).contains(&shared), "the first alone, if it came too early, and all others: {shared}");
}

/// S7.6: of those that share a transaction, one that fails takes nothing of the others with it.
#[tokio::test]
async fn one_that_fails_takes_nothing_of_the_others_with_it() {
    const SESSIONS: usize = 8;
    let folder = tempfile::tempdir().unwrap();
    let most = Some(1 << 20);
    let (store, gate, leases) = held_up(&folder.path().join("a.db"), SESSIONS, most).await;
    let large = safepoint::raw::store::Record { bytes: vec![7; 2 << 20], ..record("") };
    let append = |(number, lease)| {
        let said = Write::Record(record("said"));
        let writes = match number {
            2 => vec![said, Write::TakeItem(9)],
            5 => vec![said, Write::Record(large.clone())],
            _ => vec![said],
        };
        store.append(lease, writes, Durability::Durable)
    };
    let appends: Vec<_> = leases.iter().enumerate().map(append).collect();
    gate.open_for_all();
    for (number, answer) in join_all(appends).await.into_iter().enumerate() {
        let row = store.open(leases[number].session()).await.unwrap();
        match number {
            2 => assert!(matches!(answer, Err(Error::ItemElsewhere(9))), "{answer:?}"),
            5 => assert!(matches!(answer, Err(Error::Full(_))), "{answer:?}"),
            _ => assert_eq!(answer.unwrap().next, 1),
        }
        assert_eq!(row.head, u64::from(number != 2 && number != 5), "session {number}");
    }
}

/// S7.6, S7.16: a session whose first item has no room is not created, and the item is nowhere.
#[tokio::test]
async fn a_session_whose_item_has_no_room_is_not_created() {
    let folder = tempfile::tempdir().unwrap();
    let (_, _, outside) = world();
    let mut options = options(&outside);
    options.most_bytes = Some(1 << 20);
    let store = SqliteStore::open_with(folder.path().join("a.db"), options).unwrap();
    let create = |bytes: Vec<u8>| {
        let large = NewItem { bytes, ..item("2", "large") };
        store.create(NewSession { items: vec![item("1", "small"), large], ..NewSession::of("a") })
    };
    let refused = create(vec![7; 2 << 20]).await.unwrap_err();
    assert!(matches!(refused, Error::Full(_)), "{refused:?}");
    assert!(matches!(store.open(&"a".into()).await, Err(Error::NoSession(_))));
    create(vec![7]).await.unwrap();
    assert_eq!(store.inbox(&"a".into()).await.unwrap().len(), 2);
}

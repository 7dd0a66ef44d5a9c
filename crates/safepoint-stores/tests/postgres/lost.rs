//! Requests and answers that are lost on the way: S7.51, S7.6.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::future::{join, join_all};
use safepoint::{
    raw::store::{Durability, NewSession, Write},
    store::{Error, NewNode, Store},
};
use safepoint_stores::PostgresStore;
use safepoint_testkit::{
    store_suite::{
        acquire, owner,
        play::{Picture, PlayStep, Player, alike, script},
        record,
    },
    wait,
};

use super::{
    cluster::Cluster,
    proxy::{Lost, Proxy},
    support::{model, open, options, runtime, schema, through, transactions, world},
};

const TTL: Duration = Duration::from_secs(60);

/// Whether a step is one that is asked again until it is known what became of it.
fn is_asked_again(step: &PlayStep) -> bool {
    matches!(
        step,
        PlayStep::Append(..)
            | PlayStep::Acquire(..)
            | PlayStep::Release(..)
            | PlayStep::Join(_)
            | PlayStep::Beat(_)
            | PlayStep::Leave(..)
            | PlayStep::Unpark(_)
            | PlayStep::Image(_)
            | PlayStep::Look(..)
    )
}

/// Plays the script with one loss. How many answers were unknown; `None` if there was nothing to lose any more.
async fn one_is_lost(lost: Lost, after: usize) -> Option<usize> {
    let (time, lives, outside) = world();
    let schema = schema();
    let beside: Arc<dyn Store> = Arc::new(open(&schema, &outside));
    let proxy = Proxy::before(Cluster::shared().port, lost);
    let store = PostgresStore::open_with(&through(&proxy), options(&schema, &outside)).unwrap();
    let mut player = Player::of(Arc::new(store), &time, &lives);
    let mut model = model();
    proxy.lose(after);
    let (mut unknown, mut is_due_known) = (0, true);
    for step in script() {
        let before = Picture::of(&*model.store).await.unwrap();
        let (answer, should) = (player.play(&step).await, model.play(&step).await);
        let what = format!("{lost:?} after {after} requests, at {step:?}");
        if let Err(Error::Unknown(_)) = answer {
            assert!(!is_asked_again(&step), "{what} is known in the end");
            unknown += 1;
            if matches!(step, PlayStep::Due(_)) {
                // What was named is not to be seen.
                is_due_known = false;
                continue;
            }
            let found = Picture::of(&*beside).await.unwrap();
            let is_done = found == Picture::of(&*model.store).await.unwrap();
            if !is_done {
                alike(&what, &found, &before).unwrap();
                assert_eq!(format!("{:?}", player.play(&step).await), format!("{should:?}"), "{what}, again");
            }
            continue;
        }
        if is_due_known || !matches!(step, PlayStep::Due(_)) {
            assert_eq!(format!("{answer:?}"), format!("{should:?}"), "{what}");
        }
    }
    let (is, should) = (Picture::of(&*beside).await.unwrap(), Picture::of(&*model.store).await.unwrap());
    alike(&format!("{lost:?} after {after} requests, at the end"), &is, &should).unwrap();
    proxy.has_lost().then_some(unknown)
}

/// A loss at every `step`-th request of the script, so that it does not take long.
fn at_each_request(lost: Lost, step: usize) {
    let (mut losses, mut unknown) = (0, 0);
    runtime().block_on(async {
        for after in (0..).step_by(step) {
            match one_is_lost(lost, after).await {
                Some(more) => unknown += more,
                None => return,
            }
            losses += 1;
        }
    });
    assert!(losses * step > 80 && unknown > 0, "{losses} losses, {unknown} of them uncertain");
}

/// S7.51: an append that is refused is refused, also where the answer that said so was lost.
#[test]
fn a_refusal_of_which_the_answer_is_lost_is_said_again() {
    runtime().block_on(async {
        let (_, _, outside) = world();
        let schema = schema();
        let proxy = Proxy::before(Cluster::shared().port, Lost::Answer);
        let store = PostgresStore::open_with(&through(&proxy), options(&schema, &outside)).unwrap();
        let session = store.create(NewSession::of("a")).await.unwrap().id;
        let node = store.join(NewNode::of(owner(1), TTL)).await.unwrap();
        let lease = store.acquire(&session, &node).await.unwrap();
        for time in 0..3 {
            proxy.lose(0);
            let refused = store.append(&lease, vec![Write::TakeItem(9)], Durability::Durable).await;
            assert!(matches!(refused, Err(Error::ItemElsewhere(9))), "time {time}: {refused:?}");
            assert!(proxy.has_lost());
        }
    });
}

/// S7.51, S7.6: where the connection is lost with an answer, an append was written once, and it is said so; anything else was done, or
/// was not, or that is unknown.
#[test]
fn an_answer_lost_anywhere_is_asked_for_again_or_said_to_be_unknown() {
    at_each_request(Lost::Answer, 2);
}

/// S7.51, S7.6
#[test]
fn a_request_lost_anywhere_is_asked_again_or_said_to_be_unknown() {
    at_each_request(Lost::Request, 3);
}

/// S7.51: an answer that does not come, over a connection that stays: the append is asked again over another one.
#[tokio::test]
async fn a_silent_connection_is_left_for_another_one() {
    let (_, _, outside) = world();
    let schema = schema();
    let proxy = Proxy::before(Cluster::shared().port, Lost::AnswerInSilence);
    let store = PostgresStore::open_with(&through(&proxy), options(&schema, &outside)).unwrap();
    let session = store.create(NewSession::of("a")).await.unwrap().id;
    let lease = acquire(&store, &session, owner(1), TTL).await.unwrap();
    let append = |says: &str| store.append(&lease, vec![Write::Record(record(says))], Durability::Durable);
    append("first").await.unwrap();
    proxy.lose(0);
    let second = append("second").await.unwrap();
    assert!(proxy.has_lost());
    assert_eq!((second.first, second.next), (1, 2));
    assert_eq!(append("third").await.unwrap().first, 2);
    assert_eq!(store.read(&session, 0, 10).await.unwrap().entries.len(), 3);
}

/// S7.51, S7.52: appends that share a statement are asked together once more where the connection is lost, and not one by one: a
/// server that was away for a moment has no more to do after it than before.
#[tokio::test]
async fn appends_whose_answer_is_lost_are_asked_together_again() {
    const SESSIONS: usize = 64;
    let cluster = Cluster::start(&["autovacuum = off"]);
    for lost in [Lost::Request, Lost::Answer] {
        let (_, _, outside) = world();
        let proxy = Proxy::before(cluster.port(), lost);
        let store = PostgresStore::open_with(&through(&proxy), options(&schema(), &outside)).unwrap();
        let mut leases = Vec::new();
        for number in 0..SESSIONS {
            let session = store.create(NewSession::of(format!("session {number}"))).await.unwrap().id;
            leases.push(acquire(&store, &session, owner(1), TTL).await.unwrap());
        }
        let database = cluster.connect().await;
        let mut losses = 0;
        for round in 0..12 {
            let (before, began) = (transactions(&database).await, Instant::now());
            proxy.lose(round % 4);
            let says = vec![Write::Record(record(&round.to_string()))];
            let appends = leases.iter().map(|lease| store.append(lease, says.clone(), Durability::Durable));
            for appended in join_all(appends).await {
                assert_eq!(appended.unwrap().first, round as u64);
            }
            // More than the one answer was lost where the machine stood still for longer than an answer may take.
            if began.elapsed() < Duration::from_secs(2) {
                losses += usize::from(proxy.has_lost());
                let more = transactions(&database).await - before;
                assert!(more < SESSIONS as i64 / 3, "{lost:?}, {round}: {more} transactions");
            }
        }
        assert!(losses > 5, "{losses} losses");
    }
}

/// S7.51: what the approvals of an append came to is known too, where its first answer was lost.
#[tokio::test]
async fn an_append_that_is_asked_again_says_all_that_the_first_would_have_said() {
    use safepoint::raw::store::{ApprovalClose, NewDecision};
    use safepoint_testkit::store_suite::play::{ask, decision};
    let (_, _, outside) = world();
    let schema = schema();
    let proxy = Proxy::before(Cluster::shared().port, Lost::Answer);
    let store = PostgresStore::open_with(&through(&proxy), options(&schema, &outside)).unwrap();
    let session = store.create(NewSession::of("a")).await.unwrap().id;
    let lease = acquire(&store, &session, owner(1), TTL).await.unwrap();
    let append = |writes| store.append(&lease, writes, Durability::Durable);
    append(vec![ask("q"), ask("r")]).await.unwrap();
    let decided: NewDecision = decision("q", "ann");
    store.decide(&session, decided).await.unwrap();
    let close = |id: &str| Write::CloseApproval(id.into(), ApprovalClose::Withdrawn);
    // The first one has prepared the statement, so that the next request is the append.
    proxy.lose(0);
    let closed = append(vec![close("q"), close("r")]).await.unwrap();
    assert!(proxy.has_lost());
    assert_eq!(closed.decided, ["q".into()]);
}

/// S7.51, S7.1: connections that the server ends, again and again, while many write: each append is there once, and none is unknown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_the_server_ends_lose_and_repeat_nothing() {
    const WRITERS: usize = 16;
    const APPENDS: usize = 60;
    const ENDS: usize = 15;
    let (_, _, outside) = world();
    let schema = schema();
    let named = format!("{}?application_name={schema}", Cluster::shared().address());
    let store = PostgresStore::open_with(&named, options(&schema, &outside)).unwrap();
    let mut leases = Vec::new();
    for number in 0..WRITERS {
        let session = store.create(NewSession::of(format!("session {number}"))).await.unwrap().id;
        leases.push(acquire(&store, &session, owner(1), TTL).await.unwrap());
    }
    let written = AtomicUsize::new(0);
    let write = |lease| {
        let (store, written) = (&store, &written);
        async move {
            for says in 0..APPENDS {
                let mut writes = vec![Write::Record(record(&says.to_string()))];
                if says % 5 == 0 {
                    writes.push(Write::AtWork);
                }
                let appended = store.append(lease, writes, Durability::Durable).await.unwrap();
                assert_eq!(appended.first, says as u64);
                written.fetch_add(1, Ordering::SeqCst);
            }
        }
    };
    let ends = async {
        let mut ended = 0;
        for number in 0..ENDS {
            let next = number * WRITERS * APPENDS / ENDS;
            wait::so("the appends continue", || written.load(Ordering::SeqCst) >= next).await;
            ended += Cluster::shared().end_connections(&schema).await;
        }
        ended
    };
    let (_, ended) = join(join_all(leases.iter().map(write)), ends).await;
    assert!(ended >= ENDS as i64, "{ended} connections were ended");
    for lease in &leases {
        let read = store.read(lease.session(), 0, 2 * APPENDS).await.unwrap();
        let said: Vec<_> = read.entries.into_iter().map(|entry| entry.record.unwrap()).collect();
        assert_eq!(said, (0..APPENDS).map(|says| record(&says.to_string())).collect::<Vec<_>>());
    }
}

//! A fork of a session of which something cannot be read: what stands behind its turn does not matter, and is named.

use std::sync::Arc;

use safepoint::{
    ids::{SessionId, TurnId},
    raw::store::{NewSession, Record},
    session::{Fork, ItemOutcome, Policy, Push},
    store::{Error, Store},
};
use serde_json::Value;

use super::{
    desk::{Desk, asks, turn},
    fork::{end, memory, open, people, three_turns},
};

/// The records of "s", and what each says.
async fn records(store: &Arc<dyn Store>) -> Vec<(Record, Value)> {
    let entries = store.read(&"s".into(), 0, usize::MAX).await.unwrap().entries;
    let read = |record: Record| (record.clone(), serde_json::from_slice(&record.bytes).unwrap());
    entries.into_iter().map(|entry| read(entry.record.unwrap())).collect()
}

/// A session with the records of "s", of which those at these positions cannot be read; the one behind the last is another one.
async fn damaged(store: &Arc<dyn Store>, positions: &[u64]) -> SessionId {
    let mut records: Vec<Record> = records(store).await.into_iter().map(|(record, _)| record).collect();
    let behind = records[0].clone();
    records.extend(positions.contains(&(records.len() as u64)).then_some(behind));
    for position in positions {
        records[usize::try_from(*position).unwrap()].bytes = b"no line of ours".to_vec();
    }
    let id = SessionId::fresh();
    store.create(NewSession { records, ..NewSession::of(id.clone()) }).await.unwrap();
    id
}

/// Where the first record stands of which this is so.
fn place(records: &[(Record, Value)], is_it: impl Fn(&Value) -> bool) -> u64 {
    records.iter().position(|(_, line)| is_it(line)).unwrap() as u64
}

fn ended(number: u64) -> impl Fn(&Value) -> bool {
    move |line| line["line"] == "ended" && line["turn"] == number
}

/// S7.21: whichever single record behind the end of the turn is damaged, the fork is made with the same conversation. The caller
/// and the model learn that something cannot be read, and of every call of which anything can be.
#[tokio::test]
async fn a_damaged_record_behind_the_turn_does_not_prevent_its_fork() {
    let (desk, store) = three_turns().await;
    let all = records(&store).await;
    let end_of_first = place(&all, ended(1));
    for at in end_of_first + 1..=all.len() as u64 {
        let session = damaged(&store, &[at]).await;
        let forked = Fork::of(session).at(turn(1)).create(Arc::clone(&store)).await.unwrap();
        let [calls @ .., unread] = &forked.later[..] else { panic!("{at}: {forked:?}") };
        let expected =
            format!("1 record that cannot be read, from record {at} on: what was done then is not known");
        assert_eq!(unread, &expected);
        let fact = all.get(usize::try_from(at).unwrap()).and_then(|(_, line)| line["fact"]["fact"].as_str());
        let call = match fact {
            Some("call_started") => "pay with arguments that cannot be read (done)",
            Some("call_ended") => "pay {} (effects unknown)",
            _ => "pay {} (done)",
        };
        assert_eq!(calls, [call], "{at}");
        let history = end(open(&desk, &store, forked.session.as_str()).await).await;
        let said = people(&history);
        assert_eq!((said.len(), said[0]), (2, "one"), "{at}");
        assert!(said[1].contains(&expected) && said[1].contains(call), "{at}: {}", said[1]);
    }
    let session = damaged(&store, &[end_of_first + 1, all.len() as u64 - 1]).await;
    let forked = Fork::of(session).at(turn(1)).create(store).await.unwrap();
    let first = end_of_first + 1;
    assert!(forked.later[1].starts_with(&format!("2 records that cannot be read, from record {first} on")));
}

/// S7.21: a damaged record before the end of the turn, or anywhere where no turn is named, refuses the fork before anything is
/// made. The error names the last turn at which it can be forked.
#[tokio::test]
async fn a_damaged_record_before_the_end_names_the_turn_that_can_be_forked() {
    let (_desk, store) = three_turns().await;
    let all = records(&store).await;
    let sessions = store.list(usize::MAX, None).await.unwrap().len();
    let refused = async |at: u64, turn: Option<TurnId>| {
        let session = damaged(&store, &[at]).await;
        let fork = Fork::of(session.clone());
        let fork = if let Some(turn) = turn { fork.at(turn) } else { fork };
        let error = fork.create(Arc::clone(&store)).await.unwrap_err();
        store.remove(&session).await.unwrap();
        let said = error.to_string();
        match error {
            Error::DamagedAfter(_, damage, last) => {
                let hint = format!("it can be forked at turn {}, or at an earlier one", last.number());
                assert!(said.ends_with(&hint), "{said}");
                (damage.position, Some(last))
            }
            Error::Damaged(_, damage) => (damage.position, None),
            other => panic!("{other:?}"),
        }
    };
    for number in 1..=3 {
        let end = place(&all, ended(number));
        let before = (number > 1).then(|| turn(number - 1));
        assert_eq!(refused(end, Some(turn(number))).await, (end, before));
        assert_eq!(refused(end, None).await, (end, before));
    }
    let last = all.len() as u64;
    assert_eq!(refused(last, None).await, (last, Some(turn(3))), "there may have been another turn");
    assert_eq!(refused(last, Some(turn(4))).await, (last, Some(turn(3))));
    assert_eq!(store.list(usize::MAX, None).await.unwrap().len(), sessions, "nothing was made");
}

/// S7.21: a turn that waits may have been resumed by what cannot be read, unless another one has begun before that.
#[tokio::test]
async fn a_turn_that_waits_is_not_known_to_have_ended_where_the_next_record_is_damaged() {
    let (store, desk) = (memory(), Desk::new([asks()]));
    let session = open(&desk, &store, "s").await;
    let waits = session.push("one".to_owned()).unwrap().outcome().await;
    assert_eq!(waits, ItemOutcome::Suspended(turn(1)));
    end(session).await;
    let all = records(&store).await;
    let end_of_first = place(&all, ended(1));
    let session = damaged(&store, &[end_of_first + 1]).await;
    let refused = Fork::of(session).at(turn(1)).create(Arc::clone(&store)).await.unwrap_err();
    assert!(matches!(refused, Error::Damaged(..)), "{refused:?}");

    let session = open(&desk, &store, "s").await;
    let instead = session.push(Push::new("two".to_owned()).policy(Policy::Rollback)).unwrap();
    assert_eq!(instead.outcome().await, ItemOutcome::Completed(turn(2)));
    end(session).await;
    let all = records(&store).await;
    let last = all.len() as u64 - 1;
    let session = damaged(&store, &[last]).await;
    let forked = Fork::of(session).at(turn(1)).create(Arc::clone(&store)).await.unwrap();
    assert_eq!((forked.turn, forked.later.len()), (turn(1), 1));
    let history = end(open(&desk, &store, forked.session.as_str()).await).await;
    assert_eq!(people(&history).len(), 1, "the note, since the turn was rolled back");
}

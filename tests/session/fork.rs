//! A fork: a new session that continues a stored one from an earlier turn.

use std::sync::Arc;

use safepoint::{
    History, Session,
    history::Message,
    ids::{SessionId, TurnId},
    message::{ProviderBlock, ProviderPart, ResultStatus},
    model::{Delta, Finish},
    raw::store::{Durability, Record, Write},
    session::{Fork, Forked, ItemOutcome, Policy, Push, SessionStop},
    store::{Error, MemoryStore, OwnerProcess, Store},
};
use safepoint_testkit::{
    fault_store::{FaultStore, OperationFault},
    script::Reply,
    store_suite::{acquire, give_back},
};

use super::{
    desk::{Desk, pays, turn},
    forgetful::{Forgetful, Forgets},
};

pub(crate) fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::default())
}

pub(crate) async fn open(desk: &Desk, store: &Arc<dyn Store>, id: &str) -> Session<String> {
    desk.chat().open(Arc::clone(store), SessionId::from(id), OwnerProcess::here()).await.unwrap()
}

pub(crate) async fn say(session: &Session<String>, words: &str) -> TurnId {
    match session.push(words.to_owned()).unwrap().outcome().await {
        ItemOutcome::Completed(turn) => turn,
        other => panic!("{words}: {other:?}"),
    }
}

pub(crate) async fn end(session: Session<String>) -> History {
    drop(session.stop(SessionStop::at_turn_end()));
    session.done().await.history().clone()
}

/// The texts of people in a conversation.
pub(crate) fn people(history: &History) -> Vec<&str> {
    let entries = history.entries().iter();
    entries
        .filter_map(|entry| if let Message::User(said) = &**entry { Some(&*said.text) } else { None })
        .collect()
}

/// A session "s" of three turns: words, a payment, words.
pub(crate) async fn three_turns() -> (Desk, Arc<dyn Store>) {
    let replies = [Reply::text("first"), pays(), Reply::text("paid"), Reply::text("third")];
    let (store, desk) = (memory(), Desk::new(replies));
    desk.tools.gate().open_for_all();
    let session = open(&desk, &store, "s").await;
    for words in ["one", "two", "three"] {
        say(&session, words).await;
    }
    end(session).await;
    (desk, store)
}

/// S7.21: the conversation until the end of the turn is that of the new session; what was done later is named to the model,
/// and the old session stays as it was.
#[tokio::test]
async fn a_fork_continues_after_its_turn_and_names_what_was_done_later() {
    let (desk, store) = three_turns().await;
    let before = store.open(&"s".into()).await.unwrap();
    let forked = Fork::of("s").at(turn(1)).named("fork").create(Arc::clone(&store)).await.unwrap();
    let Forked { session, turn: from, later, .. } = forked;
    assert_eq!((session.as_str(), from, &later[..]), ("fork", turn(1), &["pay {} (done)".to_owned()][..]));
    assert_eq!(store.open(&"s".into()).await.unwrap(), before, "the old session has changed");

    let fork = open(&desk, &store, "fork").await;
    assert_eq!(say(&fork, "again").await, turn(1), "its turns are its own");
    let requests = desk.model.requests();
    let sent = people(requests.last().unwrap());
    assert_eq!((sent.len(), sent[0], sent[2]), (3, "one", "again"));
    assert!(sent[1].contains("what they did stands:\n- pay {} (done)\n"), "{}", sent[1]);
    let history = end(fork).await;
    assert_eq!(people(&history).len(), 3);
    // It is opened once more, and forked itself.
    assert_eq!(end(open(&desk, &store, "fork").await).await, history);
    let again = Fork::of("fork").create(Arc::clone(&store)).await.unwrap();
    assert_eq!((again.turn, again.later.len()), (turn(1), 0));
    assert_eq!(end(open(&desk, &store, again.session.as_str()).await).await, history);
    assert_eq!(people(&end(open(&desk, &store, "s").await).await), ["one", "two", "three"]);
}

/// S7.21: what a fork would name can be known before it is made.
#[tokio::test]
async fn the_calls_of_later_turns_are_known_before_a_fork_is_made() {
    let (_desk, store) = three_turns().await;
    let fork = |at| Fork::of("s").at(turn(at)).named("fork");
    assert_eq!(fork(1).later_calls(&*store).await.unwrap(), ["pay {} (done)"]);
    assert!(fork(2).later_calls(&*store).await.unwrap().is_empty());
    assert!(matches!(fork(9).later_calls(&*store).await, Err(Error::NoTurn(_, Some(_)))));
    assert!(matches!(store.open(&"fork".into()).await, Err(Error::NoSession(_))), "nothing was made");
}

/// S7.21: without a turn it is the last one that has ended, of which nothing is abandoned.
#[tokio::test]
async fn a_fork_of_a_whole_session_has_all_of_its_conversation() {
    let (desk, store) = three_turns().await;
    let forked = Fork::of("s").create(Arc::clone(&store)).await.unwrap();
    assert_eq!((forked.turn, forked.later.len()), (turn(3), 0));
    let history = end(open(&desk, &store, "s").await).await;
    assert_eq!(end(open(&desk, &store, forked.session.as_str()).await).await, history);
}

/// S7.21: a session that works is forked at its last turn that has ended; the call under way is named, with unknown effects.
#[tokio::test]
async fn a_working_session_is_forked_through_its_handle() {
    let (store, desk) = (memory(), Desk::new([Reply::text("first"), pays(), Reply::text("paid")]));
    let session = open(&desk, &store, "s").await;
    assert!(matches!(session.fork(None).await, Err(Error::NoTurn(_, None))), "no turn has ended");
    say(&session, "one").await;
    let second = session.push("two".to_owned()).unwrap();
    desk.tools.gate().came(1).await;
    let forked = session.fork(None).await.unwrap();
    assert_eq!((forked.turn, &forked.later[..]), (turn(1), &["pay {} (effects unknown)".to_owned()][..]));
    assert!(matches!(session.fork(Some(turn(2))).await, Err(Error::NoTurn(_, Some(_)))), "it has not ended");
    desk.tools.gate().open_for_all();
    assert_eq!(second.outcome().await, ItemOutcome::Completed(turn(2)));
    assert_eq!(people(&end(open(&desk, &store, forked.session.as_str()).await).await).len(), 2);
    let handle = session.handle();
    end(session).await;
    assert!(matches!(handle.fork(None).await, Err(Error::NotStored)), "it has ended");
    assert!(matches!(desk.chat().start().fork(None).await, Err(Error::NotStored)), "it is in no store");
}

/// S7.21, S6.6: of a turn that was rolled back the conversation has nothing; what it did is named.
#[tokio::test]
async fn a_fork_at_a_turn_that_was_rolled_back_names_what_it_did() {
    let (store, desk) = (memory(), Desk::new([Reply::text("kept answer"), pays()]));
    let session = open(&desk, &store, "s").await;
    say(&session, "kept").await;
    let old = session.push("old".to_owned()).unwrap();
    desk.tools.gate().came(1).await;
    let mut gate = desk.model.gate();
    desk.tools.gate().open_for_all();
    gate.request().await;
    let new = session.push(Push::new("new".to_owned()).policy(Policy::Rollback)).unwrap();
    assert_eq!(old.outcome().await, ItemOutcome::RolledBack(turn(2)));
    assert_eq!(new.outcome().await, ItemOutcome::Completed(turn(3)));
    for (at, said) in [(1, ["kept"].as_slice()), (2, &["kept"]), (3, &["kept", "new"])] {
        let forked = Fork::of("s").at(turn(at)).create(Arc::clone(&store)).await.unwrap();
        let paid = if at < 3 { &["pay {} (done)".to_owned()][..] } else { &[] };
        assert_eq!((forked.turn, &forked.later[..]), (turn(at), paid), "at {at}");
        let history = end(open(&desk, &store, forked.session.as_str()).await).await;
        assert_eq!(&people(&history)[..said.len()], said, "at {at}");
        assert_eq!(people(&history).len(), said.len() + paid.len(), "at {at}");
    }
}

/// S7.21: what cannot be forked says so, and nothing is made.
#[tokio::test]
async fn a_fork_that_is_refused_has_made_nothing() {
    let (_desk, store) = three_turns().await;
    let refused = async |fork: Fork| fork.create(Arc::clone(&store)).await.unwrap_err();
    assert!(matches!(refused(Fork::of("none")).await, Error::NoSession(_)));
    let error = refused(Fork::of("s").at(turn(4))).await;
    assert_eq!(error.to_string(), "session s has no ended turn 4");
    assert!(matches!(refused(Fork::of("s").named("s")).await, Error::SessionExists(_)));
    assert_eq!(store.list(10, None).await.unwrap().len(), 1);
}

/// S7.21, S3.4: whichever operation of the store fails, the new session is there with its whole conversation, or not at all.
#[tokio::test]
async fn a_fork_is_made_as_a_whole_or_not_at_all() {
    use OperationFault::{Full, GoneAfter, GoneBefore, Refused, Unknown};
    for fault in [Refused, Full, Unknown, GoneBefore, GoneAfter] {
        let mut found = Vec::new();
        for at in 0.. {
            let (desk, inner) = three_turns().await;
            let what = format!("{fault:?} at operation {at}");
            let faulty = Arc::new(FaultStore::over(Arc::clone(&inner), at, fault.clone()));
            let forked =
                Fork::of("s").at(turn(1)).named("fork").create(Arc::clone(&faulty) as Arc<dyn Store>).await;
            let exists = inner.open(&"fork".into()).await.is_ok();
            assert!(exists || forked.is_err(), "{what}: it said that it was made");
            if exists {
                assert_eq!(people(&end(open(&desk, &inner, "fork").await).await).len(), 2, "{what}");
            }
            if !faulty.was_met() {
                break;
            }
            found.push(exists);
        }
        assert!(found.len() >= 3 && found.contains(&false), "{fault:?}: {found:?}");
    }
}

/// S7.21: a conversation that is larger than one record is to be is in several, and is the same; a fork of the fork too. The
/// notes to the model stand behind all of it.
#[tokio::test]
async fn a_long_conversation_is_forked_in_several_records() {
    const LONG: usize = 3 << 20;
    const MOST: usize = (8 << 20) + (64 << 10);
    let replies = (0..7).map(|_| Reply::text("noted")).chain([pays(), Reply::text("paid")]);
    let (store, desk) = (memory(), Desk::new(replies));
    desk.tools.gate().open_for_all();
    let session = open(&desk, &store, "s").await;
    for number in 0..7 {
        say(&session, &number.to_string().repeat(LONG)).await;
    }
    say(&session, "pay").await;
    end(session).await;
    let forked = Fork::of("s").at(turn(7)).create(Arc::clone(&store)).await.unwrap();
    let records = store.read(&forked.session, 0, usize::MAX).await.unwrap().entries;
    let sizes: Vec<usize> =
        records.into_iter().map(|entry| entry.record.unwrap()).map(|record| record.bytes.len()).collect();
    assert!(sizes.len() >= 3 && sizes.iter().all(|size| *size <= MOST), "{sizes:?}");
    let history = end(open(&desk, &store, forked.session.as_str()).await).await;
    let said = people(&history);
    assert_eq!(said.len(), 8);
    for (number, said) in said[..7].iter().enumerate() {
        assert!(said.len() == LONG && said.starts_with(&number.to_string()), "{number}");
    }
    assert!(said[7].contains("pay {} (done)"), "{}", said[7]);
    let again = Fork::of("s").create(Arc::clone(&store)).await.unwrap();
    let again = end(open(&desk, &store, again.session.as_str()).await).await;
    assert_eq!(again, end(open(&desk, &store, "s").await).await);
}

/// S7.21, S4.24: what a provider ran itself in later turns is named, and where its end is not known, that is said.
#[tokio::test]
async fn a_fork_names_what_the_provider_ran_later() {
    let (store, desk) = (memory(), Desk::new([Reply::text("first")]));
    let session = open(&desk, &store, "s").await;
    say(&session, "one").await;
    let used = |id: &str, tool: &str, input: &str| {
        let (id, tool, input) = (id.into(), tool.into(), input.into());
        provider(ProviderPart::Use { id, tool, input, result: None })
    };
    let mut gate = desk.model.gate();
    let second = session.push("two".to_owned()).unwrap();
    gate.request().await;
    let (id, tool, text) = ("u1".into(), "web_search".into(), "found".into());
    gate.send(used("u1", "web_search", "rust agents"))
        .send(provider(ProviderPart::Result { id, tool, status: ResultStatus::Ok, text }))
        .send(used("u2", "code_execution", "post()"))
        .send(Delta::Text("done".into()))
        .send(Delta::Ended(Finish::Natural));
    assert_eq!(second.outcome().await, ItemOutcome::Completed(turn(2)));
    let later = session.fork(Some(turn(1))).await.unwrap().later;
    let expected = [
        "web_search rust agents (run by the provider)",
        "code_execution post() (run by the provider, effects unknown)",
    ];
    assert_eq!(later, expected);
    assert_eq!(session.fork(None).await.unwrap().later.len(), 0);
    end(session).await;
}

fn provider(part: ProviderPart) -> Delta {
    Delta::Provider(Box::new(ProviderBlock::new("w", part, serde_json::Value::Null)))
}

/// S7.21: a turn that was planned and never began has its number, and is no turn at whose end a fork can begin.
#[tokio::test]
async fn a_turn_that_never_began_is_skipped() {
    let (store, desk) = (memory(), Desk::new([Reply::text("first"), Reply::text("third")]));
    let session = open(&desk, &store, "s").await;
    say(&session, "one").await;
    end(session).await;
    let ttl = std::time::Duration::from_secs(60);
    let lease = acquire(&*store, &"s".into(), OwnerProcess::here(), ttl).await.unwrap();
    let bytes = br#"{"line":"planned","turn":2,"items":[]}"#.to_vec();
    let planned = Record { path: "turn-2".into(), kind: "planned".into(), version: 1, bytes };
    store.append(&lease, vec![Write::Record(planned)], Durability::Durable).await.unwrap();
    give_back(&*store, &lease).await.unwrap();
    assert_eq!(Fork::of("s").create(Arc::clone(&store)).await.unwrap().turn, turn(1));
    let session = open(&desk, &store, "s").await;
    assert_eq!(say(&session, "three").await, turn(3));
    end(session).await;
    let fork = |at| Fork::of("s").at(turn(at)).create(Arc::clone(&store));
    assert!(matches!(fork(2).await, Err(Error::NoTurn(_, Some(_)))));
    for (at, said) in [(1, &["one"][..]), (3, &["one", "three"])] {
        let forked = fork(at).await.unwrap();
        assert_eq!((forked.turn, forked.later.len()), (turn(at), 0));
        assert_eq!(people(&end(open(&desk, &store, forked.session.as_str()).await).await), said);
    }
    assert_eq!(Fork::of("s").create(Arc::clone(&store)).await.unwrap().turn, turn(3));
}

/// S7.21, S3.4: in a store that creates sessions without the records that they begin with, nothing is left of a fork; and where it
/// cannot be removed, the error names it.
#[tokio::test]
async fn a_fork_that_a_store_made_by_half_is_removed() {
    for forgets in [Forgets::Records, Forgets::LastRecord, Forgets::RecordsAndToRemove] {
        let (_desk, inner) = three_turns().await;
        let store = Arc::new(Forgetful { inner: Arc::clone(&inner), forgets });
        let error = Fork::of("s").named("fork").create(store).await.unwrap_err();
        let is_there = inner.open(&"fork".into()).await.is_ok();
        assert_eq!(is_there, forgets == Forgets::RecordsAndToRemove, "{forgets:?}");
        assert_eq!(error.is_uncertain(), is_there, "{forgets:?}: {error}");
        assert!(error.to_string().contains("without all of the records"), "{error}");
        assert_eq!(error.to_string().contains("session fork"), is_there, "{error}");
    }
}

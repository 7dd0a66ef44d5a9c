//! The checkpoint that opening a long session writes: nothing depends on it.

use std::{sync::Arc, time::Duration};

use safepoint::{
    Agent, History, Session,
    ids::SessionId,
    session::{ItemOutcome, SessionBuilder, SessionStop},
    store::{MemoryStore, OwnerProcess, Store},
};
use safepoint_testkit::{
    fault_store::{At, FaultStore, OperationFault},
    script::{Reply, Script},
    scripted::ScriptedModel,
};

use super::world::chat;

/// Turns whose records are more than a checkpoint stands for at least.
const TURNS: usize = 100;
/// Turns whose records are more than two pages of them.
const LONG: usize = 400;

fn id() -> SessionId {
    SessionId::from("s")
}

/// A process that is dead, for every other one.
fn dead() -> OwnerProcess {
    OwnerProcess { pid: u32::MAX, ..OwnerProcess::here() }
}

fn talk() -> SessionBuilder<String> {
    let replies = (0..LONG).map(|number| Reply::text(format!("answer {number}")));
    chat(Agent::builder(ScriptedModel::new(Script::of(replies))).build())
}

async fn say(session: &Session<String>, words: &str) {
    let outcome = session.push(words.to_owned()).unwrap().outcome().await;
    assert!(matches!(outcome, ItemOutcome::Completed(_)), "{outcome:?}");
}

async fn end(session: Session<String>) -> History {
    drop(session.stop(SessionStop::at_turn_end()));
    session.done().await.history().clone()
}

/// A long session without an owner and without a checkpoint, and its conversation.
async fn long(turns: usize) -> (Arc<dyn Store>, History) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let session = talk().open(Arc::clone(&store), id(), OwnerProcess::here()).await.unwrap();
    for number in 0..turns {
        say(&session, &format!("question {number}")).await;
    }
    (store, end(session).await)
}

async fn checkpoints(store: &Arc<dyn Store>) -> usize {
    let entries = store.read(&id(), 0, usize::MAX).await.unwrap().entries;
    entries.iter().filter(|entry| entry.record.as_ref().is_ok_and(|record| record.is_checkpoint())).count()
}

/// S7.17: opening a long session keeps a checkpoint, once, and the session has not changed by that.
#[tokio::test]
async fn a_session_that_is_opened_has_not_changed() {
    let (store, history) = long(TURNS).await;
    let before = store.open(&id()).await.unwrap();
    for _ in 0..2 {
        let session = talk().open(Arc::clone(&store), id(), OwnerProcess::here()).await.unwrap();
        assert_eq!(end(session).await, history);
        let after = store.open(&id()).await.unwrap();
        assert_eq!((after.updated, after.head), (before.updated, before.head + 1));
        assert_eq!(checkpoints(&store).await, 1);
    }
}

/// S7.17: a long session is opened by its newest checkpoint and what is behind it: the store is asked for two pages, however
/// long it is.
#[tokio::test]
async fn a_long_session_is_opened_by_its_end() {
    let (store, history) = long(LONG).await;
    for has_checkpoint in [false, true] {
        let counting =
            Arc::new(FaultStore::unarmed(Arc::clone(&store), OperationFault::Slow(Duration::ZERO)));
        counting.arm_named("read", 2);
        let opened = talk().open(Arc::clone(&counting) as Arc<dyn Store>, id(), OwnerProcess::here()).await;
        assert_eq!(counting.was_met(), !has_checkpoint, "a third page was asked for, or it was not");
        assert_eq!(end(opened.unwrap()).await, history);
    }
}

/// S7.17, S3.4, S7.7: whatever becomes of the write of a checkpoint, and of its writer before or after it, the conversation is
/// there, and continues.
#[tokio::test]
async fn nothing_is_lost_with_a_checkpoint() {
    use OperationFault::{Full, GoneAfter, GoneBefore, Panics, Refused, Unknown};
    for fault in [Refused, Full, Unknown, Panics(At::ItsCall), Panics(At::ItsPoll), GoneBefore, GoneAfter] {
        let (store, history) = long(TURNS).await;
        let (is_fatal, is_written) = match &fault {
            GoneBefore => (true, false),
            GoneAfter => (true, true),
            fault => (false, matches!(fault, Unknown)),
        };
        let what = format!("{fault:?}");
        let faulty = Arc::new(FaultStore::unarmed(Arc::clone(&store), fault));
        faulty.arm_named("append", 0);
        let opened = talk().open(Arc::clone(&faulty) as Arc<dyn Store>, id(), dead()).await;
        assert!(faulty.was_met(), "{what}: nothing is written");
        assert_eq!(opened.is_err(), is_fatal, "{what}: {:?}", opened.err());
        if let Ok(session) = opened {
            assert_eq!(end(session).await, history, "{what}");
        }
        assert_eq!(checkpoints(&store).await, usize::from(is_written), "{what}");
        let session = talk().open(Arc::clone(&store), id(), OwnerProcess::here()).await.unwrap();
        assert_eq!(checkpoints(&store).await, 1, "{what}");
        say(&session, "one more").await;
        let after = end(session).await;
        assert!(after.entries().range(..history.entries().len()).eq(history.entries().iter()), "{what}");
        assert_eq!(after.entries().len(), history.entries().len() + 2, "{what}");
    }
}

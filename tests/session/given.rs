//! The conversation that a stored session is given to begin with.

use std::sync::Arc;

use safepoint::{
    History, Session,
    history::Message,
    ids::SessionId,
    raw::{JournalFact, read_journal},
    session::{Push, SessionStop},
    store::{Error, MemoryStore, OwnerProcess, Store},
};
use safepoint_stores::SqliteStore;
use safepoint_testkit::{
    fault_store::{FaultStore, OperationFault},
    script::Reply,
};

use super::{
    desk::Desk,
    fork::{end, open, people, say},
};

fn id() -> SessionId {
    SessionId::from("s")
}

fn talk(texts: &[&str]) -> History {
    let mut history = History::new();
    texts.iter().for_each(|text| history.push(Message::User((*text).into())));
    history
}

async fn begin(desk: &Desk, store: &Arc<dyn Store>, history: History) -> Result<Session<String>, Error> {
    desk.chat().history(history).open(Arc::clone(store), id(), OwnerProcess::here()).await
}

async fn given_and_kept(store: Arc<dyn Store>) {
    let desk = Desk::new([Reply::text("first"), Reply::text("second")]);
    let session = begin(&desk, &store, talk(&["once", "before"])).await.unwrap();
    assert_eq!(store.open(&id()).await.unwrap().head, 1, "it is recorded before any turn");
    say(&session, "one").await;
    assert_eq!(people(&end(session).await), ["once", "before", "one"]);
    // Whether it is given again or not.
    let session = open(&desk, &store, "s").await;
    say(&session, "two").await;
    assert_eq!(people(desk.model.requests().last().unwrap()), ["once", "before", "one", "two"]);
    let history = end(session).await;
    let again = begin(&desk, &store, talk(&["once", "before"])).await.unwrap();
    assert_eq!(end(again).await, history);
}

/// S7.50: the conversation is recorded with the session; the model gets it, and so does the next owner, who may give it again.
#[tokio::test]
async fn a_session_that_is_given_its_beginning_keeps_it() {
    given_and_kept(Arc::new(MemoryStore::default())).await;
    let folder = tempfile::tempdir().unwrap();
    given_and_kept(Arc::new(SqliteStore::open(folder.path().join("s.db")).unwrap())).await;
}

/// S7.50: a session that began with another conversation, or with none, is not opened, and stays as it was.
#[tokio::test]
async fn a_session_with_another_beginning_is_not_opened() {
    for first in [talk(&["other"]), talk(&["once", "more"]), History::new()] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let desk = Desk::new([]);
        let session = begin(&desk, &store, first.clone()).await.unwrap();
        say(&session, "one").await;
        let history = end(session).await;
        let before = store.open(&id()).await.unwrap();
        let chat = desk.chat().history(talk(&["once"])).setup("another program");
        let refused = chat.open(Arc::clone(&store), id(), OwnerProcess::here()).await;
        let error = refused.map(drop).unwrap_err();
        assert!(matches!(&error, Error::BegunOtherwise(session) if *session == id()), "{error}");
        let after = store.open(&id()).await.unwrap();
        assert_eq!((after.head, after.chain, &after.setup), (before.head, before.chain, &before.setup));
        assert_eq!(after.holder, None, "it is given back");
        assert_eq!(end(open(&desk, &store, "s").await).await, history);
    }
}

/// S7.50: a session that another process made, and of which nothing is recorded, begins with what is given.
#[tokio::test]
async fn a_session_of_which_nothing_is_recorded_can_be_given_its_beginning() {
    let (store, desk) = (Arc::new(MemoryStore::default()) as Arc<dyn Store>, Desk::new([]));
    end(open(&desk, &store, "s").await).await;
    assert_eq!(store.open(&id()).await.unwrap().head, 0);
    let session = begin(&desk, &store, talk(&["once"])).await.unwrap();
    say(&session, "one").await;
    end(session).await;
    assert_eq!(people(&end(open(&desk, &store, "s").await).await), ["once", "one"]);
}

/// S7.50, S7.16: the session is made with its beginning and its first item, or not at all: a process that dies with it leaves
/// both or none.
#[tokio::test]
async fn a_session_is_made_with_its_beginning_or_not_at_all() {
    for fault in [OperationFault::GoneBefore, OperationFault::GoneAfter] {
        let (mut made, mut at) = (0, 0);
        loop {
            let inner: Arc<dyn Store> = Arc::new(MemoryStore::default());
            let faulty = Arc::new(FaultStore::over(Arc::clone(&inner), at, fault.clone()));
            let desk = Desk::new([]);
            let chat = desk.chat().history(talk(&["once"]));
            let push = Push::new("one".to_owned());
            let store = Arc::clone(&faulty) as Arc<dyn Store>;
            let opened = chat.open_with(store, id(), OwnerProcess::here(), push).await;
            if faulty.asked() <= at {
                let (session, _push) = opened.unwrap();
                drop(session.stop(SessionStop::now()));
                session.done().await;
                break;
            }
            if !matches!(inner.open(&id()).await, Err(Error::NoSession(_))) {
                made += 1;
                assert_eq!(inner.inbox(&id()).await.unwrap().len(), 1);
                let mut begun = Vec::new();
                read_journal(&*inner, &id(), |step| begun.push(step.what.unwrap())).await.unwrap();
                assert_eq!(
                    begun,
                    [JournalFact::BegunMore { history: talk(&["once"]).entries().iter().cloned().collect() }]
                );
            }
            at += 1;
        }
        assert!(made > 0, "{fault:?}: it was never made");
    }
}

/// S7.50: a conversation that takes more than one record is recorded as a whole.
#[tokio::test]
async fn a_long_beginning_takes_several_records() {
    let (store, desk) = (Arc::new(MemoryStore::default()) as Arc<dyn Store>, Desk::new([]));
    let text = "a".repeat(5 << 20);
    let long = talk(&[&text, &text, &text]);
    let session = begin(&desk, &store, long.clone()).await.unwrap();
    assert_eq!(store.open(&id()).await.unwrap().head, 3);
    end(session).await;
    assert_eq!(end(begin(&desk, &store, long.clone()).await.unwrap()).await, long);
    let shorter = begin(&desk, &store, talk(&[&text, &text])).await.map(drop);
    assert!(matches!(shorter, Err(Error::BegunOtherwise(_))), "{shorter:?}");
}

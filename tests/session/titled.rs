//! The title of a session: its first words, or what its owner calls it.

use std::sync::Arc;

use safepoint::{
    Session,
    ids::SessionId,
    store::{Error, Store},
};
use safepoint_testkit::script::Reply;

use super::{
    desk::Desk,
    fork::{end, memory, open, say},
};

async fn title(store: &Arc<dyn Store>) -> String {
    store.open(&SessionId::from("s")).await.unwrap().title
}

/// S7.41: a title that its owner gives replaces the first words, in one line of bounded length, and outlives the owner.
#[tokio::test]
async fn a_title_replaces_the_first_words_and_is_kept() {
    let (store, desk) = (memory(), Desk::new([Reply::text("yes")]));
    let session = open(&desk, &store, "s").await;
    say(&session, "fix the parser\nand the docs").await;
    assert_eq!(title(&store).await, "fix the parser");
    session.rename("\n  The parser  \nmore").await.unwrap();
    assert_eq!(title(&store).await, "The parser");
    session.rename("é".repeat(100)).await.unwrap();
    assert_eq!(title(&store).await, "é".repeat(80));
    end(session).await;
    let session = open(&desk, &store, "s").await;
    say(&session, "another turn").await;
    assert_eq!(title(&store).await, "é".repeat(80));
    end(session).await;
}

/// S7.41: a title that is given before the first turn stays; one that is taken away gives room to the first words.
#[tokio::test]
async fn a_title_that_is_given_first_stays() {
    for (given, then) in [(vec!["mine"], "mine"), (vec!["mine", " "], "hello")] {
        let (store, desk) = (memory(), Desk::new([Reply::text("yes")]));
        let session = open(&desk, &store, "s").await;
        for given in given {
            session.rename(given).await.unwrap();
        }
        say(&session, "hello").await;
        assert_eq!(title(&store).await, then);
        end(session).await;
    }
}

/// S7.41: a session that is in no store, or has ended, says that it takes no title.
#[tokio::test]
async fn a_session_in_no_store_takes_no_title() {
    let (store, desk) = (memory(), Desk::new([]));
    let bare: Session<String> = desk.chat().start();
    assert!(matches!(bare.rename("mine").await, Err(Error::NotStored)));
    let session = open(&desk, &store, "s").await;
    let handle = session.handle();
    end(session).await;
    assert!(matches!(handle.rename("mine").await, Err(Error::NotStored)));
    assert_eq!(title(&store).await, "");
}

//! Sessions of a server, listed, talked to, shown and removed.

use safepoint::ids::SessionId;
use safepoint_testkit::script::Reply;
use serde_json::json;

use super::world::{World, says};

/// S13.14: an item that is pushed through a server is in its store, and answered; the session is named by its id or an end of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_pushed_is_answered() {
    let world = World::of(says(["Lisbon.", "Oslo.", "Rome."].map(Reply::text)).build()).await;
    let session = world.session("What is the capital of Portugal?").await;
    let end = &session[session.len() - 8..];
    let pushed = world.ask(&["push", end, "And of Norway?", "--id", "norway", "--wait"]).await;
    assert_eq!((pushed.code, &*pushed.err), (0, ""), "{pushed:?}");
    assert_eq!(pushed.out, "queued item-2\nitem-2 is answered in turn-2\n");
    let again = world.ask(&["push", &session, "And of Norway?", "--id", "norway", "--json"]).await;
    let said = again.last();
    assert_eq!((&said["status"], &said["detail"]["item"]), (&json!("same"), &json!("item-2")), "{said}");
    assert_eq!(said["session"], session.as_str());
    let other = world.ask(&["push", &session, "And of Italy?", "--id", "norway"]).await;
    assert_eq!(other.code, 5, "{other:?}");
    let row = world.store.open(&SessionId::from(session.as_str())).await.unwrap();
    assert!(row.title.contains("Portugal"), "{row:?}");
    world.end().await;
}

/// S13.14: a list has each session once, as the list on this machine has it; a removed one is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_are_listed_shown_and_removed() {
    let world = World::of(says(["Lisbon.", "Oslo.", "Lisbon.", "Oslo."].map(Reply::text)).build()).await;
    let (one, two) = (world.session("Portugal?").await, world.session("Norway?").await);
    for session in [&one, &two] {
        assert_eq!(world.ask(&["push", session, "again", "--wait"]).await.code, 0);
    }
    let listed = world.ask(&["sessions", "ls", "--json"]).await;
    let lines = listed.lines();
    assert_eq!((listed.code, lines.len()), (0, 2), "{listed:?}");
    for line in &lines {
        assert_eq!((&line["type"], &line["kept"]), (&json!("session"), &json!(true)), "{line}");
        assert_eq!((&line["state"], &line["detail"]["agent"]), (&json!("open"), &json!("helper")), "{line}");
    }
    let people = world.ask(&["sessions", "ls"]).await;
    assert!(people.out.contains("Portugal?") && people.out.contains(&two), "{people:?}");
    let first = world.ask(&["sessions", "ls", "-n", "1"]).await;
    assert_eq!((first.out.lines().count(), &*first.err), (1, "the newest 1; -n N lists more\n"), "{first:?}");
    let shown = world.ask(&["sessions", "show", &one[one.len() - 6..]]).await;
    assert!(shown.out.starts_with(&format!("{one}: idle\n")), "{shown:?}");
    assert!(shown.out.contains("  agent    helper\n"), "{shown:?}");
    let none = world.made(&json!({})).await;
    // The server has the first one open.
    for session in [&one, &none] {
        let removed = world.ask(&["sessions", "rm", session]).await;
        let said = format!("safepoint: removed {session}\n");
        assert_eq!((removed.code, &*removed.err), (0, &*said), "{removed:?}");
    }
    let gone = world.ask(&["sessions", "show", &none, "--json"]).await;
    assert_eq!((gone.code, &gone.last()["status"]), (3, &json!("no_such_session")), "{gone:?}");
    world.end().await;
}

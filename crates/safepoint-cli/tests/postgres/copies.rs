//! Sessions that are copied from a file to a database and back.

use std::process::{Child, Stdio};

use safepoint_testkit::wait;
use serde_json::Value;

use super::world::{Said, World, said};

/// What a command says of the store at this place.
async fn at(world: &World, place: &str, args: &[&str]) -> Said {
    said(world.binary(&[args, &["--store", place]].concat())).await
}

/// The journal of a session there, without what names the moment of the export.
async fn exported(world: &World, place: &str, session: &str) -> Vec<Value> {
    let said = at(world, place, &["store", "export", session]).await;
    assert_eq!(said.code, 0, "{said:?}");
    let mut lines = said.lines();
    lines.iter_mut().for_each(|line| line["at"] = Value::Null);
    lines
}

/// The status of each session that was copied, and the exit code.
async fn copied(world: &World, args: &[&str]) -> (Vec<(String, String)>, i32) {
    let said = said(world.binary(&[&["store", "copy"], args, &["--json"]].concat())).await;
    let text = |line: &Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
    let mut all: Vec<_> =
        said.lines().iter().map(|line| (text(line, "session"), text(line, "status"))).collect();
    all.sort();
    (all, said.code)
}

fn statuses(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(session, status)| ((*session).to_owned(), (*status).to_owned())).collect()
}

/// A session `trip` with two turns and an item that waits, and one `ask` that waits for a decision.
async fn begun(world: &World, place: &str) {
    let run = ["run", "--session", "trip", "hello", "--then", "and then?"];
    assert_eq!(at(world, place, &run).await.code, 0);
    assert_eq!(at(world, place, &["push", "trip", "later"]).await.code, 0);
    let asks = ["run", "--session", "ask", "--tools", "shell", "--sandbox", "off", "run: echo done"];
    assert_eq!(at(world, place, &asks).await.code, 11);
}

/// S7.60: a session is the same in a file, in a database and in a file again, and goes on there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_go_from_a_file_to_a_database_and_back() {
    let world = World::new();
    let (file, back, database) = (world.file("one.db"), world.file("back.db"), world.database.clone());
    begun(&world, &file).await;
    let both = |status| statuses(&[("ask", status), ("trip", status)]);
    assert_eq!(copied(&world, &[&file, &database]).await, (both("copied"), 0));
    assert_eq!(copied(&world, &[&database, &back]).await, (both("copied"), 0));
    assert_eq!(
        copied(&world, &[&file, &back]).await,
        (both("same"), 0),
        "it came whole through the database"
    );
    for session in ["ask", "trip"] {
        let there = exported(&world, &file, session).await;
        assert!(there.len() > 3, "{there:?}");
        assert_eq!(exported(&world, &database, session).await, there);
        assert_eq!(exported(&world, &back, session).await, there);
    }
    let open = |said: Said| {
        said.lines()
            .iter()
            .map(|line| (line["approval_id"].clone(), line["asked_at"].clone()))
            .collect::<Vec<_>>()
    };
    let asked = open(at(&world, &file, &["approvals", "ask", "--json"]).await);
    assert_eq!(open(at(&world, &back, &["approvals", "ask", "--json"]).await), asked);
    // It goes on in the copy: the decision, the resumed turn, the item that waits.
    assert_eq!(at(&world, &back, &["approve", "ask"]).await.code, 0);
    let resumed = at(&world, &back, &["resume", "ask", "--sandbox", "off"]).await;
    assert!(resumed.code == 0 && resumed.out.contains("done"), "{resumed:?}");
    assert_eq!(at(&world, &back, &["resume", "trip"]).await.code, 0);
    assert_eq!(copied(&world, &[&back, &database]).await, (both("renewed"), 0));
    assert_eq!(exported(&world, &database, "ask").await, exported(&world, &back, "ask").await);
    let checked = world.does(&["store", "check", "--json"]).await;
    assert!(checked.lines().iter().all(|line| line["sound"] == true), "{checked:?}");
    world.has_no_password();
}

/// S7.60: what has gone on in both is refused, and keeps no other session from being copied.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_has_gone_on_is_left_as_it_is() {
    let world = World::new();
    let (file, database) = (world.file("one.db"), world.database.clone());
    begun(&world, &file).await;
    assert_eq!(copied(&world, &[&file, &database]).await.1, 0);
    assert_eq!(at(&world, &file, &["stop", "ask"]).await.code, 0);
    world.does(&["push", "trip", "only here"]).await;
    let before = exported(&world, &database, "trip").await;
    let found = copied(&world, &[&file, &database]).await;
    assert_eq!(found, (statuses(&[("ask", "renewed"), ("trip", "refused")]), 1));
    assert_eq!(exported(&world, &database, "trip").await, before);
    let alone = copied(&world, &[&file, &database, "ask"]).await;
    assert_eq!(alone, (statuses(&[("ask", "same")]), 0));
    let none = said(world.binary(&["store", "copy", &file, &database, "none"])).await;
    assert_eq!(none.code, 3, "{none:?}");
    let itself = said(world.binary(&["store", "copy", &database, &database])).await;
    assert_eq!(itself.code, 2, "{itself:?}");
    world.has_no_password();
}

/// A run over this store whose command goes on until it is killed.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// S7.60
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_a_process_has_open_is_refused_by_name() {
    let world = World::new();
    let (file, database) = (world.file("one.db"), world.database.clone());
    assert_eq!(at(&world, &file, &["run", "--session", "trip", "hello"]).await.code, 0);
    let holds = ["run", "--session", "held", "--tools", "shell", "--approve", "auto", "--sandbox", "off"];
    let mut command = world.binary(&[&holds[..], &["--store", &file, "run: sleep 600"]].concat());
    let running = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let is_held = || async {
        let listed = at(&world, &file, &["sessions", "ls", "--json"]).await.lines();
        listed.iter().any(|line| line["session"] == "held" && line["state"] == "running")
    };
    wait::asked("the session is held", is_held).await;
    let said = said(world.binary(&["store", "copy", &file, &database])).await;
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("held  refused: session held is held by"), "{said:?}");
    assert!(said.out.contains("trip  copied"), "{said:?}");
    drop(running);
    // Its death is proved: the session is copied as its owner left it.
    assert_eq!(copied(&world, &[&file, &database, "held"]).await, (statuses(&[("held", "copied")]), 0));
    world.has_no_password();
}

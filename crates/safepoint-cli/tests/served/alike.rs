//! The same command through a server and here, of the same session: the exit code, the state and the words are the same.

use safepoint::tool;
use safepoint_testkit::{script::Reply, wait::InTime as _};
use serde_json::{Value, json};

use super::world::{Said, World, modelled, says};

/// Pays a supplier.
#[tool(effect = "keyed", approval = "required")]
async fn pay(cents: u64) -> String {
    format!("paid {cents}")
}

/// A session that asks whether it may pay.
async fn asked() -> (World, String) {
    let replies = [Reply::call("pay", json!({"cents": 12000})), Reply::text("Done.")];
    let world = World::of(says(replies).tool(pay).build()).await;
    let session = world.session("Pay Acme.").await;
    world.labelled(&session, "suspended").await;
    (world, session)
}

/// The one line of each, without what differs by nature: times, and what only one of the two can know.
fn alike(served: &Said, here: &Said, fields: &[&str]) {
    assert_eq!(served.code, here.code, "{served:?}\n{here:?}");
    let (served, here) = (served.last(), here.last());
    for field in ["type", "session", "run", "seq", "v"].iter().chain(fields) {
        assert_eq!(served[field], here[field], "{field}\n{served}\n{here}");
    }
}

/// S13.14: refusals have the exit codes and the words for scripts that they have here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_have_the_same_codes() {
    let (model, agent) = modelled([]).await;
    let mut gate = model.gate();
    let world = World::of(agent).await;
    let session = world.session("Go.").await;
    let request = gate.request().await;
    assert_eq!(world.ask(&["push", &session, "next", "--id", "next"]).await.code, 0);
    let item = "item-77";
    for args in [
        &["withdraw", &session, item][..],
        &["withdraw", &session, "item-1"],
        &["withdraw", &session, "seven"],
        &["push", &session, "other", "--id", "next"],
        &["push", &session, "next", "--id", "next"],
        &["push", &session, "  "],
        &["push", &session, "x", "--at", "any"],
        &["push", "ses_none", "x"],
        &["push", " ", "x"],
        &["stop", "ses_none"],
        &["sessions", "show", "ses_none"],
        &["approvals", "ses_none"],
        &["approve", &session],
        &["approve", &session, "apr_none"],
        &["trace", "ses_none"],
    ] {
        let args = [args, &["--json"]].concat();
        let (served, here) = (world.ask(&args).await, world.here(&args).await);
        assert_eq!(served.code, here.code, "{args:?}\n{served:?}\n{here:?}");
        assert_ne!((served.code, args[1]), (0, "ses_none"), "{served:?}");
        if !here.out.is_empty() {
            alike(&served, &here, &["code", "status"]);
        }
    }
    drop(request);
    world.end().await;
}

/// S13.14: a question, its list, and what an answer comes to; the second answer comes too late wherever it comes from.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_is_listed_and_answered_once() {
    let (world, session) = asked().await;
    let listed = ["approvals", &session, "--json"];
    let fields = ["approval_id", "state", "open", "question", "tool", "args", "digest", "decision"];
    alike(&world.ask(&listed).await, &world.here(&listed).await, &fields);
    let (people, here) =
        (world.ask(&["approvals", &session]).await, world.here(&["approvals", &session]).await);
    assert_eq!(people.out, here.out);
    let end = &session[session.len() - 8..];
    let denied = world.ask(&["deny", end, "--message", "no budget", "--json"]).await;
    let line = denied.last();
    assert_eq!((denied.code, &line["type"]), (0, &json!("decided")), "{denied:?}");
    assert_eq!(line["said"], "pay does not run. Recorded; the server resumes it");
    world.labelled(&session, "idle").await;
    let later = ["approve", &session, "--json"];
    let (served, here) = (world.ask(&later).await, world.here(&later).await);
    alike(&served, &here, &["code", "approval_id"]);
    assert_eq!(served.code, 4, "{served:?}");
    assert!(served.last()["said"].as_str().unwrap().contains("already denied by anna"), "{served:?}");
    let again = world.ask(&["approvals", &session]).await;
    assert!(again.out.contains("decided by anna: pay"), "{again:?}");
    world.end().await;
}

/// S13.14, S8.11: a command of a run decides about no call, through a server too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_cannot_decide_through_a_server() {
    let (world, session) = asked().await;
    let mut command = world.asks("all", &["approve", &session]);
    command.env("SAFEPOINT_RUN", "run_1:1");
    let refused = super::world::said(command).await;
    assert_eq!(refused.code, 5, "{refused:?}");
    assert!(refused.err.contains("a run cannot decide about its own calls"), "{refused:?}");
    world.labelled(&session, "suspended").await;
    world.end().await;
}

/// S13.14: a suspended turn is stopped, and its question with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_takes_a_question_back() {
    let (world, session) = asked().await;
    let stopped = world.ask(&["stop", &session, "--wait", "--json"]).await;
    assert_eq!((stopped.code, &stopped.last()["message"]), (0, &json!("turn-1 is stopped")), "{stopped:?}");
    let row = world.store.open(&safepoint::ids::SessionId::from(session.as_str())).await.unwrap();
    assert_eq!(row.label, "stopped", "it was said before it was so");
    let late = world.ask(&["approve", &session, "--json"]).await;
    assert_eq!(late.code, 4, "{late:?}");
    let (served, here) = (
        world.ask(&["sessions", "show", &session, "--json"]).await,
        world.here(&["sessions", "show", &session, "--json"]).await,
    );
    alike(&served, &here, &["title", "created_at", "updated_at", "items_waiting", "approvals_open"]);
    world.end().await;
}

/// S13.14: the timeline has the same steps, in the same words, as far as lines say them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trace_has_the_same_steps() {
    let (world, session) = asked().await;
    assert_eq!(world.ask(&["approve", &session]).await.code, 0);
    world.labelled(&session, "idle").await;
    // What is alive at the end is recorded behind the turn's end.
    world.quiet(&session, 1).await;
    let (served, here) = (world.ask(&["trace", &session]).await, world.here(&["trace", &session]).await);
    assert_eq!(served.code, 0, "{served:?}");
    // Times are recorded with and without fractions, and only the journal has what was asked.
    let words = |said: &Said| {
        let steps = said
            .out
            .lines()
            .filter(|line| line.starts_with("    ") || line.starts_with("  +") || line.starts_with(" "));
        let words = |line: &str| line.get(22..).unwrap_or_default().trim().to_owned();
        steps.map(words).filter(|words| !words.is_empty()).collect::<Vec<_>>()
    };
    let (mut one, mut other) = (words(&served), words(&here));
    // A line does not say what exactly is asked about a call.
    for words in [&mut one, &mut other] {
        words.retain(|step| !step.starts_with('?'));
    }
    assert_eq!(one, other, "{}\n{}", served.out, here.out);
    let lines = world.ask(&["trace", &session, "--json"]).await;
    let lines: Vec<Value> = lines.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/schema/event.json")).unwrap();
    let schema = safepoint::raw::schema::Schema::new(&schema).unwrap();
    for (seq, line) in lines.iter().enumerate() {
        assert_eq!(line["seq"], seq as u64, "{line}");
        let mut line = line.clone();
        line.as_object_mut().unwrap().remove("position").unwrap();
        // What is of a session alone is in no line of a run.
        let is_of_turn = line["type"].as_str().unwrap().starts_with("turn_");
        assert!(is_of_turn || schema.check(&line).is_ok(), "{line}: {:?}", schema.check(&line));
    }
    assert!(
        lines.iter().any(|line| line["type"] == "turn_ended" && line["receipt"]["ending"] == "done"),
        "{lines:?}"
    );
    let page = world.file("trace.html");
    let written = world.ask(&["trace", &session, "--html", &page]).await;
    assert_eq!(written.code, 0, "{written:?}");
    assert!(std::fs::read_to_string(page).unwrap().contains("pay"));
    world.end().in_time("the end").await;
}

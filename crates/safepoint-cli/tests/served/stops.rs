//! Stops through a server: under way when they are acknowledged, and called stopped only once the turn has settled.

use std::sync::Arc;

use safepoint::{Session, approval::ApprovalMode, ids::SessionId, session::ChatPlanner, store::OwnerProcess};
use safepoint_testkit::{script::Reply, tools::GateTools, wait::InTime as _};
use serde_json::{Value, json};
use tokio::runtime;

use super::world::{World, modelled, said, says};

/// S13.14, S13.5: the socket of the model closes, and the end has the receipt; what ended before is too late.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_closes_the_socket_of_the_model_and_has_the_receipt() {
    let (model, agent) = modelled([]).await;
    let mut gate = model.gate();
    let world = World::of(agent).await;
    let session = world.session("Go.").await;
    let request = gate.request().await;
    let held = world.ask(&["sessions", "rm", &session]).await;
    assert_eq!(held.code, 5, "a turn of it runs: {held:?}");
    let stop = ["stop", &session, "--now", "--because", "wrong branch", "--wait=quiet", "--json"];
    let stopped = world.ask(&stop).await;
    request.peer_closed().in_time("the end of the model's connection").await;
    let last = stopped.last();
    assert_eq!((stopped.code, &last["status"]), (0, &json!("quiet")), "{stopped:?}");
    assert_eq!(last["message"], "turn-1 is stopped", "{last}");
    let receipt = &last["detail"]["receipt"];
    assert_eq!((&receipt["ending"], &last["detail"]["survivors"]), (&json!("stopped"), &json!([])), "{last}");
    assert!(receipt["stop"]["reason"].to_string().contains("wrong branch"), "{receipt}");
    assert!(receipt["stop"]["reason"].to_string().contains("anna"), "{receipt}");
    world.labelled(&session, "stopped").await;
    world.closed(&session).await;
    let again = world.ask(&["stop", &session]).await;
    assert_eq!(again.code, 4, "{again:?}");
    world.end().await;
}

/// S13.14, S13.5: while a tool that ignores its stop runs, no word says stopped; the caller's time passes with its own exit code.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_called_stopped_before_it_has_settled() {
    let tools = GateTools::new();
    let agent = says([Reply::call("deaf", json!({}))]).approvals(ApprovalMode::Auto).tool(tools.deaf("deaf"));
    let world = World::of(agent.build()).await;
    let session = world.session("Go.").await;
    tools.gate().came(1).in_time("the call").await;
    let asked = world.ask(&["stop", &session, "--now"]).await;
    assert_eq!(asked.code, 0, "{asked:?}");
    assert!(asked.out.starts_with("stop of turn-1 requested; it waits for "), "{asked:?}");
    assert!(asked.out.contains("deaf") && !asked.out.contains("stopped"), "{asked:?}");
    let over = world.ask(&["stop", &session, "--now", "--wait", "--timeout", "300ms"]).await;
    assert_eq!(over.code, 7, "{over:?}");
    assert!(!over.out.contains("stopped") && !over.err.contains("stopped"), "{over:?}");
    let asked = world.stops(&session).await;
    let waits = tokio::spawn(said(world.asks("all", &["stop", &session, "--now", "--wait"])));
    world.stopped_again(&session, asked).await;
    tools.gate().open_for_all();
    let ended = waits.in_time("the stop").await.unwrap();
    assert_eq!(ended.code, 0, "{ended:?}");
    world.labelled(&session, "stopped").await;
    world.end().await;
}

/// S13.14, S13.4: what waits behind a stopped turn does not run; a withdrawn item never does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_behind_a_stop_waits_and_can_be_withdrawn() {
    let (model, agent) = modelled([]).await;
    let mut gate = model.gate();
    let world = World::of(agent).await;
    let session = world.session("Go.").await;
    let _request = gate.request().await;
    assert_eq!(world.ask(&["push", &session, "then this"]).await.code, 0);
    let refused = world.ask(&["push", &session, "or this", "--policy", "reject", "--json"]).await;
    assert_eq!((refused.code, &refused.last()["status"]), (5, &json!("busy")), "{refused:?}");
    assert_eq!(world.ask(&["withdraw", &session, "1"]).await.code, 4, "the turn has it");
    let shown = world.ask(&["sessions", "show", &session]).await;
    assert!(shown.out.contains("running\n") && shown.out.contains("  items    1 waiting\n"), "{shown:?}");
    assert_eq!(world.ask(&["stop", &session, "--now", "--wait"]).await.code, 0);
    assert_eq!(world.waiting(&session).await, 1);
    let back = world.ask(&["withdraw", &session, "item-2", "--json"]).await;
    assert_eq!((back.code, &back.last()["status"]), (0, &json!("withdrawn")), "{back:?}");
    assert_eq!(world.waiting(&session).await, 0);
    world.end().await;
}

/// S13.14: a call is stopped alone, and one that does not run is not found; what a server cannot be asked is not sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_stopped_alone() {
    let tools = GateTools::new();
    let replies = [Reply::call("deaf", json!({})), Reply::text("Done.")];
    let agent = says(replies).approvals(ApprovalMode::Auto).tool(tools.finishing("deaf"));
    let world = World::of(agent.build()).await;
    let session = world.session("Go.").await;
    tools.gate().came(1).in_time("the call").await;
    let none = world.ask(&["stop", &session, "--call", "call_none", "--json"]).await;
    assert_eq!((none.code, &none.last()["status"]), (3, &json!("no_such_call")), "{none:?}");
    for (option, value) in [("--run", "run_1"), ("--when-idle", "5s")] {
        let refused = world.ask(&["stop", &session, option, value, "--json"]).await;
        assert_eq!((refused.code, &refused.last()["status"]), (2, &json!("refused")), "{refused:?}");
        assert!(refused.out.contains(option), "{refused:?}");
    }
    assert_eq!(world.ask(&["stop", &session, "--abandon"]).await.code, 2);
    let trace = world.ask(&["trace", &session, "--json"]).await;
    let lines = trace.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let call = lines.rev().find(|line| line["type"] == "call_started").unwrap()["call_id"].clone();
    let stopped = world.ask(&["stop", &session, "--now", "--call", call.as_str().unwrap()]).await;
    assert_eq!(stopped.code, 0, "{trace:?} {stopped:?}");
    tools.gate().open_for_all();
    world.labelled(&session, "idle").await;
    world.end().await;
}

/// S13.14, S13.5, S3.6: a background run that outlives the stop of its session is named, and nothing is called quiet; one that ends
/// with the session is not named.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_background_run_that_is_left_is_not_quiet() {
    for is_deaf in [true, false] {
        let (tools, inner) = (GateTools::new(), GateTools::new());
        let dig = if is_deaf { inner.deaf("dig") } else { inner.gated("dig") };
        let aside = says([Reply::call("dig", json!({}))]).approvals(ApprovalMode::Auto).tool(dig).build();
        let replies = [Reply::call("aside", json!({"task": "dig"})), Reply::call("wait", json!({}))];
        let agent = says(replies).approvals(ApprovalMode::Auto).tool(tools.gated("wait"));
        let world = World::of(agent.child(aside.as_subagent("aside", "digs").background()).build()).await;
        let session = world.session("Go.").await;
        tools.gate().came(1).in_time("the call").await;
        inner.gate().came(1).in_time("the background run").await;
        let stopped = world.ask(&["stop", &session, "--now", "--wait=quiet", "--json"]).await;
        let last = stopped.last();
        let named = last["detail"]["survivors"].as_array().unwrap();
        if is_deaf {
            assert_eq!((stopped.code, &last["status"]), (1, &json!("not_quiet")), "{stopped:?}");
            assert_eq!(named.len(), 1, "{last}");
            assert!(last["message"].as_str().unwrap().contains("background run aside"), "{last}");
        } else {
            assert_eq!((stopped.code, &last["status"]), (0, &json!("quiet")), "{stopped:?}");
            assert!(named.is_empty(), "{last}");
        }
        inner.gate().open_for_all();
        world.end().await;
    }
}

/// S13.14, S13.27: the wait for a turn that the end of a process has cut is over at once, and its end is not known.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_waits_for_no_turn_that_was_cut() {
    let (model, agent) = modelled([]).await;
    let mut gate = model.gate();
    // Else it finds the dead owner, and has the session itself.
    let world = World::only_when_asked(agent.clone()).await;
    let session = world.made(&json!({})).await;
    let (store, id) = (Arc::clone(&world.store), SessionId::from(&*session));
    let dies = move || {
        // It does nothing more once nothing runs its runtime: not even what a stop in the store asks of it.
        let dead = OwnerProcess { pid: u32::MAX, ..OwnerProcess::here() };
        let process = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let owner = process.block_on(async {
            let builder = Session::builder(ChatPlanner::new(agent));
            let owner = builder.open(store, id, dead).await.unwrap();
            owner.push("Go.".to_owned()).unwrap().recorded().await;
            gate.request().in_time("the turn asks its model").await;
            owner
        });
        (process, owner)
    };
    let (process, _owner) = tokio::task::spawn_blocking(dies).await.unwrap();
    for wait in ["--wait=settled", "--wait=quiet"] {
        let stopped = world.ask(&["stop", &session, "--now", wait, "--json"]).await;
        assert_eq!((stopped.code, &stopped.last()["status"]), (1, &json!("unknown")), "{stopped:?}");
        assert!(stopped.out.contains("turn-1 was cut by the end of the server's process"), "{stopped:?}");
    }
    process.shutdown_background();
    world.end().await;
}

/// S13.14: where nothing runs, nothing waits and nothing is open, there is nothing to stop, and nothing is stopped later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_at_rest_is_not_stopped_later() {
    let world = World::of(says([Reply::text("Hello.")]).build()).await;
    let session = world.made(&json!({})).await;
    for wait in [&[][..], &["--wait"], &["--wait=quiet", "--now"]] {
        let none = world.ask(&[&["stop", &session, "--json"], wait].concat()).await;
        assert_eq!((none.code, &none.last()["status"]), (4, &json!("no_active_turn")), "{none:?}");
    }
    assert_eq!(world.stops(&session).await, 0);
    let answered = world.ask(&["push", &session, "hello", "--wait"]).await;
    assert_eq!(answered.code, 0, "{answered:?}");
    world.end().await;
}

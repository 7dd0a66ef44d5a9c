//! Items of turns that the end of a process has cut.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use safepoint::{
    Session, StopRequest,
    ids::{SessionId, TurnId},
    raw::{StoredStop, store::MOST_TRIES, store_stop},
    session::ChatPlanner,
    store::{OwnerProcess, Store},
};
use safepoint_server::Surface;
use safepoint_testkit::{script::Reply, wait::InTime as _};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncReadExt as _;

use super::{
    client::Client,
    world::{World, says, served},
};

/// A process that is dead, for every other one.
fn dead() -> OwnerProcess {
    OwnerProcess { pid: u32::MAX, ..OwnerProcess::here() }
}

/// A session whose owner is dead for every other process, in a turn with its first item; this many more wait. That owner does
/// nothing as long as the last part is kept.
pub(super) async fn cut(waiting: usize) -> (String, Arc<dyn Store>, Arc<TempDir>, impl Sized) {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = World::of(agent.clone()).await;
    let session = world.empty().await;
    let (store, folder) = world.end().await;
    let builder = Session::builder(ChatPlanner::new(agent));
    let owner = builder.open(Arc::clone(&store), SessionId::from(session.as_str()), dead()).await.unwrap();
    for at in 0..=waiting {
        owner.push(format!("item {at}")).unwrap().recorded().await;
        if at == 0 {
            gate.request().in_time("the turn asks its model").await;
        }
    }
    (session, store, folder, (owner, model, gate))
}

/// S13.27, S13.5: an item whose turn was cut is at rest, and says so, once a later turn or a later owner shows that its own does not
/// continue; what waited behind it is not held up.
#[tokio::test]
async fn an_item_of_a_turn_that_was_cut_says_so() {
    for waiting in [0, 1] {
        let (session, store, folder, _owner) = cut(waiting).await;
        let world =
            World::over(says([Reply::text("Two."), Reply::text("Three.")]).build(), store, folder).await;
        let path = format!("/v1/sessions/{session}/items");
        world.client.post(&path, &json!({"text": "one more"})).await;
        let last = waiting as u64 + 2;
        assert_eq!(world.rest(&session, last).await["outcome"], "completed", "{waiting}");
        let first = world.rest(&session, 1).await;
        assert_eq!(
            (&first["outcome"], &first["state"]),
            (&json!("crashed"), &json!("rest")),
            "{waiting}: {first}"
        );
        world.end().await;
    }
}

/// S13.27: a session whose queue waits behind a turn that was cut says so, and for which turn it waits.
#[tokio::test]
async fn a_queue_behind_a_cut_turn_says_what_it_waits_for() {
    let (session, store, folder, _owner) = cut(1).await;
    let world = World::over(says([Reply::text("One."), Reply::text("Two.")]).build(), store, folder).await;
    let path = format!("/v1/sessions/{session}");
    assert_eq!(world.rest(&session, 1).await["outcome"], "crashed");
    let held = world.client.get(&path).await.body;
    assert_eq!(
        (&held["state"], &held["resumable"], &held["waiting"]),
        (&json!("crashed"), &json!("turn-1"), &json!(["item-2"])),
        "{held}"
    );
    world.client.post(&format!("{path}/resume"), &json!({})).await;
    assert_eq!(world.rest(&session, 2).await["outcome"], "completed");
    let after = world.client.get(&path).await.body;
    assert_eq!((&after["state"], &after["resumable"]), (&json!("open"), &Value::Null), "{after}");
    world.end().await;
}

/// S13.27, S13.5: a stop that was on its way when its turn was cut says that, and is not under way any more.
#[tokio::test]
async fn a_stop_of_a_turn_that_was_cut_says_so() {
    let (session, store, folder, _owner) = cut(0).await;
    let intent = StoredStop::Turn(Some(TurnId::new(1)), StopRequest::now());
    let world = World::over(says([]).build(), Arc::clone(&store), folder).await;
    let path = format!("/v1/sessions/{session}");
    assert_eq!(world.rest(&session, 1).await["outcome"], "crashed");
    let number = store_stop(&*store, &SessionId::from(session.as_str()), &intent).await.unwrap();
    let stop = world.client.get(&format!("{path}/stops/{number}")).await.body;
    assert_eq!(stop["state"], "crashed", "{stop}");
    world.end().await;
}

/// S13.39, S7.46: one whose owners died again and again is read, refuses what it is asked to do, and is taken again by a resume.
#[tokio::test]
async fn a_session_that_is_parked_is_taken_again_by_a_resume() {
    let (session, store, folder, _owner) = cut(0).await;
    let mut owners = Vec::new();
    for _ in 1..MOST_TRIES {
        let builder = Session::<String>::builder(ChatPlanner::new(says([]).build()));
        let id = SessionId::from(session.as_str());
        owners.push(builder.open(Arc::clone(&store), id, dead()).await.unwrap());
    }
    let world = World::over(says([Reply::text("Done.")]).build(), store, folder).await;
    let path = format!("/v1/sessions/{session}");
    for _ in 0..2 {
        let refused = world.client.post(&format!("{path}/items"), &json!({"text": "one more"})).await;
        assert_eq!((refused.status, &refused.body["code"]), (409, &json!("parked")), "{refused:?}");
        assert!(refused.body["detail"].as_str().unwrap().contains("/resume"), "{refused:?}");
    }
    assert_eq!(world.client.get(&path).await.body["resumable"], "turn-1");
    assert_eq!(world.client.post(&format!("{path}/resume"), &json!({})).await.status, 202);
    assert_eq!(world.rest(&session, 1).await["outcome"], "completed");
    let after = world.client.get(&path).await.body;
    assert_eq!(after["waiting"], json!([]), "what was refused is not there: {after}");
    assert_eq!(world.client.get(&format!("{path}/items/item-2")).await.status, 404);
    world.end().await;
}

/// S13.27: the same where nothing comes behind it; and a resume takes it up again.
#[tokio::test]
async fn a_turn_that_was_cut_is_resumed() {
    let (session, store, folder, _owner) = cut(0).await;
    let world = World::over(says([Reply::text("Done.")]).build(), store, folder).await;
    let of_item = format!("/v1/sessions/{session}/items/item-1?wait=rest");
    // Looked at before it is opened, it opens the session.
    let cut = world.client.get(&of_item).await.body;
    assert_eq!(cut["outcome"], "crashed", "{cut}");
    let resumed = world.client.post(&format!("/v1/sessions/{session}/resume"), &json!({})).await;
    assert!(resumed.status < 300, "{resumed:?}");
    let done = tokio::time::timeout(Duration::from_secs(30), async {
        loop {
            let item = world.client.get(&of_item).await.body;
            if item["outcome"] == "completed" {
                return item;
            }
        }
    });
    assert_eq!(done.await.unwrap()["answer"], "Done.");
    world.end().await;
}

/// S13.27: an item that was withdrawn says so to every later owner too.
#[tokio::test]
async fn an_item_that_was_withdrawn_says_so_after_a_restart() {
    let (session, store, folder, _owner) = cut(0).await;
    let world = World::over(says([]).build(), store, folder).await;
    let path = format!("/v1/sessions/{session}/items");
    world.client.get(&format!("{path}/item-1?wait=rest")).await;
    let (store, folder) = world.end().await;
    let row = store.push(&SessionId::from(session.as_str()), waiting()).await.unwrap();
    let safepoint::raw::store::Pushed::Accepted(number) = row else { panic!("{row:?}") };
    store.withdraw(&SessionId::from(session.as_str()), number).await.unwrap();
    let world = World::over(says([]).build(), store, folder).await;
    let item = world.rest(&session, number).await;
    assert_eq!(item["outcome"], "withdrawn", "{item}");
    world.end().await;
}

fn waiting() -> safepoint::raw::store::NewItem {
    safepoint::raw::encode_item(&"later".to_owned(), safepoint::session::Policy::Enqueue, None, 10).unwrap()
}

/// The whole of a stream: its bytes until its end.
async fn whole(client: &Client, path: &str) -> String {
    let mut stream = client.sent("GET", path, &[("a2a-version", "1.0")], None).await;
    let mut text = String::new();
    stream.read_to_string(&mut text).in_time("the end of the stream").await.unwrap();
    text
}

/// S13.33: a stream of an item whose turn was cut ends as soon as that is known, and not with a later sign of life.
#[tokio::test]
async fn the_streams_of_a_cut_item_end_once_that_is_known() {
    let (session, store, folder, _owner) = cut(0).await;
    let surfaces = [Surface::Responses, Surface::A2a];
    let world = World::offered(says([]).build(), store, folder, &surfaces).await;
    let paths = [
        format!("/v1/sessions/{session}/events?item=item-1"),
        format!("/openai/v1/responses/resp_{session}_1?stream=true"),
        format!("/a2a/helper/tasks/{session}.1:subscribe"),
    ];
    let ends = ["\"outcome\":\"crashed\"", "event: response.failed", "TASK_STATE_FAILED"];
    let read = join_all(paths.iter().map(|path| whole(&world.client, path))).await;
    for (text, end) in read.iter().zip(ends) {
        assert!(text.contains(end), "{end}: {text}");
        assert!(!text.contains(": keep-alive"), "{end}: {text}");
    }
    world.end().await;
}

/// S13.33, S13.7: a stream that was there before the session had its next owner has what that does, as it happens.
#[tokio::test]
async fn a_stream_from_before_the_next_owner_has_what_happens() {
    let (session, store, folder, _owner) = cut(0).await;
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = World::over(agent, store, folder).await;
    let path = format!("/v1/sessions/{session}/events?item=item-1");
    let mut stream = world.client.stream("GET", &path, &[], None).await;
    stream.until("model_started").await;
    super::resumed::resumed(&world, &session).await;
    assert_eq!(stream.until("run_started").await.data["attempt"], 2);
    gate.request().in_time("the request of the resumed turn").await;
    gate.headers();
    gate.script(&Reply::text("Done."));
    while !gate.send_next_until(b"Done.") {}
    assert_eq!(stream.until("text_delta").await.data["text"], "Done.");
    gate.finish();
    assert_eq!(stream.until("item").await.data["outcome"], "completed");
    world.end().await;
}

/// S13.34, S13.31: a response whose turn was cut and runs again is cancelled by one stop of that turn.
#[tokio::test]
async fn a_response_of_a_cut_turn_that_runs_again_is_cancelled() {
    let (session, store, folder, _owner) = cut(0).await;
    let (_model, agent) = gated().await;
    let world = World::over(agent, store, folder).await;
    assert_eq!(world.rest(&session, 1).await["outcome"], "crashed");
    let path = format!("/openai/v1/responses/resp_{session}_1");
    assert_eq!(world.client.get(&path).await.body["status"], "failed");
    super::resumed::resumed(&world, &session).await;
    // At once: that it runs again may not be recorded yet.
    let cancelled = world.client.post(&format!("{path}/cancel"), &json!({})).await;
    assert_eq!((cancelled.status, &cancelled.body["status"]), (200, &json!("cancelled")), "{cancelled:?}");
    let stop =
        async |number: u64| world.client.get(&format!("/v1/sessions/{session}/stops/{number}")).await.status;
    assert_eq!((stop(1).await, stop(2).await), (200, 404));
    world.end().await;
}

/// An agent whose model never answers.
async fn gated() -> (impl Sized, safepoint::Agent) {
    let (model, agent) = served([]).await;
    let gate = model.gate();
    ((model, gate), agent)
}

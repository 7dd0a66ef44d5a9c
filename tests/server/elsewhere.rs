//! Several servers on one store: stops of items that another process has, or had, and who opens what is due.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use safepoint::{
    approval::ApprovalMode,
    ids::SessionId,
    raw::{
        encode_item,
        store::{Durability, Environment, NewItem, NewSession, Rest, Write},
    },
    session::Policy,
    store::{MemoryStore, NewNode, OwnerProcess, Store},
};
use safepoint_models::openai;
use safepoint_server::Host;
use safepoint_testkit::{
    fault_store::{FaultStore, OperationFault},
    script::{Reply, Script},
    scripted::ScriptedModel,
    server::ModelServer,
    tool_gate::ToolGate,
    tools::GateTools,
    wait::{self, InTime as _},
};
use serde_json::json;

use super::{
    crashed::cut,
    world::{World, of, says},
};

/// S13.6, S6.20: an item that steers a turn of another process is stopped with that turn, and what waits behind runs where the
/// request says so.
#[tokio::test]
async fn an_item_that_steers_a_turn_of_another_process_is_stopped() {
    let tools = GateTools::new();
    let model = ModelServer::start(Script::of([])).await.unwrap();
    let (mut one, mut two, mut three) = (model.gate(), model.gate(), model.gate());
    let agent = safepoint::Agent::builder(openai::model("m").base_url(model.url()))
        .approvals(ApprovalMode::Auto)
        .tool(tools.gated("pay"))
        .build();
    let here = World::of(agent.clone()).await;
    let session = here.session("first").await;
    one.request().await;
    one.headers();
    one.script(&Reply::call("pay", json!({})));
    one.finish();
    tools.gate().came(1).in_time("the call").await;
    let items = format!("/v1/sessions/{session}/items");
    for (text, policy) in [("to the left", "steer"), ("behind", "enqueue")] {
        let pushed = here.client.post(&items, &json!({"text": text, "policy": policy})).await;
        assert_eq!(pushed.status, 202, "{pushed:?}");
    }
    tools.gate().open_for_all();
    two.request().in_time("the request with the steer").await;
    let there = World::over(agent, Arc::clone(&here.store), Arc::new(tempfile::tempdir().unwrap())).await;
    let stop = format!("/v1/sessions/{session}/stop?wait=quiet");
    let of = json!({"what": {"item": "item-2"}, "mode": "now", "queue": "continues"});
    let stopped = there.client.post(&stop, &of).await;
    assert_eq!(
        (stopped.status, &stopped.body["turn"], &stopped.body["state"], &stopped.body["recorded"]),
        (200, &json!("turn-1"), &json!("quiet"), &json!(true)),
        "{stopped:?}"
    );
    three.request().in_time("what waits behind it is asked").await;
    three.headers();
    three.script(&Reply::text("here"));
    three.finish();
    assert_eq!(here.rest(&session, 3).await["outcome"], "completed");
    let again = there.client.post(&stop, &of).await;
    assert_eq!((again.status, again.code()), (409, "too_late"), "{again:?}");
    there.end().await;
    here.end().await;
}

/// S13.6, S6.20: an item that waits for another process is withdrawn, and one that there never was is not found.
#[tokio::test]
async fn an_item_that_waits_for_another_process_is_withdrawn() {
    let model = ModelServer::start(Script::of([])).await.unwrap();
    let mut gate = model.gate();
    let agent = safepoint::Agent::builder(openai::model("m").base_url(model.url())).build();
    let here = World::of(agent.clone()).await;
    let session = here.session("first").await;
    gate.request().await;
    let waits = here.client.post(&format!("/v1/sessions/{session}/items"), &json!({"text": "later"})).await;
    assert_eq!(waits.status, 202, "{waits:?}");
    let there = World::over(agent, Arc::clone(&here.store), Arc::new(tempfile::tempdir().unwrap())).await;
    let stop = format!("/v1/sessions/{session}/stop");
    let withdrawn = there.client.post(&stop, &json!({"what": {"item": "item-2"}, "mode": "now"})).await;
    assert_eq!((withdrawn.status, &withdrawn.body["withdrawn"]), (200, &json!("item-2")), "{withdrawn:?}");
    assert_eq!(here.rest(&session, 2).await["outcome"], "withdrawn");
    let none = there.client.post(&stop, &json!({"what": {"item": "item-9"}, "mode": "now"})).await;
    assert_eq!((none.status, none.code()), (404, "no_such_item"), "{none:?}");
    there.end().await;
    here.end().await;
}

/// S13.29: an item of another process is answered by its own stream as one that is here.
#[tokio::test]
async fn an_item_of_another_process_is_answered_by_its_stream() {
    let model = ModelServer::start(Script::of([Reply::text("One."), Reply::text("Two.")])).await.unwrap();
    let agent = safepoint::Agent::builder(openai::model("m").base_url(model.url())).build();
    let here = World::of(agent.clone()).await;
    let session = here.session("first").await;
    assert_eq!(here.rest(&session, 1).await["outcome"], "completed");
    let there = World::over(agent, Arc::clone(&here.store), Arc::new(tempfile::tempdir().unwrap())).await;
    let (path, head) = (format!("/v1/sessions/{session}/items"), [("accept", "text/event-stream")]);
    let mut stream = there.client.stream("POST", &path, &head, Some(&json!({"text": "second"}))).await;
    let read = stream.rest().in_time("the end of the stream").await;
    let turns = read.iter().filter(|sent| sent.event == "turn_started");
    assert_eq!(turns.map(|sent| &sent.data["turn"]).collect::<Vec<_>>(), [&json!(2)], "{read:?}");
    assert_eq!(read.last().unwrap().event, "end", "{read:?}");
    assert_eq!(here.rest(&session, 2).await["outcome"], "completed");
    there.end().await;
    here.end().await;
}

/// S13.6, S6.20: the stop of an item whose turn was cut is stored, so that no owner takes that turn up by itself, and its answer waits
/// for no end.
#[tokio::test]
async fn the_stop_of_an_item_that_was_cut_is_stored() {
    let (session, store, folder, _owner) = cut(0).await;
    let world = World::over(says([]).build(), store, folder).await;
    let stop = format!("/v1/sessions/{session}/stop?wait=settled");
    let stopped = world.client.post(&stop, &json!({"what": {"item": "item-1"}, "mode": "now"})).await;
    assert_eq!(
        (stopped.status, &stopped.body["state"], &stopped.body["recorded"]),
        (200, &json!("crashed"), &json!(true)),
        "{stopped:?}"
    );
    assert_eq!(world.rest(&session, 1).await["outcome"], "crashed");
    world.end().await;
}

/// How many sessions are due that are none of a server's: more than it is named at a time.
const OTHERS: usize = 200;

/// An item that another process puts into the store.
fn waits() -> NewItem {
    encode_item(&"go".to_owned(), Policy::Enqueue, None, 10).unwrap()
}

/// A server with one agent of this name, which says always the same.
async fn serving(agent: &str, store: &Arc<dyn Store>) -> World {
    let script = Script { repeat: true, ..Script::of([Reply::text("Done.")]) };
    let host = Host::builder(Arc::clone(store)).agent(agent, of(ScriptedModel::new(script)).build());
    World::of_host(host.start().await.unwrap(), Arc::clone(store)).await
}

/// Sessions of this agent with an item that no server knows of.
async fn due(agent: &str, many: usize, store: &Arc<dyn Store>) -> Vec<String> {
    let world = serving(agent, store).await;
    let mut made = Vec::new();
    for _ in 0..many {
        made.push(world.empty().await);
    }
    world.end().await;
    for session in &made {
        store.push(&SessionId::from(session.as_str()), waits()).await.unwrap();
    }
    made
}

/// Waits until the server has done their items, which it is not asked for.
async fn done(world: &World, sessions: &[String]) {
    for session in sessions {
        let item = format!("/v1/sessions/{session}/items/item-1");
        wait::asked("the end of an item", async || {
            world.client.get(&item).await.body["outcome"] == "completed"
        })
        .await;
    }
}

/// S13.55: a server keeps what is due for another's agent from no server. The time of this store stands still: what it names once it never
/// names again.
#[tokio::test]
async fn a_server_keeps_no_session_from_the_one_that_has_its_agent() {
    let store = names_once();
    let (others, own) = (due("two", 20, &store).await, due("one", 20, &store).await);
    let one = serving("one", &store).await;
    done(&one, &own).await;
    let two = serving("two", &store).await;
    done(&two, &others).await;
    one.end().await;
    two.end().await;
}

/// A store that names once what is due, and then only what was taken since: its time stands still.
fn names_once() -> Arc<dyn Store> {
    let now = Timestamp::now();
    Arc::new(MemoryStore::new(Environment { clock: Arc::new(move || now), ..Environment::default() }))
}

/// A server that closes its sessions as soon as they are at rest, over this store.
async fn closing(store: &Arc<dyn Store>) -> World {
    let script = Script { repeat: true, ..Script::of([Reply::text("Done.")]) };
    let host = Host::builder(Arc::clone(store)).agent("one", of(ScriptedModel::new(script)).build());
    World::of_host(host.unload(Duration::ZERO).start().await.unwrap(), Arc::clone(store)).await
}

async fn is_done(world: &World, session: &str, item: u64) {
    let path = format!("/v1/sessions/{session}/items/item-{item}");
    wait::asked("the end of an item", async || world.client.get(&path).await.body["outcome"] == "completed")
        .await;
}

async fn is_closed(world: &World, session: &str) {
    let path = format!("/v1/sessions/{session}");
    wait::asked("the end of a session", async || world.client.get(&path).await.body["open"] == "no").await;
}

/// S13.56, S7.47: what another process gives to a session begins also where this server has just had that.
#[tokio::test]
async fn what_is_given_to_a_session_that_was_just_closed_begins() {
    let store = names_once();
    let session = due("one", 1, &store).await.remove(0);
    let world = closing(&store).await;
    for item in 1..4 {
        is_done(&world, &session, item).await;
        is_closed(&world, &session).await;
        store.push(&SessionId::from(session.as_str()), waits()).await.unwrap();
    }
    is_done(&world, &session, 4).await;
    world.end().await;
}

/// Waits until the server has looked some times for what is due.
async fn looked(store: &FaultStore) {
    // A look asks once, and once more for what it finds; a beat of the node may be among these.
    let enough = store.asked() + 6;
    wait::so("the server has looked", || store.asked() >= enough).await;
}

/// S13.56: what comes as a session ends is for the next one, which begins once it has ended.
#[tokio::test]
async fn what_comes_as_a_session_ends_begins() {
    let kept = names_once();
    let id = due("one", 1, &kept).await.remove(0);
    let released = ToolGate::shut();
    let faulty = Arc::new(FaultStore::unarmed(Arc::clone(&kept), OperationFault::Late(released.clone())));
    faulty.arm_named("release", 0);
    let store: Arc<dyn Store> = Arc::clone(&faulty) as _;
    let world = closing(&store).await;
    released.came(1).in_time("the session is given back").await;
    kept.push(&SessionId::from(id.as_str()), waits()).await.unwrap();
    looked(&faulty).await;
    released.open_for_all();
    is_done(&world, &id, 2).await;
    world.end().await;
}

/// S13.56: a session that cannot be opened is not tried again with each look.
#[tokio::test]
async fn a_session_that_cannot_be_opened_is_not_tried_at_each_look() {
    let kept = names_once();
    let id = due("one", 1, &kept).await.remove(0);
    let world = closing(&kept).await;
    is_done(&world, &id, 1).await;
    is_closed(&world, &id).await;
    world.end().await;
    let id = SessionId::from(id.as_str());
    // Another conversation than the one that it has begun with.
    let setup = json!({"agent": "one", "principal": "ci", "earlier": [{"role": "user", "text": "before"}]});
    let node = kept.join(NewNode::of(OwnerProcess::here(), Duration::from_secs(10))).await.unwrap();
    let lease = kept.acquire(&id, &node).await.unwrap();
    kept.append(&lease, vec![Write::Setup(setup.to_string())], Durability::Recorded).await.unwrap();
    kept.release(&lease, kept.notice(&id).await.unwrap(), Rest::Nothing).await.unwrap();
    kept.push(&id, waits()).await.unwrap();
    let before = kept.tenures(&id).await.unwrap().len();
    let faulty = Arc::new(FaultStore::unarmed(Arc::clone(&kept), OperationFault::Refused));
    let world = closing(&(Arc::clone(&faulty) as Arc<dyn Store>)).await;
    wait::asked("it is tried", async || kept.tenures(&id).await.unwrap().len() > before).await;
    looked(&faulty).await;
    looked(&faulty).await;
    assert_eq!(kept.tenures(&id).await.unwrap().len(), before + 1);
    world.end().await;
}

/// S13.55: what is due for none of its agents keeps a server from none of its sessions, however much that is and however often it is named.
#[tokio::test]
async fn what_others_leave_hides_no_session_of_a_server() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    for number in 0..OTHERS {
        // They waited for longer, and come first.
        store
            .create(NewSession { items: vec![waits()], ..NewSession::of(format!("other {number}")) })
            .await
            .unwrap();
    }
    let own = due("one", 2, &store).await;
    let world = serving("one", &store).await;
    done(&world, &own).await;
    world.end().await;
}

//! Items: acknowledged once they are recorded, one for each key, steered, withdrawn and refused.

use futures_util::future::join_all;
use safepoint_testkit::{script::Reply, wait::InTime as _};
use serde_json::{Value, json};

use super::world::{World, says, served};

async fn keyed(world: &World, session: &str, key: &str, text: &str) -> super::client::Reply {
    let path = format!("/v1/sessions/{session}/items");
    let body = json!({"text": text});
    world.client.send("POST", &path, &[("idempotency-key", key)], Some(&body)).await
}

/// S13.4: the same key and content is the same item: at the same time, later, and with the next owner; other content is refused.
#[tokio::test]
async fn one_key_is_one_item() {
    let (model, agent) = served([Reply::text("One.")]).await;
    let world = World::of(agent.clone()).await;
    let session = world.empty().await;
    let all = join_all((0..50).map(|_| keyed(&world, &session, "k", "first"))).await;
    let ids: Vec<&Value> = all.iter().map(|reply| &reply.body["id"]).collect();
    assert!(ids.iter().all(|id| *id == "item-1"), "{ids:?}");
    let new = all.iter().filter(|reply| reply.status == 202).count();
    assert_eq!(new, 1, "one of them is the first");
    assert!(
        all.iter()
            .filter(|reply| reply.status == 200)
            .all(|again| again.head.contains("idempotency-replayed: true"))
    );
    world.rest(&session, 1).await;
    assert_eq!(model.requests().len(), 1, "one run");
    let other = keyed(&world, &session, "k", "second").await;
    assert_eq!((other.status, other.code()), (409, "other_content"));
    let (store, folder) = world.end().await;
    let world = World::over(agent, store, folder).await;
    let again = keyed(&world, &session, "k", "first").await;
    assert_eq!(
        (again.status, &again.body["id"], &again.body["outcome"]),
        (200, &json!("item-1"), &json!("completed"))
    );
    let other = keyed(&world, &session, "k", "second").await;
    assert_eq!((other.status, other.code()), (409, "other_content"));
    world.end().await;
}

/// S13.4, S13.50: a session has its key too, with its first item. Once it is removed the key makes it anew.
#[tokio::test]
async fn one_key_is_one_session() {
    let world = World::of(says(["One.", "Anew."].map(Reply::text)).build()).await;
    let body = json!({"agent": "helper", "item": {"text": "first"}});
    let key = [("idempotency-key", "trip")];
    let made = world.client.send("POST", "/v1/sessions", &key, Some(&body)).await;
    let again = world.client.send("POST", "/v1/sessions", &key, Some(&body)).await;
    assert_eq!((made.status, again.status, &made.body["id"]), (201, 200, &again.body["id"]));
    let other = json!({"agent": "helper", "item": {"text": "second"}});
    let refused = world.client.send("POST", "/v1/sessions", &key, Some(&other)).await;
    assert_eq!((refused.status, refused.code()), (409, "other_content"));
    let session = made.body["id"].as_str().unwrap();
    assert_eq!(world.rest(session, 1).await["answer"], "One.");
    let removed = world.client.send("DELETE", &format!("/v1/sessions/{session}"), &[], None).await;
    assert_eq!(removed.status, 200, "{removed:?}");
    let anew = world.client.send("POST", "/v1/sessions", &key, Some(&body)).await;
    assert_eq!((anew.status, &anew.body["id"]), (201, &made.body["id"]), "{anew:?}");
    assert_eq!(world.rest(session, 1).await["answer"], "Anew.");
    world.end().await;
}

/// S13.4: what cannot be an item is refused, and says why by a code.
#[tokio::test]
async fn what_is_no_item_is_refused_by_a_code() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = World::of(agent).await;
    let session = world.session("go").await;
    drop(gate.request().await);
    let path = format!("/v1/sessions/{session}/items");
    for (body, status, code) in [
        (json!({"text": "  "}), 400, "blank"),
        (json!({"text": "x", "polcy": "steer"}), 400, "unknown_field"),
        (json!({"text": "x", "policy": "reject"}), 409, "turn_active"),
        (json!({"text": "x", "policy": "steer", "turn": "turn-9"}), 409, "turn_mismatch"),
        (json!({"text": "x", "policy": "preempt", "turn": "turn-9"}), 409, "turn_mismatch"),
        (json!({"text": "x", "within_ms": 5}), 400, "bad_request"),
        (json!({"text": 7}), 400, "bad_request"),
    ] {
        let refused = world.client.post(&path, &body).await;
        assert_eq!((refused.status, refused.code()), (status, code), "{body}: {refused:?}");
        assert!(refused.head.contains("application/problem+json"), "{}", refused.head);
    }
    let none = world.client.get(&format!("{path}/item-77")).await;
    assert_eq!((none.status, none.code()), (404, "no_such_item"));
    world.end().await;
}

/// S13.1, S13.4: an item that waits is withdrawn, and one that a turn has is not.
#[tokio::test]
async fn an_item_that_waits_is_withdrawn() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = World::of(agent).await;
    let session = world.session("go").await;
    drop(gate.request().await);
    let path = format!("/v1/sessions/{session}/items");
    let waits = world.client.post(&path, &json!({"text": "later"})).await;
    assert_eq!(waits.status, 202);
    let shown = world.client.get(&format!("/v1/sessions/{session}")).await.body;
    assert_eq!((&shown["state"], &shown["waiting"]), (&json!("running"), &json!(["item-2"])));
    let back = world.client.send("DELETE", &format!("{path}/item-2"), &[], None).await;
    assert_eq!((back.status, &back.body["outcome"]), (200, &json!("withdrawn")), "{back:?}");
    let taken = world.client.send("DELETE", &format!("{path}/item-1"), &[], None).await;
    assert_eq!((taken.status, taken.code()), (409, "taken"));
    world.end().await;
}

/// S13.6, S6.19: an item is stopped by its name alone, waiting or in a turn; a second stop gets the same answer or says that it is over,
/// and the item behind it runs.
#[tokio::test]
async fn the_item_behind_a_stopped_one_runs() {
    let (model, agent) = served([]).await;
    let (mut one, mut two) = (model.gate(), model.gate());
    let world = World::of(agent).await;
    let session = world.session("first").await;
    one.request().await;
    let (items, stop) =
        (format!("/v1/sessions/{session}/items"), format!("/v1/sessions/{session}/stop?wait=quiet"));
    for text in ["second", "third"] {
        assert_eq!(world.client.post(&items, &json!({"text": text})).await.status, 202);
    }
    let of = |item: &str| json!({"what": {"item": item}, "mode": "now", "queue": "continues"});
    let withdrawn = world.client.post(&stop, &of("item-2")).await;
    assert_eq!((withdrawn.status, &withdrawn.body["withdrawn"]), (200, &json!("item-2")), "{withdrawn:?}");
    let stopped = world.client.post(&stop, &of("item-1")).await;
    assert_eq!(
        (stopped.status, &stopped.body["turn"], &stopped.body["state"]),
        (200, &json!("turn-1"), &json!("quiet")),
        "{stopped:?}"
    );
    for (item, outcome) in [("item-1", "interrupted"), ("item-2", "withdrawn")] {
        let again = world.client.post(&stop, &of(item)).await;
        assert_eq!((again.status, again.code(), &again.body["outcome"]), (409, "too_late", &json!(outcome)));
    }
    two.request().in_time("the item behind it is asked").await;
    two.headers();
    two.script(&Reply::text("here"));
    two.finish();
    assert_eq!(world.rest(&session, 3).await["outcome"], "completed");
    let none = world.client.post(&stop, &of("item-9")).await;
    assert_eq!((none.status, none.code()), (404, "no_such_item"), "{none:?}");
    world.end().await;
}

/// S13.29: an item that is sent again to be read is read from its own turn on.
#[tokio::test]
async fn an_item_that_is_sent_again_is_read_from_its_turn_on() {
    let world = World::of(says(["One.", "Two."].map(Reply::text)).build()).await;
    let session = world.session("first").await;
    world.rest(&session, 1).await;
    let path = format!("/v1/sessions/{session}/items");
    let head = [("accept", "text/event-stream"), ("idempotency-key", "k2")];
    let mut all = Vec::new();
    for _ in 0..2 {
        let read =
            world.client.stream("POST", &path, &head, Some(&json!({"text": "second"}))).await.rest().await;
        let turns = read.iter().filter(|sent| sent.event == "turn_started");
        assert_eq!(turns.map(|sent| &sent.data["turn"]).collect::<Vec<_>>(), [&json!(2)], "{read:?}");
        assert_eq!(read.last().unwrap().event, "end");
        all.push(read.into_iter().filter(|sent| sent.id.is_some()).collect::<Vec<_>>());
    }
    assert!(
        all[1].starts_with(&all[0]),
        "the same records, and what came behind the end of the item: {all:?}"
    );
    world.end().await;
}

/// S13.35: the stream of an item that is sent again late ends with the turn of that item, also at the session's next owner; so does a
/// stream of the item that begins with the session.
#[tokio::test]
async fn a_late_resend_streams_no_later_turn() {
    let world = World::of(says(["One.", "Two."].map(Reply::text)).build()).await;
    let session = world.empty().await;
    let path = format!("/v1/sessions/{session}/items");
    let of_first = format!("/v1/sessions/{session}/events?item=item-1");
    let head = [("accept", "text/event-stream"), ("idempotency-key", "k1")];
    let first = Some(json!({"text": "first"}));
    for item in 1..=2 {
        drop(world.client.stream("POST", &path, &head[..item % 2 + 1], first.as_ref()).await.rest().await);
        assert_eq!(world.rest(&session, item as u64).await["outcome"], "completed");
    }
    let only_first = async |world: &World| {
        for (method, path, body) in [("POST", &path, first.as_ref()), ("GET", &of_first, None)] {
            let read = world.client.stream(method, path, &head, body).await.rest().await;
            let ended = read.iter().filter(|sent| ["turn_started", "turn_ended"].contains(&&*sent.event));
            assert_eq!(
                ended.map(|sent| &sent.data["turn"]).collect::<Vec<_>>(),
                [1, 1],
                "{method}: {read:?}"
            );
            let last: Vec<_> = read.iter().rev().take(2).map(|sent| sent.event.as_str()).collect();
            assert_eq!(last, ["end", "item"], "{method}: {read:?}");
        }
    };
    only_first(&world).await;
    let (store, folder) = world.end().await;
    let world = World::over(says([]).build(), store, folder).await;
    only_first(&world).await;
    world.end().await;
}

/// S13.35: a stream of an item that waits has nothing of the turn before it, whether the item was sent, sent again or is looked at; it
/// names its item before that has a turn.
#[tokio::test]
async fn a_stream_of_an_item_that_waits_has_its_own_turn_alone() {
    let (model, agent) = served([Reply::text("Two.")]).await;
    let mut gate = model.gate();
    let world = World::of(agent).await;
    let session = world.session("first").await;
    gate.request().await;
    let path = format!("/v1/sessions/{session}/items");
    let of_second = format!("/v1/sessions/{session}/events?item=item-2");
    let head = [("accept", "text/event-stream"), ("idempotency-key", "k2")];
    let second = Some(json!({"text": "second"}));
    let mut streams = Vec::new();
    for (method, path, body) in
        [("POST", &path, &second), ("POST", &path, &second), ("GET", &of_second, &None)]
    {
        let mut stream = world.client.stream(method, path, &head, body.as_ref()).await;
        stream.until("session").await;
        if method == "POST" {
            let item = stream.until("item").await.data;
            assert_eq!(
                (&item["id"], &item["state"], &item["turn"]),
                (&json!("item-2"), &json!("accepted"), &Value::Null)
            );
        }
        streams.push(stream);
    }
    gate.headers();
    gate.script(&Reply::text("One."));
    gate.finish();
    for mut stream in streams {
        let all = stream.rest().await;
        let turns: Vec<_> =
            all.iter().map(|sent| &sent.data["turn"]).filter(|turn| turn.is_number()).collect();
        assert!(!turns.is_empty() && turns.iter().all(|turn| **turn == 2), "{all:?}");
        assert!(all.iter().all(|sent| sent.event != "item" || sent.data["id"] == "item-2"), "{all:?}");
        let last: Vec<_> = all.iter().rev().take(2).map(|sent| sent.event.as_str()).collect();
        assert_eq!(last, ["end", "item"], "{all:?}");
        assert_eq!(all[all.len() - 2].data["answer"], "Two.");
    }
    world.end().await;
}

/// S13.35: an item that steers has the turn that it steers from there on.
#[tokio::test]
async fn a_stream_of_an_item_that_steers_has_the_rest_of_that_turn() {
    let (model, agent) = served([]).await;
    let (mut one, mut two) = (model.gate(), model.gate());
    let world = World::of(agent).await;
    let session = world.session("first").await;
    one.request().await;
    let path = format!("/v1/sessions/{session}/items");
    let steer = json!({"text": "to the left", "policy": "steer"});
    let mut stream =
        world.client.stream("POST", &path, &[("accept", "text/event-stream")], Some(&steer)).await;
    assert_eq!(stream.until("item").await.data["state"], "accepted");
    one.headers();
    one.script(&Reply::text("One."));
    one.finish();
    two.request().in_time("the request with the steer").await;
    let steered = stream.until("item").await.data;
    assert_eq!((&steered["state"], &steered["turn"]), (&json!("running"), &json!("turn-1")), "{steered}");
    two.headers();
    two.script(&Reply::text("Left."));
    two.finish();
    let all = stream.rest().await;
    assert!(all.iter().any(|sent| sent.event == "text_delta" && sent.data["turn"] == 1), "{all:?}");
    assert_eq!(all[all.len() - 2].data["outcome"], "completed", "{all:?}");
    world.end().await;
}

/// S13.50: a session at rest is removed though the server has it open; one of which a turn runs, or for which an item waits, is not, and
/// works as before.
#[tokio::test]
async fn a_session_at_rest_is_removed_while_it_is_open() {
    let (model, agent) = served(["Two.", "Three."].map(Reply::text)).await;
    let mut gate = model.gate();
    let world = World::of(agent).await;
    let session = world.session("first").await;
    gate.request().await;
    let path = format!("/v1/sessions/{session}");
    let remove = async || world.client.send("DELETE", &path, &[], None).await;
    let refused = remove().await;
    assert_eq!((refused.status, refused.code()), (409, "session_open"), "a turn runs: {refused:?}");
    assert_eq!(world.client.post(&format!("{path}/items"), &json!({"text": "second"})).await.status, 202);
    let stop = json!({"what": {"item": "item-1"}, "mode": "now"});
    assert_eq!(world.client.post(&format!("{path}/stop?wait=quiet"), &stop).await.status, 200);
    let refused = remove().await;
    assert_eq!((refused.status, refused.code()), (409, "session_open"), "an item waits: {refused:?}");
    assert_eq!(world.client.post(&format!("{path}/items"), &json!({"text": "third"})).await.status, 202);
    assert_eq!(world.rest(&session, 2).await["outcome"], "completed");
    let mut reads = world.client.events(&session, "").await;
    assert_eq!(world.rest(&session, 3).await["outcome"], "completed");
    assert_eq!(world.client.get(&path).await.body["open"], "here");
    let removed = remove().await;
    assert_eq!(removed.status, 200, "{removed:?}");
    assert_eq!(world.client.get(&path).await.status, 404);
    assert_eq!(reads.rest().await.last().unwrap().event, "bye", "its readers learn it");
    assert_eq!(remove().await.status, 404);
    world.end().await;
}

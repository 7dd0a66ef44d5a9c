//! Events as a stream: ids, readers that come back, readers that are slow, and what ends a stream.

use std::{collections::BTreeSet, time::Duration};

use safepoint_testkit::{script::Reply, wait::InTime as _};
use serde_json::{Value, json};
use tokio::{io::AsyncReadExt as _, net::TcpStream};

use super::{
    client::{Sent, Stream},
    world::{World, says, served},
};

fn recorded(events: &[Sent]) -> Vec<(String, Value)> {
    events.iter().filter_map(|sent| Some((sent.id.clone()?, sent.data.clone()))).collect()
}

/// The recorded events up to the end of this turn, with what says that nothing of it is alive: either may be first.
async fn until_quiet(stream: &mut Stream, turn: u64) -> Vec<(String, Value)> {
    let (mut all, mut left) = (Vec::new(), BTreeSet::from(["turn_ended", "turn_quiet"]));
    while !left.is_empty() {
        let sent = stream.next().await.expect("more events");
        if sent.data["turn"] == turn {
            left.remove(sent.event.as_str());
        }
        all.push(sent);
    }
    recorded(&all)
}

/// S13.7, S13.2: one request, one turn: the stream of an item begins before it and ends with its answer.
#[tokio::test]
async fn an_item_may_be_answered_by_its_own_stream() {
    let world = World::of(says([Reply::text("Lisbon.")]).build()).await;
    let session = world.empty().await;
    let path = format!("/v1/sessions/{session}/items");
    let body = json!({"text": "What is the capital of Portugal?"});
    let mut stream =
        world.client.stream("POST", &path, &[("accept", "text/event-stream")], Some(&body)).await;
    assert!(stream.head.to_ascii_lowercase().contains("text/event-stream"), "{}", stream.head);
    let events = stream.rest().await;
    let names: Vec<&str> = events.iter().map(|sent| sent.event.as_str()).collect();
    assert_eq!(names.first(), Some(&"session"), "{names:?}");
    assert_eq!(names[names.len() - 2..], ["item", "end"], "{names:?}");
    assert!(names.contains(&"text_delta") && names.contains(&"turn_started"), "{names:?}");
    assert_eq!(events[events.len() - 2].data["answer"], "Lisbon.");
    world.end().await;
}

/// S13.7: the ids of a live stream are those of the record, in a store that has other sessions too.
#[tokio::test]
async fn a_live_stream_has_the_ids_of_the_record() {
    let (_model, agent) = served([Reply::text("One."), Reply::text("Two."), Reply::text("Three.")]).await;
    let world = World::of(agent).await;
    for text in ["first", "second", "third"] {
        let session = world.empty().await;
        let mut live = world.client.events(&session, "").await;
        world.client.post(&format!("/v1/sessions/{session}/items"), &json!({"text": text})).await;
        let seen = until_quiet(&mut live, 1).await;
        let kept =
            world.client.get(&format!("/v1/sessions/{session}/timeline?limit=500")).await.body.to_string();
        for (id, _) in &seen {
            assert!(kept.contains(&format!("\"id\":\"{id}\"")), "{text}: {id} is not in {kept}");
        }
        let again = world.client.events(&session, &seen[0].0).await.next().await.unwrap();
        assert_ne!(again.event, "reset", "{text}: {again:?}");
    }
    world.end().await;
}

/// S13.7: only what is recorded has an id, and a reader that comes back with any of them gets what was recorded behind it: once,
/// in order, and the same as before; also from the next owner of the session.
#[tokio::test]
async fn a_reader_that_comes_back_at_any_id_gets_each_record_once() {
    let (model, agent) = served([Reply::text("One."), Reply::text("Two.")]).await;
    let world = World::of(agent.clone()).await;
    let session = world.empty().await;
    let mut live = world.client.events(&session, "").await;
    for (turn, text) in [(1, "first"), (2, "second")] {
        world.client.post(&format!("/v1/sessions/{session}/items"), &json!({"text": text})).await;
        world.rest(&session, turn).await;
    }
    let mut seen = until_quiet(&mut live, 1).await;
    seen.extend(until_quiet(&mut live, 2).await);
    let ids: BTreeSet<&String> = seen.iter().map(|(id, _)| id).collect();
    assert_eq!(ids.len(), seen.len(), "an id names one event");
    let without = ["text_delta", "session", "item", "session_stop_requested"];
    assert!(seen.iter().all(|(_, data)| !without.contains(&data["type"].as_str().unwrap())), "{seen:#?}");
    let store = world.end().await;
    let world = World::over(agent, store.0, store.1).await;
    let mut comes_back = Vec::new();
    for (at, (id, _)) in seen.iter().enumerate() {
        let mut stream = world.client.events(&session, id).await;
        let mut after = Vec::new();
        while after.len() < seen.len() - at - 1 {
            after.extend(recorded(&[stream.next().in_time("what came after").await.unwrap()]));
        }
        comes_back.push((at, after));
    }
    for (at, after) in comes_back {
        let is_same = |((id, data), (known, said)): (&(String, Value), &(String, Value))| {
            id == known && data["type"] == said["type"] && data["position"] == said["position"]
        };
        assert!(after.iter().zip(&seen[at + 1..]).all(is_same), "behind {}: {after:#?}", seen[at].0);
    }
    let mut third = world.client.events(&session, &seen.last().unwrap().0).await;
    world.client.post(&format!("/v1/sessions/{session}/items"), &json!({"text": "third"})).await;
    let next = until_quiet(&mut third, 3).await;
    assert_eq!(next[0].1["type"], "turn_started");
    assert!(next[0].0.split('.').next() > seen[0].0.split('.').next(), "the next owner: {}", next[0].0);
    drop(model);
    world.end().await;
}

/// S13.7: an id that names no record of the session, or that of another owner, is a reset, with the place at which a reader continues.
#[tokio::test]
async fn an_id_that_names_no_record_is_a_reset() {
    let world = World::of(says([Reply::text("One.")]).build()).await;
    let session = world.session("first").await;
    world.rest(&session, 1).await;
    for id in ["7.1", "1.9999", "nonsense", "1."] {
        let mut stream = world.client.events(&session, id).await;
        let shown = stream.until("session").await;
        let reset = stream.next().await.unwrap();
        assert_eq!((reset.event.as_str(), &reset.data["cursor"]), ("reset", &shown.data["cursor"]), "{id}");
    }
    world.end().await;
}

/// S11.15, S13.35: the planning of a turn names it, and is in no stream of an item that another turn has.
#[tokio::test]
async fn a_planning_names_its_turn() {
    let (model, agent) = served(["Two.", "Three."].map(Reply::text)).await;
    let mut gate = model.gate();
    let world = World::of(agent).await;
    let session = world.session("first").await;
    gate.request().await;
    let mut events = world.client.events(&session, "").await;
    events.until("model_started").await;
    let path = format!("/v1/sessions/{session}/items");
    world.client.post(&path, &json!({"text": "second"})).await;
    let head = [("accept", "text/event-stream")];
    let mut of_third = world.client.stream("POST", &path, &head, Some(&json!({"text": "third"}))).await;
    gate.headers();
    gate.script(&Reply::text("One."));
    gate.finish();
    let read = of_third.rest().await;
    let turns = read.iter().map(|sent| &sent.data["turn"]).filter(|turn| turn.is_number());
    assert!(turns.clone().count() > 0 && turns.clone().all(|turn| *turn == 3), "{read:?}");
    for turn in [2, 3] {
        assert_eq!(events.until("turn_planning").in_time("a planning").await.data["turn"], turn);
    }
    world.end().await;
}

/// S13.7: what has ended and was seen is not streamed again: a browser does not come back then.
#[tokio::test]
async fn the_stream_of_a_turn_ends_with_it() {
    let world = World::of(says([Reply::text("One.")]).build()).await;
    let session = world.session("first").await;
    world.rest(&session, 1).await;
    let path = format!("/v1/sessions/{session}/events?turn=turn-1");
    let events = world.client.stream("GET", &path, &[], None).await.rest().await;
    assert_eq!(events.last().unwrap().event, "end", "{events:?}");
    let last = events.iter().filter_map(|sent| sent.id.as_deref()).next_back().unwrap();
    let again = world.client.send("GET", &path, &[("last-event-id", last)], None).await;
    assert_eq!(again.status, 204, "{again:?}");
    world.end().await;
}

/// S13.8: a reader that takes nothing delays neither the run nor another reader, and what it finds later is what was recorded.
#[tokio::test]
async fn a_reader_that_takes_nothing_delays_no_other() {
    let long = "word ".repeat(12_000);
    let streams = || Reply::text(long.clone()).paced(5, Duration::ZERO);
    let replies = [Reply::text("First."), streams(), streams()];
    let world = World::of(says(replies).build()).await;
    let session = world.session("first").await;
    world.rest(&session, 1).await;
    let path = format!("/v1/sessions/{session}/events");
    let mut stalled = Vec::new();
    for _ in 0..5 {
        stalled.push(world.client.narrow(&path).await);
    }
    let mut reads = world.client.events(&session, "").await;
    until_quiet(&mut reads, 1).await;
    for turn in [2, 3] {
        world.client.post(&format!("/v1/sessions/{session}/items"), &json!({"text": "go"})).await;
        assert_eq!(world.rest(&session, turn).await["outcome"], "completed");
        let seen = until_quiet(&mut reads, turn).await;
        let ended = seen.iter().find(|(_, data)| data["type"] == "model_ended").unwrap();
        assert_eq!(ended.1["text"].as_str(), Some(long.as_str()));
    }
    let text = all_of(stalled.pop().unwrap(), 3).in_time("what a slow reader gets").await;
    assert_eq!(text.matches("event: model_ended").count(), 3);
    assert!(text.contains("event: missed"), "what streamed was not kept for it");
    drop(stalled);
    world.end().await;
}

/// What comes on this connection until nothing is alive of this number of turns.
async fn all_of(mut late: TcpStream, turns: usize) -> String {
    let mut text = String::new();
    while text.matches("event: turn_quiet").count() < turns {
        let mut piece = [0; 65_536];
        let count = late.read(&mut piece).await.unwrap();
        assert!(count > 0, "it ended");
        text.push_str(&String::from_utf8_lossy(&piece[..count]));
    }
    text
}

/// S13.2: a client that goes away, whatever it was in the middle of, stops nothing.
#[tokio::test]
async fn a_client_that_goes_away_stops_nothing() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = World::of(agent).await;
    let session = world.empty().await;
    let path = format!("/v1/sessions/{session}/items");
    let accept = [("accept", "text/event-stream")];
    let mut stream = world.client.stream("POST", &path, &accept, Some(&json!({"text": "go"}))).await;
    stream.until("model_started").await;
    drop(gate.request().await);
    drop(stream);
    // A request that waits for the item is dropped too.
    let waits = world.client.sent("GET", &format!("{path}/item-1?wait=rest"), &[], None).await;
    drop(waits);
    gate.headers();
    gate.script(&Reply::text("Still here."));
    gate.finish();
    let rest = world.rest(&session, 1).await;
    assert_eq!((rest["outcome"].as_str(), rest["answer"].as_str()), (Some("completed"), Some("Still here.")));
    world.end().await;
}

/// S13.7, S13.35: a reader of one item that lost its stream reads the rest of it after the item is at rest, and nothing more once it has it.
#[tokio::test]
async fn a_stream_of_an_item_is_read_to_its_end_later() {
    let world = World::of(says([Reply::text("Done.")]).build()).await;
    let session = world.session("go").await;
    world.rest(&session, 1).await;
    for of in ["item=item-1", "turn=turn-1"] {
        let path = format!("/v1/sessions/{session}/events?{of}");
        let read = async |last: &str| {
            let mut stream = world.client.stream("GET", &path, &[("last-event-id", last)], None).await;
            stream.rest().await.into_iter().filter_map(|sent| sent.id).collect::<Vec<String>>()
        };
        let all = read("").await;
        let (first, last) = (all.first().unwrap(), all.last().unwrap());
        assert_eq!(read(first).await, all[1..], "{of}");
        let over = world.client.send("GET", &path, &[("last-event-id", last)], None).await;
        assert_eq!(over.status, 204, "{of}: {over:?}");
    }
    world.end().await;
}

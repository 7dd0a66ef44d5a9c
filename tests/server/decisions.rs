//! Questions over HTTP: answered once, by one of many, bound to what was asked.

use futures_util::future::join_all;
use safepoint::{Agent, ids::SessionId, raw::store::NewSession, tool};
use safepoint_server::{AccessScope, Principal};
use safepoint_testkit::{
    script::{Reply, Script},
    scripted::ScriptedModel,
    wait::InTime as _,
};
use serde_json::{Value, json};

use super::world::{World, of, says};

/// Pays a supplier.
#[tool(effect = "keyed", approval = "required")]
async fn pay(cents: u64) -> String {
    format!("paid {cents}")
}

fn payer() -> Agent {
    says([Reply::call("pay", json!({"cents": 12000})), Reply::text("Done.")]).tool(pay).build()
}

/// A session that asks, and its question.
async fn asked(world: &World) -> (String, Value) {
    let session = world.session("Pay Acme.").await;
    assert_eq!(world.rest(&session, 1).await["outcome"], "suspended");
    let all = world.client.get("/v1/approvals").await.body;
    let asked = all["data"].as_array().unwrap().iter().find(|asked| asked["session"] == session.as_str());
    (session, asked.unwrap().clone())
}

/// S13.9: of many decisions one is taken, and the others learn who made it and when; the same decision again is no error.
#[tokio::test]
async fn of_many_decisions_one_is_taken() {
    let world = World::of(payer()).await;
    let (session, asked) = asked(&world).await;
    assert_eq!(
        (asked["tool"].as_str(), asked["args"]["cents"].as_u64()),
        (Some("pay"), Some(12000)),
        "{asked}"
    );
    let path = format!("/v1/sessions/{session}/approvals/{}/decision", asked["id"].as_str().unwrap());
    let wrong = json!({"digest": "sha256:00", "decision": "approve"});
    let refused = world.client.post(&path, &wrong).await;
    assert_eq!(
        (refused.status, refused.code(), &refused.body["digest"]),
        (409, "other_arguments", &asked["digest"])
    );
    let all = join_all((0..8).map(async |number| {
        let who = Principal::new(format!("person-{number}"), [AccessScope::Approve]).seeing_all();
        let message = format!("no, says {number}");
        let body = json!({"digest": asked["digest"], "decision": "deny", "message": message});
        (body.clone(), world.client_of(who).post(&path, &body).await)
    }))
    .await;
    let taken: Vec<_> = all.iter().filter(|(_, reply)| reply.status == 200).collect();
    assert_eq!(taken.len(), 1, "{all:?}");
    let by = all.iter().position(|(_, reply)| reply.status == 200).unwrap();
    for (_, lost) in all.iter().filter(|(_, reply)| reply.status != 200) {
        assert_eq!((lost.status, lost.code()), (409, "decided_otherwise"));
        assert_eq!(lost.body["by"], format!("person-{by}"));
        assert!(lost.body["at"].is_string());
    }
    let again = world.client.post(&path, &taken[0].0).await;
    assert_eq!((again.status, &again.body["already"]), (200, &json!(true)));
    world.end().await;
}

/// S13.9: a decision resumes the turn, also in a server that was started since, and the principal is on record.
#[tokio::test]
async fn a_decision_resumes_the_turn_after_a_restart() {
    let agent = payer();
    let world = World::of(agent.clone()).await;
    let (session, asked) = asked(&world).await;
    let (store, folder) = world.end().await;
    let world = World::over(agent, store, folder).await;
    let path = format!("/v1/sessions/{session}/approvals/{}/decision", asked["id"].as_str().unwrap());
    let taken = world.client.post(&path, &json!({"digest": asked["digest"], "decision": "approve"})).await;
    assert_eq!((taken.status, &taken.body["already"]), (200, &json!(false)), "{taken:?}");
    let mut events = world.client.events(&session, "").await;
    let ended = loop {
        let sent = events.until("turn_ended").await;
        if sent.data["outcome"] == "completed" {
            break sent;
        }
    };
    assert_eq!(ended.data["turn"], 1);
    let all = world.client.get(&format!("/v1/sessions/{session}/approvals")).await.body;
    assert_eq!((&all["data"][0]["state"], &all["data"][0]["by"]), (&json!("decided"), &json!("ci")));
    world.end().await;
}

/// S13.9: with the decision the item is not at rest any more, and its stream and its place say how its turn ended.
#[tokio::test]
async fn the_item_of_a_decided_turn_rests_when_the_turn_has_ended() {
    let world = World::of(payer()).await;
    let (session, asked) = asked(&world).await;
    let path = format!("/v1/sessions/{session}/approvals/{}/decision", asked["id"].as_str().unwrap());
    let taken = world.client.post(&path, &json!({"digest": asked["digest"], "decision": "approve"})).await;
    assert_eq!(taken.status, 200, "{taken:?}");
    let stream = format!("/v1/sessions/{session}/events?item=item-1");
    let all = world.client.stream("GET", &stream, &[], None).await.rest().await;
    let last = all.iter().rev().find(|sent| sent.event == "item").unwrap();
    assert_eq!(
        (&last.data["outcome"], &last.data["answer"]),
        (&json!("completed"), &json!("Done.")),
        "{all:?}"
    );
    let rest = world.rest(&session, 1).await;
    assert_eq!((&rest["outcome"], &rest["answer"]), (&json!("completed"), &json!("Done.")));
    world.end().await;
}

/// S13.5, S13.9: a stop of a turn that waits withdraws its question, and a decision is too late then.
#[tokio::test]
async fn a_stop_withdraws_the_question() {
    let world = World::of(payer()).await;
    let (session, asked) = asked(&world).await;
    let stopped = world.client.post(&format!("/v1/sessions/{session}/stop"), &json!({"mode": "now"})).await;
    assert_eq!(stopped.status, 202, "{stopped:?}");
    let path = format!("/v1/sessions/{session}/approvals/{}/decision", asked["id"].as_str().unwrap());
    let late = world.client.post(&path, &json!({"digest": asked["digest"], "decision": "approve"})).await;
    assert_eq!((late.status, late.code()), (409, "withdrawn"), "{late:?}");
    world.end().await;
}

/// S13.22: one stream has the states and the questions of all sessions that its token sees, and of no other.
#[tokio::test]
async fn one_stream_has_the_states_and_questions_of_all_sessions() {
    let asks = || Reply::call("pay", json!({"cents": 12000}));
    let agent = says([asks(), asks(), Reply::text("Done."), Reply::text("Hm.")]).tool(pay).build();
    let world = World::of(agent).await;
    let (before, asked_before) = asked(&world).await;
    let other = Principal::new("other", [AccessScope::Read, AccessScope::Talk]);
    let other = world.client_of(other);
    let mut all = world.client.stream("GET", "/v1/events", &[], None).await;
    let mut own = other.stream("GET", "/v1/events", &[], None).await;
    let list = all.until("sessions").await.data;
    assert_eq!((&list["data"][0]["id"], &list["data"][0]["state"]), (&json!(before), &json!("suspended")));
    assert_eq!(list["approvals"][0]["id"], asked_before["id"]);
    assert_eq!(own.until("sessions").await.data["data"], json!([]), "it sees its own sessions alone");
    let (session, asked) = asked(&world).await;
    let seen = all.until("approval").await.data;
    assert_eq!(
        (&seen["id"], &seen["session"], &seen["state"]),
        (&asked["id"], &json!(session), &json!("open"))
    );
    let path = format!("/v1/sessions/{session}/approvals/{}/decision", asked["id"].as_str().unwrap());
    let body = json!({"digest": asked["digest"], "decision": "approve"});
    assert_eq!(world.client.post(&path, &body).await.status, 200);
    loop {
        let seen = all.until("session").await.data;
        assert_eq!(seen["id"], json!(session), "what does not change is not shown");
        if seen["approvals"] == 0 && seen["turn"].is_null() {
            break;
        }
    }
    let mine = other.post("/v1/sessions", &json!({"item": {"text": "Pay Bob."}})).await.body;
    assert_eq!(own.until("session").await.data["id"], mine["id"], "the first that it learns is its own");
    drop((all, own));
    world.end().await;
}

/// S13.52: a reader that knows of a session learns once that it was removed, by this server or beside it, also of one that is not among the
/// newest any more; no other reader does.
#[tokio::test]
async fn who_knows_of_a_session_learns_that_it_was_removed() {
    const NEWER: usize = 250;
    let world = World::of(says([]).build()).await;
    let mut old = Vec::new();
    for _ in 0..4 {
        old.push(world.empty().await);
    }
    let other = world.client_of(Principal::new("other", [AccessScope::Read]));
    let mut all = world.client.stream("GET", "/v1/events", &[], None).await;
    let mut own = other.stream("GET", "/v1/events", &[], None).await;
    assert_eq!(all.until("sessions").await.data["data"].as_array().unwrap().len(), old.len());
    let remove = async |session: &str| {
        let removed = world.client.send("DELETE", &format!("/v1/sessions/{session}"), &[], None).await;
        assert_eq!(removed.status, 200, "{removed:?}");
    };
    let beside = async |session: &str| world.store.remove(&SessionId::from(session)).await.unwrap();
    let mut learns = async |session: &str| {
        let removed = all.until("session_removed").in_time("the removal of a session").await;
        assert_eq!((removed.id, removed.data), (None, json!({"type": "session_removed", "id": session})));
    };
    remove(&old[0]).await;
    learns(&old[0]).await;
    beside(&old[1]).await;
    learns(&old[1]).await;
    for number in 0..NEWER {
        let setup = json!({"agent": "helper", "principal": "ci"}).to_string();
        world.store.create(NewSession { setup, ..NewSession::of(format!("ses_{number}")) }).await.unwrap();
    }
    for session in &old[2..] {
        match session == &old[2] {
            true => remove(session).await,
            false => beside(session).await,
        }
        learns(session).await;
    }
    let mine = other.post("/v1/sessions", &json!({})).await;
    assert_eq!(mine.status, 403, "{mine:?}");
    drop((all, world.end().await));
    let read = own.rest().await;
    assert!(read.iter().all(|sent| sent.event != "session_removed"), "{read:?}");
}

/// S13.50: a removal and what is pushed at the same moment have one order: what was accepted is not removed with its session, and a session
/// that was removed is not made again by what comes behind it.
#[tokio::test]
async fn what_was_accepted_is_not_removed() {
    const ROUNDS: usize = 20;
    let script = Script { repeat: true, ..Script::of([Reply::call("pay", json!({"cents": 1}))]) };
    let world = World::of(of(ScriptedModel::new(script)).tool(pay).build()).await;
    for _ in 0..ROUNDS {
        let session = world.empty().await;
        let path = format!("/v1/sessions/{session}");
        let (items, item) = (format!("{path}/items"), json!({"text": "Pay."}));
        let (pushed, removed) =
            tokio::join!(world.client.post(&items, &item), world.client.send("DELETE", &path, &[], None));
        match (pushed.status, removed.status) {
            (202, 409) => assert_eq!(world.rest(&session, 1).await["outcome"], "suspended"),
            (404 | 409, 200) => assert_eq!(world.client.get(&path).await.status, 404),
            other => panic!("{other:?}: {pushed:?}, {removed:?}"),
        }
    }
    let listed = world.client.get("/v1/sessions?limit=500").await.body;
    let all = listed["data"].as_array().unwrap();
    assert!(all.iter().all(|session| session["agent"] == "helper"), "{listed}");
    world.end().await;
}

//! Questions: a form for a client that fills in forms, and else the end of the call.

use safepoint_server::{AccessScope, Principal};
use serde_json::{Value, json};

use super::{call, ours, over, payer, peer::Peer, text, world};

/// What a client declares that fills in forms.
fn forms() -> Value {
    json!({"elicitation": {"form": {}}})
}

fn approves() -> Value {
    json!({"action": "accept", "content": {"decision": "approve"}})
}

/// S13.9, S13.18: the client is asked while the call waits, and the same call continues to its one answer.
#[tokio::test]
async fn a_question_goes_to_a_client_that_fills_in_forms() {
    for (answer, paid) in [(approves(), true), (json!({"action": "decline"}), false)] {
        let world = world(payer()).await;
        let mut peer = Peer::of(&world, forms()).await;
        let id = peer.send("tools/call", call("Pay Acme.")).await;
        let asked = peer.asked("elicitation/create").await;
        let message = asked["params"]["message"].as_str().unwrap();
        assert!(message.contains("pay") && message.contains("12000"), "{asked}");
        peer.say(&asked, answer).await;
        let result = peer.answer(id).await["result"].clone();
        assert_eq!((text(&result), &ours(&result)["item"]), ("Done.", &json!("item-1")), "{result}");
        let session = ours(&result)["session"].as_str().unwrap();
        let path = format!("/v1/sessions/{session}/approvals");
        let all = world.client.get(&path).await.body;
        assert_eq!((&all["data"][0]["by"], &all["data"][0]["state"]), (&json!("local"), &json!("decided")));
        let turn = world.client.get(&format!("/v1/sessions/{session}/turns/turn-1")).await.body;
        let status = if paid { "completed" } else { "denied" };
        assert_eq!(turn["receipt"]["calls"][0]["status"], status, "{turn}");
        assert_eq!(peer.end().await, Vec::<Value>::new());
        world.end().await;
    }
}

/// S13.18: without forms, or where the form is dismissed, the call ends with the question, and says how it is answered; the question
/// stays open.
#[tokio::test]
async fn a_question_ends_a_call_that_cannot_ask() {
    for dismissed in [false, true] {
        let world = world(payer()).await;
        let mut peer = Peer::of(&world, if dismissed { forms() } else { json!({}) }).await;
        let id = peer.send("tools/call", call("Pay Acme.")).await;
        if dismissed {
            let asked = peer.asked("elicitation/create").await;
            peer.say(&asked, json!({"action": "cancel"})).await;
        }
        let result = peer.answer(id).await["result"].clone();
        assert_eq!(ours(&result)["outcome"], "suspended", "{result}");
        let (session, approval) = (&ours(&result)["session"], &ours(&result)["approvals"][0]["id"]);
        let how = format!("safepoint approve {} {}", session.as_str().unwrap(), approval.as_str().unwrap());
        assert!(text(&result).contains(&how), "{result}");
        let path = format!("/v1/sessions/{}/approvals", session.as_str().unwrap());
        assert_eq!(world.client.get(&path).await.body["data"][0]["state"], "open");
        assert_eq!(peer.end().await, Vec::<Value>::new());
        world.end().await;
    }
}

/// S13.1, S13.9: a decision by another door ends the question, and the call continues.
#[tokio::test]
async fn a_decision_elsewhere_ends_the_question() {
    let world = world(payer()).await;
    let mut peer = Peer::of(&world, forms()).await;
    let id = peer.send("tools/call", call("Pay Acme.")).await;
    peer.asked("elicitation/create").await;
    let open = world.client.get("/v1/approvals").await.body["data"][0].clone();
    let (session, approval) = (open["session"].as_str().unwrap(), open["id"].as_str().unwrap());
    let body = json!({"digest": open["digest"], "decision": "approve"});
    let path = format!("/v1/sessions/{session}/approvals/{approval}/decision");
    let decided = world.client.post(&path, &body).await;
    assert_eq!(decided.status, 200, "{decided:?}");
    let result = peer.answer(id).await["result"].clone();
    assert_eq!(text(&result), "Done.", "{result}");
    peer.end().await;
    world.end().await;
}

/// S13.5, S13.18: a cancel while the client is asked withdraws the question.
#[tokio::test]
async fn a_cancel_while_it_asks_withdraws_the_question() {
    let world = world(payer()).await;
    let mut peer = Peer::of(&world, forms()).await;
    let id = peer.send("tools/call", call("Pay Acme.")).await;
    peer.asked("elicitation/create").await;
    peer.cancel(id).await;
    safepoint_testkit::wait::asked("the end of the question", || async {
        let sessions = world.client.get("/v1/sessions").await.body;
        let session = sessions["data"][0]["id"].as_str().unwrap().to_owned();
        let all = world.client.get(&format!("/v1/sessions/{session}/approvals")).await.body;
        all["data"][0]["state"] == "withdrawn"
    })
    .await;
    peer.end().await;
    world.end().await;
}

/// S13.12, S13.18: the end of the server ends a call that asks: the question is taken back, once, and stays open in the store.
#[tokio::test]
async fn a_drain_ends_a_call_that_asks() {
    let mut world = world(payer()).await;
    let mut peer = Peer::of(&world, forms()).await;
    let id = peer.send("tools/call", call("Pay Acme.")).await;
    peer.asked("elicitation/create").await;
    world.begin_end();
    let answer = peer.answer(id).await;
    assert!(answer["error"].is_object() || ours(&answer["result"])["outcome"] == "suspended", "{answer}");
    let again = peer.notices.iter().filter(|said| said["method"] == "elicitation/create").count();
    assert_eq!(again, 0, "{:?}", peer.notices);
    peer.end().await;
    let (store, _folder) = world.end().await;
    assert_eq!(store.open_approvals(10, None).await.unwrap().len(), 1, "it is open for the next server");
}

/// S13.3: a question that a client leaves stays open.
#[tokio::test]
async fn a_closed_input_leaves_questions_open() {
    let world = world(payer()).await;
    let mut peer = Peer::of(&world, forms()).await;
    peer.send("tools/call", call("Pay Acme.")).await;
    peer.asked("elicitation/create").await;
    peer.end().await;
    let open = world.client.get("/v1/approvals").await.body;
    assert_eq!(open["data"][0]["state"], "open", "{open}");
    world.end().await;
}

/// S13.18: a request that stands alone is asked by its answer, and the client calls again with what it was asked; it is one item all
/// the same.
#[tokio::test]
async fn a_request_that_stands_alone_is_asked_by_its_answer() {
    let world = over(payer().build()).await;
    let asked = world.client.alone_result("tools/call", call("Pay Acme."), forms()).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let (approval, form) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(form["method"], "elicitation/create", "{asked}");
    let mut again = call("Pay Acme.");
    again["requestState"] = asked["requestState"].clone();
    again["inputResponses"] = json!({approval: approves()});
    let result = world.client.alone_result("tools/call", again.clone(), forms()).await;
    assert_eq!((text(&result), &ours(&result)["item"]), ("Done.", &json!("item-1")), "{result}");
    let twice = world.client.alone_result("tools/call", again, forms()).await;
    assert_eq!((text(&twice), &ours(&twice)["item"]), ("Done.", &json!("item-1")), "{twice}");
    world.end().await;
}

/// S13.10, S13.18: a token that may not decide is not asked, and its answer is taken by no request.
#[tokio::test]
async fn a_token_that_may_not_decide_is_not_asked() {
    let world = over(payer().build()).await;
    let talks = world.client_of(Principal::new("talks", [AccessScope::Talk]));
    let result = talks.alone_result("tools/call", call("Pay Acme."), forms()).await;
    assert_eq!(ours(&result)["outcome"], "suspended", "{result}");
    let session = ours(&result)["session"].as_str().unwrap();
    let approval = ours(&result)["approvals"][0]["id"].as_str().unwrap();
    let mut again = call("Pay Acme.");
    again["requestState"] = json!(format!("{session}.1"));
    again["inputResponses"] = json!({approval: approves()});
    let mut stream = talks.alone("tools/call", again, forms()).await;
    let refused = stream.data().await.unwrap();
    assert_eq!(refused["error"]["data"]["code"], "scope_missing", "{refused}");
    world.end().await;
}

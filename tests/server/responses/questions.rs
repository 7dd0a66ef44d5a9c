//! Questions of a turn, as requests for approval in the output of its response.

use safepoint::{
    Agent,
    approval::{ApprovalMode, WithoutApprover},
    tool,
};
use safepoint_server::{AccessScope, Principal};

use super::*;

/// Pays a supplier.
#[tool(effect = "keyed", approval = "required")]
async fn pay(cents: u64) -> String {
    format!("paid {cents}")
}

pub(super) fn payer() -> Agent {
    payer_of(ApprovalMode::Ask(None, WithoutApprover::Suspend))
}

pub(super) fn payer_of(approvals: ApprovalMode) -> Agent {
    let replies = [Reply::call("pay", json!({"cents": 12000})), Reply::text("Done.")];
    says(replies).approvals(approvals).tool(pay).build()
}

/// A response that ended with its question.
async fn asked(world: &World) -> Value {
    let made = world.client.post(RESPONSES, &json!({"model": "helper", "input": "Pay Acme."})).await;
    assert_eq!((made.status, &made.body["status"]), (200, &json!("completed")), "{made:?}");
    let asked = &made.body["output"][0];
    assert_eq!((&asked["type"], &asked["name"]), (&json!("mcp_approval_request"), &json!("pay")), "{asked}");
    assert_eq!(asked["arguments"], r#"{"cents":12000}"#);
    made.body
}

fn answer(asked: &Value, approve: bool) -> Value {
    let answer = json!({"type": "mcp_approval_response", "approval_request_id": asked["output"][0]["id"], "approve": approve});
    json!({"model": "helper", "previous_response_id": asked["id"], "input": [answer]})
}

/// S13.9, S13.15: a question ends its response; the answer begins one that has what follows, also after a restart, and the first one
/// stays as it was.
#[tokio::test]
async fn an_answer_begins_the_response_that_follows() {
    let agent = payer();
    let world = World::of(agent.clone()).await;
    let first = asked(&world).await;
    let busy = json!({"model": "helper", "input": "more", "previous_response_id": first["id"]});
    let busy = world.client.post(RESPONSES, &busy).await;
    assert_eq!((busy.status, &busy.body["error"]["code"]), (409, &json!("turn_suspended")), "{busy:?}");
    let talks = Principal::new("talks", [AccessScope::Talk, AccessScope::Read]).seeing_all();
    let refused = world.client_of(talks).post(RESPONSES, &answer(&first, true)).await;
    assert_eq!((refused.status, &refused.body["error"]["code"]), (403, &json!("scope_missing")));
    let reads = Principal::new("reads", [AccessScope::Read]).seeing_all();
    let begins = world.client_of(reads).post(RESPONSES, &json!({"model": "helper", "input": "go"})).await;
    assert_eq!((begins.status, &begins.body["error"]["code"]), (403, &json!("scope_missing")));
    let (store, folder) = world.end().await;
    let world = World::over(agent, store, folder).await;
    let mut body = answer(&first, true);
    body["stream"] = json!(true);
    let all = world.client.stream("POST", RESPONSES, &[], Some(&body)).await.rest().await;
    let last = all.last().unwrap().data["response"].clone();
    assert_eq!((&last["status"], &*text(&last)), (&json!("completed"), "Done."), "{all:#?}");
    let call = &last["output"][0];
    assert_eq!(
        (&call["output"], &call["approval_request_id"]),
        (&json!("paid 12000"), &first["output"][0]["id"]),
        "{last}"
    );
    assert_eq!(last["previous_response_id"], first["id"]);
    let again = retrieved(&world.client, &last["id"]).await;
    assert_eq!((&again["output"], &again["status"]), (&last["output"], &last["status"]));
    let stays = retrieved(&world.client, &first["id"]).await;
    assert_eq!((&stays["output"], &stays["status"]), (&first["output"], &first["status"]), "{stays}");
    let repeated = world.client.post(RESPONSES, &answer(&first, true)).await;
    assert_eq!((repeated.status, &repeated.body["id"]), (200, &last["id"]), "{repeated:?}");
    let other = world.client.post(RESPONSES, &answer(&first, false)).await;
    assert_eq!((other.status, &other.body["error"]["code"]), (409, &json!("decided_otherwise")), "{other:?}");
    world.end().await;
}

/// S13.9, S13.11: an answer needs the scope of a decision and no other, and load does not refuse it.
#[tokio::test]
async fn load_refuses_no_answer() {
    let world = World::of(payer()).await;
    let first = asked(&world).await;
    let decides = world.client_of(Principal::new("anna", [AccessScope::Approve]).seeing_all());
    let busy = world.client_of(Principal::new("anna", [AccessScope::Read]).seeing_all());
    let mut is_refused = false;
    for _ in 0..1_000 {
        if busy.get("/v1/agents").await.status == 429 {
            is_refused = true;
            break;
        }
    }
    assert!(is_refused, "1,000 requests at once are too many");
    let second = decides.post(RESPONSES, &answer(&first, true)).await;
    assert_eq!((second.status, &*text(&second.body)), (200, "Done."), "{second:?}");
    world.end().await;
}

/// S13.9: a denial is an answer, and its reason reaches the model.
#[tokio::test]
async fn a_denial_is_an_answer() {
    let world = World::of(payer()).await;
    let first = asked(&world).await;
    let mut body = answer(&first, false);
    body["input"][0]["reason"] = json!("Not before Friday.");
    let second = world.client.post(RESPONSES, &body).await.body;
    assert_eq!((&second["status"], &*text(&second)), (&json!("completed"), "Done."), "{second}");
    let call = &second["output"][0];
    assert_eq!((&call["type"], &call["status"]), (&json!("mcp_call"), &json!("failed")), "{second}");
    assert!(call["error"].to_string().contains("Not before Friday."), "{call}");
    world.end().await;
}

/// S13.6, S13.9: a cancel of a response that ended with a question withdraws it, and an answer comes too late.
#[tokio::test]
async fn a_cancel_withdraws_the_question() {
    let world = World::of(payer()).await;
    let first = asked(&world).await;
    let path = format!("{RESPONSES}/{}/cancel", first["id"].as_str().unwrap());
    for _ in 0..2 {
        let reply = world.client.post(&path, &json!({})).await;
        assert_eq!((reply.status, &reply.body["status"]), (200, &json!("cancelled")), "{reply:?}");
    }
    let late = world.client.post(RESPONSES, &answer(&first, true)).await;
    assert_eq!((late.status, &late.body["error"]["code"]), (409, &json!("withdrawn")), "{late:?}");
    let last = events(&world.client, &first["id"], None).await.pop().unwrap();
    assert_eq!(
        (&*last.event, &last.data["response"]["status"]),
        ("response.incomplete", &json!("cancelled"))
    );
    world.end().await;
}

/// S13.3: nothing can answer the question of what is not kept: it is denied.
#[tokio::test]
async fn what_is_not_kept_asks_nothing() {
    let world = World::of(payer()).await;
    let body = json!({"model": "helper", "input": "Pay Acme.", "store": false});
    let made = world.client.post(RESPONSES, &body).await;
    assert_eq!((made.status, &*text(&made.body)), (200, "Done."), "{made:?}");
    assert_eq!(
        (&made.body["output"][0]["type"], &made.body["output"][0]["status"]),
        (&json!("mcp_call"), &json!("failed"))
    );
    world.end().await;
}

//! A task that asks, and what is a yes to it.

use safepoint::{AgentBuilder, tool};
use safepoint_server::{AccessScope, Principal};
use safepoint_testkit::{script::Reply, tools::GateTools, wait::InTime as _};
use serde_json::{Value, json};

use super::{id, message, question, state, to_task, world, yes};
use crate::world::{World, says};

/// Pays a supplier.
#[tool(effect = "keyed", approval = "required")]
async fn pay(cents: u64) -> String {
    format!("paid {cents}")
}

fn payer(then: Reply) -> AgentBuilder {
    says([Reply::call("pay", json!({"cents": 12000})), then]).tool(pay)
}

/// A task that asks, and the data of its question.
async fn asked(world: &World) -> (String, Value) {
    let task = world.client.completed(message("m-1", "Pay Acme.")).await;
    assert_eq!(state(&task), "TASK_STATE_INPUT_REQUIRED", "{task}");
    let parts = task["status"]["message"]["parts"].as_array().unwrap();
    assert!(parts[0]["text"].as_str().unwrap().contains("pay"), "{task}");
    let data = question(&task["status"]);
    assert_eq!((&data["tool"], &data["args"]), (&json!("pay"), &json!({"cents": 12000})), "{task}");
    (id(&task), data.clone())
}

/// What the tool gave to the model.
async fn results(world: &World, task: &str) -> String {
    let session = task.rsplit_once('.').unwrap().0;
    world.client.get(&format!("/v1/sessions/{session}/timeline?limit=500")).await.body.to_string()
}

/// S13.20, S13.9: `approve` with the code of the question is a yes; without it, or with another one, nothing is decided.
#[tokio::test]
async fn approve_with_the_code_of_its_question_is_a_yes() {
    let world = world(payer(Reply::text("Done."))).await;
    let (task, asked) = asked(&world).await;
    for (at, text) in ["approve", "Approve", "approve it", "approve 000000"].into_iter().enumerate() {
        let message = to_task(&task, &format!("u-{at}"), text);
        let refused = world.client.refusal("SendMessage", json!({"message": message})).await;
        assert_eq!(refused.0, -32602, "{text}");
        assert_eq!(state(&world.client.task(&task).await), "TASK_STATE_INPUT_REQUIRED", "{text}");
    }
    let over = world.client.completed(to_task(&task, "m-2", &yes(&asked))).await;
    assert_eq!(
        (state(&over), &over["artifacts"][0]["parts"][0]["text"]),
        ("TASK_STATE_COMPLETED", &json!("Done."))
    );
    assert_eq!(over["id"], task.as_str());
    assert!(results(&world, &task).await.contains("paid 12000"));
    world.end().await;
}

/// S13.20: any other text is a no, and the model reads it.
#[tokio::test]
async fn any_other_text_is_a_no() {
    for text in ["yes", "ok", "approved", "not before Friday"] {
        let world = world(payer(Reply::text("Then not."))).await;
        let (task, _) = asked(&world).await;
        let over = world.client.completed(to_task(&task, "m-2", text)).await;
        assert_eq!(state(&over), "TASK_STATE_COMPLETED", "{over}");
        let all = results(&world, &task).await;
        assert!(!all.contains("paid 12000") && all.contains(text.trim()), "{text}: {all}");
        world.end().await;
    }
}

/// S13.9, S13.20: a decision as data is bound to what was asked.
#[tokio::test]
async fn a_decision_as_data_is_bound_to_its_question() {
    let world = world(payer(Reply::text("Done."))).await;
    let (task, asked) = asked(&world).await;
    let decide = |id: &str, digest: &Value, decision: &str| {
        let data = json!({"approval": asked["approval"], "digest": digest, "decision": decision});
        json!({"message": {"messageId": id, "role": "ROLE_USER", "taskId": task, "parts": [{"data": data}]}})
    };
    let other = world.client.rpc("SendMessage", decide("m-2", &json!("sha256:00"), "approve")).await.body;
    assert_eq!(other["error"]["data"][0]["metadata"]["code"], "other_arguments", "{other}");
    let none = world.client.rpc("SendMessage", decide("m-3", &asked["digest"], "perhaps")).await.body;
    assert_eq!(none["error"]["code"], -32602, "{none}");
    assert_eq!(state(&world.client.task(&task).await), "TASK_STATE_INPUT_REQUIRED");
    let over = world.client.result("SendMessage", decide("m-4", &asked["digest"], "approve")).await;
    assert_eq!(state(&over["task"]), "TASK_STATE_COMPLETED", "{over}");
    assert!(results(&world, &task).await.contains("paid 12000"));
    let late = world.client.rpc("SendMessage", decide("m-5", &asked["digest"], "deny")).await.body;
    assert_eq!(late["error"]["data"][0]["metadata"]["code"], "decided_otherwise", "{late}");
    world.end().await;
}

/// S13.9, S13.20: who may talk may not decide for that.
#[tokio::test]
async fn an_answer_needs_the_scope_of_a_decision() {
    let world = world(payer(Reply::text("Done."))).await;
    let (task, asked) = asked(&world).await;
    let talks =
        world.client_of(Principal::new("talker", [AccessScope::Read, AccessScope::Talk]).seeing_all());
    let refused = talks.rpc("SendMessage", json!({"message": to_task(&task, "m-2", &yes(&asked))})).await;
    assert_eq!(
        (refused.status, &refused.body["error"]["data"][0]["metadata"]["code"]),
        (403, &json!("scope_missing"))
    );
    let decides = world.client_of(Principal::new("anna", [AccessScope::Approve]).seeing_all());
    let over = decides.completed(to_task(&task, "m-2", &yes(&asked))).await;
    assert_eq!(state(&over), "TASK_STATE_COMPLETED", "{over}");
    world.end().await;
}

/// S13.20: one text is no yes to several questions; each takes its own decision.
#[tokio::test]
async fn a_text_is_no_yes_to_several_questions() {
    let both = Reply::call("pay", json!({"cents": 1})).and_call("pay", json!({"cents": 2}));
    let world = world(says([both, Reply::text("Done.")]).tool(pay)).await;
    let task = world.client.completed(message("m-1", "Pay both.")).await;
    let (name, parts) = (id(&task), task["status"]["message"]["parts"].as_array().unwrap().clone());
    let questions: Vec<&Value> = parts.iter().filter_map(|part| part.get("data")).collect();
    assert_eq!(questions.len(), 2, "{task}");
    let refused =
        world.client.refusal("SendMessage", json!({"message": to_task(&name, "m-2", "approve")})).await;
    assert_eq!(refused.0, -32602);
    let answer = |data: &Value| json!({"data": {"approval": data["approval"], "digest": data["digest"], "decision": "approve"}});
    let parts: Vec<Value> = questions.iter().map(|data| answer(data)).collect();
    let message = json!({"messageId": "m-3", "role": "ROLE_USER", "taskId": name, "parts": parts});
    let over = world.client.completed(message).await;
    assert_eq!(state(&over), "TASK_STATE_COMPLETED", "{over}");
    let all = results(&world, &name).await;
    assert!(all.contains("paid 1") && all.contains("paid 2"), "{all}");
    world.end().await;
}

/// S13.20: a no that is sent again is the same no, and none to what was asked after it.
#[tokio::test]
async fn a_no_that_is_sent_again_answers_nothing_else() {
    let replies = [1, 2].map(|cents| Reply::call("pay", json!({"cents": cents})));
    let world = world(says(replies.into_iter().chain([Reply::text("Done.")])).tool(pay)).await;
    let task = id(&world.client.completed(message("m-1", "Pay.")).await);
    for _ in 0..2 {
        let asks = world.client.completed(to_task(&task, "m-2", "not before Friday")).await;
        assert_eq!(state(&asks), "TASK_STATE_INPUT_REQUIRED", "{asks}");
        assert_eq!(question(&asks["status"])["args"], json!({"cents": 2}), "{asks}");
    }
    let asks = world.client.task(&task).await;
    let stranger = world.client_of(Principal::new("anna", AccessScope::ALL).seeing_all());
    let over = world.client.completed(to_task(&task, "m-3", &yes(question(&asks["status"])))).await;
    assert_eq!(state(&over), "TASK_STATE_COMPLETED", "{over}");
    let all = results(&world, &task).await;
    assert!(all.contains("paid 2") && !all.contains("paid 1"), "{all}");
    assert_eq!(world.client.completed(to_task(&task, "m-2", "not before Friday")).await, over);
    let other =
        stranger.refusal("SendMessage", json!({"message": to_task(&task, "m-2", "not before Friday")}));
    assert_eq!(
        other.await,
        (-32004, "UNSUPPORTED_OPERATION".to_owned()),
        "it is a message of another sender"
    );
    world.end().await;
}

/// S13.20: a yes that is sent again changes nothing, and steers nothing; nor does a steer.
#[tokio::test]
async fn what_is_sent_again_to_a_task_changes_nothing() {
    let tools = GateTools::new();
    let replies =
        [Reply::call("pay", json!({"cents": 1})), Reply::call("wait", json!({})), Reply::text("Done.")];
    let world = world(says(replies).tool(pay).tool(tools.gated("wait"))).await;
    let asks = world.client.completed(message("m-1", "Pay.")).await;
    let (task, yes) = (id(&asks), yes(question(&asks["status"])));
    let session = task.rsplit_once('.').unwrap().0.to_owned();
    let at_once = |id: &str, text: &str| json!({"message": to_task(&task, id, text), "configuration": {"returnImmediately": true}});
    world.client.result("SendMessage", at_once("m-2", &yes)).await;
    tools.gate().came(1).in_time("the call").await;
    for id in ["m-2", "m-3"] {
        let again = world.client.result("SendMessage", at_once(id, &yes)).await;
        assert_eq!(state(&again["task"]), "TASK_STATE_WORKING", "{again}");
    }
    let items = format!("/v1/sessions/{session}/items");
    assert_eq!(world.client.get(&format!("{items}/item-2")).await.status, 404, "no yes is a steer");
    for _ in 0..2 {
        world.client.result("SendMessage", at_once("m-4", "Hurry.")).await;
    }
    tools.gate().open_for_all();
    let over = world.client.completed(to_task(&task, "m-4", "Hurry.")).await;
    assert_eq!(state(&over), "TASK_STATE_COMPLETED", "{over}");
    assert_eq!(over["history"].to_string().matches("Hurry.").count(), 1, "{over}");
    for (id, text) in [("m-2", &*yes), ("m-4", "Hurry.")] {
        assert_eq!(world.client.completed(to_task(&task, id, text)).await, over);
    }
    assert_eq!(world.client.get(&format!("{items}/item-3")).await.status, 404, "one steer is one item");
    world.end().await;
}

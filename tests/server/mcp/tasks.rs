//! Tasks of the protocol: one item each, cancelled once it has settled.

use safepoint_server::Surface;
use safepoint_testkit::{script::Reply, tools::GateTools, wait, wait::InTime as _};
use serde_json::{Value, json};

use super::{TASKS, call, over, pay, payer, text, world};
use crate::{
    client::Client,
    resumed::resumed,
    world::{World, says, served},
};

fn tasks() -> Value {
    json!({"extensions": {TASKS: {}}, "elicitation": {"form": {}}})
}

impl Client {
    /// Begins a task, and returns its id.
    async fn mcp_task(&self, said: &str) -> String {
        let begun = self.alone_result("tools/call", call(said), tasks()).await;
        assert_eq!((&begun["resultType"], &begun["status"]), (&json!("task"), &json!("working")), "{begun}");
        begun["taskId"].as_str().unwrap().to_owned()
    }

    /// The code with which an update of the task is refused; none: it is acknowledged.
    async fn update_task(&self, task: &str, answers: Value) -> Option<String> {
        let params = json!({"taskId": task, "inputResponses": answers});
        let said = self.alone("tasks/update", params, tasks()).await.data().await.unwrap();
        assert!(said["error"].is_null() || said["error"]["code"] == -32602, "{said}");
        said["error"]["data"]["code"].as_str().map(ToOwned::to_owned)
    }

    async fn get_task(&self, task: &str) -> Value {
        self.alone_result("tasks/get", json!({"taskId": task}), tasks()).await
    }

    /// The task, once it works no more.
    async fn task_at_rest(&self, task: &str) -> Value {
        wait::asked("the end of the task", async || {
            Some(self.get_task(task).await).filter(|found| found["status"] != "working")
        })
        .await
    }
}

/// S13.18, S13.2: a client that knows tasks gets one at once; it runs on without its client, and has the result of the call.
#[tokio::test]
async fn a_task_runs_on_without_its_client() {
    let tools = GateTools::new();
    let world =
        world(says([Reply::call("wait", json!({})), Reply::text("Done.")]).tool(tools.gated("wait"))).await;
    let task = world.client.mcp_task("Wait.").await;
    tools.gate().came(1).in_time("the call").await;
    assert_eq!(world.client.get_task(&task).await["status"], "working");
    tools.gate().let_pass(1);
    let done = world.client.task_at_rest(&task).await;
    assert_eq!((&done["status"], text(&done["result"])), (&json!("completed"), "Done."), "{done}");
    assert_eq!(done["result"]["structuredContent"]["outcome"], "completed", "{done}");
    let mut foreign = world.client.alone("tasks/get", json!({"taskId": "ses_none.1"}), tasks()).await;
    let refused = foreign.data().await.unwrap();
    assert_eq!(refused["error"]["data"]["code"], "no_such_task", "{refused}");
    world.end().await;
}

/// S13.5, S13.18: the task of a tool that ignores its stop works until that has settled; a second cancel changes nothing.
#[tokio::test]
async fn no_task_is_cancelled_before_its_work_has_settled() {
    let tools = GateTools::new();
    let world = world(says([Reply::call("deaf", json!({}))]).tool(tools.deaf("deaf"))).await;
    let task = world.client.mcp_task("Go.").await;
    tools.gate().came(1).in_time("the call").await;
    let taken = world.client.alone_result("tasks/cancel", json!({"taskId": task}), tasks()).await;
    assert!(taken["status"].is_null(), "an acknowledgement says nothing of the task: {taken}");
    let stops = world.client.get_task(&task).await;
    assert_eq!(stops["status"], "working");
    let stop = stops["_meta"]["safepoint"]["stop"].as_str();
    assert!(matches!(stop, Some("requested" | "observed")), "{stops}");
    tools.gate().open_for_all();
    let cancelled = world.client.task_at_rest(&task).await;
    let account = &cancelled["_meta"]["safepoint"];
    assert_eq!((&cancelled["status"], &account["quiet"]), (&json!("cancelled"), &json!(true)), "{cancelled}");
    world.client.alone_result("tasks/cancel", json!({"taskId": task}), tasks()).await;
    assert_eq!(world.client.get_task(&task).await, cancelled);
    let turn = world.client.get(account["receipt"].as_str().unwrap()).await.body;
    assert_eq!(turn["receipt"]["stop"]["reason"]["code"], "user", "{turn}");
    world.end().await;
}

/// S13.18: a task is found after a restart, and says all the while when its item was accepted.
#[tokio::test]
async fn a_task_is_found_after_a_restart() {
    let tools = GateTools::new();
    let replies = [Reply::call("wait", json!({})), Reply::text("Done.")];
    let world = world(says(replies).tool(tools.gated("wait"))).await;
    let begun = world.client.alone_result("tools/call", call("Go."), tasks()).await;
    let task = begun["taskId"].as_str().unwrap().to_owned();
    tools.gate().came(1).in_time("the call").await;
    let works = world.client.get_task(&task).await;
    tools.gate().let_pass(1);
    let done = world.client.task_at_rest(&task).await;
    assert_eq!((&works["createdAt"], &done["createdAt"]), (&begun["createdAt"], &begun["createdAt"]));
    assert!(done["lastUpdatedAt"].as_str() >= done["createdAt"].as_str(), "{done}");
    let (store, folder) = world.end().await;
    let world = World::offered(says([]).build(), store, folder, &[Surface::Mcp]).await;
    let again = world.client.get_task(&task).await;
    assert_eq!((&again["result"], &again["status"]), (&done["result"], &json!("completed")), "{again}");
    assert_eq!(again["createdAt"], done["createdAt"], "{again}");
    world.end().await;
}

/// S13.9, S13.18: a task asks for input while its turn waits, and continues with the decision.
#[tokio::test]
async fn a_task_asks_for_input() {
    let world = world(payer()).await;
    let task = world.client.mcp_task("Pay Acme.").await;
    let asked = world.client.task_at_rest(&task).await;
    assert_eq!(asked["status"], "input_required", "{asked}");
    let approval = asked["inputRequests"].as_object().unwrap().keys().next().unwrap();
    for answer in
        [json!({"action": "cancel"}), json!({"action": "accept", "content": {"decision": "approve"}})]
    {
        assert_eq!(world.client.get_task(&task).await["status"], "input_required");
        let given = json!({"taskId": task, "inputResponses": {approval: answer}});
        world.client.alone_result("tasks/update", given, tasks()).await;
    }
    let done = world.client.task_at_rest(&task).await;
    assert_eq!((&done["status"], text(&done["result"])), (&json!("completed"), "Done."), "{done}");
    world.end().await;
}

/// S13.41, S13.9: an update is acknowledged where it answered a question, now or before, or while the task asks; of a task that is not
/// there, works, or is over it is refused, and so is another decision about a question that is over.
#[tokio::test]
async fn an_update_that_answers_nothing_is_refused() {
    let tools = GateTools::new();
    let replies =
        [Reply::call("wait", json!({})), Reply::call("pay", json!({"cents": 1})), Reply::text("Done.")];
    let world = world(says(replies).tool(tools.gated("wait")).tool(pay)).await;
    let (yes, no) =
        (json!({"action": "accept", "content": {"decision": "approve"}}), json!({"action": "decline"}));
    let of = |code: &str| Some(code.to_owned());
    let client = &world.client;
    assert_eq!(client.update_task("ses_none.1", json!({"x": yes})).await, of("no_such_task"));
    let task = client.mcp_task("Pay.").await;
    tools.gate().came(1).in_time("the call").await;
    assert_eq!(client.update_task(&task, json!({"x": yes})).await, of("nothing_asked"));
    tools.gate().let_pass(1);
    let asked = client.task_at_rest(&task).await;
    let approval = asked["inputRequests"].as_object().unwrap().keys().next().unwrap();
    assert_eq!(client.update_task(&task, json!({"x": yes})).await, None, "it is passed over");
    assert_eq!(client.get_task(&task).await["status"], "input_required");
    assert_eq!(client.update_task(&task, json!({approval: yes})).await, None);
    assert_eq!(client.task_at_rest(&task).await["status"], "completed");
    assert_eq!(client.update_task(&task, json!({approval: yes})).await, None, "it is sent again");
    assert_eq!(client.update_task(&task, json!({approval: no})).await, of("decided_otherwise"));
    assert_eq!(client.update_task(&task, json!({"x": yes})).await, of("nothing_asked"));
    world.end().await;
}

/// S13.41, S13.9: an answer that is not valid is refused with what is accepted, and so is the valid one beside it: the question stays open.
#[tokio::test]
async fn an_answer_that_is_not_valid_is_refused() {
    let twice = Reply::call("pay", json!({"cents": 1})).and_call("pay", json!({"cents": 2}));
    let world = world(says([twice, Reply::text("Done.")]).tool(pay)).await;
    let client = &world.client;
    let task = client.mcp_task("Pay.").await;
    let asked = client.task_at_rest(&task).await["inputRequests"].clone();
    let questions: Vec<_> = asked.as_object().unwrap().keys().collect();
    let yes = json!({"action": "accept", "content": {"decision": "approve"}});
    for wrong in [
        json!({"action": "accept", "content": {"decision": "maybe"}}),
        json!({"action": "accept", "content": {"decision": true}}),
        json!({"action": "accept"}),
        json!({"action": "yes"}),
        json!("approve"),
        Value::Null,
    ] {
        let params = json!({"taskId": task, "inputResponses": {questions[0]: yes, questions[1]: wrong}});
        let said = client.alone("tasks/update", params, tasks()).await.data().await.unwrap();
        let error = &said["error"];
        assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32602), &json!("invalid_answer")));
        assert!(error["message"].as_str().unwrap().contains(r#"{"decision": "approve"}"#), "{said}");
        assert_eq!(client.get_task(&task).await["inputRequests"], asked, "{wrong}");
    }
    assert_eq!(client.update_task(&task, json!({questions[0]: yes, questions[1]: yes})).await, None);
    assert_eq!(client.task_at_rest(&task).await["status"], "completed");
    world.end().await;
}

/// S13.31: a task that was cancelled stays so while its turn runs again, says nothing of it that is not so any more, and a cancel stops
/// that turn.
#[tokio::test]
async fn a_cancel_stops_the_turn_of_a_cancelled_task_that_runs_again() {
    let (model, agent) = served([Reply::text("Done.")]).await;
    let (mut one, mut two) = (model.gate(), model.gate());
    let world = over(agent).await;
    let task = world.client.mcp_task("Go.").await;
    one.request().in_time("the first request").await;
    world.client.alone_result("tasks/cancel", json!({"taskId": task}), tasks()).await;
    let first = world.client.task_at_rest(&task).await;
    let of = |found: &Value| (found["status"].clone(), found["_meta"]["safepoint"]["quiet"].clone());
    assert_eq!(of(&first), (json!("cancelled"), json!(true)), "{first}");
    let session = first["_meta"]["safepoint"]["session"].as_str().unwrap();
    resumed(&world, session).await;
    let request = two.request().in_time("the second request").await;
    let again = world.client.get_task(&task).await;
    assert_eq!(of(&again), (json!("cancelled"), Value::Null), "{again}");
    assert_eq!((&again["statusMessage"], &first["statusMessage"]), (&json!("user"), &json!("user")));
    world.client.alone_result("tasks/cancel", json!({"taskId": task}), tasks()).await;
    request.peer_closed().in_time("the end of the model's connection").await;
    assert_eq!(world.rest(session, 1).await["outcome"], "interrupted");
    resumed(&world, session).await;
    assert_eq!(world.rest(session, 1).await["outcome"], "completed");
    assert_eq!(world.client.get_task(&task).await["status"], "cancelled");
    world.end().await;
}

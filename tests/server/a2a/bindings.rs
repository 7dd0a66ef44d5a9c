//! The two bindings: the same operations, versions, and errors in the form of each.

use safepoint_testkit::{script::Reply, wait::InTime as _};
use serde_json::{Value, json};

use super::{VERSION, id, message, over, state, world};
use crate::{
    client::Client,
    world::{says, served},
};

impl Client {
    async fn rest(&self, method: &str, path: &str, body: Option<&Value>) -> super::Reply {
        self.send(method, &format!("/a2a/helper{path}"), &VERSION, body).await
    }
}

/// S13.19: over HTTP+JSON a task is the same task.
#[tokio::test]
async fn the_operations_are_the_same_over_http_and_json() {
    let world = world(says([Reply::text("Lisbon.")])).await;
    let body = json!({"message": message("m-1", "Portugal?")});
    let sent = world.client.rest("POST", "/message:send", Some(&body)).await;
    assert_eq!((sent.status, state(&sent.body["task"])), (200, "TASK_STATE_COMPLETED"), "{sent:?}");
    assert!(sent.head.contains("content-type: application/json"), "{}", sent.head);
    let task = id(&sent.body["task"]);
    let seen = world.client.rest("GET", &format!("/tasks/{task}"), None).await;
    assert_eq!((seen.status, &seen.body), (200, &world.client.task(&task).await));
    let short = world.client.rest("GET", &format!("/tasks/{task}?historyLength=0"), None).await;
    assert!(short.body.get("history").is_none(), "{short:?}");
    for length in ["historyLength", "history_length"] {
        let short = world.client.result("GetTask", json!({"id": task, length: 0})).await;
        assert!(short.get("history").is_none(), "{length}: {short}");
    }
    let listed = world.client.rest("GET", "/tasks?pageSize=1&includeArtifacts=true", None).await;
    assert_eq!((listed.status, &listed.body["tasks"][0]["id"]), (200, &json!(task)), "{listed:?}");
    assert_eq!(listed.body["tasks"][0]["artifacts"], sent.body["task"]["artifacts"]);
    for (method, path, status, reason) in [
        ("GET", "/tasks/nothing".to_owned(), 404, "TASK_NOT_FOUND"),
        ("POST", "/tasks/nothing:cancel".to_owned(), 404, "TASK_NOT_FOUND"),
        ("POST", format!("/tasks/{task}:cancel"), 400, "TASK_NOT_CANCELABLE"),
        ("POST", format!("/tasks/{task}:subscribe"), 400, "UNSUPPORTED_OPERATION"),
        ("GET", format!("/tasks/{task}:subscribe"), 400, "UNSUPPORTED_OPERATION"),
        ("GET", format!("/tasks/{task}/pushNotificationConfigs"), 400, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        ("GET", "/extendedAgentCard".to_owned(), 400, "UNSUPPORTED_OPERATION"),
    ] {
        let refused = world.client.rest(method, &path, None).await;
        let error = &refused.body["error"];
        assert_eq!((refused.status, &error["code"]), (status, &json!(status)), "{path}: {refused:?}");
        let detail = &error["details"][0];
        assert_eq!(
            (&detail["reason"], &detail["domain"]),
            (&json!(reason), &json!("a2a-protocol.org")),
            "{path}"
        );
        assert_eq!(detail["@type"], "type.googleapis.com/google.rpc.ErrorInfo");
        assert!(error["message"].is_string() && error["status"].is_string());
    }
    let other = world.client.rest("POST", &format!("/tasks/{task}:resume"), None).await;
    assert_eq!(other.status, 404, "{other:?}");
    world.end().await;
}

/// S13.5, S13.19
#[tokio::test]
async fn a_stream_and_a_cancel_over_http_and_json() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = over(agent).await;
    let body = json!({"message": message("m-1", "Go.")});
    let mut stream = world.client.stream("POST", "/a2a/helper/message:stream", &VERSION, Some(&body)).await;
    assert!(stream.head.contains("text/event-stream"), "{}", stream.head);
    let task = id(&stream.data().await.unwrap()["task"]);
    let request = gate.request().await;
    let canceled = world.client.rest("POST", &format!("/tasks/{task}:cancel"), None).await;
    assert_eq!((canceled.status, state(&canceled.body)), (200, "TASK_STATE_CANCELED"), "{canceled:?}");
    request.peer_closed().in_time("the end of the model's connection").await;
    let mut last = Value::Null;
    while let Some(data) = stream.data().await {
        last = data;
    }
    assert_eq!(state(&last["statusUpdate"]), "TASK_STATE_CANCELED", "{last}");
    world.end().await;
}

/// S13.19: a version that is not spoken is refused; a client that names none speaks 0.3, and a patch is no other version.
#[tokio::test]
async fn only_1_0_is_spoken() {
    let world = world(says([Reply::text("Lisbon.")])).await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}});
    for (version, is_spoken) in
        [("1.0", true), ("1.0.1", true), ("0.3", false), ("99.0", false), ("", false), ("1.1", false)]
    {
        let header = [("a2a-version", version)];
        let rpc = world.client.send("POST", "/a2a/helper", &header, Some(&call)).await;
        let error = if is_spoken { Value::Null } else { json!(-32009) };
        assert_eq!((rpc.status, &rpc.body["error"]["code"]), (200, &error), "{version}");
        let rest = world.client.send("GET", "/a2a/helper/tasks", &header, None).await;
        assert_eq!(rest.status, if is_spoken { 200 } else { 400 }, "{version}: {rest:?}");
    }
    let none = world.client.send("GET", "/a2a/helper/tasks", &[], None).await;
    assert_eq!(
        (none.status, &none.body["error"]["details"][0]["reason"]),
        (400, &json!("VERSION_NOT_SUPPORTED"))
    );
    let query = world.client.send("GET", "/a2a/helper/tasks?A2A-Version=1.0", &[], None).await;
    assert_eq!(query.status, 200, "a parameter names it too: {query:?}");
    world.end().await;
}

/// S13.19, S13.53: what is no request of JSON-RPC has the error that it has for that, with the id that could be read.
#[tokio::test]
async fn what_is_no_request_is_refused_as_json_rpc_does() {
    let world = world(says([Reply::text("Lisbon.")])).await;
    for (body, code, id) in [
        (json!({"id": 1, "method": "GetTask"}), -32600, json!(1)),
        (json!({"jsonrpc": "2.0", "id": "a"}), -32600, json!("a")),
        (json!({"jsonrpc": "2.0", "id": 1.5, "method": "ListTasks"}), -32600, Value::Null),
        (json!({"jsonrpc": "2.0", "id": 1e20, "method": "ListTasks"}), -32600, Value::Null),
        (json!({"jsonrpc": "2.0", "id": i64::MAX, "method": "Nothing"}), -32601, json!(i64::MAX)),
        (json!([]), -32600, Value::Null),
        (json!({"jsonrpc": "2.0", "id": 2, "method": "Nothing"}), -32601, json!(2)),
        (json!({"jsonrpc": "2.0", "id": 3, "method": "GetTask"}), -32602, json!(3)),
        (json!({"jsonrpc": "2.0", "id": 3, "method": "GetTask", "params": []}), -32602, json!(3)),
        (json!({"jsonrpc": "2.0", "id": 4, "method": "SendMessage", "params": {}}), -32602, json!(4)),
    ] {
        let reply = world.client.send("POST", "/a2a/helper", &VERSION, Some(&body)).await;
        assert_eq!((reply.status, &reply.body["error"]["code"]), (200, &json!(code)), "{body}: {reply:?}");
        assert_eq!(reply.body["id"], id, "{body}");
        assert!(reply.body["error"]["data"].is_array() && reply.body["error"]["message"].is_string());
    }
    let text = [("content-type", "text/plain"), VERSION[0]];
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "GetTask"});
    let refused = world.client.send("POST", "/a2a/helper", &text, Some(&body)).await;
    assert_eq!((refused.status, &refused.body["error"]["code"]), (415, &json!(-32005)), "{refused:?}");
    let refused = world.client.send("POST", "/a2a/helper/message:send", &text, Some(&body)).await;
    let reason = &refused.body["error"]["details"][0]["reason"];
    assert_eq!((refused.status, reason), (415, &json!("CONTENT_TYPE_NOT_SUPPORTED")), "{refused:?}");
    let own = [("content-type", "application/a2a+json"), VERSION[0]];
    let sent = json!({"message": message("m-1", "Portugal?"), "unknown": 1});
    let taken = world.client.send("POST", "/a2a/helper/message:send", &own, Some(&sent)).await;
    assert_eq!(taken.status, 200, "{taken:?}");
    world.end().await;
}

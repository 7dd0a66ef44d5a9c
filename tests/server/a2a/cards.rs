//! The card of an agent, and what is not offered.

use safepoint_server::{AccessScope, Principal};
use safepoint_testkit::script::Reply;
use serde_json::json;

use super::{VERSION, message, world};
use crate::world::{World, says};

/// S13.10, S13.19: the card is below its agent, has what a client needs, and needs a token as all does.
#[tokio::test]
async fn a_card_says_where_its_agent_is() {
    let world = world(says([Reply::text("Hello.")])).await;
    let path = "/a2a/helper/.well-known/agent-card.json";
    let card = world.client.get(path).await;
    assert_eq!(card.status, 200, "{card:?}");
    let url = format!("http://{}/a2a/helper", world.client.address);
    let interfaces = card.body["supportedInterfaces"].as_array().unwrap();
    for (interface, binding) in interfaces.iter().zip(["JSONRPC", "HTTP+JSON"]) {
        assert_eq!(*interface, json!({"url": url, "protocolBinding": binding, "protocolVersion": "1.0"}));
    }
    for field in [
        "name",
        "description",
        "version",
        "capabilities",
        "defaultInputModes",
        "defaultOutputModes",
        "skills",
    ] {
        assert!(!card.body[field].is_null(), "{field} is missing: {}", card.body);
    }
    assert_eq!(
        (&card.body["name"], &card.body["capabilities"]["streaming"]),
        (&json!("helper"), &json!(true))
    );
    assert_eq!(card.body["capabilities"]["pushNotifications"], false);
    assert!(
        card.head.contains("cache-control: private, max-age=") && card.head.contains("etag: "),
        "{}",
        card.head
    );
    let tag = card.head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned();
    let known = world.client.send("GET", path, &[("if-none-match", &tag)], None).await;
    assert_eq!(known.status, 304, "{known:?}");
    let only = world.client.get("/.well-known/agent-card.json").await;
    assert_eq!(only.body, card.body, "of one agent it is at the root too");
    let none = world.client.send("GET", path, &[("authorization", "Bearer x")], None).await;
    assert_eq!((none.status, &none.body["error"]["status"]), (401, &json!("UNAUTHENTICATED")), "{none:?}");
    world.end().await;
}

/// S13.19: a slash at the end is no other place.
#[tokio::test]
async fn a_trailing_slash_works() {
    let world = world(says([Reply::text("Hello.")])).await;
    let params = json!({"message": message("m-1", "Hi.")});
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": params});
    let reply = world.client.send("POST", "/a2a/helper/", &VERSION, Some(&body)).await;
    assert_eq!((reply.status, &reply.body["id"]), (200, &json!(7)), "{reply:?}");
    assert_eq!(reply.body["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    world.end().await;
}

/// S13.10: an agent that is not offered over A2A, or not to this token, does not exist here.
#[tokio::test]
async fn an_agent_that_is_not_offered_does_not_exist() {
    let offered = world(says([Reply::text("Hello.")])).await;
    let only_other = offered.client_of(Principal::new("x", AccessScope::ALL).only_agents(["other"]));
    let hidden = World::of(says([Reply::text("Hello.")]).build()).await;
    for client in [&only_other, &hidden.client] {
        let card = client.get("/a2a/helper/.well-known/agent-card.json").await;
        assert_eq!(card.status, 404, "{card:?}");
        let sent = client.rpc("SendMessage", json!({"message": message("m-1", "Hi.")})).await;
        assert_eq!(sent.body["error"]["data"][0]["metadata"]["code"], "no_such_agent", "{sent:?}");
        let tasks = client.send("GET", "/a2a/helper/tasks", &VERSION, None).await;
        assert_eq!((tasks.status, &tasks.body["error"]["status"]), (404, &json!("NOT_FOUND")));
    }
    let sessions = offered.client.get("/v1/sessions").await.body;
    assert_eq!(sessions["data"], json!([]), "nothing was begun");
    hidden.end().await;
    offered.end().await;
}

/// S13.19: what is not offered has the error that the protocol has for it.
#[tokio::test]
async fn what_is_not_offered_says_so() {
    let world = world(says([Reply::text("Hello.")])).await;
    let no_push = (-32003, "PUSH_NOTIFICATION_NOT_SUPPORTED".to_owned());
    for method in ["Create", "Get", "Delete"] {
        let method = format!("{method}TaskPushNotificationConfig");
        assert_eq!(world.client.refusal(&method, json!({"taskId": "t"})).await, no_push, "{method}");
    }
    assert_eq!(
        world.client.refusal("ListTaskPushNotificationConfigs", json!({"taskId": "t"})).await,
        no_push
    );
    let config = json!({"taskPushNotificationConfig": {"url": "https://example.com"}});
    let params = json!({"message": message("m-1", "Hi."), "configuration": config});
    assert_eq!(world.client.refusal("SendMessage", params).await, no_push);
    let unsupported = (-32004, "UNSUPPORTED_OPERATION".to_owned());
    assert_eq!(world.client.refusal("GetExtendedAgentCard", json!({})).await, unsupported);
    assert_eq!(world.client.refusal("message/send", json!({})).await.0, -32601);
    world.end().await;
}

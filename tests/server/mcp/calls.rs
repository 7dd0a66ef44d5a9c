//! Calls: one item each, with what is known of its turn, and how far it is.

use safepoint_testkit::{
    script::{Reply, ReplyFault},
    tools::GateTools,
    wait::InTime as _,
};
use serde_json::{Value, json};

use super::{call, ours, over, peer::Peer, text, world};
use crate::world::{says, served};

/// S13.18, S13.1: one tool, with the agent's name; a call of it is one item, whose answer is structured too, and the receipt is where
/// it says; the next call may continue its session.
#[tokio::test]
async fn one_call_is_one_item_and_one_answer() {
    let world = world(says([Reply::text("One."), Reply::text("Two.")])).await;
    let mut peer = Peer::of(&world, json!({})).await;
    let tools = peer.request("tools/list", json!({})).await["result"]["tools"].clone();
    assert_eq!((tools.as_array().unwrap().len(), &tools[0]["name"]), (1, &json!("helper")), "{tools}");
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["text"]), "{tools}");
    let first = peer.call(call("Say one.")).await;
    assert_eq!((text(&first), &first["isError"]), ("One.", &json!(false)), "{first}");
    let account = ours(&first);
    assert_eq!((&account["item"], &account["outcome"]), (&json!("item-1"), &json!("completed")), "{first}");
    let turn = world.client.get(account["receipt"].as_str().unwrap()).await;
    assert_eq!(turn.body["outcome"], "completed", "{turn:?}");
    let session = account["session"].as_str().unwrap();
    let again = json!({"name": "helper", "arguments": {"text": "Say two.", "session": session}});
    let second = peer.call(again).await;
    assert_eq!((text(&second), &ours(&second)["item"]), ("Two.", &json!("item-2")), "{second}");
    assert_eq!(ours(&second)["session"], session);
    assert_eq!(peer.end().await, Vec::<Value>::new(), "nothing is said after the answers");
    world.end().await;
}

/// S13.18: a turn that failed is a result that says so; a call that is none is one too, and begins nothing.
#[tokio::test]
async fn what_failed_is_a_result_that_says_so() {
    let body = json!({"error": {"message": "no such model"}}).to_string();
    let refused = Reply::default().fault(ReplyFault::Status { status: 400, body, headers: Vec::new() });
    let (_model, agent) = served([refused]).await;
    let world = over(agent).await;
    let foreign = world.client.post("/v1/sessions", &json!({"agent": "helper"})).await.body["id"].clone();
    let mut peer = Peer::of(&world, json!({})).await;
    let failed = peer.call(call("Go.")).await;
    assert_eq!((&failed["isError"], &ours(&failed)["outcome"]), (&json!(true), &json!("failed")), "{failed}");
    assert!(text(&failed).contains("no such model"), "{failed}");
    for (arguments, code) in [
        (json!({}), "bad_request"),
        (json!({"text": " "}), "blank"),
        (json!({"text": "x", "session": "ses_none"}), "no_such_session"),
        (json!({"text": "x", "session": foreign}), "no_such_session"),
        (json!({"text": "x", "model": "m"}), "bad_request"),
    ] {
        let refused = peer.call(json!({"name": "helper", "arguments": arguments})).await;
        assert_eq!((&refused["isError"], &ours(&refused)["code"]), (&json!(true), &json!(code)), "{refused}");
    }
    let unknown = peer.request("tools/call", json!({"name": "other", "arguments": {"text": "x"}})).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    peer.end().await;
    world.end().await;
}

/// S13.18: a client that asks for it learns what the agent says, summed up, and its calls; nothing of it comes behind the answer.
#[tokio::test]
async fn progress_is_shown_to_a_client_that_asks_for_it() {
    let tools = GateTools::new();
    tools.gate().open_for_all();
    let pieces = || Reply::pieces(["I ", "pause"]).and_call("wait", json!({}));
    let replies = [pieces(), Reply::text("Done."), pieces(), Reply::text("Done.")];
    let world = world(says(replies).tool(tools.gated("wait"))).await;
    let mut peer = Peer::of(&world, json!({})).await;
    peer.call(call("Wait.")).await;
    assert_eq!(peer.notices, Vec::<Value>::new(), "no token was sent");
    let mut params = call("Wait.");
    params["_meta"] = json!({"progressToken": "p"});
    let result = peer.call(params).await;
    assert_eq!(text(&result), "Done.");
    let shown = peer.progress("p");
    assert_eq!(shown, ["I ", "pause", "wait", "wait: completed", "Done."]);
    let counts: Vec<_> =
        peer.notices.iter().map(|notice| notice["params"]["progress"].as_f64().unwrap()).collect();
    assert!(counts.is_sorted_by(|a, b| a < b), "{counts:?}");
    assert_eq!(peer.end().await, Vec::<Value>::new(), "nothing is said after the answer");
    world.end().await;
}

/// S13.5, S13.18: a stop by another door ends the call once its turn has settled, and the answer says what stopped it.
#[tokio::test]
async fn a_stop_elsewhere_is_answered_once_it_has_settled() {
    let tools = GateTools::new();
    let world = world(says([Reply::call("deaf", json!({}))]).tool(tools.deaf("deaf"))).await;
    let mut peer = Peer::of(&world, json!({})).await;
    let id = peer.send("tools/call", call("Go.")).await;
    tools.gate().came(1).in_time("the call").await;
    let all = world.client.get("/v1/sessions").await.body;
    let path = format!("/v1/sessions/{}/stop", all["data"][0]["id"].as_str().unwrap());
    let asked = world.client.post(&path, &json!({"mode": "now", "reason": "wrong"})).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    // What is asked behind it is answered first: the call is not, before its work has settled.
    let pong = peer.request("ping", json!({})).await;
    assert!(pong["error"].is_null() && peer.notices.is_empty(), "{pong} {:?}", peer.notices);
    tools.gate().open_for_all();
    let result = peer.answer(id).await["result"].clone();
    assert_eq!(
        (&result["isError"], &ours(&result)["outcome"]),
        (&json!(true), &json!("interrupted")),
        "{result}"
    );
    assert_eq!(ours(&result)["quiet"], true, "{result}");
    assert!(result["_meta"]["safepoint"].is_null(), "all was quiet: {result}");
    peer.end().await;
    world.end().await;
}

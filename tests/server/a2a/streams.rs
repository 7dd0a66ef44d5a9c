//! Streams of a task: the task first, then what happens, to its end.

use safepoint::tool;
use safepoint_testkit::{script::Reply, tools::GateTools, wait::InTime as _};
use serde_json::{Value, json};

use super::{id, message, over, question, state, to_task, world, yes};
use crate::world::{says, served};

/// Pays a supplier.
#[tool(effect = "keyed", approval = "required")]
async fn pay(cents: u64) -> String {
    format!("paid {cents}")
}

/// The text of the artifact, as a client puts it together.
fn text(pieces: &[Value]) -> String {
    let mut text = String::new();
    for piece in pieces {
        let whole = &piece["task"]["artifacts"][0]["parts"][0]["text"];
        let update = &piece["artifactUpdate"];
        if let Some(whole) = whole.as_str() {
            whole.clone_into(&mut text);
        }
        if let Some(part) = update["artifact"]["parts"][0]["text"].as_str() {
            assert_eq!(update["artifact"]["artifactId"], "answer");
            if update["append"] != true {
                text.clear();
            }
            text.push_str(part);
        }
    }
    text
}

/// The states that a stream went through.
fn states(pieces: &[Value]) -> Vec<String> {
    let state_of = |piece: &Value| {
        let of = if piece["task"].is_object() { &piece["task"] } else { &piece["statusUpdate"] };
        of["status"]["state"].as_str().map(|state| state.trim_start_matches("TASK_STATE_").to_owned())
    };
    let mut states: Vec<String> = pieces.iter().filter_map(state_of).collect();
    states.dedup();
    states
}

/// S13.19: the task is first, its answer comes piece by piece, and the stream ends with the state that it ended in.
#[tokio::test]
async fn a_stream_has_the_task_first_and_ends_with_it() {
    let reply = Reply::pieces(["Lis", "bon", " it", " is."]);
    let world = world(says([reply])).await;
    let params = json!({"message": message("m-1", "Portugal?")});
    let pieces = world.client.streamed("SendStreamingMessage", params).await.pieces().await;
    assert!(pieces[0]["task"].is_object(), "{pieces:?}");
    assert_eq!(text(&pieces), "Lisbon it is.", "{pieces:?}");
    let last = pieces.last().unwrap();
    assert_eq!(state(&last["statusUpdate"]), "TASK_STATE_COMPLETED", "{last}");
    let seen = states(&pieces);
    assert!(seen.ends_with(&["WORKING".to_owned(), "COMPLETED".to_owned()]), "{seen:?}");
    let (task, context) = (&pieces[0]["task"]["id"], &pieces[0]["task"]["contextId"]);
    for piece in &pieces[1..] {
        let of = piece.as_object().unwrap().values().next().unwrap();
        assert_eq!((&of["taskId"], &of["contextId"]), (task, context), "{piece}");
    }
    world.end().await;
}

/// S13.19: of the messages of a turn the last is its answer, and what came before it is not in it.
#[tokio::test]
async fn the_answer_is_the_last_message_of_the_turn() {
    let first = Reply::text("I look.").and_call("pay", json!({"cents": 1}));
    let world = world(says([first, Reply::text("Paid.")]).tool(pay)).await;
    let mut sent =
        world.client.streamed("SendStreamingMessage", json!({"message": message("m-1", "Pay.")})).await;
    let mut pieces = sent.pieces().await;
    assert_eq!(states(&pieces).last().unwrap(), "INPUT_REQUIRED", "it ends at a question: {pieces:?}");
    assert_eq!(text(&pieces), "I look.");
    let task = id(&pieces[0]["task"]);
    let asked = question(&pieces.last().unwrap()["statusUpdate"]["status"]);
    let params = json!({"message": to_task(&task, "m-2", &yes(asked))});
    pieces = world.client.streamed("SendStreamingMessage", params).await.pieces().await;
    assert_eq!(
        (text(&pieces).as_str(), states(&pieces).last().unwrap().as_str()),
        ("Paid.", "COMPLETED"),
        "{pieces:?}"
    );
    assert_eq!(world.client.task(&task).await["artifacts"][0]["parts"][0]["text"], "Paid.");
    world.end().await;
}

/// S13.28: what a sub-agent says is the work of a call, and no part of the answer.
#[tokio::test]
async fn what_a_sub_agent_says_is_no_answer() {
    let child = says([Reply::pieces(["Be", "low."])]).build();
    let root = says([Reply::call("reader", json!({"task": "Read."})), Reply::pieces(["A", "bove."])]);
    let world = world(root.child(child.as_subagent("reader", "reads"))).await;
    let params = json!({"message": message("m-1", "Go.")});
    let pieces = world.client.streamed("SendStreamingMessage", params).await.pieces().await;
    assert_eq!(states(&pieces).last().unwrap(), "COMPLETED", "{pieces:?}");
    assert_eq!(text(&pieces), "Above.");
    assert!(!json!(pieces).to_string().contains("low."), "{pieces:?}");
    world.end().await;
}

/// S13.19: who subscribes to a task with a question waits with it, sees what follows the answer, and every reader sees the same.
#[tokio::test]
async fn a_subscriber_waits_at_a_question() {
    let world = world(says([Reply::call("pay", json!({"cents": 1})), Reply::text("Paid.")]).tool(pay)).await;
    let asks = world.client.completed(message("m-1", "Pay.")).await;
    let task = id(&asks);
    let mut readers = Vec::new();
    for _ in 0..3 {
        let mut reader = world.client.streamed("SubscribeToTask", json!({"id": task})).await;
        let first = reader.piece().await.unwrap();
        assert_eq!(state(&first["task"]), "TASK_STATE_INPUT_REQUIRED", "{first}");
        readers.push(reader);
    }
    drop(readers.pop());
    let over = world.client.completed(to_task(&task, "m-2", &yes(question(&asks["status"])))).await;
    assert_eq!(state(&over), "TASK_STATE_COMPLETED");
    for mut reader in readers {
        let pieces = reader.pieces().in_time("the end of a stream").await;
        assert_eq!(states(&pieces), ["WORKING", "COMPLETED"], "{pieces:?}");
        assert_eq!(text(&pieces), "Paid.", "{pieces:?}");
    }
    world.end().await;
}

/// S13.19: who waits at one question is shown the next one, also where that was asked before it looked again.
#[tokio::test]
async fn a_subscriber_is_shown_the_next_question() {
    let pays = || Reply::call("pay", json!({"cents": 1}));
    let world = world(says([pays(), pays(), Reply::text("Paid.")]).tool(pay)).await;
    let first = world.client.completed(message("m-1", "Pay.")).await;
    let task = id(&first);
    let mut reader = world.client.streamed("SubscribeToTask", json!({"id": task})).await;
    reader.piece().await.unwrap();
    let second = world.client.completed(to_task(&task, "m-2", &yes(question(&first["status"])))).await;
    assert_ne!(question(&second["status"]), question(&first["status"]));
    let over = world.client.completed(to_task(&task, "m-3", &yes(question(&second["status"])))).await;
    assert_eq!(state(&over), "TASK_STATE_COMPLETED");
    let pieces = reader.pieces().in_time("the end of the stream").await;
    let seen = states(&pieces);
    assert_eq!((&seen[0], seen.last().unwrap().as_str()), (&"WORKING".to_owned(), "COMPLETED"), "{pieces:?}");
    world.end().await;
}

/// S13.19: a reader that comes later has the whole answer all the same.
#[tokio::test]
async fn who_subscribes_later_has_the_whole_answer() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = over(agent).await;
    let task = id(&world.client.begun("m-1", "Go.").await);
    drop(gate.request().await);
    let mut early = world.client.streamed("SubscribeToTask", json!({"id": task})).await;
    let mut pieces = vec![early.piece().await.unwrap()];
    gate.script(&Reply::pieces(["One, ", "two, ", "three."]));
    gate.headers();
    while !gate.send_next_until(b"One, ") {}
    while text(&pieces) != "One, " {
        pieces.push(early.piece().await.unwrap());
    }
    let mut late = world.client.streamed("SubscribeToTask", json!({"id": task})).await;
    let mut later = vec![late.piece().await.unwrap()];
    gate.finish();
    pieces.extend(early.pieces().in_time("the end of a stream").await);
    later.extend(late.pieces().in_time("the end of a stream").await);
    assert_eq!((text(&pieces), text(&later)), ("One, two, three.".to_owned(), "One, two, three.".to_owned()));
    world.end().await;
}

/// S13.29: a message that is sent again is the same task, and its stream says what the agent says from there on.
#[tokio::test]
async fn the_stream_of_a_message_that_is_sent_again_is_not_silent() {
    let tools = GateTools::new();
    let looks = |text: &str| Reply::text(text).and_call("wait", json!({}));
    let replies = [looks("I look."), looks("I look again."), Reply::text("Done.")];
    let world = world(says(replies).tool(tools.gated("wait"))).await;
    let params = json!({"message": message("m-1", "Go.")});
    let mut first = world.client.streamed("SendStreamingMessage", params.clone()).await;
    let task = first.piece().await.unwrap()["task"]["id"].clone();
    tools.gate().came(1).in_time("the first call").await;
    let mut again = world.client.streamed("SendStreamingMessage", params).await;
    let mut pieces = vec![again.piece().await.unwrap()];
    assert_eq!((&pieces[0]["task"]["id"], &*text(&pieces)), (&task, "I look."));
    tools.gate().let_pass(1);
    while text(&pieces) != "I look again." {
        pieces.push(again.piece().in_time("what is said while the turn runs").await.unwrap());
    }
    tools.gate().open_for_all();
    pieces.extend(again.pieces().in_time("the end of a stream").await);
    assert_eq!(text(&pieces), "Done.");
    world.end().await;
}

/// S13.19: there is nothing to subscribe to in a task that is over (a2aproject/a2a-java#767).
#[tokio::test]
async fn a_task_that_is_over_has_no_stream() {
    let world = world(says([Reply::text("Lisbon.")])).await;
    let task = id(&world.client.completed(message("m-1", "Portugal?")).await);
    let refused = world.client.refusal("SubscribeToTask", json!({"id": task})).await;
    assert_eq!(refused, (-32004, "UNSUPPORTED_OPERATION".to_owned()));
    world.end().await;
}

/// S13.12: a stream ends with its server, and says nothing of an end that is none.
#[tokio::test]
async fn a_stream_ends_with_its_server() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = over(agent).await;
    let mut sent =
        world.client.streamed("SendStreamingMessage", json!({"message": message("m-1", "Go.")})).await;
    assert!(sent.piece().await.unwrap()["task"].is_object());
    drop(gate.request().await);
    let ending = tokio::spawn(world.end());
    let rest = sent.pieces().in_time("the end of the stream").await;
    assert!(!states(&rest).contains(&"COMPLETED".to_owned()), "{rest:?}");
    ending.await.unwrap();
}

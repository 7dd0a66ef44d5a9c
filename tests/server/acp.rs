//! Sessions over ACP: one prompt is one item and one answer, and nothing says cancelled before its turn has settled.

use std::{sync::Arc, time::Duration};

use safepoint::{Agent, Limits, store::MemoryStore, tool};
use safepoint_server::AcpServer;
use safepoint_testkit::{
    fault_store::{FaultStore, OperationFault},
    ledger::Mark,
    script::{Reply, ReplyFault},
    tool_gate::ToolGate,
    tools::GateTools,
    wait,
    wait::InTime as _,
};
use serde_json::{Value, json};

use super::{
    editor::Editor,
    world::{World, says, served},
};

/// Pays a supplier.
#[tool(effect = "keyed", approval = "required")]
async fn pay(cents: u64) -> String {
    format!("paid {cents}")
}

fn payer() -> Agent {
    says([Reply::call("pay", json!({"cents": 12000})), Reply::text("Done.")]).tool(pay).build()
}

/// An agent with a tool that waits at its gate, and what it says after it.
fn waiting(tools: &GateTools, tool: fn(&GateTools, &str) -> safepoint::tool::FnTool) -> Agent {
    says([Reply::call("wait", json!({})), Reply::text("Later.")]).tool(tool(tools, "wait")).build()
}

/// S13.17, S13.5: one prompt is one item; its text and its calls are shown once, and its answer has the account.
#[tokio::test]
async fn one_prompt_is_one_item_and_one_answer() {
    let tools = GateTools::new();
    tools.gate().open_for_all();
    let world = World::of(waiting(&tools, GateTools::gated)).await;
    let (mut editor, session) = Editor::with_session(&world).await;
    let prompt = editor.prompt(&session, "Wait.").await;
    let got = editor.answer(prompt).await;
    assert_eq!(got.stop_reason(), "end_turn", "{got:?}");
    assert_eq!((got.text(), got.statuses()), ("Later.".into(), vec!["in_progress", "completed"]));
    let receipt = format!("/v1/sessions/{session}/turns/turn-1");
    let meta = got.meta();
    assert_eq!(
        (&meta["item"], &meta["turn"], &meta["outcome"], &meta["receipt"]),
        (&json!("item-1"), &json!("turn-1"), &json!("completed"), &json!(receipt)),
        "{meta}"
    );
    assert_eq!(world.client.get(&receipt).await.body["outcome"], "completed", "the receipt is where it says");
    assert_eq!(editor.end().await, Vec::<Value>::new(), "nothing is said after the answer");
    world.end().await;
}

/// S13.17, S13.6: a cancel that is written with its prompt reaches it, and the prompt behind it runs.
#[tokio::test]
async fn a_cancel_right_behind_its_prompt_is_heard() {
    let (model, agent) = served([]).await;
    let (mut one, mut two) = (model.gate(), model.gate());
    let world = World::of(agent).await;
    let (mut editor, session) = Editor::with_session(&world).await;
    let prompt = |id: u64, text: &str| {
        let prompt = json!([{"type": "text", "text": text}]);
        let params = json!({"sessionId": session, "prompt": prompt});
        json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params})
    };
    let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
    editor.write(&format!("{}\n{cancel}\n{}\n", prompt(50, "first"), prompt(51, "second"))).await;
    let first = editor.answer(50).await;
    assert_eq!(first.stop_reason(), "cancelled", "{first:?}");
    // The first of them may have reached the model before it was stopped.
    let mut open = one.request().in_time("a request").await;
    if open.body.to_string().contains("first") && !open.body.to_string().contains("second") {
        open.peer_closed().in_time("the end of the cancelled request").await;
        open = two.request().in_time("the request of the second prompt").await;
        two.headers();
        two.script(&Reply::text("here"));
        two.finish();
    } else {
        one.headers();
        one.script(&Reply::text("here"));
        one.finish();
    }
    assert!(open.body.to_string().contains("second"));
    let second = editor.answer(51).await;
    assert_eq!((second.stop_reason(), second.text()), ("end_turn", "here".into()));
    assert_eq!(editor.end().await, Vec::<Value>::new());
    world.end().await;
}

/// S13.17: a second prompt waits, and has its own turn and its own answer; updates are those of the turn that runs.
#[tokio::test]
async fn a_second_prompt_has_its_own_turn() {
    let (model, agent) = served([]).await;
    let (mut one, mut two) = (model.gate(), model.gate());
    let world = World::of(agent).await;
    let (mut editor, session) = Editor::with_session(&world).await;
    let first = editor.prompt(&session, "first").await;
    one.request().in_time("the first request").await;
    let second = editor.prompt(&session, "second").await;
    one.headers();
    one.script(&Reply::text("one"));
    one.finish();
    let got = editor.answer(first).await;
    assert_eq!((got.stop_reason(), got.text()), ("end_turn", "one".into()));
    two.request().in_time("the second request").await;
    two.headers();
    two.script(&Reply::text("two"));
    two.finish();
    let got = editor.answer(second).await;
    assert_eq!((got.text(), &got.meta()["turn"]), ("two".into(), &json!("turn-2")));
    editor.end().await;
    world.end().await;
}

/// S13.5, S13.17: the answer waits for a tool that does not hear its stop, and the reading does not; cancelled is said once the turn has settled,
/// and a second cancel is the same one.
#[tokio::test]
async fn cancelled_is_said_once_the_turn_has_settled() {
    let tools = GateTools::new();
    let world = World::of(waiting(&tools, GateTools::finishing)).await;
    let server = AcpServer::new(&world.host, "helper").grace(Duration::from_secs(600));
    let mut editor = Editor::at(server);
    let made = editor.call("session/new", json!({"cwd": "/", "mcpServers": []})).await;
    let session = made.answer["result"]["sessionId"].as_str().unwrap().to_owned();
    let prompt = editor.prompt(&session, "Wait.").await;
    tools.gate().came(1).in_time("the call").await;
    editor.cancel(&session).await;
    // What is asked behind the cancel is answered while the turn has not settled, and nothing said cancelled before it.
    let list = editor.send("session/list", json!({})).await;
    let got = editor.answer(list).await;
    assert_eq!(got.answer["result"]["sessions"][0]["sessionId"], session.as_str(), "{got:?}");
    tools.gate().let_pass(1);
    let got = editor.answer(prompt).await;
    assert_eq!((got.stop_reason(), &got.meta()["quiet"]), ("cancelled", &json!(true)), "{got:?}");
    assert_eq!(tools.ledger().count(Mark::Commit), 1, "it was given its time");
    editor.cancel(&session).await;
    assert_eq!(editor.end().await, Vec::<Value>::new(), "a cancel of nothing says nothing");
    world.end().await;
}

/// S13.17: a second cancel does not wait for the grace of the first.
#[tokio::test]
async fn a_second_cancel_is_at_once() {
    let tools = GateTools::new();
    let world = World::of(waiting(&tools, GateTools::gated)).await;
    let server = AcpServer::new(&world.host, "helper").grace(Duration::from_secs(600));
    let mut editor = Editor::at(server);
    let made = editor.call("session/new", json!({"cwd": "/", "mcpServers": []})).await;
    let session = made.answer["result"]["sessionId"].as_str().unwrap().to_owned();
    let prompt = editor.prompt(&session, "Wait.").await;
    tools.gate().came(1).in_time("the call").await;
    editor.cancel(&session).await;
    editor.cancel(&session).await;
    let got = editor.answer(prompt).await;
    assert_eq!((got.stop_reason(), got.statuses()), ("cancelled", vec!["in_progress", "failed"]));
    assert_eq!(tools.ledger().count(Mark::Commit), 0);
    editor.end().await;
    world.end().await;
}

/// S13.17: `$/cancel_request` ends one prompt with the error of the protocol, once it has settled.
#[tokio::test]
async fn a_cancelled_request_is_an_error_once_it_has_settled() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = World::of(agent).await;
    let (mut editor, session) = Editor::with_session(&world).await;
    let prompt = editor.prompt(&session, "first").await;
    let request = gate.request().in_time("the request").await;
    editor.notify("$/cancel_request", json!({"requestId": prompt})).await;
    let got = editor.answer(prompt).await;
    let error = &got.answer["error"];
    assert_eq!(
        (&error["code"], &error["data"]["safepoint"]["outcome"]),
        (&json!(-32800), &json!("interrupted")),
        "{got:?}"
    );
    request.peer_closed().in_time("the end of the request").await;
    editor.end().await;
    world.end().await;
}

/// S13.9, S13.17: a question is the editor's, and the same prompt continues to its one answer.
#[tokio::test]
async fn a_question_goes_to_the_editor() {
    for (kind, output, word) in [("allow_once", "paid 12000", "completed"), ("reject_once", "", "failed")] {
        let world = World::of(payer()).await;
        let (mut editor, session) = Editor::with_session(&world).await;
        let prompt = editor.prompt(&session, "Pay Acme.").await;
        let question = editor.question().await;
        let call = &question["params"]["toolCall"];
        assert_eq!(
            (&call["title"], &call["rawInput"]["cents"]),
            (&json!("pay"), &json!(12000)),
            "{question}"
        );
        editor.choose(&question, kind).await;
        let got = editor.answer(prompt).await;
        assert_eq!((got.stop_reason(), got.text()), ("end_turn", "Done.".into()), "{got:?}");
        let ended = got.updates.iter().find(|update| update["status"] == word).unwrap();
        let said = ended["content"][0]["content"]["text"].as_str().unwrap();
        assert!(said.contains(output) && ended["toolCallId"] == call["toolCallId"], "{ended}");
        let path = format!("/v1/sessions/{session}/approvals");
        assert_eq!(world.client.get(&path).await.body["data"][0]["by"], "local");
        assert_eq!(editor.end().await, Vec::<Value>::new());
        world.end().await;
    }
}

/// S13.17: the editor is asked while another call of the turn still runs.
#[tokio::test]
async fn a_question_does_not_wait_for_the_other_calls() {
    let tools = GateTools::new();
    let calls = Reply::call("wait", json!({})).and_call("pay", json!({"cents": 7}));
    let agent = says([calls, Reply::text("Done.")]).tool(tools.gated("wait")).tool(pay).build();
    let world = World::of(agent).await;
    let (mut editor, session) = Editor::with_session(&world).await;
    let prompt = editor.prompt(&session, "Both.").await;
    let question = editor.question().await;
    editor.choose(&question, "allow_once").await;
    wait::asked("the decision", || async {
        let all = world.client.get(&format!("/v1/sessions/{session}/approvals")).await.body;
        all["data"][0]["state"] == "decided"
    })
    .await;
    tools.gate().let_pass(1);
    let got = editor.answer(prompt).await;
    assert_eq!((got.stop_reason(), got.text()), ("end_turn", "Done.".into()), "{got:?}");
    assert_eq!(editor.end().await, Vec::<Value>::new());
    world.end().await;
}

/// S13.5, S13.17: a cancel while the agent asks withdraws the question, whether or not the editor answers it as cancelled first.
#[tokio::test]
async fn a_cancel_while_it_asks_withdraws_the_question() {
    for answers_first in [true, false] {
        let world = World::of(payer()).await;
        let (mut editor, session) = Editor::with_session(&world).await;
        let prompt = editor.prompt(&session, "Pay Acme.").await;
        let question = editor.question().await;
        if answers_first {
            editor.outcome(&question, json!({"outcome": "cancelled"})).await;
        }
        editor.cancel(&session).await;
        if !answers_first {
            let back = editor.next().await.unwrap();
            assert_eq!(
                (&back["method"], &back["params"]["requestId"]),
                (&json!("$/cancel_request"), &question["id"]),
                "{back}"
            );
        }
        let got = editor.answer(prompt).await;
        assert_eq!(got.stop_reason(), "cancelled", "{got:?}");
        let all = world.client.get(&format!("/v1/sessions/{session}/approvals")).await.body;
        assert_eq!(all["data"][0]["state"], "withdrawn", "{all}");
        assert_eq!(editor.end().await, Vec::<Value>::new());
        world.end().await;
    }
}

/// S13.1, S13.9: a decision over HTTP takes the question back from the editor, and the prompt continues.
#[tokio::test]
async fn a_decision_elsewhere_takes_the_question_back() {
    let world = World::of(payer()).await;
    let (mut editor, session) = Editor::with_session(&world).await;
    let prompt = editor.prompt(&session, "Pay Acme.").await;
    let question = editor.question().await;
    let meta = &question["params"]["_meta"]["safepoint"];
    let path = format!("/v1/sessions/{session}/approvals/{}/decision", meta["approval"].as_str().unwrap());
    let body = json!({"digest": meta["digest"], "decision": "approve"});
    let decided = world.client.post(&path, &body).await;
    assert_eq!(decided.status, 200, "{decided:?}");
    let back = editor.next().await.unwrap();
    assert_eq!(back["method"], "$/cancel_request", "{back}");
    let late =
        json!({"jsonrpc": "2.0", "id": question["id"], "result": {"outcome": {"outcome": "cancelled"}}});
    editor.write(&format!("{late}\n")).await;
    let got = editor.answer(prompt).await;
    assert_eq!((got.stop_reason(), got.text()), ("end_turn", "Done.".into()));
    editor.end().await;
    world.end().await;
}

/// S13.17: a question that is answered by no choice stays open; the next prompt asks it again, and then has its own turn.
#[tokio::test]
async fn a_question_that_stays_open_is_asked_with_the_next_prompt() {
    let replies = [Reply::call("pay", json!({"cents": 1})), Reply::text("Done."), Reply::text("Next.")];
    let world = World::of(says(replies).tool(pay).build()).await;
    let (mut editor, session) = Editor::with_session(&world).await;
    let prompt = editor.prompt(&session, "Pay Acme.").await;
    let question = editor.question().await;
    editor.outcome(&question, json!({"outcome": "cancelled"})).await;
    let got = editor.answer(prompt).await;
    assert_eq!((got.stop_reason(), &got.meta()["outcome"]), ("end_turn", &json!("suspended")), "{got:?}");
    let prompt = editor.prompt(&session, "And?").await;
    let question = editor.question().await;
    editor.choose(&question, "allow_once").await;
    let got = editor.answer(prompt).await;
    assert_eq!(
        (got.stop_reason(), got.text(), &got.meta()["item"]),
        ("end_turn", "Next.".into(), &json!("item-2"))
    );
    editor.end().await;
    world.end().await;
}

/// S13.3: a closed input stops what it began, with the reason `disconnect`, and answers all the same.
#[tokio::test]
async fn a_closed_input_stops_what_it_began() {
    let tools = GateTools::new();
    let world = World::of(waiting(&tools, GateTools::polite)).await;
    let (mut editor, session) = Editor::with_session(&world).await;
    let first = editor.prompt(&session, "Wait.").await;
    tools.gate().came(1).in_time("the call").await;
    let second = editor.prompt(&session, "And then?").await;
    let said = editor.end().await;
    let of = |id: u64| said.iter().find(|said| said["id"] == id).unwrap();
    assert_eq!(of(first)["result"]["stopReason"], "cancelled", "{said:?}");
    assert_eq!(of(second)["result"]["_meta"]["safepoint"]["outcome"], "withdrawn", "{said:?}");
    let turn = world.client.get(&format!("/v1/sessions/{session}/turns/turn-1")).await.body;
    assert_eq!(turn["receipt"]["stop"]["reason"]["code"], "disconnect", "{turn}");
    assert_eq!(tools.ledger().count(Mark::Cleanup), 1);
    world.end().await;
}

/// S13.3: a prompt that is being recorded when the editor goes is stopped too.
#[tokio::test]
async fn a_prompt_that_is_being_recorded_is_stopped_too() {
    let holds = ToolGate::shut();
    let store = FaultStore::unarmed(Arc::new(MemoryStore::default()), OperationFault::Held(holds.clone()));
    let store = Arc::new(store);
    let (model, agent) = served([]).await;
    // The second answer never begins.
    let (mut gate, _second) = (model.gate(), model.gate());
    let world = World::over(agent, Arc::clone(&store) as _, Arc::new(tempfile::tempdir().unwrap())).await;
    let (mut editor, session) = Editor::with_session(&world).await;
    editor.prompt(&session, "Talk.").await;
    let request = gate.request().in_time("the request").await;
    let made = editor.call("session/new", json!({"cwd": "/", "mcpServers": []})).await;
    let other = made.answer["result"]["sessionId"].as_str().unwrap().to_owned();
    store.arm_named("push", 0);
    editor.prompt(&other, "Talk too.").await;
    holds.came(1).in_time("the push").await;
    editor.stop_reading();
    gate.headers();
    gate.script(&Reply::text("What cannot be written."));
    while !gate.send_next_until(b"written") {}
    request.peer_closed().in_time("the end of the first turn").await;
    holds.open_for_all();
    let path = format!("/v1/sessions/{other}/items/item-1");
    wait::asked("its item", async || world.client.get(&path).await.status == 200).await;
    let rest = world.rest(&other, 1).in_time("the end of the second").await;
    assert!(["withdrawn", "interrupted"].contains(&rest["outcome"].as_str().unwrap()), "{rest}");
    world.end().await;
}

/// S13.3: what waits for a decision waits on when the editor is gone.
#[tokio::test]
async fn a_closed_input_leaves_questions_open() {
    let world = World::of(payer()).await;
    let (mut editor, session) = Editor::with_session(&world).await;
    let prompt = editor.prompt(&session, "Pay Acme.").await;
    editor.question().await;
    let said = editor.end().await;
    let answer = said.iter().find(|said| said["id"] == prompt).unwrap();
    assert_eq!(answer["result"]["_meta"]["safepoint"]["outcome"], "suspended", "{answer}");
    let all = world.client.get(&format!("/v1/sessions/{session}/approvals")).await.body;
    assert_eq!(all["data"][0]["state"], "open", "{all}");
    world.end().await;
}

/// S13.8, S13.17: a stop does not wait for an editor that does not read.
#[tokio::test]
async fn a_cancel_is_heard_while_the_editor_does_not_read() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = World::of(agent).await;
    let (mut editor, session) = Editor::with_session(&world).await;
    let prompt = editor.prompt(&session, "Talk.").await;
    let request = gate.request().in_time("the request").await;
    gate.headers();
    // More than the pipe holds, and more than waits in the agent.
    gate.script(&Reply::pieces((0..2_000).map(|_| "0123456789 ".repeat(4))));
    while gate.send_next() {}
    editor.cancel(&session).await;
    request.peer_closed().in_time("the end of the model's connection").await;
    let got = editor.answer(prompt).await;
    assert_eq!(got.stop_reason(), "cancelled");
    editor.end().await;
    world.end().await;
}

/// S13.17: a session that is loaded shows what was said on both sides; resumed it shows nothing, and continues.
#[tokio::test]
async fn a_loaded_session_shows_what_was_said() {
    let world = World::of(says([Reply::text("One."), Reply::text("Two.")]).build()).await;
    let (mut editor, session) = Editor::with_session(&world).await;
    let prompt = editor.prompt(&session, "First?").await;
    editor.answer(prompt).await;
    let closed = editor.call("session/close", json!({"sessionId": session})).await;
    assert_eq!(closed.answer["result"], json!({}));
    editor.end().await;
    let mut editor = Editor::of(&world);
    let place = json!({"sessionId": session, "cwd": "/", "mcpServers": []});
    let loaded = editor.call("session/load", place.clone()).await;
    let shown: Vec<(&Value, &Value)> =
        loaded.updates.iter().map(|update| (&update["sessionUpdate"], &update["content"]["text"])).collect();
    assert_eq!(
        shown,
        [(&json!("user_message_chunk"), &json!("First?")), (&json!("agent_message_chunk"), &json!("One.")),]
    );
    let resumed = editor.call("session/resume", place).await;
    assert_eq!((resumed.updates.len(), &resumed.answer["result"]), (0, &json!({})));
    let prompt = editor.prompt(&session, "Second?").await;
    assert_eq!(editor.answer(prompt).await.text(), "Two.");
    editor.end().await;
    world.end().await;
}

/// S13.10, S13.17: what is no message, no method, no session and no place of the agent is refused, and the next line is read.
#[tokio::test]
async fn what_is_refused_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::of(says([Reply::text("One.")]).build()).await;
    let foreign = world.empty().await;
    let mut editor = Editor::at(AcpServer::new(&world.host, "helper").folder(folder.path()));
    editor.write("{\n\n").await;
    assert_eq!(editor.next().await.unwrap()["error"]["code"], -32700);
    let elsewhere = editor.call("session/new", json!({"cwd": "/", "mcpServers": []})).await;
    assert_eq!(elsewhere.answer["error"]["code"], -32602, "{elsewhere:?}");
    let here =
        json!({"cwd": folder.path(), "mcpServers": [{"name": "x", "command": "x", "args": [], "env": []}]});
    let made = editor.call("session/new", here).await.answer;
    assert_eq!(made["result"]["_meta"]["safepoint"]["ignored"], json!(["mcpServers"]), "{made}");
    let session = made["result"]["sessionId"].as_str().unwrap();
    for (method, params, code) in [
        ("session/fork", json!({"sessionId": session}), -32601),
        ("session/load", json!({"sessionId": foreign, "cwd": folder.path()}), -32002),
        ("session/prompt", json!({"sessionId": foreign, "prompt": [{"type": "text", "text": "x"}]}), -32002),
        ("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": " "}]}), -32602),
        ("session/prompt", json!({"sessionId": session, "prompt": [{"type": "audio"}]}), -32602),
    ] {
        let refused = editor.call(method, params).await;
        assert_eq!(refused.answer["error"]["code"], code, "{method}: {refused:?}");
    }
    let prompt = editor.prompt(session, "First?").await;
    assert_eq!(editor.answer(prompt).await.text(), "One.");
    let hello = editor.call("initialize", json!({"protocolVersion": 7})).await.answer;
    assert_eq!(hello["result"]["protocolVersion"], 1);
    editor.end().await;
    world.end().await;
}

/// S13.17: a turn that fails is an error with its code, and one that reaches its limit of rounds says so.
#[tokio::test]
async fn how_a_turn_ended_is_said_in_the_words_of_the_protocol() {
    let limited = says([Reply::call("wait", json!({})), Reply::text("Never.")])
        .tool({
            let tools = GateTools::new();
            tools.gate().open_for_all();
            tools.gated("wait")
        })
        .limits(Limits::default().with_max_rounds(1))
        .build();
    let world = World::of(limited).await;
    let (mut editor, session) = Editor::with_session(&world).await;
    let prompt = editor.prompt(&session, "Wait.").await;
    assert_eq!(editor.answer(prompt).await.stop_reason(), "max_turn_requests");
    editor.end().await;
    world.end().await;
    let refusing = ReplyFault::Status { status: 400, body: String::new(), headers: Vec::new() };
    let (_model, agent) = served([Reply::text("").fault(refusing)]).await;
    let world = World::of(agent).await;
    let (mut editor, session) = Editor::with_session(&world).await;
    let prompt = editor.prompt(&session, "Anything.").await;
    let failed = editor.answer(prompt).await.answer;
    assert_eq!(failed["error"]["code"], -32603, "{failed}");
    assert!(failed["error"]["data"]["code"].is_string(), "{failed}");
    editor.end().await;
    world.end().await;
}

/// S13.17: a prompt that steers joins the turn that runs, and has its answer too.
#[tokio::test]
async fn a_prompt_may_steer_the_turn_that_runs() {
    let tools = GateTools::new();
    let world = World::of(waiting(&tools, GateTools::gated)).await;
    let (mut editor, session) = Editor::with_session(&world).await;
    let first = editor.prompt(&session, "Wait.").await;
    tools.gate().came(1).in_time("the call").await;
    let params = json!({
        "sessionId": session, "prompt": [{"type": "text", "text": "Only the parser."}],
        "_meta": {"safepoint": {"policy": "steer"}},
    });
    let second = editor.send("session/prompt", params).await;
    wait::asked("the steer is taken", || async {
        let items = world.client.get(&format!("/v1/sessions/{session}/items/item-2")).await;
        (items.status == 200).then_some(())
    })
    .await;
    tools.gate().let_pass(1);
    let mut answers = Vec::new();
    while answers.len() < 2 {
        let said = editor.next().await.unwrap();
        if said["method"].is_null() {
            answers.push(said);
        }
    }
    for id in [first, second] {
        let answer = answers.iter().find(|answer| answer["id"] == id).unwrap();
        assert_eq!(
            (&answer["result"]["stopReason"], &answer["result"]["_meta"]["safepoint"]["turn"]),
            (&json!("end_turn"), &json!("turn-1")),
            "{answer}"
        );
    }
    editor.end().await;
    world.end().await;
}

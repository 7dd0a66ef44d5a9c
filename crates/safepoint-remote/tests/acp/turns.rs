//! What an agent says in its turn, and what comes of it.

use safepoint::{
    Agent,
    approval::ApprovalMode,
    receipt::{CallStatus, SideEffect},
    remote::RemoteTool,
};
use safepoint_testkit::{
    acp::{AcpManners, AgentStart},
    script::{Reply, Script},
    scripted::ScriptedModel,
};
use serde_json::json;

use super::support::{Place, Running, run};

/// S10.1: what the agent says is the answer, and its process is gone with its work.
#[tokio::test]
async fn an_agent_answers_and_its_process_goes() {
    let place = Place::new();
    let ended = run(place.honest(), "say it is mended").end().await;
    assert_eq!(ended.answer(), "it is mended");
    assert_eq!((ended.call().status, ended.call().effect), (CallStatus::Completed, SideEffect::Done));
    let process = &ended.call().processes[0];
    assert_eq!((process.ended.as_str(), process.signals.len()), ("exit 0", 0), "{process:?}");
    assert!(ended.remote().task.is_some(), "the agent's own name for it");
    assert_eq!(ended.remote().stop, None, "nobody asked it to stop");
}

/// S10.1: files and terminals are not offered, and an agent that asks for one is told so.
#[tokio::test]
async fn neither_files_nor_terminals_are_offered() {
    let place = Place::new();
    let ended = run(place.honest(), "file").end().await;
    assert_eq!(ended.answer(), "-32601");
    let offered = &place.received("initialize")[0]["params"]["clientCapabilities"];
    assert_eq!(*offered, json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false}));
    let session = &place.received("session/new")[0]["params"];
    assert_eq!(session["cwd"], place.folder.path().to_str().unwrap());
}

/// S10.1: what it does is told while it does it, and is no part of its answer; its thoughts are its own.
#[tokio::test]
async fn the_calls_of_an_agent_are_progress() {
    let place = Place::new();
    let mut running = run(place.honest(), "think");
    running.says("[Looking at it]\n[Looking at it: completed]\nthought about it").await;
    assert_eq!(running.end().await.answer(), "thought about it");
}

/// S10.1: lines that are no messages, answers of nobody and messages of other sessions change nothing.
#[tokio::test]
async fn noise_is_passed_over() {
    let place = Place::new();
    assert_eq!(run(place.honest(), "noise heard").end().await.answer(), "heard");
}

/// S10.1: a flood on standard error neither holds the agent up nor fills our memory.
#[tokio::test]
async fn a_flood_of_errors_holds_nobody_up() {
    let place = Place::new();
    assert_eq!(run(place.honest(), "flood heard").end().await.answer(), "heard");
    let drowning = AcpManners { start: AgentStart::Flood, ..AcpManners::default() };
    assert_eq!(run(place.agent(drowning), "say heard").end().await.answer(), "heard");
}

/// S10.1: one message of 50 MB is not read, and that is told; what comes after it is.
#[tokio::test]
async fn a_message_that_is_too_large_is_passed_over() {
    let place = Place::new();
    let mut running = run(place.honest(), "big");
    running.says("[it said more than 8388608 bytes or 262144 values at once, which were not read]").await;
    assert_eq!(running.end().await.answer(), "after");
}

/// S10.2 / T6, agentclientprotocol/claude-agent-acp#551: the first end of a turn is its end; a second one changes nothing.
#[tokio::test]
async fn a_second_answer_changes_nothing() {
    let place = Place::new();
    let ended = run(place.honest(), "twice").end().await;
    assert_eq!(ended.answer(), "once");
    assert!(ended.closed.receipt.late.is_empty());
}

/// S10.1: an answer that was cut says so; a refusal and an unknown reason are failures that name it.
#[tokio::test]
async fn other_ends_are_told_as_what_they_are() {
    let place = Place::new();
    assert_eq!(run(place.honest(), "tokens").end().await.answer(), "cut\n[it ended here: `max_tokens`]");
    assert!(run(place.honest(), "refuse").end().await.failure().contains("`refusal`"));
    assert!(run(place.honest(), "new-reason").end().await.failure().contains("`bored`"));
    assert!(run(place.honest(), "broken").end().await.failure().contains("neither a result nor an error"));
}

/// S9.1, S10.1: an agent is a tool of another, and its answer is the call's result.
#[tokio::test]
async fn an_agent_is_a_tool_of_another() {
    let place = Place::new();
    let script =
        Script::of([Reply::call("coder", json!({"task": "say mended"})), Reply::text("It is mended.")]);
    let agent = Agent::builder(ScriptedModel::new(script))
        .tool(RemoteTool::new(place.honest()))
        .approvals(ApprovalMode::Auto)
        .build();
    let ended = Running::of(agent.run("mend it").detach()).end().await;
    assert_eq!((ended.answer(), ended.call().status), ("It is mended.", CallStatus::Completed));
}

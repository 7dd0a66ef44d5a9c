//! The messages of a conversation: one session of the agent's where it can take it up, and the truth where it cannot.

use safepoint::{Agent, approval::ApprovalMode};
use safepoint_testkit::acp::{AcpManners, Keeps};
use serde_json::Value;

use super::support::{Place, Running};

/// The second message of a conversation.
async fn second(place: &Place, keeps: Keeps) -> Running {
    let acp = place.agent(AcpManners { keeps, ..AcpManners::default() });
    let agent = Agent::remote(acp).approvals(ApprovalMode::Auto).build();
    let first = Running::of(agent.run("count").detach()).end().await;
    assert_eq!(first.answer(), "prompt 1");
    let history = first.closed.outcome.history().clone();
    Running::of(agent.run_on(history, "count").detach())
}

/// S10.1: an agent that can load or resume its sessions goes on in the same one; what it tells of the past is not told
/// again.
#[tokio::test]
async fn a_session_is_taken_up() {
    for (keeps, method) in [(Keeps::Load, "session/load"), (Keeps::Resume, "session/resume")] {
        let place = Place::new();
        let ended = second(&place, keeps).await.end().await;
        assert_eq!(ended.answer(), "prompt 2", "{method}, and nothing of what it said before");
        assert_eq!((place.received("session/new").len(), place.received(method).len()), (1, 1));
    }
}

/// S10.66: an agent that offers what it does not have is asked for the next best.
#[tokio::test]
async fn a_session_that_is_not_resumed_is_loaded() {
    let place = Place::new();
    let ended = second(&place, Keeps::OnlyLoad).await.end().await;
    assert_eq!(ended.answer(), "prompt 2", "the same session");
    let methods = ["session/new", "session/resume", "session/load"];
    assert_eq!(methods.map(|method| place.received(method).len()), [1, 1, 1]);
    let prompts = place.received("session/prompt");
    assert_eq!(prompts[1]["params"]["prompt"].as_array().unwrap().len(), 1, "it remembers by itself");
}

/// S10.66: of a conversation that the agent has lost a person is told, and the agent is told what was said before, marked
/// as that.
#[tokio::test]
async fn what_the_agent_has_lost_is_sent_along() {
    for keeps in [Keeps::Nothing, Keeps::Neither] {
        let place = Place::new();
        let mut running = second(&place, keeps).await;
        running.says("only what is sent along now").await;
        assert_eq!(running.end().await.answer(), "prompt 1", "{keeps:?}: a new session");
        let prompts = place.received("session/prompt");
        let blocks: Vec<&Value> = prompts[1]["params"]["prompt"].as_array().unwrap().iter().collect();
        let [before, now] = blocks[..] else { panic!("{blocks:?}") };
        let before = before["text"].as_str().unwrap();
        assert!(before.contains("Person: count\n\nYou: prompt 1") && before.contains("was lost"), "{before}");
        assert_eq!(now["text"], "count");
    }
}

/// S10.1: an agent that cannot is given a new session, and that it knows nothing is said.
#[tokio::test]
async fn an_agent_without_memory_is_told_as_that() {
    let place = Place::new();
    let mut running = second(&place, Keeps::Nothing).await;
    running.says("cannot resume its sessions").await;
    assert_eq!(running.end().await.answer(), "prompt 1");
    assert_eq!(place.received("session/new").len(), 2);
}

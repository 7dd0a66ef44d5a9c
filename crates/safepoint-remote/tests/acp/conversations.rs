//! The messages of a conversation: one session of the agent's where it can take it up, and the truth where it cannot.

use safepoint::{Agent, approval::Approvals};
use safepoint_testkit::acp::{Keeps, Manners};

use super::support::{Place, Running};

/// The second message of a conversation.
async fn second(place: &Place, keeps: Keeps) -> Running {
    let acp = place.agent(Manners { keeps, ..Manners::default() });
    let agent = Agent::over(acp).approvals(Approvals::Auto).build();
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

/// S10.1: an agent that cannot is given a new session, and that it knows nothing is said.
#[tokio::test]
async fn an_agent_without_memory_is_told_as_that() {
    let place = Place::new();
    let mut running = second(&place, Keeps::Nothing).await;
    running.says("knows nothing of what was said before").await;
    assert_eq!(running.end().await.answer(), "prompt 1");
    assert_eq!(place.received("session/new").len(), 2);
}

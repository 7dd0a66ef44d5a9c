//! When the end of an agent's work is known: with the end of its processes, whatever it says before.

use safepoint::{
    Agent, Outcome, StopRequest,
    approval::{ApprovalMode, Rule, RuleAction, WithoutApprover},
    event::EventKind,
    receipt::{CallStatus, Permission, RuledBy, SideEffect},
    secs,
};
use safepoint_testkit::acp::{AcpManners, AgentStart};

use super::support::{PATIENCE, Place, Running, run};

/// S10.62: the word `cancelled` is that the agent took note. Its command goes on after it, so the stop is over, and the end
/// confirmed, when that has ended.
#[tokio::test]
async fn the_word_cancelled_is_not_the_end_of_the_work() {
    let place = Place::new();
    let stubborn = place.agent(AcpManners { start: AgentStart::Stubborn, ..AcpManners::default() });
    let mut running = run(stubborn, "command");
    running.says("working").await;
    assert_eq!(place.alive().len(), 2, "the agent, and its command");
    running.handle.stop(StopRequest::now());
    let outcome = tokio::time::timeout(PATIENCE, running.handle.done()).await.unwrap();
    assert_eq!(place.alive(), [0; 0], "whoever is told that it was stopped is told so when it is");
    let call = &outcome.receipt().calls[0];
    assert_eq!(
        call.remote.as_ref().unwrap().stop,
        Some(safepoint::receipt::RemoteStopState::Confirmed),
        "{call:?}"
    );
    let ended = running.end().await;
    ended.confirmed("it said `cancelled`; its process was ended by SIGINT");
    let row = ended.remote();
    let took = row.replied_at.unwrap().duration_since(row.asked_at.unwrap());
    assert!(took.as_millis() > 100, "{took}: it was heard of when its processes had ended");
}

/// S10.64: a stop that would wait for a safe point reaches the agent at once, and takes no longer than that needs.
#[tokio::test]
async fn a_graceful_stop_reaches_the_agent_at_once() {
    let place = Place::new();
    let mut running = run(place.honest(), "work");
    running.says("working").await;
    let (ended, took) = running.stop_by(StopRequest::graceful(secs(600))).await;
    assert!(took < PATIENCE, "{took:?}");
    ended.confirmed("it said `cancelled`");
    assert_eq!(ended.call().status, CallStatus::Stopped);
    assert_eq!(place.received("session/cancel").len(), 1);
}

/// S10.64: an agent that says nothing is ended within the grace, and not after it.
#[tokio::test]
async fn a_deaf_agent_is_ended_within_the_grace() {
    let place = Place::new();
    let deaf = place.agent(AcpManners { start: AgentStart::Stubborn, ..AcpManners::default() });
    let mut running = run(deaf.stop_within(std::time::Duration::from_secs(2)), "deaf");
    running.says("working").await;
    let asked = std::time::Instant::now();
    running.handle.stop(StopRequest::graceful(secs(4)));
    let outcome = running.handle.done().await;
    assert!(asked.elapsed() > std::time::Duration::from_secs(2), "it had more than its own time");
    assert_eq!(outcome.receipt().stop.as_ref().unwrap().escalated, safepoint::receipt::Escalation::No);
    running.end().await.confirmed("it said nothing to that; its process was ended by SIGINT");
}

/// S10.65: what an agent leaves in the background ends with its turn, and is listed, whoever ended it.
#[tokio::test]
async fn what_runs_in_the_background_ends_with_the_turn_and_is_listed() {
    for word in ["serve", "tidy"] {
        let place = Place::new();
        let agent = place.agent(AcpManners { word: Some(word.into()), ..AcpManners::default() });
        let ended = run(agent, word).end().await;
        assert_eq!(ended.answer(), "serving");
        let listed = &ended.call().processes[0].ended_with;
        assert!(matches!(&listed[..], [one] if one.starts_with("sleep (pid ")), "{word}: {listed:?}");
        assert_eq!(place.alive(), [0; 0], "{word}");
    }
    let place = Place::new();
    let ended = run(place.honest(), "say nothing is left").end().await;
    assert!(ended.call().processes[0].ended_with.is_empty(), "{:?}", ended.call().processes);
}

/// S10.67, S10.68: what policy decides about an agent's question is told, stands in the receipt, and an agent that ends
/// without a word for it, or with a word of its own, was refused here: it did not complete, and was not cancelled.
#[tokio::test]
async fn an_agent_whose_work_was_denied_was_refused() {
    let deny = Rule::on("coder/execute", RuleAction::Deny("never".into()));
    let cases = [
        (ApprovalMode::Deny, None, RuledBy::Deny),
        (ApprovalMode::Ask(None, WithoutApprover::Deny), None, RuledBy::NoApprover),
        (ApprovalMode::Auto, Some(deny), RuledBy::Rule),
    ];
    for (mode, rule, by) in cases {
        for word in ["shy", "sulk"] {
            let place = Place::new();
            let builder = Agent::remote(place.honest()).approvals(mode.clone());
            let agent = rule.iter().cloned().fold(builder, |builder, rule| builder.rule(rule)).build();
            let ended = Running::of(agent.run(word).detach()).end().await;
            let told = ended.failure();
            assert!(told.contains("refused by the approval rule"), "{word}: {told}");
            assert!(
                told.contains("coder/execute (Pay the rent)") && !told.contains("we did not ask"),
                "{told}"
            );
            let call = ended.call();
            assert_eq!((call.status, call.effect), (CallStatus::Denied, SideEffect::Unknown), "{word}");
            let [ruled] = &call.ruled[..] else { panic!("{call:?}") };
            assert_eq!((ruled.permission, ruled.by, ruled.times), (Permission::Denied, by, 1));
            assert_eq!(ruled.what, "Pay the rent");
        }
    }
}

/// S10.67: a yes that policy gives is told like a no; of what a person decides the question tells.
#[tokio::test]
async fn what_policy_allows_is_told_too() {
    let place = Place::new();
    let agent = Agent::remote(place.honest()).approvals(ApprovalMode::Auto).build();
    let handle = agent.run("ask").detach();
    let mut events = handle.events();
    let ended = Running::of(handle).end().await;
    assert_eq!(ended.answer(), "paid");
    let told = std::iter::from_fn(|| events.now()).find_map(|event| match event.kind {
        EventKind::Ruled { ruled, .. } => Some(*ruled),
        _ => None,
    });
    assert_eq!(told.as_ref(), ended.call().ruled.first());
    assert_eq!(told.map(|ruled| (ruled.permission, ruled.by)), Some((Permission::Allowed, RuledBy::Auto)));
    assert!(ended.closed.receipt.to_string().contains("asked for coder/execute (Pay the rent): allowed"));
    assert!(matches!(ended.closed.outcome, Outcome::Done(_)));
}

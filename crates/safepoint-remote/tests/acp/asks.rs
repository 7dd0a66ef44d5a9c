//! The agent's questions are approvals of ours.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use safepoint::{
    Agent,
    approval::{ApprovalMode, ApprovalRequest, Approver, Decision, Rule, RuleAction, WithoutApprover},
    receipt::CallStatus,
};
use safepoint_remote::acp::Acp;

use super::support::{Place, Running, run};

/// Nobody: whoever decides does so from outside.
struct Silent;

impl Approver for Silent {
    fn ask(&self, _: ApprovalRequest) -> BoxFuture<'static, Decision> {
        Box::pin(std::future::pending())
    }
}

fn asking(agent: Acp, text: &str) -> Running {
    let approvals = ApprovalMode::Ask(Some(Arc::new(Silent)), WithoutApprover::Deny);
    Running::of(Agent::remote(agent).approvals(approvals).build().run(text).detach())
}

/// S8.1, S10.1: a person sees what would be done, and a yes lets it be done, once.
#[tokio::test]
async fn a_yes_lets_the_agent_go_on() {
    let place = Place::new();
    let mut running = asking(place.honest(), "ask");
    let request = running.asks().await;
    assert_eq!(request.tool, "coder/execute");
    assert_eq!(
        (&request.args["title"], &request.args["input"]["amount"]),
        (&"Pay the rent".into(), &900.into())
    );
    assert_eq!(request.args["options"][1]["allow_always"], "Pay, and never ask again");
    running.handle.decide(&request.id, Decision::Approve).await.unwrap();
    let ended = running.end().await;
    assert_eq!(ended.answer(), "paid");
    assert_eq!(place.paid(), 1);
    let paid = place.account().into_iter().find(|did| did["paid"].is_number()).unwrap();
    assert_eq!(paid["option"], "yes", "a yes to this is no yes for ever");
}

/// S8.1, S10.1: a no is told as the agent's own no, and it goes on without.
#[tokio::test]
async fn a_no_is_told_to_the_agent() {
    let place = Place::new();
    let mut running = asking(place.honest(), "ask");
    let request = running.asks().await;
    running.handle.decide(&request.id, Decision::Deny { message: "not this month".into() }).await.unwrap();
    assert_eq!(running.end().await.answer(), "not paid: no");
    assert_eq!(place.paid(), 0);
}

/// S8.2: rules speak first, and where nobody can be asked nothing is allowed.
#[tokio::test]
async fn rules_speak_first() {
    let place = Place::new();
    let rule = Rule::on("coder/execute", RuleAction::Deny("agents do not pay here".into()));
    let agent = Agent::remote(place.honest()).rule(rule).approvals(ApprovalMode::Auto).build();
    assert_eq!(Running::of(agent.run("ask").detach()).end().await.answer(), "not paid: no");
    let agent = Agent::remote(place.honest()).build();
    assert_eq!(Running::of(agent.run("ask").detach()).end().await.answer(), "not paid: no");
    assert_eq!(place.paid(), 0);
}

/// S8.4, S10.3: a stop takes the question back, the agent is told `cancelled`, and a later yes has no effect.
#[tokio::test]
async fn a_stop_answers_open_questions_with_cancelled() {
    let place = Place::new();
    let mut running = asking(place.honest(), "nag");
    let (first, second) = (running.asks().await, running.asks().await);
    let handle = running.handle.clone();
    let (ended, _) = running.stop().await;
    ended.confirmed("it said `cancelled`");
    assert_eq!(ended.call().status, CallStatus::Stopped);
    let answers: Vec<_> =
        place.account().into_iter().filter(|got| got["result"]["outcome"].is_object()).collect();
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert!(
        answers.iter().all(|answer| answer["result"]["outcome"]["outcome"] == "cancelled"),
        "{answers:?}"
    );
    let methods: Vec<_> = place.account();
    let place_of = |wanted: &dyn Fn(&serde_json::Value) -> bool| methods.iter().position(wanted).unwrap();
    let cancel = place_of(&|got| got["method"] == "session/cancel");
    assert!(
        cancel < place_of(&|got| got["result"]["outcome"].is_object()),
        "first it is told, then answered"
    );
    for request in [first, second] {
        assert!(handle.decide(&request.id, Decision::Approve).await.is_err(), "it is not open any more");
    }
    assert_eq!(place.paid(), 0);
    assert_eq!(ended.closed.receipt.approvals_cancelled.len(), 2);
}

/// S8.1: where the agent offers no answer that says what was decided, it is refused, and pays nothing.
#[tokio::test]
async fn a_question_without_a_yes_gets_none() {
    let place = Place::new();
    assert_eq!(run(place.honest(), "odd-ask").end().await.answer(), "no answer");
    assert_eq!(place.paid(), 0);
}

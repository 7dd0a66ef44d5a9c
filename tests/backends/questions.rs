//! What a peer asks while it works: put by the agent's rules, answered once, taken back by a stop in the
//! peer's own word.

use std::{sync::Arc, time::Duration};

use safepoint::{
    Agent, Outcome, RunHandle, StopRequest,
    approval::{
        ApprovalKind, ApprovalMode, ApprovalRequest, DecideError, Decision, Rule, RuleAction, WithoutApprover,
    },
    event::{EventKind, Fact, Resolution},
    ids::ApprovalId,
    log::{Log, MemoryLog},
    receipt::CallStatus,
    remote::RemoteTool,
    tool::EffectClass,
};
use safepoint_testkit::{
    invariants::Invariants,
    peer::{Given, OnPeerStop, Peer},
    recorder,
    script::{Reply, Script},
    scripted::ScriptedModel,
};
use serde_json::json;

fn asker() -> Peer {
    Peer::new("coder").asks("q1", "execute", json!({"command": "rm -r build"})).answers("built")
}

/// Sends each question to the holder of the handle.
fn open_to_all() -> ApprovalMode {
    ApprovalMode::Ask(None, WithoutApprover::Suspend)
}

async fn asked(handle: &RunHandle) -> ApprovalRequest {
    let is_question = |kind: &EventKind| matches!(kind, EventKind::Fact(fact) if matches!(**fact, Fact::ApprovalRequested(_)));
    let event = recorder::until(handle, is_question).await.unwrap();
    let EventKind::Fact(fact) = event.kind else { panic!("it is a fact") };
    let Fact::ApprovalRequested(request) = &*fact else { panic!("it is a question") };
    request.clone()
}

fn closed_as(handle: &RunHandle) -> Vec<Resolution> {
    let mut events = handle.events();
    let facts = std::iter::from_fn(|| events.now()).filter_map(|event| match event.kind {
        EventKind::Fact(fact) => match &*fact {
            Fact::ApprovalResolved { answer, .. } => Some(answer.clone()),
            _ => None,
        },
        _ => None,
    });
    facts.collect()
}

/// S8.2: a question of the peer is an approval of the run: recorded, answered once, and the peer continues
/// with it.
#[tokio::test]
async fn a_peers_question_is_an_approval() {
    let peer =
        Peer::new("coder").asks("q1", "execute", json!({"command": "rm -r build"})).waits().answers("built");
    let handle = Agent::remote(peer.clone()).approvals(open_to_all()).build().run("build").detach();
    let request = asked(&handle).await;
    assert_eq!((request.tool.as_str(), request.question), ("coder/execute", ApprovalKind::DuringCall));
    assert_eq!(request.args, json!({"command": "rm -r build"}));
    let decision = Decision::Deny { message: "not that".into() };
    handle.decide(&request.id, decision.clone()).await.unwrap();
    let by = "the holder of the handle".to_owned();
    let first = DecideError::Decided { by, decision: Box::new(decision.clone()) };
    assert_eq!(handle.decide(&request.id, Decision::Approve).await, Err(first));
    peer.gate().open_for_all();
    let closed = Invariants::of(&handle).check().await.unwrap();
    assert_eq!(closed.outcome.answer(), Some("built"));
    assert_eq!(peer.answered(), [("q1".to_owned(), Given::Decision(decision.clone()))]);
    assert_eq!(closed_as(&handle), [Resolution::Decided(decision)]);
}

/// S8.2, S8.1: rules speak first, by the remote's name and what it would do; no way to ask is never a yes.
#[tokio::test]
async fn rules_and_modes_speak_before_a_person() {
    let allow = Rule::on("coder/execute", RuleAction::Allow);
    let deny = Rule::on("coder/execute", RuleAction::Deny("never".into()));
    let cases = [
        (vec![allow], ApprovalMode::Deny, Decision::Approve),
        (vec![deny], ApprovalMode::Auto, Decision::Deny { message: "never".into() }),
        (vec![], ApprovalMode::Auto, Decision::Approve),
    ];
    for (rules, mode, expected) in cases {
        let peer = asker();
        let builder = Agent::remote(peer.clone()).approvals(mode);
        let agent = rules.into_iter().fold(builder, |builder, rule| builder.rule(rule)).build();
        assert_eq!(agent.run("build").await.answer(), Some("built"));
        assert_eq!(peer.answered(), [("q1".to_owned(), Given::Decision(expected))]);
    }
    for mode in [ApprovalMode::Deny, ApprovalMode::Ask(None, WithoutApprover::Deny)] {
        let peer = asker();
        assert_eq!(
            Agent::remote(peer.clone()).approvals(mode).build().run("build").await.answer(),
            Some("built")
        );
        assert!(matches!(&peer.answered()[..], [(_, Given::Decision(Decision::Deny { .. }))]));
    }
}

/// S8.3, S10.3 / T3, aaif-goose/goose#10619; agent-of-empires/agent-of-empires#1039: a stop while the peer
/// waits for an answer reaches it at once: its question is cancelled in its own word, taken back here, and no
/// later answer is taken.
#[tokio::test]
async fn a_stop_takes_the_question_back() {
    let peer = asker().on_stop(OnPeerStop::Ends);
    let handle = Agent::remote(peer.clone()).approvals(open_to_all()).build().run("build").detach();
    let request = asked(&handle).await;
    handle.stop(StopRequest::now());
    let closed = Invariants::of(&handle).check().await.unwrap();
    assert!(matches!(closed.outcome, Outcome::Stopped(_)), "{:?}", closed.outcome);
    assert_eq!(closed.receipt.calls[0].status, CallStatus::Stopped);
    assert_eq!(closed.receipt.approvals_cancelled, std::slice::from_ref(&request.id));
    assert_eq!(peer.answered(), [("q1".to_owned(), Given::Cancelled)]);
    assert_eq!(closed_as(&handle), [Resolution::Withdrawn]);
    assert!(handle.decide(&request.id, Decision::Approve).await.is_err());
}

/// S4.6, S8.5: the wait for a person is no call time. A question without an answer expires, and the peer gets
/// a no.
#[tokio::test(start_paused = true)]
async fn waiting_for_a_person_is_no_call_time() {
    let script = Script::of([Reply::call("coder", json!({"task": "build"})), Reply::text("well")]);
    let limits = safepoint::Limits::default().with_approval_expiry(Duration::from_secs(60));
    let peer = asker();
    let tool = RemoteTool::new(peer.clone()).with(|spec| spec.timeout(Duration::from_secs(1)));
    let agent = Agent::builder(ScriptedModel::new(script)).tool(tool).limits(limits).approvals(open_to_all());
    let outcome = agent.build().run("build").await;
    assert_eq!(outcome.receipt().calls[0].status, CallStatus::Completed, "{:?}", outcome.receipt());
    let answered = peer.answered();
    let [(_, Given::Decision(Decision::Deny { message }))] = &answered[..] else { panic!("{answered:?}") };
    assert!(message.contains("expired"), "{message}");
}

/// S4.6, S10.3: a call's own limit stops the peer as a stop does, and is reported as a time-out.
#[tokio::test(start_paused = true)]
async fn a_time_limit_reaches_the_peer() {
    for (on_stop, note) in
        [(OnPeerStop::Ends, "[timed out: "), (OnPeerStop::Silent, "[timed out and still running")]
    {
        let script = Script::of([Reply::call("coder", json!({"task": "build"})), Reply::text("well")]);
        let peer = Peer::new("coder").waits().answers("built").on_stop(on_stop);
        let tool = RemoteTool::new(peer.clone()).with(|spec| spec.timeout(Duration::from_secs(1)));
        let model = ScriptedModel::new(script);
        let handle = Agent::builder(model.clone()).tool(tool).build().run("build").detach();
        let outcome = handle.done().await;
        assert_eq!(outcome.receipt().calls[0].status, CallStatus::TimedOut);
        let request = serde_json::to_string(&model.requests()[1]).unwrap();
        assert!(request.contains(note), "{request}");
        assert_eq!(peer.stops(), 1);
        peer.gate().open_for_all();
        drop(handle.quiet().await);
    }
}

/// A process that ends while the peer waits for an answer, and what it left.
async fn ends_while_asked(agent: &Agent, log: &Arc<dyn Log>) -> (Outcome, ApprovalRequest) {
    let (agent, log) = (agent.clone(), Arc::clone(log));
    let process = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let handle = agent.run_recorded(log, safepoint::History::new(), "build").detach();
            let request = asked(&handle).await;
            (handle, request)
        })
        // Its runtime goes with it: nothing more is recorded.
    });
    let (before, request) = process.join().unwrap();
    (before.done().await, request)
}

async fn withdrawn(log: &dyn Log) -> Vec<ApprovalId> {
    let records = log.read().await.unwrap();
    let closed = records.iter().filter_map(|record| match &*record.fact {
        Fact::ApprovalResolved { id, answer: Resolution::Withdrawn, .. } => Some(id.clone()),
        _ => None,
    });
    closed.collect()
}

/// S7.3, S8.2: what a peer asked when its process ended is taken back by the resume, and its work is in
/// doubt: it is not done again, and the resume says so: it has no answer.
#[tokio::test]
async fn a_crash_leaves_the_work_in_doubt_and_no_question_open() {
    let log: Arc<dyn Log> = Arc::new(MemoryLog::default());
    let peer = asker();
    let agent = Agent::remote(peer.clone()).approvals(open_to_all()).build();
    let (before, request) = ends_while_asked(&agent, &log).await;
    let outcome = agent.resume(&before).await;
    assert_eq!(peer.begun(), 1, "it is not done again");
    let Outcome::Failed(failed) = &outcome else { panic!("it has no answer: {outcome:?}") };
    let said = failed.to_string();
    assert!(said.contains("did not come to its end") && said.contains("effects are unknown"), "{said}");
    assert_eq!(withdrawn(&*log).await, [request.id]);
}

/// S7.3, S8.2: work that may be done twice is done again, with the same key, and asks anew: the old question
/// is closed.
#[tokio::test]
async fn work_that_may_be_repeated_asks_anew_after_a_crash() {
    let log: Arc<dyn Log> = Arc::new(MemoryLog::default());
    let peer = asker().with(|spec| spec.effect(EffectClass::Keyed));
    let agent = Agent::remote(peer.clone()).approvals(open_to_all()).build();
    let (before, request) = ends_while_asked(&agent, &log).await;
    let handle = agent.resume(&before).detach();
    let anew = asked(&handle).await;
    assert_ne!(anew.id, request.id);
    assert!(handle.decide(&request.id, Decision::Approve).await.is_err(), "that question is closed");
    handle.decide(&anew.id, Decision::Approve).await.unwrap();
    assert_eq!(handle.done().await.answer(), Some("built"));
    assert_eq!(withdrawn(&*log).await, [request.id]);
    let briefs = peer.briefs();
    assert_eq!((briefs.len(), &briefs[0].key), (2, &briefs[1].key));
}

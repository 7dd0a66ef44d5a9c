//! Calls that a person decides on (S8), in process.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use safepoint::{
    Agent, Limits, Outcome, StopRequest,
    approval::{ApprovalMode, ApprovalRequest, Approver, Decision, Rule, RuleAction, WithoutApprover},
    history::note,
    ids::ApprovalId,
    raw,
    receipt::{CallStatus, Ending, SideEffect},
    tool::{self, EffectClass, FnTool},
};
use safepoint_testkit::{
    invariants::Invariants,
    script::Reply,
    server::{ModelServer, ServedWire},
    wait,
};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::world::{Ledger, WIRES, builder, close, continues, server};

/// A person who is asked, and answers when the test says so.
#[derive(Clone)]
pub(crate) struct Desk(mpsc::UnboundedSender<Put>);

/// A question that lies on the desk.
pub(crate) struct Put {
    pub(crate) question: ApprovalRequest,
    reply: Mutex<Option<oneshot::Sender<Decision>>>,
}

impl Desk {
    pub(crate) fn open() -> (Self, mpsc::UnboundedReceiver<Put>) {
        let (desk, asked) = mpsc::unbounded_channel();
        (Self(desk), asked)
    }
}

impl Put {
    pub(crate) fn answer(&self, decision: Decision) {
        let reply = self.reply.lock().unwrap().take().expect("it is answered once");
        if reply.send(decision).is_err() {
            // The asker has gone: the answer is late.
        }
    }
}

impl Approver for Desk {
    fn ask(&self, question: ApprovalRequest) -> BoxFuture<'static, Decision> {
        let (reply, decided) = oneshot::channel();
        let put = self.0.send(Put { question, reply: Mutex::new(Some(reply)) });
        Box::pin(async move {
            put.expect("the desk is open as long as its test");
            match decided.await {
                Ok(decision) => decision,
                Err(_) => std::future::pending().await,
            }
        })
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Amount {
    euros: u32,
}

/// Writes what it pays.
fn pay(ledger: &Ledger, paid: &Arc<Mutex<Vec<u32>>>) -> FnTool {
    let (ledger, paid) = (ledger.clone(), Arc::clone(paid));
    tool::from_fn("pay", "pays", move |cx, amount: Amount| {
        let (ledger, paid) = (ledger.clone(), Arc::clone(&paid));
        async move {
            ledger.note(cx.call_id(), "entry");
            paid.lock().unwrap().push(amount.euros);
            ledger.note(cx.call_id(), "commit");
            Ok(format!("paid {}", amount.euros))
        }
    })
    .with(|spec| spec.effect(EffectClass::Unsafe))
}

fn pays(amounts: &[u32]) -> Reply {
    amounts.iter().fold(Reply::default(), |reply, euros| reply.and_call("pay", json!({ "euros": euros })))
}

/// An agent that asks about sums from 100 on.
struct Bank {
    server: ModelServer,
    ledger: Ledger,
    paid: Arc<Mutex<Vec<u32>>>,
    agent: Agent,
}

impl Bank {
    async fn new(wire: ServedWire, approvals: ApprovalMode, limits: Limits, amounts: &[u32]) -> Self {
        let server = server([pays(amounts), Reply::text("all done")]).await;
        let (ledger, paid) = (Ledger::default(), Arc::default());
        let agent = builder(&server, wire)
            .approvals(approvals)
            .limits(limits)
            .rule(Rule::on("pay", RuleAction::Ask).when(|args| args["euros"].as_u64() >= Some(100)))
            .tool(pay(&ledger, &paid))
            .build();
        Self { server, ledger, paid, agent }
    }

    fn paid(&self) -> Vec<u32> {
        self.paid.lock().unwrap().clone()
    }

    /// Runs, and suspends with these questions.
    async fn suspended(&self) -> (Outcome, Vec<ApprovalRequest>) {
        let handle = self.agent.run("pay").detach();
        let (outcome, _) = close(&self.server, &handle, &self.ledger).await;
        (outcome.clone(), questions(&outcome))
    }

    async fn resumed(&self, outcome: &Outcome, decisions: Vec<(ApprovalId, Decision)>) -> Outcome {
        let handle = self.agent.resume_with(outcome, decisions).detach();
        close(&self.server, &handle, &self.ledger).await.0
    }

    /// The model's second request.
    fn second_request(&self) -> String {
        self.server.requests()[1].body.to_string()
    }
}

fn questions(outcome: &Outcome) -> Vec<ApprovalRequest> {
    match outcome {
        Outcome::Suspended(waiting) => waiting.approvals().to_vec(),
        other => panic!("{other:?}"),
    }
}

fn outside() -> ApprovalMode {
    ApprovalMode::Ask(None, WithoutApprover::Suspend)
}

fn statuses(outcome: &Outcome) -> Vec<CallStatus> {
    outcome.receipt().calls.iter().map(|call| call.status).collect()
}

/// S8.1, S2.9: the question is a separate object: it names the call, its exact arguments by digest, and its
/// expiry. While it is open nothing runs, no exchange is open, and the decision lets exactly that call run.
#[tokio::test]
async fn a_question_names_its_call_its_arguments_and_its_end() {
    for wire in WIRES {
        let limits = Limits::default().with_approval_expiry(Duration::from_secs(3600));
        let bank = Bank::new(wire, outside(), limits, &[500]).await;
        let handle = bank.agent.run("pay").detach();
        let closing =
            Invariants::of(&handle).server(&bank.server).first_request(0).ledger(bank.ledger.book());
        let outcome = closing.check().await.unwrap().outcome;
        let [question] = &questions(&outcome)[..] else { panic!("one question") };
        assert_eq!((question.tool.as_str(), &question.args), ("pay", &json!({"euros": 500})));
        let digest =
            |tool: &str, euros: u32| raw::digest(tool, &question.definition, &json!({"euros": euros}));
        assert_eq!(question.digest, digest("pay", 500));
        assert!(question.digest != digest("pay", 501) && question.digest != digest("play", 500));
        assert_eq!(question.expires_at.as_second() - question.asked_at.as_second(), 3600);
        assert!(handle.alive().is_empty() && bank.paid().is_empty());
        assert_eq!((outcome.ending(), bank.server.requests().len()), (Ending::Suspended, 1));
        assert_eq!(handle.stop(StopRequest::now()), safepoint::stop::StopAck::TooLate);
        assert!(handle.decide(&question.id, Decision::Approve).await.is_err(), "by a resume only");
        drop(handle);

        let done = bank.resumed(&outcome, vec![(question.id.clone(), Decision::Approve)]).await;
        assert_eq!((done.answer(), bank.paid()), (Some("all done"), vec![500]));
        assert_eq!(done.receipt().calls[0].call_id, question.call_id);
    }
}

/// S8.5, S8.2: several questions of one round are independent: calls that need none go ahead, each answer
/// reaches its own call, the run suspends again for those that are left, and nothing that is done or decided
/// is done or asked again.
/// langchain-ai/langgraph#6533: answers reach the wrong tool, because parallel interrupts share an id;
/// langchain-ai/langgraph#6208: a node with two interrupts runs again after each answer;
/// openai/openai-agents-js PR#1418: a resume asks again what was approved; anomalyco/opencode#47995:
/// rejecting one of two calls ends all.
#[tokio::test]
async fn several_questions_of_a_round_are_independent() {
    for wire in WIRES {
        let bank = Bank::new(wire, outside(), Limits::default(), &[500, 1, 600, 2, 700]).await;
        let (outcome, asked) = bank.suspended().await;
        let amounts: Vec<&Value> = asked.iter().map(|question| &question.args["euros"]).collect();
        assert_eq!((amounts, bank.paid()), (vec![&json!(500), &json!(600), &json!(700)], vec![1, 2]));

        let second = bank.resumed(&outcome, vec![(asked[1].id.clone(), Decision::Approve)]).await;
        let left = questions(&second);
        assert_eq!(left, [asked[0].clone(), asked[2].clone()], "the same questions, not asked anew");
        assert_eq!((bank.paid(), bank.server.requests().len()), (vec![1, 2, 600], 1));

        let no = Decision::Deny { message: "too much".into() };
        let answers = vec![(asked[2].id.clone(), no), (asked[0].id.clone(), Decision::Approve)];
        let done = bank.resumed(&second, answers).await;
        assert_eq!((done.answer(), bank.paid()), (Some("all done"), vec![1, 2, 600, 500]));
        let (good, denied) = (CallStatus::Completed, CallStatus::Denied);
        assert_eq!(statuses(&done), [good, good, good, good, denied]);
        let request = bank.second_request();
        let places =
            ["paid 500", "paid 1", "paid 600", "paid 2", "too much"].map(|text| request.find(text).unwrap());
        assert!(places.is_sorted(), "in the order of the calls: {request}");
    }
}

/// S8.5, S8.2: the same with a person present: the answers come in another order than the questions, each for
/// its own call. A second answer to the same question gets the error that it is too late.
#[tokio::test]
async fn answers_in_any_order_reach_their_own_calls() {
    for wire in WIRES {
        let (desk, mut asked) = Desk::open();
        let approvals = ApprovalMode::Ask(Some(Arc::new(desk)), WithoutApprover::Deny);
        let bank = Bank::new(wire, approvals, Limits::default(), &[500, 600, 1]).await;
        let handle = bank.agent.run("pay").detach();
        let (first, second) = (asked.recv().await.unwrap(), asked.recv().await.unwrap());
        super::world::started(&handle, 1).await;
        second.answer(Decision::Respond { result: "I paid it myself".into() });
        let (id, yes) = (&first.question.id, Decision::approve_with(json!({"euros": 50})));
        assert!(handle.decide(id, yes.clone()).await.is_ok());
        assert!(handle.decide(id, yes).await.is_err(), "it is decided");
        let (outcome, _) = close(&bank.server, &handle, &bank.ledger).await;
        assert_eq!((outcome.answer(), bank.paid()), (Some("all done"), vec![1, 50]));
        assert_eq!(statuses(&outcome), [CallStatus::Completed; 3]);
        assert!(
            bank.second_request().contains("I paid it myself") && bank.second_request().contains("paid 50")
        );
    }
}

/// S8.5, S4.1: a question without an answer expires: the model gets a result of its kind, and the run
/// continues.
/// openai/codex#29627: a pending approval is turned into a denial; hackerai-tech/hackerai PR#826: a wait of
/// six hours.
#[tokio::test]
async fn an_unanswered_question_expires_and_the_run_continues() {
    for wire in WIRES {
        let (desk, mut asked) = Desk::open();
        let approvals = ApprovalMode::Ask(Some(Arc::new(desk)), WithoutApprover::Deny);
        let limits = Limits::default().with_approval_expiry(Duration::from_millis(20));
        let bank = Bank::new(wire, approvals, limits, &[500, 1]).await;
        let handle = bank.agent.run("pay").detach();
        let unanswered = asked.recv().await.unwrap();
        let (outcome, receipt) = close(&bank.server, &handle, &bank.ledger).await;
        assert_eq!((outcome.answer(), bank.paid()), (Some("all done"), vec![1]));
        assert_eq!(statuses(&outcome), [CallStatus::Expired, CallStatus::Completed]);
        assert_eq!((receipt.calls[0].effect, receipt.stop.is_none()), (SideEffect::None, true));
        assert!(bank.second_request().contains(note::EXPIRED), "{}", bank.second_request());
        unanswered.answer(Decision::Approve);
        assert_eq!(bank.paid(), [1]);
        continues(&bank.agent, &outcome).await;
    }
}

/// S8.5: the same for a question that expires while the run is suspended. A resume, with a late answer or
/// none, continues and informs the model.
#[tokio::test]
async fn a_question_that_expires_while_suspended_lets_the_run_continue() {
    for is_answered in [false, true] {
        let limits = Limits::default().with_approval_expiry(Duration::from_millis(5));
        let bank = Bank::new(WIRES[0], outside(), limits, &[500, 1]).await;
        let (outcome, asked) = bank.suspended().await;
        wait::so("it has expired", || Timestamp::now() >= asked[0].expires_at).await;
        let late = if is_answered { vec![(asked[0].id.clone(), Decision::Approve)] } else { Vec::new() };
        let done = bank.resumed(&outcome, late).await;
        assert_eq!((done.answer(), bank.paid()), (Some("all done"), vec![1]));
        assert_eq!(statuses(&done), [CallStatus::Expired, CallStatus::Completed]);
        assert!(bank.second_request().contains("[expired"), "{}", bank.second_request());
    }
}

/// S8.3, S2.9: a suspended run can be stopped: its question is taken back, and only an explicit resume asks
/// again, under a new id, to which an old yes does not speak.
/// mastra-ai/mastra#22532: a suspended run cannot be aborted, and its call stays open without end.
#[tokio::test]
async fn a_suspended_run_can_be_stopped() {
    let bank = Bank::new(WIRES[1], outside(), Limits::default(), &[500]).await;
    let (outcome, asked) = bank.suspended().await;
    let run = bank.agent.resume(&outcome);
    let handle = run.handle();
    handle.stop(StopRequest::now());
    let _run = run.start();
    let (stopped, receipt) = close(&bank.server, &handle, &bank.ledger).await;
    assert_eq!((stopped.ending(), statuses(&stopped)), (Ending::Stopped, vec![CallStatus::NotStarted]));
    assert_eq!(receipt.approvals_cancelled, std::slice::from_ref(&asked[0].id));

    let again = bank.agent.resume(&stopped).detach();
    let (again, _) = close(&bank.server, &again, &bank.ledger).await;
    let new = questions(&again);
    assert_ne!(new[0].id, asked[0].id);
    let done = bank.resumed(&again, vec![(new[0].id.clone(), Decision::Approve)]).await;
    assert_eq!((done.answer(), bank.paid()), (Some("all done"), vec![500]));
}

//! What was reported against other systems, as scenarios (docs/field.md has the whole table).

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use safepoint::{
    Outcome, SafePoints, StopRequest,
    approval::{ApprovalMode, Rule, RuleAction, WithoutApprover},
    event::{EventKind, Fact},
    receipt::{CallStatus, Ending, ModelState},
    tool::{self, EffectClass, FnTool},
};
use safepoint_testkit::script::{Reply, ReplyFault};
use safepoint_testkit::wait;
use serde_json::json;
use tokio::sync::Semaphore;

use super::{
    approvals::Desk,
    world::{Ledger, WIRES, builder, close, continues, first_text, gated, server, started},
};

/// S5.1, S5.3, S4.5: stopped in its twenty-first call, a run keeps the results of the twenty, and the next
/// message is sent with all of them.
/// sandialabs/atlas-ui-3#755: a stop after twenty calls, and the follow-up starts from scratch;
/// livekit/agents#3702: finished results are lost, and the model orders the same again.
#[tokio::test]
async fn a_stop_after_twenty_calls_loses_none_of_them() {
    for wire in WIRES {
        let mut rounds: Vec<Reply> = (0..21).map(|_| Reply::call("pay", json!({}))).collect();
        rounds.push(Reply::text("twenty were paid"));
        let server = server(rounds).await;
        let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(20)));
        let agent = builder(&server, wire).tool(gated("pay", EffectClass::Unsafe, &ledger, &gate)).build();
        let handle = agent.run("pay them all").detach();
        started(&handle, 21).await;
        handle.stop(StopRequest::now());
        let (outcome, receipt) = close(&server, &handle, &ledger).await;
        assert_eq!(
            (outcome.ending(), receipt.calls.len(), ledger.count("commit")),
            (Ending::Stopped, 21, 20)
        );
        let next = agent.run_on(outcome.history().clone(), "and now?").await;
        assert_eq!((next.answer(), ledger.count("commit")), (Some("twenty were paid"), 20));
        let sent = server.requests()[21].body.to_string();
        assert_eq!((sent.matches("\"paid\"").count(), sent.matches("effects are unknown").count()), (20, 1));
    }
}

/// S3.3, S5.1, S5.2: a run is dropped in the middle of a call. The call is reported as unknown, a call that
/// had not begun as not started, and every provider accepts the next message.
/// earendil-works/pi#4189: a drop in a tool leaves its call open, and every later request is refused.
#[tokio::test]
async fn a_run_that_is_dropped_in_a_call_leaves_none_open() {
    for wire in WIRES {
        let calls = Reply::default().and_call("pay", json!({})).and_call("pay", json!({}));
        let server = server([calls, Reply::text("ok")]).await;
        let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(0)));
        let agent = builder(&server, wire).tool(gated("pay", EffectClass::Unsafe, &ledger, &gate)).build();
        let run = agent.run("pay").start();
        let handle = run.handle();
        started(&handle, 1).await;
        drop(run);
        let (outcome, _) = close(&server, &handle, &ledger).await;
        assert_eq!((outcome.ending(), ledger.count("commit")), (Ending::Stopped, 0));
        continues(&agent, &outcome).await;
        let sent = server.requests()[1].body.to_string();
        assert!(sent.contains("effects are unknown") && sent.contains("[not started"), "{sent}");
    }
}

fn asks_outside(server: &safepoint_testkit::server::ModelServer, ledger: &Ledger) -> safepoint::AgentBuilder {
    let pay = gated("pay", EffectClass::Unsafe, ledger, &Arc::new(Semaphore::new(9)));
    builder(server, WIRES[0])
        .approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend))
        .rule(Rule::on("pay", RuleAction::Ask))
        .tool(pay)
}

/// S5.1, S5.2, S8.3: a new message over an open question: the history is valid, and the call is reported as
/// not started.
/// vercel/ai#18451: a call that waits for an approval is overlooked when open calls are closed, and the next
/// request fails;
/// google/adk-python#5856: a message while a call is pending leaves it open without end.
#[tokio::test]
async fn a_new_message_over_an_open_question_is_accepted() {
    let calls = Reply::default().and_call("pay", json!({})).and_call("none such", json!({}));
    let server = server([calls, Reply::text("very well")]).await;
    let ledger = Ledger::default();
    let agent = asks_outside(&server, &ledger).build();
    let handle = agent.run("pay").detach();
    let (outcome, _) = close(&server, &handle, &ledger).await;
    assert!(matches!(outcome, Outcome::Suspended(_)), "{outcome:?}");
    let next = agent.run_on(outcome.history().clone(), "never mind").detach();
    let (next, _) = close(&server, &next, &ledger).await;
    assert_eq!((next.answer(), ledger.count("entry")), (Some("very well"), 0));
    assert!(server.requests()[1].body.to_string().contains("[not started"));
}

/// S8.3, S3.3: a run that is dropped while a person is asked: the question is taken back, and the run's
/// readers learn that.
/// pingdotgg/t3code#11799: an approval is never resolved when its session dies.
#[tokio::test]
async fn a_question_of_a_dropped_run_is_closed() {
    let server = server([Reply::call("pay", json!({}))]).await;
    let (ledger, (desk, mut asked)) = (Ledger::default(), Desk::open());
    let approvals = ApprovalMode::Ask(Some(Arc::new(desk)), WithoutApprover::Deny);
    let run = asks_outside(&server, &ledger).approvals(approvals).build().run("pay").start();
    let handle = run.handle();
    let put = asked.recv().await.unwrap();
    drop(run);
    let (_, receipt) = close(&server, &handle, &ledger).await;
    assert_eq!(receipt.approvals_cancelled, std::slice::from_ref(&put.question.id));
    let mut events = handle.events();
    let mut closed = 0;
    while let Some(event) = events.next().await {
        if let EventKind::Fact(fact) = event.kind {
            closed += usize::from(matches!(*fact, Fact::ApprovalResolved { .. }));
        }
    }
    assert_eq!(closed, 1);
}

/// A tool that takes its key along, and waits.
fn keyed(keys: &Arc<Mutex<Vec<String>>>, gate: &Arc<Semaphore>) -> FnTool {
    let (keys, gate) = (Arc::clone(keys), Arc::clone(gate));
    tool::from_fn("pay", "pays once for each key", move |cx, (): ()| {
        let (keys, gate) = (Arc::clone(&keys), Arc::clone(&gate));
        async move {
            keys.lock().unwrap().push(cx.idempotency_key().to_owned());
            gate.acquire().await?.forget();
            Ok("paid")
        }
    })
    .with(|spec| spec.effect(EffectClass::Keyed))
}

/// S7.3, S4.4: a keyed call that a stop cut runs again at the resume, with the same key; another call has
/// another one.
/// microsoft/agent-framework#3938: 209 of 209 refunds are paid twice by a retry without keys, none with them.
#[tokio::test]
async fn a_keyed_call_runs_again_with_its_own_key() {
    let server =
        server([Reply::call("pay", json!({})), Reply::call("pay", json!({})), Reply::text("ok")]).await;
    let (keys, gate) = (Arc::default(), Arc::new(Semaphore::new(0)));
    let agent = builder(&server, WIRES[0]).tool(keyed(&keys, &gate)).build();
    let handle = agent.run("pay").detach();
    started(&handle, 1).await;
    wait::so("a key is used", || !keys.lock().unwrap().is_empty()).await;
    handle.stop(StopRequest::now());
    let (stopped, _) = close(&server, &handle, &Ledger::default()).await;
    gate.add_permits(9);
    assert_eq!(agent.resume(&stopped).await.answer(), Some("ok"));
    let keys = keys.lock().unwrap().clone();
    assert_eq!(keys.len(), 3);
    assert!(keys[0] == keys[1] && keys[1] != keys[2] && !keys[0].is_empty(), "{keys:?}");
}

/// S5.3, S5.4: stopped and resumed again and again, before and in the middle of a message, nothing is added
/// to what is asked: each request is the first one.
/// can1357/oh-my-pi#4508: a resume after an interrupt loops on empty messages; openai/codex#33928 and
/// amd/gaia#3386: an interrupt that can be undone, which this is.
#[tokio::test]
async fn stopping_and_resuming_again_and_again_adds_nothing() {
    for wire in WIRES {
        let server = server([]).await;
        let agent = builder(&server, wire).build();
        let mut gate = server.gate();
        let mut handle = agent.run("tell me").detach();
        for turn in 0..4 {
            gate.request().await;
            if turn % 2 == 1 {
                gate.headers();
                let chunks =
                    gate.script(&Reply::text("once upon a time").paced(5, std::time::Duration::ZERO));
                (0..chunks / 2).for_each(|_| assert!(gate.send_next()));
                first_text(&handle).await;
            }
            handle.stop(StopRequest::now());
            let (stopped, _) = close(&server, &handle, &Ledger::default()).await;
            gate = server.gate();
            handle = agent.resume(&stopped).detach();
        }
        gate.request().await;
        gate.headers();
        gate.script(&Reply::text("the end"));
        gate.finish();
        let (outcome, receipt) = close(&server, &handle, &Ledger::default()).await;
        assert_eq!((outcome.answer(), receipt.attempt), (Some("the end"), 5));
        let requests = server.requests();
        assert!(requests.iter().all(|request| request.bytes == requests[0].bytes), "{wire:?}");
        continues(&agent, &outcome).await;
    }
}

/// S2.8, S2.13: a connection that is reset in any phase: before the headers, after them, after each chunk.
/// The run fails with a word that says so, what was shown is kept, and the next message is accepted.
#[tokio::test]
async fn a_reset_in_any_phase_is_a_clear_failure() {
    for wire in WIRES {
        let reply = Reply::text("hello there, you two")
            .paced(4, std::time::Duration::ZERO)
            .and_call("pay", json!({}));
        let mut phase = 0;
        loop {
            let server = server([Reply::text("ok")]).await;
            let mut gate = server.gate();
            let agent = builder(&server, wire).build();
            let handle = agent.run("hi").detach();
            gate.request().await;
            gate.headers();
            let chunks = gate.script(&reply);
            (0..phase).for_each(|_| assert!(gate.send_next()));
            gate.reset();
            let (outcome, receipt) = close(&server, &handle, &Ledger::default()).await;
            let Outcome::Failed(error) = &outcome else { panic!("phase {phase}: {outcome:?}") };
            assert_eq!(error.code(), "provider", "{error}");
            assert!("hello there, you two".starts_with(outcome.partial_text()));
            assert!(
                receipt.calls.is_empty() && receipt.model.as_ref().unwrap().state != ModelState::Completed
            );
            continues(&agent, &outcome).await;
            phase += 1;
            // The last chunk is the wire's own end: with it the message is whole.
            if phase + 1 >= chunks {
                break;
            }
        }
        assert!(phase > 4, "{phase} phases");
    }
}

/// S2.8, S2.13: a reset before any byte of the answer, when the request had been sent: whether it was worked
/// on is not known, so it is not sent again; the failure says so, and the next message is accepted.
#[tokio::test]
async fn a_reset_before_the_headers_is_a_clear_failure() {
    for wire in WIRES {
        let server = server([Reply::default().fault(ReplyFault::Reset), Reply::text("ok")]).await;
        let agent = builder(&server, wire).build();
        let handle = agent.run("hi").detach();
        let (outcome, _) = close(&server, &handle, &Ledger::default()).await;
        let Outcome::Failed(error) = &outcome else { panic!("{outcome:?}") };
        assert_eq!((error.code(), server.requests().len()), ("provider", 1), "{error}");
        continues(&agent, &outcome).await;
    }
}

/// S2.14, S4.1: a stop comes between a call's announcement and its start: the call is reported as not
/// started, never left in between.
/// pipecat-ai/pipecat#5779: a cancel that arrives before the call is marked as begun leaves it in progress
/// without end.
#[tokio::test]
async fn a_stop_between_announcement_and_start_leaves_no_call_in_between() {
    let server = server([Reply::call("pay", json!({})), Reply::text("ok")]).await;
    let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(9)));
    let agent = builder(&server, WIRES[0]).tool(gated("pay", EffectClass::Unsafe, &ledger, &gate)).build();
    let log = Arc::new(StopsAtCallStarted::default());
    let run = agent.run_recorded(log.clone(), safepoint::History::new(), "pay");
    let handle = run.handle();
    *log.handle.lock().unwrap() = Some(handle.clone());
    let _run = run.start();
    let (outcome, receipt) = close(&server, &handle, &ledger).await;
    assert_eq!((outcome.ending(), receipt.calls[0].status), (Ending::Stopped, CallStatus::NotStarted));
    assert_eq!(ledger.count("entry"), 0);
    continues(&agent, &outcome).await;
}

/// Asks for a stop while the announcement of a call is being recorded.
#[derive(Default)]
struct StopsAtCallStarted {
    inner: safepoint::log::MemoryLog,
    handle: Mutex<Option<safepoint::RunHandle>>,
}

impl safepoint::log::Log for StopsAtCallStarted {
    fn append(
        &self,
        record: safepoint::log::RunRecord,
    ) -> futures_util::future::BoxFuture<'_, Result<u64, safepoint::log::LogError>> {
        if let (Fact::CallStarted { .. }, Some(handle)) = (&*record.fact, &*self.handle.lock().unwrap()) {
            handle.stop(StopRequest::at(SafePoints::AFTER_MODEL));
        }
        self.inner.append(record)
    }
    fn read(
        &self,
    ) -> futures_util::future::BoxFuture<'_, Result<Vec<safepoint::log::RunRecord>, safepoint::log::LogError>>
    {
        self.inner.read()
    }
}

/// S2.2, S2.14: a stop in the round that follows a call closes the stream of that round, and there is no
/// other.
/// cloudflare/agents#1233: a stop while the model continues after a tool looks for another request, and the
/// stream runs on.
#[tokio::test]
async fn a_stop_in_the_round_after_a_call_closes_that_rounds_stream() {
    for wire in WIRES {
        let server = server([]).await;
        let mut gates = [server.gate(), server.gate()];
        let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(1)));
        let agent = builder(&server, wire).tool(gated("look", EffectClass::ReadOnly, &ledger, &gate)).build();
        let handle = agent.run("look, and tell").detach();
        gates[0].request().await;
        gates[0].headers();
        gates[0].script(&Reply::call("look", json!({})));
        gates[0].finish();
        let exchange = gates[1].request().await;
        gates[1].headers();
        let chunks = gates[1].script(&Reply::text("it looks like rain").paced(4, Duration::ZERO));
        for _ in 0..chunks / 2 {
            gates[1].send_next();
        }
        first_text(&handle).await;
        handle.stop(StopRequest::now());
        exchange.peer_closed().await;
        let (stopped, receipt) = close(&server, &handle, &ledger).await;
        assert_eq!((stopped.ending(), receipt.calls[0].status), (Ending::Stopped, CallStatus::Completed));
        assert_eq!((receipt.rounds, server.requests().len()), (2, 2));
        continues(&agent, &stopped).await;
    }
}

/// S3.7, S3.9: a request that never left was never sent, and nothing of it is billed.
#[tokio::test]
async fn a_host_that_is_not_there_bills_nothing() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let model = safepoint_models::openai::model("m").base_url(url);
    let outcome = safepoint::Agent::builder(model).build().run("hi").await;
    let model = outcome.receipt().model.clone().unwrap();
    assert_eq!(outcome.ending(), safepoint::receipt::Ending::Failed);
    assert_eq!(model.state, safepoint::receipt::ModelState::NeverSent);
    assert_eq!((outcome.usage().input, outcome.usage().output), (0, 0));
}

//! A history that outgrows its model's window: refused, shortened or summarised, and stopped like anything
//! else.

use std::{sync::Arc, time::Duration};

use safepoint::{
    Agent, AgentBuilder, History, Outcome, RunHandle, SafePoints, StopRequest,
    event::{Completion, EventKind, Fact},
    history::Message,
    message::{AssistantMessage, Block, CallResult, ResultStatus, ToolCall},
    raw::{Omission, OmissionKind},
    receipt::{Ending, ModelState},
    tool,
    window::Window,
};
use safepoint_testkit::{
    recorder::RecordedAttempt,
    script::{Reply, ReplyFault},
    server::{ModelServer, ServedWire},
};
use serde_json::json;

use super::world::{Ledger, WIRES, builder, close, continues, server};

/// A conversation of a first question, this many rounds with results of this many bytes, and an answer.
fn long(rounds: usize, bytes: usize) -> History {
    let mut history = History::new();
    history.push(Message::User("the oldest question".into()));
    for round in 0..rounds {
        let id = format!("call_{round}");
        let call = ToolCall { id: id.as_str().into(), name: "look".into(), args: "{}".into() };
        history.push(Message::Assistant(AssistantMessage { blocks: vec![Block::Call(call)] }.into()));
        let text = format!("result-{round} {}", "x".repeat(bytes));
        let result = CallResult::of_text(id, "look", text, ResultStatus::Ok);
        history.push(Message::Results { results: vec![result] });
    }
    history.push(Message::Assistant(AssistantMessage::of_text("an old answer").into()));
    history
}

/// An agent with a window that leaves room for a thousand tokens.
fn narrow(server: &ModelServer, wire: ServedWire, policy: impl FnOnce(Window) -> Window) -> Agent {
    agent(builder(server, wire), policy)
}

fn agent(builder: AgentBuilder, policy: impl FnOnce(Window) -> Window) -> Agent {
    let look = tool::from_fn("look", "looks", |_cx, (): ()| async { Ok("seen ".repeat(160)) })
        .with(|spec| spec.effect(tool::EffectClass::ReadOnly));
    builder.tool(look).window(policy(Window::of(1200).keep_for_answer(200))).build()
}

async fn facts(handle: &RunHandle) -> Vec<Arc<Fact>> {
    RecordedAttempt::of(handle).await.facts().cloned().collect()
}

fn shortenings(facts: &[Arc<Fact>]) -> Vec<&Omission> {
    facts
        .iter()
        .filter_map(|fact| match &**fact {
            Fact::HistoryShortened(shortened) => Some(shortened),
            Fact::SummaryEnded { shortened, .. } => shortened.as_ref(),
            _ => None,
        })
        .collect()
}

fn sent(server: &ModelServer, request: usize) -> String {
    server.requests()[request].body.to_string()
}

fn code(outcome: &Outcome) -> (&str, &str) {
    match outcome {
        Outcome::Failed(error) => (error.code(), error.hint().unwrap_or_default()),
        other => panic!("{other:?}"),
    }
}

/// S12.2: nothing is left out of a conversation that fits, and nothing is said of it.
#[tokio::test]
async fn nothing_is_left_out_of_what_fits() {
    for wire in WIRES {
        let server = server([Reply::text("fine")]).await;
        let agent = narrow(&server, wire, Window::drop_oldest);
        let handle = agent.run_on(long(3, 200), "the newest question").detach();
        let (outcome, _) = close(&server, &handle, &Ledger::default()).await;
        assert_eq!((outcome.answer(), outcome.history().omitted()), (Some("fine"), None));
        assert!(shortenings(&facts(&handle).await).is_empty());
        let sent = sent(&server, 0);
        assert!(sent.contains("the oldest question") && sent.contains("result-0"), "{sent}");
    }
}

/// S12.2, S3.1: refused before anything is sent, with what to do; nothing is lost, and a larger window
/// continues.
#[tokio::test]
async fn a_full_window_is_refused_before_anything_is_sent() {
    for wire in WIRES {
        let server = server([Reply::text("fine")]).await;
        let handle = narrow(&server, wire, |window| window).run_on(long(10, 600), "and now?").detach();
        let (outcome, receipt) = close(&server, &handle, &Ledger::default()).await;
        let (code, hint) = code(&outcome);
        assert_eq!((code, server.requests().len(), receipt.model.is_none()), ("context_window", 0, true));
        assert!(hint.contains("larger window"), "{hint}");
        assert_eq!(outcome.history().entries().len(), long(10, 600).entries().len() + 1);
        assert_eq!(builder(&server, wire).build().resume(&outcome).await.answer(), Some("fine"));
    }
}

/// S12.2, S5.1, S7.1: the oldest rounds are not sent any more, a note says so; all of it stays in the
/// history, and the next turn leaves out the same.
#[tokio::test]
async fn the_oldest_rounds_are_dropped_and_kept_in_the_history() {
    for wire in WIRES {
        let server = server([Reply::text("fine"), Reply::text("finer")]).await;
        let agent = narrow(&server, wire, Window::drop_oldest);
        let handle = agent.run_on(long(10, 600), "the newest question").detach();
        let (outcome, _) = close(&server, &handle, &Ledger::default()).await;
        let facts = facts(&handle).await;
        let [shortened] = shortenings(&facts)[..] else { panic!("{facts:?}") };
        assert!(shortened.tokens_before > 1000 && shortened.tokens_after <= 500, "{shortened:?}");
        assert_eq!(shortened.omitted.by, OmissionKind::Note);
        let first = sent(&server, 0);
        assert!(!first.contains("oldest question") && !first.contains("result-0"), "{first}");
        assert!(first.contains("is left out here") && first.contains("the newest question"), "{first}");
        assert!(first.contains("result-9"), "{first}");
        assert_eq!(outcome.history().omitted(), Some(&shortened.omitted));
        assert_eq!(outcome.history().entries().len(), long(10, 600).entries().len() + 2);
        continues(&agent, &outcome).await;
        assert!(sent(&server, 1).contains(shortened.omitted.text()));
        assert!(!sent(&server, 1).contains("oldest question"));
    }
}

/// S12.2, S5.5: inside one long turn: old rounds go, whole; what the person asked in this turn and the newest
/// round stay.
#[tokio::test]
async fn a_long_turn_keeps_its_question_and_its_newest_round() {
    for wire in WIRES {
        let calls = (0..9).map(|_| Reply::call("look", json!({})).and_call("look", json!({})));
        let unmeasured = calls.map(|reply| reply.usage(0, 0));
        let server = server(unmeasured.chain([Reply::text("seen it all")])).await;
        let handle = narrow(&server, wire, Window::drop_oldest).run("the one question").detach();
        let (outcome, _) = close(&server, &handle, &Ledger::default()).await;
        assert_eq!(outcome.answer(), Some("seen it all"));
        let facts = facts(&handle).await;
        let cuts = shortenings(&facts);
        assert!(cuts.len() > 1, "it was full more than once: {cuts:?}");
        assert!(cuts.is_sorted_by(|one, next| one.omitted.entries < next.omitted.entries));
        for request in server.requests() {
            let body = request.body.to_string();
            assert!(body.contains("the one question") && body.len() < 6000, "{body}");
        }
        assert_eq!(outcome.history().entries().len(), 1 + 2 * 9 + 1);
    }
}

/// S12.2: the provider's own figure of the last request counts, not only bytes.
#[tokio::test]
async fn the_providers_figure_is_believed() {
    let server = server([Reply::call("look", json!({})).usage(800, 5), Reply::text("fine")]).await;
    let handle = narrow(&server, WIRES[0], Window::drop_oldest).run_on(long(7, 200), "now?").detach();
    let (outcome, _) = close(&server, &handle, &Ledger::default()).await;
    assert_eq!(outcome.answer(), Some("fine"));
    let facts = facts(&handle).await;
    let [shortened] = shortenings(&facts)[..] else { panic!("{facts:?}") };
    assert!(shortened.tokens_before > 1000, "{shortened:?}");
}

/// S12.2, S3.9: a model's summary stands in the place of the oldest rounds; its call is announced, counted
/// and reported.
#[tokio::test]
async fn a_summary_takes_the_place_of_the_oldest_rounds() {
    for wire in WIRES {
        let server =
            server([Reply::text("they looked ten times").usage(700, 30), Reply::text("fine").usage(300, 3)])
                .await;
        let agent = narrow(&server, wire, Window::summarise);
        let handle = agent.run_on(long(10, 600), "the newest question").detach();
        let (outcome, receipt) = close(&server, &handle, &Ledger::default()).await;
        assert_eq!(outcome.answer(), Some("fine"));
        let (asked, request) = (sent(&server, 0), sent(&server, 1));
        assert!(asked.contains("the oldest question") && asked.contains("result-0"), "{asked}");
        assert!(!asked.contains("\"look\"") && !asked.contains("the newest question"), "{asked}");
        assert!(
            request.contains("they looked ten times") && request.contains("the newest question"),
            "{request}"
        );
        assert!(!request.contains("the oldest question"), "{request}");
        assert_eq!((receipt.summaries.len(), receipt.rounds, receipt.usage.input), (1, 1, 1000));
        assert_eq!(outcome.history().omitted().unwrap().by, OmissionKind::Summary);
        let recording = RecordedAttempt::of(&handle).await;
        let shown = |event: &EventKind| matches!(event, EventKind::Text(text) if text.contains("ten times"));
        assert!(!recording.events.iter().any(|event| shown(&event.kind)), "no summary is shown");
        assert!(recording.facts().any(|fact| matches!(**fact, Fact::SummaryStarted { round: 1 })));
    }
}

/// S12.2, S2.8, S2.2: now, while a summary is written: its socket closes, nothing has changed, and a resume
/// does it.
#[tokio::test]
async fn now_cuts_a_summary_and_changes_nothing() {
    for wire in WIRES {
        let server = server([Reply::text("in short"), Reply::text("fine")]).await;
        let mut gate = server.gate();
        let agent = narrow(&server, wire, Window::summarise);
        let handle = agent.run_on(long(10, 600), "the newest question").detach();
        let exchange = gate.request().await;
        gate.headers();
        gate.script(&Reply::text("half a summary").paced(4, Duration::ZERO));
        gate.send_next();
        handle.stop(StopRequest::now());
        exchange.peer_closed().await;
        let (stopped, receipt) = close(&server, &handle, &Ledger::default()).await;
        assert_eq!((stopped.ending(), stopped.history().omitted()), (Ending::Stopped, None));
        assert_eq!((receipt.summaries[0].state, receipt.model.is_none()), (ModelState::Closed, true));
        assert_eq!(server.requests().len(), 1);
        let resumed = agent.resume(&stopped).await;
        assert_eq!((resumed.answer(), server.requests().len()), (Some("fine"), 3));
        assert!(sent(&server, 2).contains("in short"));
    }
}

/// S12.2, S6.5: steered while a summary is written: it is written to its end, and the steer goes out with the
/// next request, once.
/// can1357/oh-my-pi#3485: the first steer during a compaction is dropped; PostHog/posthog PR#89067: a message
/// ends a compaction.
#[tokio::test]
async fn a_steer_while_a_summary_is_written_is_delivered_and_cuts_nothing() {
    for wire in WIRES {
        let server = server([Reply::text("fine"), Reply::text("fine, in euros")]).await;
        let mut gate = server.gate();
        let agent = narrow(&server, wire, Window::summarise);
        let handle = agent.run_on(long(10, 600), "the newest question").detach();
        gate.request().await;
        gate.headers();
        let chunks = gate.script(&Reply::text("they looked ten times").paced(4, Duration::ZERO));
        for _ in 0..chunks / 2 {
            gate.send_next();
        }
        let steering = handle.steer(safepoint::Steer::new("in euros, please").unwrap());
        gate.finish();
        assert!(matches!(steering.outcome().await, safepoint::steer::SteerOutcome::Delivered { .. }));
        let (outcome, receipt) = close(&server, &handle, &Ledger::default()).await;
        assert_eq!((outcome.ending(), receipt.summaries.len()), (Ending::Done, 1));
        assert_eq!(receipt.summaries[0].state, ModelState::Completed);
        let last = sent(&server, server.requests().len() - 1);
        assert!(last.contains("they looked ten times"), "{last}");
        assert_eq!(last.matches("in euros, please").count(), 1, "{last}");
    }
}

/// S12.2, S1.3: the boundary before the model call is still there while its summary is written: a request
/// that would fire at it cuts the summary at once.
#[tokio::test]
async fn a_safe_point_cuts_a_summary_at_once() {
    let server = server([]).await;
    let agent = narrow(&server, WIRES[0], Window::summarise);
    let mut gates = [server.gate(), server.gate()];
    let handle = agent.run_on(long(7, 200), "now?").detach();
    gates[0].request().await;
    gates[0].headers();
    gates[0].script(&Reply::call("look", json!({})).usage(800, 5));
    gates[0].finish();
    let exchange = gates[1].request().await;
    gates[1].headers();
    handle.stop(StopRequest::at(SafePoints::AFTER_ALL_CALLS));
    exchange.peer_closed().await;
    let (stopped, receipt) = close(&server, &handle, &Ledger::default()).await;
    assert_eq!((stopped.ending(), receipt.summaries.len(), receipt.rounds), (Ending::Stopped, 1, 1));
    assert_eq!(receipt.stop.as_ref().unwrap().fired.as_deref(), Some("after-all-calls"));
}

/// S12.2, S2.4: a request that does not fire at that boundary leaves the summary alone, and fires after the
/// model call.
#[tokio::test]
async fn after_model_waits_for_the_model_call_behind_a_summary() {
    let server = server([Reply::call("look", json!({}))]).await;
    let agent = narrow(&server, WIRES[0], Window::summarise);
    let mut gates = [server.gate(), server.gate()];
    let handle = agent.run_on(long(7, 200), "now?").detach();
    gates[0].request().await;
    gates[0].headers();
    gates[0].script(&Reply::call("look", json!({})).usage(800, 5));
    gates[0].finish();
    gates[1].request().await;
    gates[1].headers();
    handle.stop(StopRequest::at(SafePoints::AFTER_MODEL));
    gates[1].script(&Reply::text("in short"));
    gates[1].finish();
    let (stopped, receipt) = close(&server, &handle, &Ledger::default()).await;
    assert_eq!((stopped.ending(), receipt.rounds, server.requests().len()), (Ending::Stopped, 2, 3));
    assert_eq!(stopped.history().omitted().unwrap().by, OmissionKind::Summary);
}

/// S12.2: a summary that fails, or says nothing, fails the run; nothing is dropped in silence, and a resume
/// tries again.
#[tokio::test]
async fn a_failed_summary_fails_the_run_and_drops_nothing() {
    let refused = ReplyFault::Status { status: 400, body: String::new(), headers: Vec::new() };
    for failing in [Reply::text("").fault(refused), Reply::text("cut").finish("length"), Reply::text(" ")] {
        let server = server([failing, Reply::text("in short"), Reply::text("fine")]).await;
        let agent = narrow(&server, WIRES[0], Window::summarise);
        let handle = agent.run_on(long(10, 600), "now?").detach();
        let (failed, receipt) = close(&server, &handle, &Ledger::default()).await;
        assert_eq!((failed.ending(), failed.history().omitted()), (Ending::Failed, None));
        let Outcome::Failed(error) = &failed else { panic!("{failed:?}") };
        assert!(error.to_string().contains("its summary failed"), "{error}");
        assert_eq!((receipt.summaries.len(), server.requests().len()), (1, 1));
        assert_eq!(agent.resume(&failed).await.answer(), Some("fine"));
    }
}

/// S12.2: a message that is larger than the window is refused under every policy, and nothing is sent.
#[tokio::test]
async fn a_message_larger_than_the_window_is_refused_under_every_policy() {
    for policy in [|window| window, Window::drop_oldest, Window::summarise] {
        let server = server([]).await;
        let agent = narrow(&server, WIRES[0], policy);
        let handle = agent.run_on(long(10, 600), "x".repeat(9000)).detach();
        let (outcome, _) = close(&server, &handle, &Ledger::default()).await;
        assert_eq!((code(&outcome).0, server.requests().len()), ("context_window", 0));
    }
}

/// S12.2, S7.1: what was left out is a recorded fact: a resume sends the same bytes, and so does a stored
/// history.
#[tokio::test]
async fn a_resume_sends_the_same_shortened_history() {
    for wire in WIRES {
        let server = server([Reply::text("fine"), Reply::text("same")]).await;
        let mut gate = server.gate();
        let agent = narrow(&server, wire, Window::drop_oldest);
        let handle = agent.run_on(long(10, 600), "the newest question").detach();
        gate.request().await;
        gate.headers();
        handle.stop(StopRequest::now());
        let (stopped, _) = close(&server, &handle, &Ledger::default()).await;
        let facts = facts(&handle).await;
        let written: Vec<String> = facts.iter().map(|fact| serde_json::to_string(&**fact).unwrap()).collect();
        let read: Vec<Fact> = written.iter().map(|fact| serde_json::from_str(fact).unwrap()).collect();
        assert!(facts.iter().map(|fact| &**fact).eq(&read));
        assert_eq!(agent.resume(&stopped).await.answer(), Some("fine"));
        assert_eq!(server.requests()[0].body, server.requests()[1].body);
        let stored: History = serde_json::from_value(json!(stopped.history())).unwrap();
        assert_eq!(&stored, stopped.history());
        assert_eq!(stored.sent().entries(), stopped.history().sent().entries());
    }
}

/// S12.2: a stored history that leaves out half a round is sent whole again, and says so.
#[tokio::test]
async fn a_cut_inside_a_round_is_not_believed() {
    let server = server([Reply::text("fine")]).await;
    let agent = narrow(&server, WIRES[0], Window::drop_oldest);
    let outcome = agent.run_on(long(10, 600), "now?").await;
    let mut stored = json!(outcome.history());
    stored["view"]["omitted"]["entries"] = json!(2);
    let mut stored: History = serde_json::from_value(stored).unwrap();
    assert_eq!(stored.repair(), [safepoint::raw::Repair::RestoredOmitted]);
    assert_eq!((stored.repair(), stored.omitted()), (Vec::new(), None));
}

/// S12.2: what a provider says of a conversation that it does not take has the same code, whatever its words.
#[tokio::test]
async fn a_providers_own_refusal_has_the_same_code() {
    let bodies = [
        r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}"#,
        r#"{"error":{"message":"Your input exceeds the context window of this model.","code":"context_length_exceeded"}}"#,
        r#"{"error":{"code":400,"message":"The input token count (2) exceeds the maximum number of tokens allowed (1).","status":"INVALID_ARGUMENT"}}"#,
    ];
    let local = r#"{"error":{"code":500,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#;
    let cases = WIRES.into_iter().zip(bodies.map(|body| (400, body))).chain([(WIRES[0], (500, local))]);
    for (wire, (status, body)) in cases {
        let refused = ReplyFault::Status { status, body: body.into(), headers: Vec::new() };
        let server = server([Reply::text("").fault(refused)]).await;
        let handle = builder(&server, wire).build().run("hi").detach();
        let (outcome, _) = close(&server, &handle, &Ledger::default()).await;
        let (code, hint) = code(&outcome);
        assert_eq!((code, server.requests().len()), ("context_window", 1), "{body}");
        assert!(hint.contains("name its window") && !hint.contains("--"), "{hint}");
    }
}

/// S12.2, S12.1: a limit that is reached keeps a summary from beginning.
#[tokio::test]
async fn a_summary_is_not_begun_beyond_a_limit() {
    let server = server([Reply::call("look", json!({})).usage(800, 5)]).await;
    let limits = safepoint::Limits::default().with_max_tokens(700);
    let agent = agent(builder(&server, WIRES[0]).limits(limits), Window::summarise);
    let handle = agent.run_on(long(7, 200), "now?").detach();
    let (outcome, receipt) = close(&server, &handle, &Ledger::default()).await;
    assert_eq!((outcome.ending(), receipt.summaries.len()), (Ending::Stopped, 0));
    let ended = facts(&handle).await;
    assert!(
        !ended.iter().any(|fact| matches!(&**fact, Fact::SummaryEnded { whole: Completion::Complete, .. }))
    );
}

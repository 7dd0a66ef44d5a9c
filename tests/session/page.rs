//! What a page in a browser needs of a session: questions that it answers, lines that it can come back to, and what was said.

use std::sync::Arc;

use futures_util::{FutureExt as _, StreamExt as _};
use safepoint::{
    Agent, Session, SessionHandle, StopRequest, ToolResult,
    approval::{ApprovalMode, ApprovalRequest, DecideError, Decision, WithoutApprover},
    event::{EventEncoder, EventKind, Fact},
    history::Message,
    ids::SessionId,
    receipt::Ending,
    secs,
    session::{ChatPlanner, ItemOutcome, SessionEvent, SessionStop, Ticket},
    store::{MemoryStore, OwnerProcess, Store},
    tool,
};
use safepoint_testkit::{
    script::{Reply, Script},
    scripted::ScriptedModel,
    wait::InTime as _,
};
use serde_json::{Value, json};

use super::{
    desk::turn,
    world::{chat, seen},
};

/// Pays a supplier.
#[tool(effect = "keyed", approval = "required")]
async fn pay(cents: u64) -> ToolResult<String> {
    Ok(format!("paid {cents}"))
}

fn payer(without: WithoutApprover) -> Agent {
    let pays = Reply::text("I pay.").and_call("pay", json!({"cents": 12000}));
    let model = ScriptedModel::new(Script::of([pays, Reply::text("Done.")]));
    Agent::builder(model).tool(pay).approvals(ApprovalMode::Ask(None, without)).build()
}

/// A session whose first turn is suspended: it asks whether it may pay.
async fn suspended() -> (Session<String>, Ticket<String>) {
    let session = chat(payer(WithoutApprover::Suspend)).start();
    let ticket = session.push("Pay Acme.".to_owned()).unwrap();
    assert_eq!(ticket.outcome().await, ItemOutcome::Suspended(turn(1)));
    (session, ticket)
}

/// The session, with its question open.
async fn asked(session: &SessionHandle<String>) -> ApprovalRequest {
    let mut events = session.events();
    while let Some(event) = events.next().in_time("the question").await {
        if let SessionEvent::Run { event, .. } = &event.kind
            && let Some(asked) = event.approval_asked()
        {
            return asked.clone();
        }
    }
    panic!("the session ended first");
}

async fn end(session: &Session<String>) {
    session.stop(SessionStop::at_turn_end());
    session.done().in_time("the end").await;
}

/// S8.2: the name of who decided is given to a later decision, in a session in memory too, whether or not the turn was
/// suspended, and after it has ended.
#[tokio::test]
async fn a_session_in_memory_keeps_the_name_of_who_decided() {
    for without in [WithoutApprover::Suspend, WithoutApprover::Wait] {
        let session = chat(payer(without)).start();
        let ticket = session.push("Pay Acme.".to_owned()).unwrap();
        let question = asked(&session).await;
        if without == WithoutApprover::Suspend {
            assert_eq!(ticket.outcome().await, ItemOutcome::Suspended(turn(1)));
        }
        let yes = Decision::Approve.by("the browser");
        assert_eq!(session.decide(&question.id, yes.clone()).await, Ok(()));
        let first = DecideError::Decided { by: "the browser".into(), decision: Box::new(Decision::Approve) };
        assert_eq!(session.decide(&question.id, Decision::deny("no")).await, Err(first.clone()));
        assert_eq!(ticket.final_outcome().in_time("the end").await, ItemOutcome::Completed(turn(1)));
        assert_eq!(session.decide(&question.id, yes).await, Err(first));
        end(&session).await;
    }
}

/// S8.13: where the program itself shows questions, the turn waits in place: it is not suspended, and continues with the answer.
#[tokio::test]
async fn a_turn_waits_in_place_for_the_program() {
    let session = chat(payer(WithoutApprover::Wait)).start();
    let ticket = session.push("Pay Acme.".to_owned()).unwrap();
    let question = asked(&session).await;
    assert_eq!(ticket.fate_now(), None, "the turn runs");
    assert_eq!(session.approvals().await.len(), 1);
    assert_eq!(session.decide(&question.id, Decision::Approve).await, Ok(()));
    assert_eq!(ticket.outcome().in_time("the end").await, ItemOutcome::Completed(turn(1)));
    end(&session).await;
}

/// S8.3, S11.4: a stop of a suspended turn is recorded as it was asked, with its grace.
#[tokio::test]
async fn a_stop_of_a_suspended_turn_keeps_its_grace() {
    let (session, ticket) = suspended().await;
    session.stop_turn(None, StopRequest::graceful(secs(3)));
    let of_run = |event: &SessionEvent| match event {
        SessionEvent::Run { event, .. } => match &event.kind {
            EventKind::Fact(fact) => match &**fact {
                Fact::StopRequested(request) => Some(request.within_ms),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    let requested = seen(&session, |event| of_run(event).is_some()).await;
    assert_eq!(of_run(&requested), Some(Some(3000)));
    assert_eq!(ticket.final_outcome().in_time("the end").await, ItemOutcome::Interrupted(turn(1)));
    end(&session).await;
}

/// S8.14: who decides with other arguments learns at once that these do not fit, nothing is recorded, and the question is
/// open: in memory and in a store, suspended and live.
#[tokio::test]
async fn changed_arguments_that_do_not_fit_are_refused_at_once() {
    for (without, is_stored) in [WithoutApprover::Suspend, WithoutApprover::Wait]
        .into_iter()
        .flat_map(|without| [false, true].map(move |is_stored| (without, is_stored)))
    {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let builder = chat(payer(without));
        let session = match is_stored {
            true => builder.open(store, SessionId::from("s"), OwnerProcess::here()).await.unwrap(),
            false => builder.start(),
        };
        let ticket = session.push("Pay Acme.".to_owned()).unwrap();
        let question = asked(&session).await;
        if without == WithoutApprover::Suspend {
            assert_eq!(ticket.outcome().await, ItemOutcome::Suspended(turn(1)));
        }
        let with = |args: Value| Decision::approve_with(args).by("ann");
        let refused = session.decide(&question.id, with(json!({"cents": "much"}))).await;
        assert!(
            matches!(&refused, Err(DecideError::Unfit(why)) if why.contains("cents") && !why.contains("call it again")),
            "{refused:?}"
        );
        assert_eq!(session.approvals().await.len(), 1, "it is still open");
        assert_eq!(session.decide(&question.id, with(json!({"cents": 5}))).await, Ok(()));
        assert_eq!(ticket.final_outcome().in_time("the end").await, ItemOutcome::Completed(turn(1)));
        let history = session.history().await;
        let results = history.entries().iter().filter_map(|entry| match &**entry {
            Message::Results { results } => results.last().map(|result| result.text.to_string()),
            _ => None,
        });
        assert_eq!(results.collect::<Vec<_>>(), ["paid 5"]);
        end(&session).await;
    }
}

/// S6.18: the outcome that stays is waited for over a suspension, and known where nothing can change it any more.
#[tokio::test]
async fn a_final_outcome_is_waited_for_until_nothing_changes_it() {
    let (session, ticket) = suspended().await;
    assert!(futures_util::future::poll_immediate(ticket.final_outcome()).await.is_none(), "it may continue");
    end(&session).await;
    assert_eq!(ticket.final_outcome().in_time("no more").await, ItemOutcome::Suspended(turn(1)));
}

/// All lines of the session so far, for a reader that saw `last`, and the id of the last event.
fn lines(session: &SessionHandle<String>, last: &str) -> (Vec<Value>, String) {
    let mut arriving = EventEncoder::lines_of_session(session, last);
    let (mut lines, mut id) = (Vec::new(), last.to_owned());
    while let Some(Some(line)) = arriving.next().now_or_never() {
        id = line.id().to_owned();
        lines.push(line);
    }
    (lines.iter().map(|line| serde_json::to_value(line).unwrap()).collect(), id)
}

/// S11.10: who comes back with an id of another stream, such as that of a server before its restart, gets this stream from
/// its beginning, and a line that says so; who comes back to the same stream continues.
#[tokio::test]
async fn an_id_of_another_stream_is_told_from_one_of_this() {
    let talk = || {
        let replies = ["One.", "Two.", "Three."].map(Reply::text);
        chat(Agent::builder(ScriptedModel::new(Script::of(replies))).build()).start()
    };
    let (before, after) = (talk(), talk());
    for session in [&before, &after] {
        let ticket = session.push("Hello.".to_owned()).unwrap();
        assert_eq!(ticket.outcome().await, ItemOutcome::Completed(turn(1)));
        seen(session, |event| matches!(event, SessionEvent::TurnQuiet { .. })).await;
    }
    let (all, last) = lines(&before, "");
    assert_eq!((&all[0]["type"], &all[0]["seq"]), (&json!("item_accepted"), &json!(0)));
    assert_eq!(lines(&before, &last).0, Vec::<Value>::new(), "nothing is new");

    let (of_after, _) = lines(&after, "");
    let ahead = format!("{}-9999", last.split('-').next().unwrap());
    for (session, id, own) in
        [(&after, &*last, &of_after), (&after, "25", &of_after), (&before, &ahead, &all)]
    {
        let (again, _) = lines(session, id);
        assert_eq!((&again[0]["type"], again.len()), (&json!("stream_restarted"), own.len() + 1), "{id}");
        assert_eq!(again[1]["type"], "item_accepted");
    }
    assert_ne!(before.id(), after.id());
    assert_eq!(all[0]["session"], before.id().as_str());
    end(&before).await;
    end(&after).await;
}

/// S11.11: the events of a session say what was said to begin each turn, and the session has the conversation before them.
#[tokio::test]
async fn a_page_that_is_loaded_again_has_the_questions_too() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let open = || {
        let model = ScriptedModel::new(Script::of(["One.", "Two."].map(Reply::text)));
        let agent = Agent::builder(model).build();
        Session::builder(ChatPlanner::new(agent)).open(
            Arc::clone(&store),
            SessionId::from("trip"),
            OwnerProcess::here(),
        )
    };
    let session = open().await.unwrap();
    let ticket = session.push("How far is it?".to_owned()).unwrap();
    ticket.outcome().in_time("the answer").await;
    let (first, _) = lines(&session, "");
    let started = first.iter().find(|line| line["type"] == "turn_started").unwrap();
    assert_eq!((&started["text"], &started["session"]), (&json!("How far is it?"), &json!("trip")));
    assert_eq!(session.id().as_str(), "trip");
    end(&session).await;
    assert_eq!(session.history().await.entries().len(), 2, "also when it has ended");

    let again = open().await.unwrap();
    let before = again.history().await;
    let said = &before.entries()[0];
    assert!(matches!(&**said, Message::User(said) if said.text == "How far is it?"), "{before:?}");
    let ticket = again.push("And back?".to_owned()).unwrap();
    ticket.outcome().in_time("the answer").await;
    let (second, _) = lines(&again, "");
    assert!(second[0]["epoch"].as_u64() > first[0]["epoch"].as_u64(), "{}", second[0]);
    end(&again).await;
}

/// S3.13: the receipt of a suspended turn names what it waits for, and the account comes with the quiet.
#[tokio::test]
async fn a_receipt_names_what_a_suspended_turn_waits_for() {
    let (session, ticket) = suspended().await;
    let question = asked(&session).await;
    let quiet = seen(&session, |event| matches!(event, SessionEvent::TurnQuiet { .. })).await;
    let SessionEvent::TurnQuiet { receipt, survivors, .. } = quiet else { panic!("another event") };
    assert_eq!((receipt.ending, survivors.len()), (Ending::Suspended, 0));
    assert!(receipt.quiet_at.is_some());
    assert_eq!(receipt.approvals_open.len(), 1);
    let shown = receipt.to_string();
    let row =
        shown.lines().find(|line| line.starts_with("  waits     pay ")).unwrap_or_else(|| panic!("{shown}"));
    assert!(row.ends_with(&format!(" {{\"cents\":12000}}  {}", question.id)), "{row}");
    let mut events = session.events();
    let ended = loop {
        let event = events.next().in_time("the end of the turn").await.unwrap();
        if let SessionEvent::TurnEnded { receipt, .. } = event.kind {
            break receipt;
        }
    };
    assert!(ended.to_string().contains("  running   not known yet"), "{ended}");
    session.decide(&question.id, Decision::Approve).await.unwrap();
    assert_eq!(ticket.final_outcome().in_time("the end").await, ItemOutcome::Completed(turn(1)));
    let ends = session.events().filter(|event| {
        let is_open = match &event.kind {
            SessionEvent::TurnEnded { receipt, .. } => !receipt.approvals_open.is_empty(),
            _ => false,
        };
        async move { is_open }
    });
    end(&session).await;
    assert_eq!(ends.count().await, 1, "the second receipt waits for nothing");
}

//! Lines of events: one of each kind of a run and of a session, which all match the published schema.
//!
//! Written through them: `RunLine`, `SessionLine`, `EventLine`, `LineText`, `Slot`, `NullOrSlot`, `MessageStatus`, `Shortened`,
//! `SteerLine`, `AnswerLine`, `ClosedBy`, `ModeName`, `EscalatedBy`, `ReasonLine`, `PersistedLine`, `ErrorLine`, `ReceiptLine`,
//! `PreemptedLine`, `ItemWord`.

use std::{sync::Arc, time::Duration};

use safepoint_golden::each;
use serde_json::Value;

use super::{
    facts::{facts, hook_actions},
    golden,
    messages::provider_blocks,
    receipts::{plain_receipt, receipts, ruled},
    samples::{at, path, usage},
};
use crate::{
    Limits, Receipt, RunHandle,
    event::{Event, EventEncoder, EventKind, EventLine, Fact, HookReport},
    ids::{ItemId, Path, RunId, SessionId, TurnId},
    message::UserMessage,
    raw::{line::event_schema, schema::Schema},
    run::shared::SharedRun,
    session::{Delivery, ItemOutcome, LostRun, PreemptOutcome, RejectReason, SessionEvent},
};

/// One event of each kind, and one of each fact.
fn kinds() -> Vec<EventKind> {
    let call_id = || "call_1".into();
    let after = Duration::from_millis(1500);
    let quiet = || Arc::new(plain_receipt());
    let text = || Arc::new(EventKind::Text("hello".into()));
    let mut kinds = each!(EventKind {
        EventKind::Fact(_) => EventKind::Fact(Arc::new(facts().remove(0)));
        EventKind::Child { .. } => EventKind::Child { path: path(), event: text() };
        EventKind::Text(_) => EventKind::Text("he said \"no\"\n".into());
        EventKind::Reasoning(_) => EventKind::Reasoning("hm".into());
        EventKind::CallBegun(_) => EventKind::CallBegun("shell".into());
        EventKind::CallDelta { .. } => EventKind::CallDelta {
            call_id: call_id(),
            name: "shell".into(),
            arguments: "{\"comm".into(),
        };
        EventKind::Provider(_) => EventKind::Provider(Arc::new(provider_blocks().remove(0)));
        EventKind::Retrying { .. } => EventKind::Retrying { failed: 1, after, error: "503".into() };
        EventKind::Waiting { .. } => EventKind::Waiting { what: "the rate limit of openai".into() };
        EventKind::FailedOver { .. } => EventKind::FailedOver {
            from: "a".into(),
            to: "b".into(),
            error: "503".into(),
        };
        EventKind::Progress { .. } => EventKind::Progress { call_id: call_id(), text: "10 %".into() };
        EventKind::Notice { .. } => EventKind::Notice { call_id: call_id(), text: "look".into() };
        EventKind::Ruled { .. } => EventKind::Ruled { call_id: call_id(), ruled: Box::new(ruled().remove(0)) };
        EventKind::Usage(_) => EventKind::Usage(usage());
        EventKind::Lagged { .. } => EventKind::Lagged { count: 3 };
        EventKind::Quiet(_) => EventKind::Quiet(quiet());
        EventKind::Late(_) => EventKind::Late("the result of call_9".into());
    });
    // Newer kinds stand last, so that the lines before them keep their numbers.
    kinds.retain(|kind| !matches!(kind, EventKind::Provider(_)));
    let (waiting, receipts): (Vec<Receipt>, Vec<Receipt>) =
        receipts().into_iter().partition(|receipt| !receipt.approvals_open.is_empty());
    let (older, newer): (Vec<Receipt>, Vec<Receipt>) =
        receipts.into_iter().partition(|receipt| receipt.provider_tools.is_empty());
    kinds.extend(facts().into_iter().map(|fact| EventKind::Fact(Arc::new(fact))));
    kinds.extend(older.into_iter().map(|receipt| EventKind::Quiet(Arc::new(receipt))));
    kinds.extend(
        ruled().into_iter().map(|ruled| EventKind::Ruled { call_id: call_id(), ruled: Box::new(ruled) }),
    );
    // Lines are numbered: what was added later comes last.
    let acted = |action| EventKind::Fact(Arc::new(Fact::HookActed(HookReport::new("dry-run", action))));
    kinds.extend(hook_actions().into_iter().skip(1).map(acted));
    let (later, mut kinds): (Vec<EventKind>, Vec<EventKind>) = kinds.into_iter().partition(is_later);
    let of_child = |event: &EventKind| EventKind::Child { path: path(), event: Arc::new(event.clone()) };
    let children: Vec<EventKind> = kinds.iter().map(of_child).collect();
    kinds.extend(children);
    let children: Vec<EventKind> = later.iter().map(of_child).collect();
    kinds.extend(later);
    kinds.extend(children);
    let added: Vec<EventKind> = provider_blocks()
        .into_iter()
        .map(|block| EventKind::Provider(Arc::new(block)))
        .chain(newer.into_iter().map(|receipt| EventKind::Quiet(Arc::new(receipt))))
        .collect();
    kinds.extend(added.iter().map(of_child).collect::<Vec<_>>());
    kinds.extend(added);
    kinds.extend(newest(waiting));
    kinds
}

/// What came last, of a child run and of the run.
fn newest(waiting: Vec<Receipt>) -> Vec<EventKind> {
    let kinds = waiting.into_iter().map(|receipt| EventKind::Quiet(Arc::new(receipt)));
    let kinds: Vec<EventKind> = kinds.collect();
    let of_child = |event: &EventKind| EventKind::Child { path: path(), event: Arc::new(event.clone()) };
    kinds.iter().map(of_child).chain(kinds.clone()).collect()
}

/// Whether it has come to the lines that were there before.
fn is_later(kind: &EventKind) -> bool {
    match kind {
        EventKind::Fact(fact) => matches!(**fact, Fact::HookActed(_) | Fact::ModelTooLong { .. }),
        kind => matches!(kind, EventKind::Waiting { .. }),
    }
}

fn fates(turn: TurnId) -> Vec<ItemOutcome> {
    each!(ItemOutcome {
        ItemOutcome::Completed(_) => ItemOutcome::Completed(turn);
        ItemOutcome::Preempted(_) => ItemOutcome::Preempted(turn);
        ItemOutcome::Failed(_) => ItemOutcome::Failed(turn);
        ItemOutcome::Interrupted(_) => ItemOutcome::Interrupted(turn);
        ItemOutcome::Suspended(_) => ItemOutcome::Suspended(turn);
        ItemOutcome::RolledBack(_) => ItemOutcome::RolledBack(turn);
        ItemOutcome::Dropped => ItemOutcome::Dropped;
        ItemOutcome::Withdrawn => ItemOutcome::Withdrawn;
        ItemOutcome::Returned(_) => ItemOutcome::Returned(RejectReason::Busy(Some(turn)));
        ItemOutcome::Unhandled => ItemOutcome::Unhandled;
    })
}

/// One event of each kind of a session, a turn first.
fn session_events() -> Vec<SessionEvent> {
    let (item, turn) = (ItemId::new(7), TurnId::new(2));
    let (shared, _mailbox) = SharedRun::new(RunId::from("run_1"), Path::default(), &Limits::default());
    let run = || RunHandle::of(&shared);
    let said = |seq| Event::new(seq, at(5), EventKind::Text("hello".into()));
    let survivors = || vec!["background run at root/call_1".to_owned()];
    let receipt = || Arc::new(plain_receipt());
    let mut events = each!(SessionEvent {
        SessionEvent::TurnStarted { .. } => SessionEvent::TurnStarted {
            turn,
            items: vec![item],
            run: run(),
            input: Arc::default(),
        };
        SessionEvent::Accepted(_) => SessionEvent::Accepted(item);
        SessionEvent::Requeued(_) => SessionEvent::Requeued(item);
        SessionEvent::Blocked { .. } => SessionEvent::Blocked { item, turn };
        SessionEvent::Planning { .. } => SessionEvent::Planning { turn: TurnId::new(3) };
        SessionEvent::Run { .. } => SessionEvent::Run { turn, event: said(0) };
        SessionEvent::TurnQuiet { .. } => SessionEvent::TurnQuiet {
            turn,
            survivors: survivors(),
            receipt: receipt(),
        };
        SessionEvent::Background { .. } => SessionEvent::Background { turn, event: said(1) };
        SessionEvent::BackgroundLost(_) => SessionEvent::BackgroundLost(LostRun {
            turn,
            path: path(),
            unknown: vec!["pay".into()],
        });
        SessionEvent::Steered { .. } => SessionEvent::Steered { item, delivered: Delivery { turn, round: 3 } };
        SessionEvent::Preempted { .. } => SessionEvent::Preempted {
            item,
            preempted: PreemptOutcome::StoppedTurn(turn),
        };
        SessionEvent::ItemSettled { .. } => SessionEvent::ItemSettled { item, fate: fates(turn)[0] };
        SessionEvent::StopRequested { .. } => SessionEvent::StopRequested {
            cause: Some("enough".into()),
            once_idle_for: Some(Duration::from_secs(60)),
        }, SessionEvent::StopRequested { cause: None, once_idle_for: None };
        SessionEvent::TurnEnded { .. } => SessionEvent::TurnEnded {
            turn,
            fate: fates(turn)[0],
            receipt: receipt(),
        };
        SessionEvent::Unreadable { .. } => SessionEvent::Unreadable { number: 9, why: "altered".into() };
        SessionEvent::Missed(_) => SessionEvent::Missed(3);
        SessionEvent::Ended => SessionEvent::Ended;
    });
    events.extend(fates(turn).into_iter().map(|fate| SessionEvent::ItemSettled { item, fate }));
    let preempts = each!(PreemptOutcome {
        PreemptOutcome::StoppedTurn(_) => PreemptOutcome::StoppedTurn(turn);
        PreemptOutcome::NoTurn => PreemptOutcome::NoTurn;
        PreemptOutcome::TurnEndedFirst => PreemptOutcome::TurnEndedFirst;
        PreemptOutcome::SupersededByStop => PreemptOutcome::SupersededByStop;
    });
    events.extend(preempts.into_iter().map(|preempted| SessionEvent::Preempted { item, preempted }));
    // Nothing of the turn is alive, so that no later event of it has a line.
    events.push(SessionEvent::TurnQuiet { turn, survivors: Vec::new(), receipt: receipt() });
    events.push(SessionEvent::Background { turn, event: said(2) });
    events.push(said_to_begin(item, run()));
    events
}

/// The start of a turn that something was said to begin.
fn said_to_begin(item: ItemId, run: RunHandle) -> SessionEvent {
    let input = ["What is \"quiet\"?", "And settled?"].map(UserMessage::from).into();
    SessionEvent::TurnStarted { turn: TurnId::new(3), items: vec![item], run, input }
}

/// The line as it is written, which its schema must match; `null` if there is none.
fn written(line: Option<EventLine>, schema: &Schema) -> String {
    let Some(line) = line else { return "null".to_owned() };
    let value = serde_json::to_value(&line).unwrap();
    assert_eq!(schema.check(&value), Ok(()), "{line}");
    assert_eq!(value["type"], line.kind());
    assert_eq!(value["seq"], line.seq());
    assert_eq!(line.to_string(), value.to_string(), "a line shows as it is serialised");
    line.to_string()
}

/// S11.4 S11.8: a line of each event of a run and of a session matches the schema that is made of the lines' types.
#[test]
fn a_line_of_each_event_matches_the_schema() {
    let schema = Schema::new(&event_schema()).unwrap();
    let mut encoder = EventEncoder::new(&SessionId::from("ses_1")).in_epoch(3);
    encoder.begin_turn(2, &RunId::from("run_1"));
    let numbered = |seq: usize| (seq as u64, at(i64::try_from(seq).unwrap()));
    let of_run = kinds().into_iter().enumerate().map(|(seq, kind)| {
        let (seq, at) = numbered(seq);
        written(encoder.event(&Event::new(seq, at, kind)), &schema)
    });
    let file = golden("lines").lines("event", of_run);
    let mut encoder = EventEncoder::new(&SessionId::from("ses_1"));
    let of_session = session_events().into_iter().enumerate().map(|(seq, kind)| {
        let (seq, at) = numbered(seq);
        written(encoder.session_event(&Event::new(seq, at, kind)), &schema)
    });
    let mut of_session: Vec<String> = of_session.collect();
    let (shared, _mailbox) = SharedRun::new(RunId::from("run_1"), Path::default(), &Limits::default());
    let (mut events, mut encoder) =
        (RunHandle::of(&shared).events(), EventEncoder::new(&SessionId::from("ses_1")));
    let restarted = encoder.catch_up(&mut events, "25").map(|line| {
        let mut line = serde_json::to_value(&line).unwrap();
        assert_eq!(schema.check(&line), Ok(()), "{line}");
        line["at"] = at(0).to_string().into();
        line.to_string()
    });
    of_session.extend(restarted);
    file.lines("session_event", of_session).check();
}

/// S11.8: the published schema is the one that is made of the types.
#[test]
fn the_published_schema_is_made_of_the_types() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/event.json");
    let made = serde_json::to_string_pretty(&event_schema()).unwrap() + "\n";
    if std::env::var_os(safepoint_golden::WRITE).is_some() {
        std::fs::write(path, &made).unwrap();
    }
    let published: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(published, event_schema(), "write it anew with {}=1", safepoint_golden::WRITE);
}

/// S11.8: what a line may hold is said in full: a field that the schema does not name does not fit it.
#[test]
fn a_line_with_an_unknown_field_does_not_fit() {
    let schema = Schema::new(&event_schema()).unwrap();
    let mut encoder = EventEncoder::new(&SessionId::from("ses_1"));
    encoder.begin_turn(1, &RunId::from("run_1"));
    let line = encoder.event(&Event::new(0, at(0), EventKind::Text("hello".into()))).unwrap();
    let mut value = serde_json::to_value(&line).unwrap();
    assert_eq!(schema.check(&value), Ok(()));
    value["more"] = Value::Null;
    assert!(schema.check(&value).is_err());
    value["more"].take();
    value["turn"] = Value::Null;
    assert!(schema.check(&value).is_err());
}

//! Where the records of a session's events are: what a reader sees, and what the journal has at that place.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use safepoint::{
    Agent, Session,
    approval::{ApprovalMode, Decision, Rule, RuleAction, WithoutApprover},
    event::{Event, EventKind, Fact},
    ids::{Path, SessionId},
    raw::{JournalFact, StreamEvent as _, read_journal},
    session::{ChatPlanner, ExitReason, ItemOutcome, SessionBuilder, SessionEvent, SessionStop},
    store::{MemoryStore, OwnerProcess, Store},
};
use safepoint_stores::SqliteStore;
use safepoint_testkit::{
    fault_store::{FaultStore, OperationFault},
    script::Reply,
    tools::GateTools,
    wait::InTime as _,
};
use serde_json::json;
use tokio::time::timeout;

use super::desk::{Desk, pays};

/// Longer than any wait of these sessions.
const NEVER: Duration = Duration::from_secs(600);

/// An agent with two child runs that work at the same time, a question, and a child run in the background.
pub(crate) struct Tree {
    outer: Desk,
    inner: [Desk; 3],
}

impl Tree {
    pub(crate) fn new() -> Self {
        let both = Reply::default()
            .and_call("left", json!({"task": "dig"}))
            .and_call("right", json!({"task": "dig"}))
            .and_call("ask", json!({}));
        let aside = Reply::default().and_call("aside", json!({"task": "dig"}));
        let outer = Desk::new([both, Reply::text("both dug"), aside, Reply::text("it digs")]);
        let inner = [(); 3].map(|()| Desk::new([pays(), Reply::text("dug")]));
        let open = |tools: &GateTools| tools.gate().open_for_all();
        inner.iter().for_each(|desk| open(&desk.tools));
        open(&outer.tools);
        Self { outer, inner }
    }

    fn chat(&self) -> SessionBuilder<String> {
        let [left, right, aside] = self.inner.each_ref().map(Desk::agent);
        let agent = Agent::builder(self.outer.model.clone())
            .approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend))
            .rule(Rule::on("ask", RuleAction::Ask))
            .tool(self.outer.tools.gated("ask"))
            .child(left.as_subagent("left", "digs left"))
            .child(right.as_subagent("right", "digs right"))
            .child(aside.as_subagent("aside", "digs aside").background());
        Session::builder(ChatPlanner::new(agent.build()))
    }

    pub(crate) async fn open(
        &self,
        store: Arc<dyn Store>,
    ) -> Result<Session<String>, safepoint::store::Error> {
        self.chat().open(store, id(), OwnerProcess::here()).await
    }
}

fn id() -> SessionId {
    SessionId::from("s")
}

/// Pushes the text, and answers what is asked about it. One that cannot be answered ends the session.
async fn said(session: &Session<String>, text: &str) {
    let Ok(ticket) = session.push(text.to_owned()) else { return };
    if let ItemOutcome::Suspended(_) = ticket.outcome().await {
        for asked in session.approvals().await {
            if session.decide(&asked.id, Decision::Approve).await.is_err() {
                drop(session.stop(SessionStop::now()));
            }
        }
        ticket.final_outcome().await;
    }
}

/// A turn with a question, and a turn with a background run; all that is shown of them. A session that fails is over sooner.
pub(crate) async fn shown(session: Session<String>) -> Vec<Event<SessionEvent>> {
    let mut events = session.events();
    let work = async {
        for text in ["go", "aside"] {
            said(&session, text).await;
        }
        drop(session.stop(SessionStop::at_turn_end()));
        session.done().await;
        let mut shown = Vec::new();
        while let Some(event) = events.next().await {
            shown.push(event);
        }
        shown
    };
    timeout(NEVER, work).await.expect("the session never ended")
}

async fn journal(store: &dyn Store) -> BTreeMap<u64, JournalFact> {
    let (mut journal, id) = (BTreeMap::new(), id());
    let reading = read_journal(store, &id, |step| {
        journal.insert(step.position, step.what.unwrap());
    });
    // A session that could not be opened has none.
    drop(reading.await);
    journal
}

/// A run's fact, as the journal has it: the history of an attempt is written by what it adds.
fn kept(fact: &Fact) -> Fact {
    let mut fact = fact.clone();
    if let Fact::AttemptOpened { history, .. } = &mut fact {
        *history = None;
    }
    fact
}

fn is_of(event: &SessionEvent, record: &JournalFact) -> bool {
    match (event, record) {
        (SessionEvent::TurnStarted { turn, .. }, JournalFact::Planned { turn: of, .. })
        | (SessionEvent::TurnQuiet { turn, .. }, JournalFact::Quiet { turn: of, .. }) => turn == of,
        (SessionEvent::TurnEnded { turn, fate, .. }, JournalFact::Ended { turn: of, fate: was }) => {
            (turn, fate) == (of, was)
        }
        (
            SessionEvent::Run { turn, event } | SessionEvent::Background { turn, event },
            JournalFact::Fact { turn: of, path: at, fact: recorded, .. },
        ) => {
            let root = Path::default();
            let (path, kind) = match &event.kind {
                EventKind::Child { path, event } => (path, &**event),
                kind => (&root, kind),
            };
            let EventKind::Fact(fact) = kind else { return false };
            (turn, path) == (of, at) && kept(fact) == kept(recorded)
        }
        _ => false,
    }
}

/// Each event with a position is what the journal has there, once, and in the stream of its run too. Returns those positions.
fn agrees(shown: &[Event<SessionEvent>], journal: &BTreeMap<u64, JournalFact>) -> BTreeSet<u64> {
    let mut seen = BTreeSet::new();
    for event in shown {
        if let SessionEvent::Run { event: inner, .. } | SessionEvent::Background { event: inner, .. } =
            &event.kind
        {
            assert_eq!(inner.position(), event.position(), "{event:?}");
        }
        let Some(position) = event.position() else { continue };
        assert!(!event.kind.is_provisional(), "{event:?}");
        let record = journal.get(&position).unwrap_or_else(|| panic!("nothing at {position}: {event:?}"));
        assert!(is_of(&event.kind, record), "at {position}: {event:?} is not {record:?}");
        assert!(seen.insert(position), "{position} twice");
    }
    seen
}

/// Whether a reader is shown such a record.
fn has_an_event(record: &JournalFact) -> bool {
    matches!(
        record,
        JournalFact::Planned { .. }
            | JournalFact::Fact { .. }
            | JournalFact::Ended { .. }
            | JournalFact::Quiet { .. }
    )
}

async fn all_agree(store: Arc<dyn Store>) {
    let tree = Tree::new();
    let shown = shown(tree.open(Arc::clone(&store)).await.unwrap()).await;
    let journal = journal(&*store).await;
    let records = journal.iter().filter(|(_, record)| has_an_event(record)).map(|(position, _)| *position);
    assert_eq!(agrees(&shown, &journal), records.collect(), "a record was shown without its position");
    let below = |event: &&Event<SessionEvent>| {
        let of = |event: &Event| matches!(event.kind, EventKind::Child { .. });
        event.position().is_some()
            && matches!(&event.kind, SessionEvent::Run { event, .. } | SessionEvent::Background { event, .. } if of(event))
    };
    assert!(shown.iter().filter(below).count() > 20, "the child runs have shown little");
    let aside = |event: &&Event<SessionEvent>| matches!(event.kind, SessionEvent::Background { .. });
    assert!(
        shown.iter().filter(aside).any(|event| event.position().is_some()),
        "nothing was shown in the background"
    );
}

/// S7.49: each record that a reader is shown has the position at which the journal has it: those of the session, of the turn's
/// run, of its child runs and of its background runs. Nothing else has one.
#[tokio::test]
async fn an_event_says_where_the_journal_has_its_record() {
    all_agree(Arc::new(MemoryStore::default())).await;
    let folder = tempfile::tempdir().unwrap();
    all_agree(Arc::new(SqliteStore::open(folder.path().join("s.db")).unwrap())).await;
}

/// S7.49: a later owner counts on where the former one ended.
#[tokio::test]
async fn the_positions_of_a_later_owner_continue() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let first = shown(Tree::new().open(Arc::clone(&store)).await.unwrap()).await;
    let last = first.iter().filter_map(Event::position).max().unwrap();
    let tree = Tree::new();
    let session = tree.open(Arc::clone(&store)).await.unwrap();
    let mut events = session.events();
    session.push("again".to_owned()).unwrap();
    let begun = loop {
        let event = events.next().in_time("a turn").await.unwrap();
        if let SessionEvent::TurnStarted { .. } = event.kind {
            break event;
        }
    };
    assert!(begun.position().unwrap() > last, "{begun:?}");
    assert!(agrees(&[begun], &journal(&*store).await).len() == 1);
}

/// S7.49, S3.4: whichever operation of the store fails or whose answer is lost, an event has no position but that
/// of its record.
#[tokio::test(start_paused = true)]
async fn an_event_whose_append_failed_has_no_position() {
    for fault in [OperationFault::Refused, OperationFault::Unknown] {
        let (mut failed, mut at) = (0, 0_usize);
        loop {
            let inner: Arc<dyn Store> = Arc::new(MemoryStore::default());
            let faulty = Arc::new(FaultStore::over(Arc::clone(&inner), at, fault.clone()));
            let tree = Tree::new();
            if let Ok(session) = tree.open(Arc::clone(&faulty) as Arc<dyn Store>).await {
                let done = session.handle();
                let shown = shown(session).await;
                agrees(&shown, &journal(&*inner).await);
                failed += usize::from(matches!(done.done().await.reason(), ExitReason::Failed(_)));
            }
            if faulty.asked() <= at {
                break;
            }
            at += 1;
        }
        assert!(at > 20, "{fault:?}: only {at} operations");
        assert!(failed > 10, "{fault:?}: only {failed} sessions failed");
    }
}

/// S7.49: in a session that no store keeps, no event has a place in a journal; that of its run has one in the run's log.
#[tokio::test]
async fn a_session_that_is_not_kept_has_no_positions() {
    let shown = shown(Tree::new().chat().start()).await;
    assert!(shown.iter().all(|event| event.position().is_none()));
    let inner = |event: &Event<SessionEvent>| match &event.kind {
        SessionEvent::Run { event, .. } => event.position(),
        _ => None,
    };
    assert_eq!(shown.iter().find_map(inner), Some(0));
}

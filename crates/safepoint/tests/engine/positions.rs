//! Where the records of a run's events are: in the order of its log, whatever other runs of its tree record meanwhile.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use futures_util::future::BoxFuture;
use safepoint::{
    History,
    event::{Event, EventKind, Fact},
    ids::Path,
    log::{Log, LogError, RunRecord},
};
use tokio::task::yield_now;

use crate::{
    children::hire,
    world::{agent, ask, does, say},
};

/// A log that appends one record at a time, and lets the other runs of the tree append in between. It names no positions of
/// several records if it is silent.
#[derive(Default)]
struct OneByOne {
    records: Mutex<Vec<RunRecord>>,
    is_silent: bool,
}

impl Log for OneByOne {
    fn append(&self, record: RunRecord) -> BoxFuture<'_, Result<u64, LogError>> {
        Box::pin(async move {
            yield_now().await;
            let mut records = self.records.lock().unwrap();
            records.push(record);
            Ok(records.len() as u64 - 1)
        })
    }
    fn append_all(
        &self,
        records: Vec<RunRecord>,
        limit: std::time::Duration,
    ) -> BoxFuture<'_, Result<Vec<u64>, LogError>> {
        Box::pin(async move {
            let mut positions = Vec::new();
            for record in records {
                positions.push(self.append_within(record, limit).await?);
            }
            Ok(if self.is_silent { Vec::new() } else { positions })
        })
    }
    fn read(&self) -> BoxFuture<'_, Result<Vec<RunRecord>, LogError>> {
        let records = self.records.lock().unwrap().clone();
        Box::pin(async { Ok(records) })
    }
}

/// The fact of an event, and the run that recorded it.
fn recorded(event: &Event) -> Option<(Path, Arc<Fact>)> {
    match &event.kind {
        EventKind::Fact(fact) => Some((Path::default(), Arc::clone(fact))),
        EventKind::Child { path, event } => match &**event {
            EventKind::Fact(fact) => Some((path.clone(), Arc::clone(fact))),
            _ => None,
        },
        _ => None,
    }
}

/// The events of a run with two child runs that work at the same time.
async fn shown(log: &Arc<OneByOne>) -> Vec<Event> {
    let work = || does("work", |_| async { Ok("done".into()) });
    let child = || agent([ask(&["work", "work"]), ask(&["work", "work"]), say("dug")]).tool(work()).build();
    let parent = agent([hire(&["left", "right"]), say("both")])
        .child(child().as_subagent("left", "digs left"))
        .child(child().as_subagent("right", "digs right"));
    let handle = parent.build().run_recorded(Arc::clone(log) as _, History::new(), "go").detach();
    let (mut events, mut shown) = (handle.events(), Vec::new());
    while let Some(event) = events.next().await {
        shown.push(event);
    }
    shown
}

/// S7.49: an event that shows a record has the record's position, also where records of another run came between those of one
/// append. An event that shows none has no position.
#[tokio::test(start_paused = true)]
async fn an_event_has_the_position_of_its_record_among_those_of_other_runs() {
    let log = Arc::new(OneByOne::default());
    let shown = shown(&log).await;
    let records = log.read().await.unwrap();
    let mut seen = BTreeSet::new();
    for event in &shown {
        let Some((path, fact)) = recorded(event) else {
            assert_eq!(event.position(), None, "{event:?}");
            continue;
        };
        let position = event.position().unwrap();
        assert_eq!(RunRecord { path, fact }, records[position as usize]);
        assert!(seen.insert(position), "{position} twice");
    }
    assert_eq!(seen.len(), records.len(), "a record was not shown");
}

/// S7.49: a log that does not say where it has its records has recorded them all the same; their events have no position.
#[tokio::test(start_paused = true)]
async fn a_log_that_names_no_positions_is_believed_in_none() {
    let log = Arc::new(OneByOne { is_silent: true, ..OneByOne::default() });
    let shown = shown(&log).await;
    let facts: Vec<_> = shown.iter().filter(|event| recorded(event).is_some()).collect();
    assert_eq!(facts.len(), log.read().await.unwrap().len());
    assert!(facts.iter().any(|event| event.position().is_none()), "several were recorded together");
    assert!(facts.iter().any(|event| event.position().is_some()), "one was recorded alone");
}

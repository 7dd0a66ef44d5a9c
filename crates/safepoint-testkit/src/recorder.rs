//! What a run showed: wait for a moment of it, or take all of it down.

use std::{collections::BTreeMap, sync::Arc};

use safepoint::{
    Receipt, RunHandle,
    event::{ErrorReport, Event, EventKind, Fact},
    ids::{CallId, Path},
};

/// All events of an attempt, from the first to its settling.
#[derive(Clone, Debug, Default)]
pub struct RecordedAttempt {
    /// The events.
    pub events: Vec<Event>,
}

/// How an attempt settled.
#[derive(Clone, Debug)]
pub struct Settled {
    /// Where in the stream.
    pub seq: u64,
    /// The account at that moment.
    pub receipt: Arc<Receipt>,
    /// Code and message, if it failed.
    pub error: Option<ErrorReport>,
}

impl RecordedAttempt {
    /// Takes down everything that a run shows, until it has settled.
    ///
    /// # Cancel safety
    /// Nothing is lost: the run keeps its events.
    pub async fn of(handle: &RunHandle) -> Self {
        let mut stream = handle.events();
        let mut events = Vec::new();
        while let Some(event) = stream.next().await {
            events.push(event);
        }
        Self { events }
    }

    /// The recorded facts, in their order.
    pub fn facts(&self) -> impl Iterator<Item = &Arc<Fact>> {
        self.events.iter().filter_map(|event| match &event.kind {
            EventKind::Fact(fact) => Some(fact),
            _ => None,
        })
    }

    /// What each child run showed in this stream, at any depth; the numbers are those of this stream.
    #[must_use]
    pub fn runs(&self) -> BTreeMap<Path, Self> {
        let mut runs: BTreeMap<Path, Self> = BTreeMap::new();
        for event in &self.events {
            if let EventKind::Child { path, event: shown } = &event.kind {
                let kind = EventKind::clone(shown);
                runs.entry(path.clone()).or_default().events.push(Event::new(event.seq, event.at, kind));
            }
        }
        runs
    }

    /// How many attempts began.
    #[must_use]
    pub fn attempts(&self) -> usize {
        self.facts().filter(|fact| matches!(&***fact, Fact::AttemptOpened { .. })).count()
    }

    /// Each `settled`; there must be one.
    #[must_use]
    pub fn settled(&self) -> Vec<Settled> {
        let settled = |event: &Event| {
            let EventKind::Fact(fact) = &event.kind else { return None };
            let Fact::Settled { receipt, error } = &**fact else { return None };
            Some(Settled { seq: event.seq, receipt: Arc::clone(receipt), error: error.clone() })
        };
        self.events.iter().filter_map(settled).collect()
    }

    /// The calls that were announced as started, in their order.
    pub fn started(&self) -> impl Iterator<Item = &CallId> {
        self.facts().filter_map(|fact| match &**fact {
            Fact::CallStarted { call_id, .. } => Some(call_id),
            _ => None,
        })
    }

    /// How many requests may have been sent to models: calls of the run and of its child runs, and their
    /// further tries, also with other models.
    #[must_use]
    pub fn most_requests(&self) -> usize {
        self.own_requests() + self.runs().values().map(Self::own_requests).sum::<usize>()
    }

    fn own_requests(&self) -> usize {
        let again =
            |kind: &EventKind| matches!(kind, EventKind::Retrying { .. } | EventKind::FailedOver { .. });
        let retries = self.events.iter().filter(|event| again(&event.kind));
        let begins =
            |fact: &&Arc<Fact>| matches!(***fact, Fact::ModelStarted { .. } | Fact::SummaryStarted { .. });
        let calls = self.facts().filter(begins);
        retries.count() + calls.count()
    }

    /// The first place where sequence numbers do not follow each other.
    #[must_use]
    pub fn gap(&self) -> Option<u64> {
        let mut due = self.events.first()?.seq;
        for event in &self.events {
            if event.seq != due {
                return Some(due);
            }
            due += match event.kind {
                EventKind::Lagged { count } => count,
                _ => 1,
            };
        }
        None
    }
}

/// Waits for the first event that fits, also one that is past; none if the run settles without it.
///
/// # Cancel safety
/// Nothing is lost.
pub async fn until(handle: &RunHandle, fits: impl Fn(&EventKind) -> bool) -> Option<Event> {
    let mut events = handle.events();
    while let Some(event) = events.next().await {
        if fits(&event.kind) {
            return Some(event);
        }
    }
    None
}

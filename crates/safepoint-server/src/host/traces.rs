//! Which trace an item came with: the turn that it begins hangs below it, and a turn that it steers is linked to it (S11.14).
//!
//! **Invariants**: in memory alone, and bounded; an item that has lost its trace is an item all the same.

use std::{
    collections::VecDeque,
    hash::{BuildHasher as _, RandomState},
    sync::{Arc, Mutex, MutexGuard},
};

use safepoint::{
    Agent,
    ids::SessionId,
    raw::trace::{self, RunTrace, TraceContext},
};

/// How many items with traces may wait for their turns. Beyond that the oldest has none.
const MOST: usize = 4_096;

/// The traces of items that no turn has taken yet.
#[derive(Debug, Default)]
pub(crate) struct ItemTraces {
    texts: RandomState,
    /// Held for one look or one entry; no other lock is taken under it.
    waiting: Mutex<VecDeque<Waiting>>,
}

#[derive(Debug)]
struct Waiting {
    session: SessionId,
    /// What the item says: its number is not known before its turn may begin.
    text: u64,
    context: TraceContext,
}

impl ItemTraces {
    /// An item with this text is about to be pushed into the session.
    pub(crate) fn expect(&self, session: &SessionId, text: &str, context: TraceContext) {
        let mut waiting = self.waiting();
        if waiting.len() == MOST {
            waiting.pop_front();
        }
        waiting.push_back(Waiting { session: session.clone(), text: self.texts.hash_one(text), context });
    }

    /// It is not in the session after all.
    pub(crate) fn forget(&self, session: &SessionId, text: &str) {
        drop(self.take(session, self.texts.hash_one(text)));
    }

    fn take(&self, session: &SessionId, text: u64) -> Option<TraceContext> {
        let mut waiting = self.waiting();
        let is_it = |waiting: &Waiting| waiting.text == text && waiting.session == *session;
        let place = waiting.iter().position(is_it)?;
        waiting.remove(place).map(|waiting| waiting.context)
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.waiting.lock().expect("no code under this lock panics")
    }
}

/// The same for one session, and the trace of its last turn.
#[derive(Debug)]
pub(super) struct SessionTraces {
    items: Arc<ItemTraces>,
    session: SessionId,
    /// Held for one look or one entry; no other lock is taken under it.
    turn: Mutex<Option<RunTrace>>,
}

impl SessionTraces {
    pub(super) fn new(items: Arc<ItemTraces>, session: SessionId) -> Self {
        Self { items, session, turn: Mutex::default() }
    }

    /// The texts, as [`below`](Self::below) takes them.
    pub(super) fn key(&self, text: &str) -> u64 {
        self.items.texts.hash_one(text)
    }

    /// The agent of a turn that is about these items: its run hangs below what the first of them came with.
    pub(super) fn below(&self, agent: Agent, texts: impl IntoIterator<Item = u64>) -> Agent {
        if !trace::is_installed() {
            return agent;
        }
        let mut contexts = texts.into_iter().filter_map(|text| self.items.take(&self.session, text));
        let joint = contexts.next().map_or_else(RunTrace::default, RunTrace::below);
        contexts.for_each(|context| joint.link(context));
        *self.turn.lock().expect("no code under this lock panics") = Some(joint.clone());
        trace::traced(&agent, joint)
    }

    /// The running turn is steered with this text.
    pub(super) fn steered(&self, text: &str) {
        let turn = self.turn.lock().expect("no code under this lock panics").clone();
        if let Some(turn) = turn
            && let Some(context) = self.items.take(&self.session, self.key(text))
        {
            turn.link(context);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(number: usize) -> TraceContext {
        let text = format!("00-0af7651916cd43dd8448eb211c80319c-{number:016x}-01");
        TraceContext::parse(&text).expect("it is one")
    }

    /// S11.14: each item gets its own trace, once, in the order of those that say the same; and the oldest gives way.
    #[test]
    fn an_item_has_the_trace_that_it_came_with() {
        let traces = ItemTraces::default();
        let (one, two) = (SessionId::from("ses_1"), SessionId::from("ses_2"));
        for (number, (session, text)) in
            [(&one, "go"), (&two, "go"), (&one, "go"), (&one, "stay")].iter().enumerate()
        {
            traces.expect(session, text, context(number + 1));
        }
        let take = |session: &SessionId, text: &str| traces.take(session, traces.texts.hash_one(text));
        assert_eq!(take(&one, "stay"), Some(context(4)));
        assert_eq!(take(&one, "go"), Some(context(1)));
        assert_eq!(take(&one, "go"), Some(context(3)));
        assert_eq!(take(&one, "go"), None);
        traces.forget(&two, "go");
        assert_eq!(take(&two, "go"), None);
        for number in 0..=MOST {
            traces.expect(&one, &number.to_string(), context(number + 1));
        }
        assert_eq!((take(&one, "0"), take(&one, "1")), (None, Some(context(2))));
    }
}

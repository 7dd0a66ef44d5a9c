//! Repairs a history that came from elsewhere or was damaged (S5.1): idempotent, in place, and reported.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{History, Message, note};
use crate::{
    ids::CallId,
    message::{AssistantMessage, Block, CallResult, ResultStatus},
};

/// One repair. Exhaustive: each is recorded and shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "repair", rename_all = "snake_case")]
pub enum Repair {
    /// A call had no result; it got a note.
    AnsweredCall {
        /// The call.
        call_id: CallId,
    },
    /// A result answered no call of the message before it (or one that was answered already); it was dropped.
    DroppedResult {
        /// The call that it named.
        call_id: CallId,
    },
    /// A message had nothing in it; it was dropped.
    DroppedEmpty,
    /// Two calls shared an id; the later one got another.
    RenamedCall {
        /// The id that was taken.
        call_id: CallId,
    },
    /// The omitted part did not end before a message; all of the history is sent again.
    RestoredOmitted,
}

impl History {
    /// Repairs the closed part until [its invariant](History) holds, and returns the repairs: none for a
    /// history that the engine made, none the second time.
    pub fn repair(&mut self) -> Vec<Repair> {
        if is_whole(&self.entries) {
            return self.repair_omitted();
        }
        let mut repaired = Repaired::default();
        for entry in std::mem::take(&mut self.entries) {
            repaired.take(Arc::unwrap_or_clone(entry));
        }
        repaired.answer_open();
        self.entries = repaired.entries.into_iter().map(Arc::new).collect();
        // Entries may have moved, so what was meant to be omitted is unknown.
        let had_omitted = self.omitted().is_some();
        self.restore_omitted();
        repaired.repairs.extend(had_omitted.then_some(Repair::RestoredOmitted));
        repaired.repairs
    }

    fn repair_omitted(&mut self) -> Vec<Repair> {
        if self.omits_whole_rounds() {
            return Vec::new();
        }
        self.restore_omitted();
        vec![Repair::RestoredOmitted]
    }
}

/// The common case, without allocation beyond the ids: nothing to repair.
fn is_whole(entries: &[Arc<Message>]) -> bool {
    let mut seen: HashSet<&str> = HashSet::new();
    let mut entries = entries.iter().peekable();
    while let Some(entry) = entries.next() {
        match &**entry {
            Message::User(message) if message.is_blank() => return false,
            Message::User(_) => {}
            Message::Results { .. } => return false,
            Message::Assistant(message) if message.is_blank() => return false,
            Message::Assistant(message) => {
                let calls: Vec<&str> = message.calls().map(|call| call.id.as_str()).collect();
                if !calls.iter().all(|id| !id.is_empty() && seen.insert(id)) {
                    return false;
                }
                if calls.is_empty() {
                    continue;
                }
                let answered = entries.next_if(|next| match &***next {
                    Message::Results { results } => {
                        results.iter().map(|r| r.call_id.as_str()).eq(calls.iter().copied())
                    }
                    Message::User(_) | Message::Assistant(_) => false,
                });
                if answered.is_none() {
                    return false;
                }
            }
        }
    }
    true
}

#[derive(Default)]
struct Repaired {
    entries: Vec<Message>,
    repairs: Vec<Repair>,
    seen: HashSet<CallId>,
    /// Calls of the last message that wait for results: id as stored, current id, name.
    open: Vec<(CallId, CallId, String)>,
    results: HashMap<CallId, CallResult>,
}

impl Repaired {
    fn take(&mut self, entry: Message) {
        match entry {
            Message::Results { results } => self.take_results(results),
            Message::User(message) => {
                self.answer_open();
                if message.is_blank() {
                    self.repairs.push(Repair::DroppedEmpty);
                } else {
                    self.entries.push(Message::User(message));
                }
            }
            Message::Assistant(message) => {
                self.answer_open();
                self.take_assistant(Arc::unwrap_or_clone(message));
            }
        }
    }

    fn take_assistant(&mut self, mut message: AssistantMessage) {
        if message.is_blank() {
            self.repairs.push(Repair::DroppedEmpty);
            return;
        }
        for block in &mut message.blocks {
            let Block::Call(call) = block else { continue };
            let stored = call.id.clone();
            let mut suffix = self.seen.len();
            while call.id.as_str().is_empty() || !self.seen.insert(call.id.clone()) {
                call.id = CallId::from(format!("{stored}_{suffix}"));
                suffix += 1;
            }
            if call.id != stored {
                self.repairs.push(Repair::RenamedCall { call_id: stored.clone() });
            }
            self.open.push((stored, call.id.clone(), call.name.clone()));
        }
        self.entries.push(Message::Assistant(message.into()));
    }

    fn take_results(&mut self, results: Vec<CallResult>) {
        for result in results {
            let waiting = self
                .open
                .iter()
                .find(|(stored, now, _)| *stored == result.call_id && !self.results.contains_key(now))
                .map(|(_, now, _)| now.clone());
            match waiting {
                Some(now) => {
                    let result = CallResult { call_id: now.clone(), ..result };
                    if self.results.insert(now, result).is_some() {
                        unreachable!("only calls without a result are waiting");
                    }
                }
                None => self.repairs.push(Repair::DroppedResult { call_id: result.call_id }),
            }
        }
    }

    fn answer_open(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let mut results = Vec::with_capacity(self.open.len());
        for (_, now, name) in std::mem::take(&mut self.open) {
            results.push(self.results.remove(&now).unwrap_or_else(|| {
                self.repairs.push(Repair::AnsweredCall { call_id: now.clone() });
                CallResult::of_text(now, name, note::MISSING, ResultStatus::Error)
            }));
        }
        self.entries.push(Message::Results { results });
    }
}

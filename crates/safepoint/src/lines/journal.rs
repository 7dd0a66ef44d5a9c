//! Lines of what a session's journal has: for a reader that comes back after the events themselves are gone.

use std::{collections::HashMap, sync::Arc};

use jiff::Timestamp;
use serde_json::json;

use super::{
    body::{ReceiptLine, SessionLine},
    encoder::{EventEncoder, TurnState},
    line::EventLine,
    session::words,
};
use crate::{
    session::journal::{JournalFact, JournalStep},
    value::{
        event::{EventKind, Fact},
        ids::{ItemId, Path, SessionId, TurnId},
        receipt::Receipt,
    },
};

/// Makes lines of a session's journal, as an [`EventEncoder`] makes them of its events while it is open: the same types, and the
/// `position` of each in the journal. Deltas are not in the journal, and have no lines. An item has the number that the
/// store gave it.
///
/// It gets every step from the first one on, in order.
///
/// # Examples
/// ```no_run
/// # use safepoint::{ids::SessionId, raw::{self, line::JournalEncoder}, store::{Error, Store}};
/// # async fn print(store: &dyn Store, session: SessionId) -> Result<(), Error> {
/// let mut encoder = JournalEncoder::new(&session);
/// raw::read_journal(store, &session, |step| {
///     if let Some(line) = encoder.step(&step) {
///         println!("{line}");
///     }
/// })
/// .await
/// # }
/// ```
#[derive(Debug)]
pub struct JournalEncoder {
    encoder: EventEncoder,
    /// The account of each turn that has settled, until the turn ends.
    receipts: HashMap<TurnId, Arc<Receipt>>,
}

impl JournalEncoder {
    /// Makes lines of this session.
    #[must_use]
    pub fn new(session: &SessionId) -> Self {
        Self { encoder: EventEncoder::new(session), receipts: HashMap::new() }
    }

    /// The records that follow were written by the owner of this number.
    pub fn begin_epoch(&mut self, epoch: u64) {
        self.encoder.begin_epoch(epoch);
    }

    /// The line of one step. Most have one; a few only complete what others say, and have none.
    pub fn step(&mut self, step: &JournalStep) -> Option<EventLine> {
        let at = step.at.unwrap_or(Timestamp::UNIX_EPOCH);
        let mut line = match step.what.as_ref().ok()? {
            JournalFact::Planned { turn, items } => {
                let items: Vec<ItemId> = items.iter().copied().map(ItemId::new).collect();
                self.encoder.turns.entry(turn.number()).or_insert_with(|| TurnState::numbered(turn.number()));
                self.own(*turn, &SessionLine::TurnStarted { items: &items, text: None }, at)
            }
            JournalFact::Fact { turn, path, fact, .. } => self.fact(*turn, path, fact, at)?,
            JournalFact::Ended { turn, fate } => {
                let receipt = self.receipts.remove(turn)?;
                let (outcome, receipt) = (words(*fate).1, ReceiptLine::of(&receipt));
                self.own(*turn, &SessionLine::TurnEnded { outcome, receipt }, at)
            }
            JournalFact::Quiet { turn, survivors } => {
                self.own(*turn, &SessionLine::TurnQuiet { survivors }, at)
            }
            JournalFact::Begun { .. }
            | JournalFact::BegunMore { .. }
            | JournalFact::Forgotten { .. }
            | JournalFact::GivenUp { .. }
            | JournalFact::Checkpoint => return None,
        };
        line.set("position", json!(step.position));
        Some(line)
    }

    fn own(&mut self, turn: TurnId, line: &SessionLine<'_>, at: Timestamp) -> EventLine {
        self.encoder.of_turn(Some(turn), EventLine::of(line), at)
    }

    fn fact(&mut self, turn: TurnId, path: &Path, fact: &Arc<Fact>, at: Timestamp) -> Option<EventLine> {
        if path.is_root() {
            match &**fact {
                Fact::AttemptOpened { run, .. } => {
                    let state = self.encoder.turns.entry(turn.number());
                    state.or_insert_with(|| TurnState::numbered(turn.number())).run = Some(run.clone());
                }
                Fact::Settled { receipt, .. } => drop(self.receipts.insert(turn, Arc::clone(receipt))),
                _ => {}
            }
        }
        let kind = EventKind::Fact(Arc::clone(fact));
        let kind = match path.is_root() {
            true => kind,
            false => EventKind::Child { path: path.clone(), event: Arc::new(kind) },
        };
        self.encoder.among(turn, |encoder| {
            let line = encoder.of_kind(&kind)?;
            Some(encoder.number(line, at))
        })
    }
}

//! What the journal of a session says of its turns: the same whichever process has the session, or none.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use safepoint::{
    Receipt,
    approval::Decision,
    event::{ErrorReport, Fact, Resolution},
    history::Message,
    ids::{SessionId, TurnId},
    raw::{
        JournalFact, StoredStop, read_journal,
        store::{StopRow, Tenure},
    },
    receipt::Ending,
    session::ItemOutcome,
    stop::Code,
    store::{Error, Store},
};
use serde_json::Value;

use crate::answer::{CRASHED, StopAnswer, StopState, TurnAnswer, outcome_words};

/// What is recorded of one turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct TurnRead {
    /// The numbers of its items.
    pub(crate) items: Vec<u64>,
    pub(crate) outcome: Option<ItemOutcome>,
    /// When it began, was resumed or ended, whichever was last.
    pub(crate) changed: Option<Timestamp>,
    /// What the conversation grew by as it began that is a user's: the last of it is what its items say.
    asked: Vec<String>,
    /// What was said to it after its items, in order: steers, and the answers to its questions.
    pub(crate) said: Vec<String>,
    /// Code and message, if it failed.
    pub(crate) error: Option<ErrorReport>,
    answer: Option<String>,
    receipt: Option<Arc<Receipt>>,
    /// What was alive when nothing more was waited for.
    survivors: Option<Vec<String>>,
    is_stop_observed: bool,
    /// When it began.
    pub(crate) begun: Option<Timestamp>,
    /// Whether the end of its owner's process has cut it, and nothing but a resume continues it.
    pub(crate) is_cut: bool,
    /// Whether its last record is of an owner before the newest: it runs nowhere.
    pub(crate) is_left: bool,
    stage: TurnStage,
    /// The code of a stop that ended an attempt of it before the last one. A stop of its process is none that anything asked for.
    pub(crate) stopped_by: Option<String>,
    /// The position of its last record.
    last: u64,
}

/// Whether anything of a turn may be resumed. Exhaustive: nothing of it has begun, an attempt has, or it was given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TurnStage {
    #[default]
    Planned,
    Begun,
    GivenUp,
}

/// How long a new owner has until a turn that an earlier one left is taken for cut: some begin again by themselves.
const BEGINS_AGAIN: Duration = Duration::from_secs(2);

/// The turns of a session.
pub(crate) type Turns = BTreeMap<u64, TurnRead>;

/// Reads all of them.
///
/// # Errors
/// The store's.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn turns(store: &dyn Store, session: &SessionId) -> Result<Turns, Error> {
    let mut turns = Turns::new();
    read_journal(store, session, |step| {
        if let Ok(JournalFact::Planned { turn, .. }) = &step.what {
            let read = turns.entry(turn.number()).or_default();
            read.begun = read.begun.or(step.at);
        }
        if let Ok(fact) = step.what {
            note(&mut turns, (step.position, step.at), fact);
        }
    })
    .await?;
    find_cut(&mut turns, &store.tenures(session).await?);
    Ok(turns)
}

/// How long it takes until it is known whether a turn that an earlier owner left is cut. `None`: it is known.
///
/// # Errors
/// The store's.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn known_in(store: &dyn Store, session: &SessionId) -> Result<Option<Duration>, Error> {
    Ok(time_left(&store.tenures(session).await?))
}

/// What is left of the newest owner's time.
fn time_left(tenures: &[Tenure]) -> Option<Duration> {
    let had = Timestamp::now().duration_since(tenures.last()?.at);
    // By the clock of another machine it may be longer.
    let had = Duration::try_from(had).unwrap_or_default();
    (had <= BEGINS_AGAIN).then(|| BEGINS_AGAIN - had)
}

/// Which of them have no end and get none: a later one has begun, or a later owner has the session.
fn find_cut(turns: &mut Turns, tenures: &[Tenure]) {
    let had_time = time_left(tenures).is_none();
    for (at, (number, turn)) in turns.iter_mut().rev().enumerate() {
        turn.is_left = tenures.last().is_some_and(|newest| epoch_at(tenures, turn.last) < newest.epoch);
        let is_over = at > 0 || turn.is_left && had_time;
        if turn.outcome.is_some() || !is_over {
            continue;
        }
        // One that had settled is over; only that was not recorded.
        turn.outcome = turn.settled(TurnId::new(*number));
        turn.is_cut = turn.outcome.is_none();
    }
}

fn note(turns: &mut Turns, (position, at): (u64, Option<Timestamp>), fact: JournalFact) {
    match fact {
        JournalFact::Planned { turn, items } => {
            let turn = turns.entry(turn.number()).or_default();
            (turn.items, turn.changed, turn.last) = (items, at, position);
        }
        JournalFact::Fact { turn, path, fact, grown } if path.is_root() => {
            let turn = turns.entry(turn.number()).or_default();
            turn.asked.extend(grown.iter().filter_map(|message| match &**message {
                Message::User(said) => Some(said.text.clone()),
                _ => None,
            }));
            if matches!(*fact, Fact::AttemptOpened { .. }) {
                turn.changed = at;
            }
            turn.note(&fact);
            turn.last = position;
        }
        JournalFact::Ended { turn, fate } => {
            let turn = turns.entry(turn.number()).or_default();
            (turn.outcome, turn.changed) = (Some(fate), at);
        }
        JournalFact::GivenUp { turn } => turns.entry(turn.number()).or_default().stage = TurnStage::GivenUp,
        JournalFact::Quiet { turn, survivors } => {
            let turn = turns.entry(turn.number()).or_default();
            if let Some(receipt) = &mut turn.receipt {
                let receipt = Arc::make_mut(receipt);
                receipt.quiet_at = at.filter(|_| survivors.is_empty());
                receipt.survivors.clone_from(&survivors);
            }
            turn.survivors = Some(survivors);
        }
        JournalFact::Forgotten { turn } => {
            turns.entry(turn.number()).or_default().outcome = Some(ItemOutcome::RolledBack(turn));
        }
        _ => {}
    }
}

/// A decision, as a person says it.
fn words(decision: &Decision) -> String {
    match decision {
        Decision::Approve | Decision::ApproveAlways { .. } => "approve".to_owned(),
        Decision::ApproveWith { message, .. } if message.is_empty() => "approve".to_owned(),
        Decision::Deny { message } if message.is_empty() => "deny".to_owned(),
        Decision::ApproveWith { message, .. } | Decision::Deny { message } => message.clone(),
        Decision::Respond { result } => result.clone(),
    }
}

/// The turn that has or had this item.
pub(crate) fn turn_of(turns: &Turns, item: u64) -> Option<(TurnId, &TurnRead)> {
    let found = turns.iter().rev().find(|(_, turn)| turn.items.contains(&item))?;
    Some((TurnId::new(*found.0), found.1))
}

/// The turn that a resume of a session takes up which has no owner.
///
/// # Errors
/// The store's.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn resumable(store: &dyn Store, session: &SessionId) -> Result<Option<TurnId>, Error> {
    let turns = turns(store, session).await?;
    let last = turns.last_key_value().map(|(number, turn)| (TurnId::new(*number), turn));
    Ok(last.filter(|(number, turn)| turn.may_be_resumed(*number)).map(|(number, _)| number))
}

/// Which owner wrote the record at this position; 0: that is not known.
pub(crate) fn epoch_at(tenures: &[Tenure], position: u64) -> u64 {
    let before = tenures.iter().rev().find(|tenure| tenure.head <= position);
    before.map_or(0, |tenure| tenure.epoch)
}

/// What is known of a stop by now.
pub(crate) fn stop(turns: &Turns, row: &StopRow) -> StopAnswer {
    let turn = match StoredStop::from_bytes(&row.bytes) {
        Ok(StoredStop::Turn(turn, _)) => turn.map(TurnId::number).or_else(|| turns.keys().last().copied()),
        Ok(StoredStop::Item(item, ..)) => turn_of(turns, item).map(|(turn, _)| turn.number()),
        _ => turns.keys().last().copied(),
    };
    let read = turn.and_then(|turn| turns.get(&turn));
    let mut answer = read.map_or_else(StopAnswer::requested, TurnRead::stop);
    answer.number = Some(row.number);
    answer.recorded = true;
    answer.turn = turn.map(|turn| TurnId::new(turn).to_string());
    answer
}

impl TurnRead {
    fn note(&mut self, fact: &Fact) {
        match fact {
            // It was resumed: what ended it before is history.
            Fact::AttemptOpened { .. } => {
                let stopped = self.stop_code().filter(|code| *code != Code::SHUTDOWN.as_str());
                let stopped_by = self.stopped_by.clone().or_else(|| stopped.map(str::to_owned));
                let Self { items, begun, changed, asked, said, .. } = std::mem::take(self);
                let again = Self { stage: TurnStage::Begun, stopped_by, ..Self::default() };
                *self = Self { items, begun, changed, asked, said, ..again };
            }
            Fact::ModelEnded { message, .. } => self.answer = Some(message.text().into_owned()),
            Fact::StopObserved { .. } => self.is_stop_observed = true,
            Fact::SteerTaken { steers, .. } => {
                self.said.extend(steers.iter().map(|steer| steer.message.text.clone()));
            }
            Fact::ApprovalResolved { answer: Resolution::Decided(decision), .. } => {
                self.said.push(words(decision));
            }
            Fact::Settled { receipt, error } => {
                self.receipt = Some(Arc::clone(receipt));
                self.error.clone_from(error);
            }
            _ => {}
        }
    }

    /// Whether the outcome is fixed.
    pub(crate) fn is_settled(&self) -> bool {
        self.receipt.is_some()
    }

    /// Its outcome by what has settled.
    fn settled(&self, turn: TurnId) -> Option<ItemOutcome> {
        Some(match self.receipt.as_ref()?.ending {
            Ending::Done => ItemOutcome::Completed(turn),
            Ending::Stopped => ItemOutcome::Interrupted(turn),
            Ending::Failed => ItemOutcome::Failed(turn),
            Ending::Suspended => ItemOutcome::Suspended(turn),
        })
    }

    /// Whether a resume takes it up, if it is the last one and has no owner.
    fn may_be_resumed(&self, turn: TurnId) -> bool {
        let ended_early = match self.outcome.or_else(|| self.settled(turn)) {
            Some(ItemOutcome::Interrupted(_) | ItemOutcome::Failed(_) | ItemOutcome::Preempted(_)) => true,
            Some(_) => false,
            None => true,
        };
        ended_early && self.stage == TurnStage::Begun
    }

    /// Whether it is known what is alive.
    pub(crate) fn is_quiet_known(&self) -> bool {
        self.survivors.is_some()
    }

    /// What this item of it says.
    pub(crate) fn asked(&self, item: u64) -> Option<&str> {
        let behind = self.items.iter().rev().position(|own| *own == item)?;
        // Several items may be one message.
        self.asked.iter().rev().nth(behind).or(self.asked.last()).map(String::as_str)
    }

    /// What the model said last.
    pub(crate) fn text(&self) -> Option<&str> {
        self.answer.as_deref()
    }

    /// Whether its stop has had its first effect.
    pub(crate) fn is_stop_observed(&self) -> bool {
        self.is_stop_observed
    }

    /// What it answered, if it completed.
    pub(crate) fn completed(&self) -> Option<String> {
        self.answer.clone().filter(|_| matches!(self.outcome, Some(ItemOutcome::Completed(_))))
    }

    /// The code of what stopped it, if a stop did.
    pub(crate) fn stop_code(&self) -> Option<&str> {
        let receipt = self.receipt.as_ref().filter(|receipt| receipt.ending == Ending::Stopped)?;
        Some(receipt.stop.as_ref()?.reason.code.as_str())
    }

    /// Code and message, if it failed.
    pub(crate) fn failure(&self) -> Option<(&str, &str)> {
        self.error.as_ref().map(|error| (error.code.as_str(), error.message.as_str()))
    }

    fn quiet(&self) -> Option<bool> {
        self.survivors.as_ref().map(Vec::is_empty)
    }

    fn receipt(&self) -> Option<Value> {
        self.receipt.as_ref().and_then(|receipt| serde_json::to_value(receipt).ok())
    }

    /// The stop of it.
    pub(crate) fn stop(&self) -> StopAnswer {
        let state = match (self.quiet(), self.is_settled(), self.is_stop_observed) {
            _ if self.is_cut => StopState::Crashed,
            (Some(true), ..) => StopState::Quiet,
            (Some(false), ..) => StopState::NotQuiet,
            (None, true, _) => StopState::Settled,
            (None, false, true) => StopState::Observed,
            (None, false, false) => StopState::Requested,
        };
        StopAnswer {
            state,
            quiet: self.quiet(),
            survivors: self.survivors.clone().unwrap_or_default(),
            receipt: self.receipt(),
            ..StopAnswer::requested()
        }
    }

    /// The turn.
    pub(crate) fn answer(&self, turn: TurnId) -> TurnAnswer {
        TurnAnswer {
            id: turn.to_string(),
            outcome: self.outcome.map(|outcome| outcome_words(outcome).0).or(self.is_cut.then_some(CRASHED)),
            answer: self.answer.clone(),
            quiet: self.quiet(),
            survivors: self.survivors.clone().unwrap_or_default(),
            receipt: self.receipt(),
        }
    }
}

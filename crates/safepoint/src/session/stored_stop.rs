//! A stop requested through the store alone, by a process that does not own the session, whether the owner is
//! alive or not (S7.5), and its stored form.

use std::{collections::HashSet, time::Duration};

use safepoint_scope::{Actor, Code, Grace, InvalidRequest, Mode, Reach, Reason, SafePoints, StopRequest};
use serde::{Deserialize, Serialize};

use super::{
    journal::{JournalFact, read_journal},
    lost_runs::background_begun,
    machine::{QueueAfterStop, Strength},
    stop::{SessionStop, StopWhen, StoppedTurn, request_at},
};
use crate::{
    contract::store::{
        ApprovalState, ApprovalsToWithdraw, Error, ItemState, StopIntent, Store, Withdrawn, guarded,
    },
    value::{
        approval::ApprovalRequest,
        event::Fact,
        ids::{ApprovalId, SessionId, TurnId},
        receipt::ReasonReport,
    },
};

/// A stop that another process writes into the store of a session, whether the owner is alive or not (S7.5).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StoredStop {
    /// The session is to stop.
    Session(SessionStop),
    /// The current turn is to stop, or only this one if given; the session continues.
    Turn(Option<TurnId>, StopRequest),
    /// The item of this number in the store's inbox is to stop, wherever it is, and what waits behind it then does this; the
    /// session continues (S6.20).
    Item(u64, StopRequest, QueueAfterStop),
}

/// The stable form of an [`StoredStop`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredForm {
    to: To,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    strength: Option<Strength>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    when_idle_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<TurnId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    item: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    queue: Option<QueueAfterStop>,
    /// None: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    points: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    within_ms: Option<u64>,
    #[serde(with = "Extent")]
    reach: Reach,
    cleanup_cap_ms: u64,
    /// An early release stored only this text of the reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<ReasonReport>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    after: StoppedTurn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum To {
    Session,
    Turn,
    Item,
}

/// How a reach is stored.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Reach", rename_all = "snake_case")]
enum Extent {
    Root,
    Tree,
}

/// Why a stored stop could not be read.
#[derive(Debug, thiserror::Error)]
#[error("the stop intent cannot be read: {0}")]
pub struct StoredStopError(String);

impl StoredStop {
    /// The form in which it is stored.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let wire = match self {
            Self::Turn(turn, request) => StoredForm { turn: *turn, ..wire(To::Turn, request) },
            Self::Item(item, request, queue) => {
                let (item, queue) = (Some(*item), Some(*queue));
                StoredForm { item, queue, ..wire(To::Item, request) }
            }
            Self::Session(stop) => {
                let (strength, when_idle_ms) = match stop.how {
                    StopWhen::Strength(strength) => (Some(strength), None),
                    StopWhen::WhenIdle(idle) => (None, Some(millis(idle))),
                };
                let to = wire(To::Session, &stop.request);
                StoredForm { strength, when_idle_ms, cause: stop.cause.clone(), after: stop.after, ..to }
            }
        };
        serde_json::to_vec(&wire).unwrap_or_default()
    }

    /// Reads what another process has stored, whatever it is. What cannot be read counts as the strongest stop; a kind that only a
    /// later release knows means no more than the turn that runs, and the session continues.
    pub(super) fn of_stored(bytes: &[u8]) -> Self {
        Self::from_bytes(bytes).unwrap_or_else(|error| {
            let form = serde_json::from_slice::<serde_json::Value>(bytes).unwrap_or_default();
            let is_known = |kind: &str| ["session", "turn", "item"].contains(&kind);
            let reason = Reason::new(Code::USER).with_actor(Actor::Engine).with_text(error.to_string());
            match form["to"].as_str() {
                Some(kind) if !is_known(kind) => Self::Turn(None, StopRequest::now().with_reason(reason)),
                Some(_) | None => Self::Session(SessionStop::now().with_cause(error.to_string())),
            }
        })
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// If it is not one, or asks for what cannot be asked.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StoredStopError> {
        let wire: StoredForm =
            serde_json::from_slice(bytes).map_err(|error| StoredStopError(error.to_string()))?;
        let request = wire.request().map_err(|error| StoredStopError(error.to_string()))?;
        let how = match (wire.strength, wire.when_idle_ms) {
            (Some(strength), None) => StopWhen::Strength(strength),
            (None, Some(idle)) => StopWhen::WhenIdle(Duration::from_millis(idle)),
            (None, None) if wire.to == To::Turn => return Ok(Self::Turn(wire.turn, request)),
            (None, None) if wire.to == To::Item => {
                let item = wire.item.ok_or_else(|| StoredStopError("it names no item".into()))?;
                return Ok(Self::Item(item, request, wire.queue.unwrap_or_default()));
            }
            _ => return Err(StoredStopError("it must have a strength, or a time to be idle".into())),
        };
        Ok(Self::Session(SessionStop { how, request, cause: wire.cause, after: wire.after }))
    }
}

impl StoredForm {
    fn request(&self) -> Result<StopRequest, InvalidRequest> {
        let points = self.points.as_deref().map(str::parse::<SafePoints>).transpose()?;
        let within = self.within_ms.map(Duration::from_millis).map(Grace::try_from).transpose()?;
        let cap = Duration::from_millis(self.cleanup_cap_ms);
        let request = request_at(points, within).with_reach(self.reach).with_cleanup_cap(cap);
        Ok(match &self.reason {
            Some(reason) => request.with_reason(reason.into()),
            None if self.text.is_empty() => request,
            None => request.with_reason(Reason::user(self.text.clone())),
        })
    }
}

fn wire(to: To, request: &StopRequest) -> StoredForm {
    StoredForm {
        to,
        strength: None,
        when_idle_ms: None,
        turn: None,
        item: None,
        queue: None,
        points: match request.mode() {
            Mode::Now => None,
            Mode::At(points) => Some(points.to_string()),
        },
        within_ms: request.grace().map(|grace| millis(grace.as_duration())),
        reach: request.reach(),
        cleanup_cap_ms: millis(request.cleanup_cap()),
        text: String::new(),
        reason: request.reason().map(ReasonReport::from),
        cause: None,
        after: StoppedTurn::Resumable,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Writes a stop into the store, durable before this returns, and returns its number among the session's
/// stops.
///
/// A stop of a turn also withdraws the open questions of that turn: a later answer is refused, whether an
/// owner is alive or not. It withdraws no question of another turn or of a background run. A stop of the
/// session leaves all questions open: the end of its loop does not decide about a run that waits (S8.3).
///
/// A stop of an item withdraws it here if it waits, so that no owner runs it. If a turn has it, the stop is one of that turn: its
/// open questions are withdrawn too. Of an item that is over nothing changes.
///
/// # Errors
/// The store's error, if there is no such session or nothing could be written; [`Error::ItemElsewhere`] if the session never had
/// an item of that number; [`Error::Damaged`] if the turns of the open questions cannot be read; [`Error::Failed`] or
/// [`Error::Unknown`] if the store panics.
///
/// # Cancel safety
/// The stop may have been written, and its item withdrawn.
pub async fn store_stop(store: &dyn Store, session: &SessionId, intent: &StoredStop) -> Result<u64, Error> {
    let questions = match intent {
        StoredStop::Session(_) => Vec::new(),
        StoredStop::Turn(turn, _) => questions(store, session, (*turn).map_or(Of::Any, Of::Turn)).await?,
        StoredStop::Item(item, ..) => questions_of_item(store, session, *item).await?,
    };
    let approvals = match questions {
        none if none.is_empty() => ApprovalsToWithdraw::Stay,
        these => ApprovalsToWithdraw::Only(these),
    };
    let stop = StopIntent { bytes: intent.to_bytes(), approvals };
    guarded::write(|| store.ask_stop(session, stop)).await
}

/// Withdraws the item if it waits; otherwise the open questions of the turn that has it. One that is taken meanwhile is so for the
/// owner before it sees the stop, which is written later.
async fn questions_of_item(
    store: &dyn Store,
    session: &SessionId,
    item: u64,
) -> Result<Vec<ApprovalId>, Error> {
    match guarded::write(|| store.withdraw(session, item)).await? {
        Withdrawn::Item(_) => return Ok(Vec::new()),
        Withdrawn::Unknown => return Err(Error::ItemElsewhere(item)),
        Withdrawn::Taken => {}
    }
    let asked = questions(store, session, Of::Last).await?;
    // After them: if a turn still has the item, they are no later turn's.
    let rows = guarded::read(|| store.inbox(session)).await?;
    let is_taken = rows.iter().any(|row| row.number == item && row.state == ItemState::Taken);
    Ok(if is_taken { asked } else { Vec::new() })
}

/// Whose questions. Exhaustive: of every turn, of one, or of the last, which has all items that are taken.
#[derive(Clone, Copy)]
enum Of {
    Any,
    Turn(TurnId),
    Last,
}

/// The open questions of these turns. A question asked after this look comes from a live owner, which applies the stop itself.
async fn questions(store: &dyn Store, session: &SessionId, of: Of) -> Result<Vec<ApprovalId>, Error> {
    let rows = guarded::read(|| store.approvals(session)).await?;
    let mut open: Vec<ApprovalRequest> = rows
        .iter()
        .filter(|row| row.state == ApprovalState::Open)
        .filter_map(|row| serde_json::from_slice(&row.asked.bytes).ok())
        .collect();
    if open.is_empty() {
        return Ok(Vec::new());
    }
    // Which turn asked what, and the runs in the background.
    let (mut asked_by, mut background) = (HashSet::new(), HashSet::new());
    let (mut damage, mut last) = (None, None);
    read_journal(store, session, |step| match step.what {
        Ok(JournalFact::Planned { turn, .. }) => last = Some(turn),
        Ok(JournalFact::Fact { turn, fact, .. }) => {
            background.extend(background_begun(&fact));
            if let Fact::ApprovalRequested(asked) = &*fact {
                asked_by.insert((turn, asked.id.clone()));
            }
        }
        Ok(_) => {}
        Err(found) => drop(damage.get_or_insert(found)),
    })
    .await?;
    if let Some(damage) = damage {
        return Err(Error::Damaged(session.clone(), damage));
    }
    let asked_in = |turn: TurnId, asked: &ApprovalRequest| asked_by.contains(&(turn, asked.id.clone()));
    open.retain(|asked| {
        let is_background = background.iter().any(|run| asked.path.is_within(run));
        let is_of_it = match of {
            Of::Any => true,
            Of::Turn(turn) => asked_in(turn, asked),
            Of::Last => last.is_some_and(|last| asked_in(last, asked)),
        };
        is_of_it && !is_background
    });
    Ok(open.into_iter().map(|asked| asked.id).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason() -> Reason {
        let root = Reason::user("the fire alarm").with_actor(Actor::Named("alice".into()));
        let between = Reason::new(Code::DISCONNECT).with_actor(Actor::Hook("watch".into())).caused_by(&root);
        Reason::new(Code::SHUTDOWN)
            .with_actor(Actor::Remote("alice".into()))
            .with_text("deploy")
            .caused_by(&between)
    }

    fn read_back(intent: &StoredStop) -> Option<Reason> {
        match StoredStop::from_bytes(&intent.to_bytes()).unwrap() {
            StoredStop::Session(stop) => stop.reason().cloned(),
            StoredStop::Turn(_, request) | StoredStop::Item(_, request, _) => request.reason().cloned(),
        }
    }

    /// S1.10, S7.5: who asked, why, when, and what began it, are the same after the store.
    #[test]
    fn a_reason_travels_whole() {
        let asked = reason();
        let turn = StoredStop::Turn(None, StopRequest::now().with_reason(asked.clone()));
        assert_eq!(read_back(&turn), Some(asked.clone()));
        assert_eq!(
            read_back(&StoredStop::Session(SessionStop::now().with_reason(asked.clone()))),
            Some(asked.clone())
        );
        let item = StopRequest::now().with_reason(asked.clone());
        assert_eq!(read_back(&StoredStop::Item(7, item, QueueAfterStop::Continues)), Some(asked));
        assert_eq!(read_back(&StoredStop::Turn(None, StopRequest::now())), None, "no reason given");
    }

    /// S7.6: what an early release has asked is read as it was meant.
    #[test]
    fn words_alone_are_a_persons() {
        let old =
            br#"{"to":"turn","reach":"root","cleanup_cap_ms":10000,"text":"enough","after":"resumable"}"#;
        let StoredStop::Turn(None, request) = StoredStop::from_bytes(old).unwrap() else {
            panic!("of a turn")
        };
        let read = request.reason().unwrap();
        assert_eq!((read.actor(), read.text()), (&Actor::Person, "enough"));
    }
    /// S7.6, S6.20: a kind of stop that only a later release knows ends what runs and not the session; what is damaged is the
    /// strongest, whatever it is of.
    #[test]
    fn a_kind_that_is_not_known_is_no_stop_of_the_session() {
        let later = br#"{"to":"call","call":"call_1","reach":"root","cleanup_cap_ms":1,"after":"resumable"}"#;
        let StoredStop::Turn(None, request) = StoredStop::of_stored(later) else { panic!("of a turn") };
        assert_eq!(request.mode(), Mode::Now);
        assert!(request.reason().unwrap().text().contains("cannot be read"));
        for damaged in [&br#"{"to":"item"}"#[..], br#"{"to":"turn","what":1}"#, b"{", b""] {
            assert!(matches!(StoredStop::of_stored(damaged), StoredStop::Session(_)));
        }
    }
}

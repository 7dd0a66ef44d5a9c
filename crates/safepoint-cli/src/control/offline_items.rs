//! An item that the store alone takes, because no owner of its session answers: what can be refused at once, and the
//! wait until it rests.
//!
//! **Invariants**: an item is acknowledged after it is in the store; one id is one item.

use safepoint::{
    event::Fact,
    ids::TurnId,
    raw::{
        JournalFact, RecordedSteer, encode_item, read_journal,
        store::{InboxRow, ItemState, Pushed},
    },
    session::{IfUndelivered, ItemOutcome, Policy, RejectReason},
    store::{self, SessionRow},
};
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use super::{
    convert::refused,
    item_reply,
    offline::{LOOK, StoredTarget, is_free},
    protocol::{PushAsk, Reply},
};
use crate::{exit::code, session::stored::INBOX};

/// A stored item whose outcome a caller waits for.
pub(super) struct Waits<'a> {
    place: &'a StoredTarget,
    asked: &'a PushAsk,
    number: u64,
    /// What was recorded before this is not about it.
    since: u64,
    /// Whether the end of the session's owner, which took the item, also ends the wait.
    ends_with_owner: bool,
}

/// Where an item is. Exhaustive: it waits, a turn has it, had it, or it went out without one.
enum Found {
    Waiting,
    InTurn(TurnId),
    Rests(ItemOutcome),
    Out,
}

/// Puts an item into the store, or says why not; also what to wait for, if it is in.
///
/// # Errors
/// The store's.
///
/// # Cancel safety
/// It may be in.
pub(super) async fn push<'a>(
    place: &'a StoredTarget,
    asked: &'a PushAsk,
) -> anyhow::Result<(Reply, Option<Waits<'a>>)> {
    let no = |number, status: &str, why: String| Ok((Reply::new(number, status, why), None));
    let policy = asked.policy()?;
    let row = place.store.open(&place.session).await?;
    if let Some(why) = refusal(place, &row, policy, asked).await? {
        let reply = Reply::new(refused(why), why.code(), format!("it is not taken: {why}"));
        return Ok((reply.detail(json!({ "fate": ItemOutcome::Returned(why) })), None));
    }
    let sealed = encode_item(&asked.text, policy, asked.client_id.clone(), INBOX)?;
    match place.store.push(&place.session, sealed).await? {
        Pushed::Accepted(number) => {
            let waits = Waits { place, asked, number, since: row.head, ends_with_owner: false };
            Ok((item_reply::accepted(&item_reply::named(number)), Some(waits)))
        }
        Pushed::Same(number) => {
            let name = item_reply::named(number);
            let said = format!("it is in already, as {name}");
            let reply = Reply::new(code::ACCEPTED, "same", said).detail(json!({ "item": name }));
            Ok((reply, Some(Waits { place, asked, number, since: 0, ends_with_owner: false })))
        }
        Pushed::Conflict(number) => {
            no(code::CONFLICT, "other_content", format!("item-{number} has this id, with other content"))
        }
        Pushed::Full => no(code::NO_ROOM, "full", "the inbox is full".into()),
        Pushed::Closed => no(code::NO_ROOM, "closed", "the inbox is closed".into()),
    }
}

/// Why the next owner of the session would return the item, as far as that is certain. The session has no
/// owner, so no turn is running; only a turn that waits for a decision can be the target or be in the way.
async fn refusal(
    place: &StoredTarget,
    row: &SessionRow,
    policy: Policy,
    asked: &PushAsk,
) -> anyhow::Result<Option<RejectReason>> {
    if !is_free(row) {
        return Ok(None);
    }
    let is_suspended = row.label == "suspended";
    Ok(match (policy, &asked.turn) {
        (Policy::Steer(_, IfUndelivered::Return), _) => Some(RejectReason::NoActiveTurn),
        (Policy::Reject, _) if is_suspended => Some(RejectReason::Busy(last_turn(place).await?)),
        (Policy::Preempt(_) | Policy::SteerTurn(..), Some(meant)) => {
            let there = if is_suspended { last_turn(place).await? } else { None };
            (there.map(|turn| turn.to_string()).as_ref() != Some(meant)).then_some(RejectReason::TurnMismatch)
        }
        _ => None,
    })
}

async fn last_turn(place: &StoredTarget) -> Result<Option<TurnId>, store::Error> {
    let mut last = None;
    read_journal(&*place.store, &place.session, |past| {
        if let Ok(JournalFact::Planned { turn, .. }) = past.what {
            last = Some(turn);
        }
    })
    .await?;
    Ok(last)
}

impl<'a> Waits<'a> {
    /// An item that its owner has recorded, who says no more: the end of that owner is an answer as well.
    pub(super) fn of(place: &'a StoredTarget, asked: &'a PushAsk, number: u64) -> Self {
        Self { place, asked, number, since: 0, ends_with_owner: true }
    }

    /// Waits until it rests, or until it is over.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn rest(&self, over: Option<Instant>) -> anyhow::Result<Reply> {
        let StoredTarget { store, session } = self.place;
        let mut seen = None;
        loop {
            // In this order: what the owner has recorded by its end is seen.
            let row = store.open(session).await?;
            let is_gone = self.ends_with_owner && is_free(&row);
            let mark = (row.head, row.updated, store.notice(session).await?);
            if (is_gone || seen != Some(mark))
                && let Some(reply) = self.reply(self.look().await?, is_gone)
            {
                return Ok(reply);
            }
            seen = Some(mark);
            if over.is_some_and(|over| Instant::now() >= over) {
                let name = item_reply::named(self.number);
                let said = format!("{name} is in; its end was not seen in time");
                return Ok(Reply::new(code::TIMED_OUT, "timed_out", said).detail(json!({ "item": name })));
            }
            let look = Instant::now() + LOOK;
            sleep_until(over.map_or(look, |over| over.min(look))).await;
        }
    }

    /// What became of it, if it rests.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn rests(&self) -> Result<Option<Reply>, store::Error> {
        Ok(self.reply(self.look().await?, false))
    }

    /// The reply about the item, if there is an end to report: the item's, or that of its owner.
    fn reply(&self, found: Found, is_gone: bool) -> Option<Reply> {
        let name = item_reply::named(self.number);
        let fate = match found {
            Found::Rests(fate) => fate,
            Found::Waiting | Found::InTurn(_) if !is_gone => return None,
            Found::Waiting => ItemOutcome::Unhandled,
            Found::InTurn(turn) => ItemOutcome::Interrupted(turn),
            Found::Out => match self.came_back() {
                Some(why) => ItemOutcome::Returned(why),
                None => {
                    let said = format!("{name} was withdrawn or dropped");
                    return Some(Reply::new(code::TOO_LATE, "gone", said).detail(json!({ "item": name })));
                }
            },
        };
        Some(item_reply::rested(&name, fate, true))
    }

    /// Why an item of this policy goes out without a turn.
    fn came_back(&self) -> Option<RejectReason> {
        match self.asked.policy().ok()? {
            // Who had the session is gone, and did not say which turn was in the way.
            Policy::Reject => Some(RejectReason::Busy(None)),
            Policy::Preempt(_) | Policy::SteerTurn(..) if self.asked.turn.is_some() => {
                Some(RejectReason::TurnMismatch)
            }
            Policy::Steer(_, IfUndelivered::Return) => Some(RejectReason::NotDelivered),
            _ => None,
        }
    }

    async fn look(&self) -> Result<Found, store::Error> {
        let items = self.place.store.inbox(&self.place.session).await?;
        let state = items.iter().find(|item: &&InboxRow| item.number == self.number).map(|item| item.state);
        if state == Some(ItemState::Waiting) {
            return Ok(Found::Waiting);
        }
        let mut last: Option<(TurnId, Option<ItemOutcome>)> = None;
        let end = |last: &mut Option<(TurnId, Option<ItemOutcome>)>, turn, fate| {
            last.iter_mut().filter(|(of, _)| *of == turn).for_each(|(_, ended)| *ended = Some(fate));
        };
        let is_it = |steer: &RecordedSteer| steer.item().is_some() && steer.message.text == self.asked.text;
        read_journal(&*self.place.store, &self.place.session, |past| match past.what {
            Ok(JournalFact::Planned { turn, items }) if items.contains(&self.number) => {
                last = Some((turn, None))
            }
            Ok(JournalFact::Fact { turn, path, fact, .. })
                if path.is_root() && past.position >= self.since =>
            {
                if let Fact::SteerTaken { steers, .. } = &*fact
                    && steers.iter().any(is_it)
                {
                    last = Some((turn, None));
                }
            }
            Ok(JournalFact::Ended { turn, fate }) => end(&mut last, turn, fate),
            Ok(JournalFact::Forgotten { turn }) => end(&mut last, turn, ItemOutcome::RolledBack(turn)),
            _ => {}
        })
        .await?;
        Ok(match (state, last) {
            (_, Some((_, Some(fate)))) => Found::Rests(fate),
            (_, Some((turn, None))) => Found::InTurn(turn),
            // What took it is about to be read.
            (Some(_), None) => Found::Waiting,
            (None, None) => Found::Out,
        })
    }
}

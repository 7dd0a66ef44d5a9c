//! Items of a session: pushed, looked at, waited for and withdrawn.

mod view;

use std::{sync::Arc, time::Duration};

use axum::http::StatusCode;
use safepoint::{
    ids::{ItemId, SessionId},
    raw::{
        encode_item,
        store::{NewItem, Pushed, Withdrawn},
    },
    session::{ItemOutcome, Policy, Push, PushError, RejectReason, Ticket},
    store::SessionRow,
};
use tokio::time::{Instant, sleep, timeout};

use super::{Caller, Kept, Owner};
use crate::{
    answer::{ItemAnswer, ItemState},
    ask::parsed,
    host::open::{OpenSession, Seen},
    load::Load,
    problem::{Answered, Problem},
};

use self::view::waiting;
pub(crate) use self::view::{ReadItems, view};

/// How many items may wait.
const INBOX: usize = 1_024;
/// How often an item of another process is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How often a request that waits for an item looks whether the server ends.
const LOOK_FOR_END: Duration = Duration::from_millis(500);

/// An item before it is pushed.
#[derive(Clone, Debug)]
pub(crate) struct ItemPush {
    pub(crate) text: String,
    pub(crate) policy: Policy,
    /// The same key with the same content is the same item.
    pub(crate) key: Option<String>,
}

/// What was pushed: its number, and whether it was there before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PushedItem {
    pub(crate) number: u64,
    pub(crate) seen: Seen,
}

impl ItemPush {
    /// The item as the store keeps it.
    ///
    /// # Errors
    /// `blank`, and what its policy lacks.
    pub(crate) fn encoded(&self) -> Answered<NewItem> {
        if self.text.trim().is_empty() {
            return Err(blank());
        }
        Ok(encode_item(&self.text, self.policy, self.key.clone(), INBOX)?)
    }
}

impl Caller {
    /// Pushes it to the session's owner, or into the store; acknowledged once it is recorded.
    ///
    /// # Errors
    /// Why it was refused.
    ///
    /// # Cancel safety
    /// It may have been pushed.
    pub(crate) async fn push(&self, kept: &Kept, owner: &Owner, item: &ItemPush) -> Answered<PushedItem> {
        let sealed = item.encoded()?;
        let pushed = match owner {
            Owner::Here(open) => {
                self.expect(kept.id(), item);
                let pushed = self.push_here(open, &kept.row, item, sealed).await;
                if !matches!(pushed, Ok(PushedItem { seen: Seen::First, .. })) {
                    self.forget(kept.id(), item);
                }
                pushed?
            }
            Owner::Elsewhere => self.put(kept.id(), sealed).await?,
        };
        if pushed.seen == Seen::First {
            Load::count(&self.load.items);
        }
        Ok(pushed)
    }

    /// The turn that the item begins is in the trace of the request.
    pub(super) fn expect(&self, session: &SessionId, item: &ItemPush) {
        if let Some(context) = &self.trace {
            self.host.traces.expect(session, &item.text, context.clone());
        }
    }

    /// It begins none by this request.
    pub(super) fn forget(&self, session: &SessionId, item: &ItemPush) {
        if self.trace.is_some() {
            self.host.traces.forget(session, &item.text);
        }
    }

    /// The item that was pushed to the session under the same key, with the same content; `None`: there is none, or no key.
    ///
    /// # Errors
    /// `other_content`, and the store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn known(&self, kept: &Kept, item: &ItemPush) -> Answered<Option<u64>> {
        // An inbox without room takes only what it has already.
        let sealed = NewItem { capacity: 0, ..item.encoded()? };
        if sealed.client_id.is_none() {
            return Ok(None);
        }
        match self.store().push(kept.id(), sealed).await? {
            Pushed::Same(number) | Pushed::Accepted(number) => Ok(Some(number)),
            Pushed::Conflict(number) => Err(other_content().with("item", format!("item-{number}"))),
            Pushed::Full | Pushed::Closed => Ok(None),
        }
    }

    /// Pushes it by the session's own door.
    async fn push_here(
        &self,
        open: &Arc<OpenSession>,
        row: &SessionRow,
        item: &ItemPush,
        sealed: NewItem,
    ) -> Answered<PushedItem> {
        let handle = open.handle();
        let push = Push::new(item.text.clone()).policy(item.policy);
        let pushed = handle.push(match &item.key {
            Some(key) => push.id(key.clone()),
            None => push,
        });
        let ticket = match pushed {
            Ok(ticket) => ticket,
            // It has just ended: the next owner has it from the store.
            Err(PushError::Closed(_)) => return self.put(&row.id, sealed).await,
            Err(error) => return Err(refused(&error)),
        };
        open.pushed(&ticket);
        match ticket.recorded().await {
            Some(number) => {
                let seen = open.keep(number, &ticket);
                // What is returned at once is no accepted item; the barrier has it known.
                drop(handle.withdraw(ItemId::new(u64::MAX)).await);
                match ticket.fate_now() {
                    Some(ItemOutcome::Returned(why)) if seen == Seen::First => {
                        Err(returned(why, &ticket, row))
                    }
                    _ => Ok(PushedItem { number, seen }),
                }
            }
            None => match ticket.fate_now() {
                // It came before, through the store, which alone knows where it is.
                Some(ItemOutcome::Returned(RejectReason::Known | RejectReason::OtherContent)) => {
                    self.put(&row.id, sealed).await
                }
                Some(ItemOutcome::Returned(why)) => Err(returned(why, &ticket, row)),
                // The store may have it or not; under its key it is the same item.
                _ if item.key.is_some() => self.put(&row.id, sealed).await,
                _ => {
                    let detail = "it is not known whether the store has the item: look at the session before you send it again";
                    Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "store", detail))
                }
            },
        }
    }

    /// Puts it into the store alone.
    async fn put(&self, session: &SessionId, sealed: NewItem) -> Answered<PushedItem> {
        match self.store().push(session, sealed).await? {
            Pushed::Accepted(number) => Ok(PushedItem { number, seen: Seen::First }),
            Pushed::Same(number) => Ok(PushedItem { number, seen: Seen::Again }),
            Pushed::Conflict(number) => Err(other_content().with("item", format!("item-{number}"))),
            Pushed::Full | Pushed::Closed => Err(full()),
        }
    }

    /// Where an item is, once it is at rest, or when the time is over.
    ///
    /// # Errors
    /// `no_such_item`, and the store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn rested(&self, kept: &Kept, number: u64, within: Duration) -> Answered<ItemAnswer> {
        let over = Instant::now() + within;
        let session = kept.id();
        let mut answer = view(&self.host, session, number).await?;
        if answer.state != ItemState::Rest {
            self.wake(kept);
        }
        while answer.state != ItemState::Rest && Instant::now() < over {
            let ticket = self.host.opened(session).and_then(|open| open.ticket(number));
            match ticket.filter(|ticket| ticket.fate_now().is_none()) {
                // Past the time, the view says where it is.
                Some(ticket) => {
                    drop(timeout(over.saturating_duration_since(Instant::now()), ticket.outcome()).await);
                }
                None => sleep(LOOK).await,
            }
            answer = view(&self.host, session, number).await?;
        }
        Ok(answer)
    }

    /// Where an item is, once it is at rest, or when this server ends and its session is given back.
    ///
    /// # Errors
    /// As [`rested`](Self::rested).
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn rested_or_left(&self, kept: &Kept, number: u64) -> Answered<ItemAnswer> {
        loop {
            let item = self.rested(kept, number, LOOK_FOR_END).await?;
            let is_left = self.host.is_draining() && self.host.opened(kept.id()).is_none();
            if item.state == ItemState::Rest || is_left {
                return Ok(item);
            }
        }
    }

    /// Withdraws an item that no turn has.
    ///
    /// # Errors
    /// `taken`, `no_such_item`, and the store's.
    ///
    /// # Cancel safety
    /// It may have been withdrawn.
    pub(crate) async fn withdraw(&self, kept: &Kept, number: u64) -> Answered<ItemAnswer> {
        let session = kept.id();
        let open = self.host.opened(session);
        if let Some((open, ticket)) = open.as_ref().and_then(|open| Some((open, open.ticket(number)?))) {
            drop(open.handle().withdraw(ticket.id()).await);
            let answer = view(&self.host, session, number).await?;
            let is_withdrawn = ticket.fate_now() == Some(ItemOutcome::Withdrawn);
            return if is_withdrawn { Ok(answer) } else { Err(taken()) };
        }
        match self.store().withdraw(session, number).await? {
            Withdrawn::Item(_) => {
                if let Some(open) = open {
                    open.handle().check_store();
                }
                let state = ItemState::Rest;
                Ok(ItemAnswer { state, outcome: Some("withdrawn"), ..waiting(session, number) })
            }
            Withdrawn::Taken => Err(taken()),
            Withdrawn::Unknown => Err(Problem::no_such("item")),
        }
    }
}

pub(super) fn blank() -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "blank", "an item must say something")
}

fn other_content() -> Problem {
    Problem::conflict(
        "other_content",
        "this key (`Idempotency-Key`, or the id of a message) was used for other content",
    )
}

fn full() -> Problem {
    let detail = "the inbox is full: wait for a turn to end, or withdraw something";
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "inbox_full", detail).retry_after(Duration::from_secs(1))
}

fn taken() -> Problem {
    Problem::conflict("taken", "a turn has the item, or it is at rest: stop the turn instead")
}

fn refused(error: &PushError<String>) -> Problem {
    match error {
        PushError::Blank(_) => blank(),
        PushError::Full(_) => full(),
        PushError::OtherContent(_) => other_content(),
        other => Problem::conflict(other.code(), other.to_string()),
    }
}

fn returned(why: RejectReason, ticket: &Ticket<String>, row: &SessionRow) -> Problem {
    drop(ticket.take_back());
    match why {
        RejectReason::Full => full(),
        RejectReason::Blank => blank(),
        RejectReason::OtherContent => other_content(),
        RejectReason::Busy(turn) => {
            let code = if row.label == "suspended" { "turn_suspended" } else { "turn_active" };
            let problem = Problem::conflict(code, why.to_string());
            match turn {
                Some(turn) => problem.with("turn", turn.to_string()),
                None => problem,
            }
        }
        why => Problem::conflict(why.code(), why.to_string()),
    }
}

/// The number in the name of an item.
///
/// # Errors
/// `no_such_item`.
pub(crate) fn numbered(text: &str) -> Answered<u64> {
    parsed::<u64>("item", text.strip_prefix("item-").unwrap_or(text))
        .map_err(|_not_a_number| Problem::no_such("item"))
}

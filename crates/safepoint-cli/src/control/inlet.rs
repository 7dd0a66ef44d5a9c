//! The owner's entry for items from other processes. An item is durable before it is acknowledged, rejected
//! with a reason, and reported until its final outcome. Stored and unstored sessions share it.

use std::sync::Arc;

use futures_util::{FutureExt as _, future};
use safepoint::{
    SessionHandle,
    ids::{ItemId, SessionId},
    session::{ItemOutcome, Policy, Push, PushError, RejectReason, Ticket},
    store::Store,
};

use super::{
    item_reply,
    offline::StoredTarget,
    offline_items,
    protocol::{PushAsk, Reply, Wait},
    server::Replies,
};
use crate::exit::code;

/// A session of this process, and its store, if it has one.
pub(crate) struct Inlet {
    session: SessionHandle<String>,
    kept: Option<StoredTarget>,
}

impl Inlet {
    pub(crate) fn new(session: SessionHandle<String>) -> Self {
        Self { session, kept: None }
    }

    /// The same, where a store keeps it.
    pub(crate) fn kept(mut self, store: Arc<dyn Store>, session: SessionId) -> Self {
        self.kept = Some(StoredTarget { store, session });
        self
    }

    /// Has it look at its store.
    pub(super) fn look(&self) {
        self.session.check_store();
    }

    pub(super) fn place(&self) -> Option<&StoredTarget> {
        self.kept.as_ref()
    }

    /// The session's own door.
    ///
    /// # Errors
    /// [`PushError`], with the text.
    pub(super) fn put(
        &self,
        text: String,
        policy: Policy,
        client_id: Option<String>,
    ) -> Result<Ticket<String>, PushError<String>> {
        let push = Push::new(text).policy(policy);
        self.session.push(match client_id {
            Some(id) => push.id(id),
            None => push,
        })
    }

    /// Takes an item in by the session's own door.
    pub(super) async fn take(
        &self,
        asked: PushAsk,
        put: impl FnOnce(String, Policy, Option<String>) -> Result<Ticket<String>, PushError<String>>,
        replies: &Replies,
    ) {
        let policy = match asked.policy() {
            Ok(policy) => policy,
            Err(why) => return replies.last(Reply::new(code::USAGE, "refused", why)),
        };
        let ticket = match (put(asked.text.clone(), policy, asked.client_id.clone()), &self.kept) {
            (Ok(ticket), _) => ticket,
            // It has just ended: what comes now is the next owner's.
            (Err(PushError::Closed(_)), Some(place)) => return leave(place, &asked, replies).await,
            (Err(error), _) => {
                let number = match &error {
                    PushError::Full(_) | PushError::Closed(_) => code::NO_ROOM,
                    PushError::OtherContent(_) => code::CONFLICT,
                    _ => code::OTHER,
                };
                return replies.last(Reply::new(number, error.code(), error.to_string()));
            }
        };
        // Acknowledged only after it is recorded.
        let (recorded, rested) = (std::pin::pin!(ticket.recorded()), std::pin::pin!(ticket.outcome()));
        // Either may be first: both are looked at again below, after the barrier. A ticket answers any number
        // of times, so dropping one loses nothing.
        future::select(recorded, rested).await;
        self.barrier().await;
        let is_recorded = ticket.recorded().now_or_never().flatten().is_some();
        match (ticket.fate_now(), &self.kept) {
            // It came before, through the store, which alone knows where it is.
            (Some(ItemOutcome::Returned(RejectReason::Known | RejectReason::OtherContent)), Some(place)) => {
                return leave(place, &asked, replies).await;
            }
            // The store may have it or not. Under its id it can be left there again: it is the same item.
            (Some(ItemOutcome::Unhandled), Some(place)) if !is_recorded => {
                if asked.client_id.is_none() {
                    return replies.last(item_reply::in_doubt(&item_reply::name(&ticket)));
                }
                return leave(place, &asked, replies).await;
            }
            _ => {}
        }
        self.tell(&ticket, asked.wait, replies).await;
    }

    async fn tell(&self, ticket: &Ticket<String>, wait: Wait, replies: &Replies) {
        let name = item_reply::name(ticket);
        let is_stored = self.kept.is_some();
        let accepted = item_reply::accepted(&name);
        match ticket.fate_now() {
            Some(fate @ ItemOutcome::Returned(_)) => replies.last(item_reply::rested(&name, fate, is_stored)),
            _ if wait == Wait::No => replies.last(accepted),
            _ => {
                replies.first(accepted);
                tokio::select! {
                    biased;
                    // First: an end is sent even to a client that is going. Losing this branch loses nothing: the ticket tells
                    // as often as it is asked.
                    fate = ticket.outcome() => replies.last(item_reply::rested(&name, fate, is_stored)),
                    () = replies.hung_up() => {}
                }
            }
        }
    }

    /// Returns after the session has handled every earlier message: it answers messages in order.
    async fn barrier(&self) {
        const NONE: u64 = u64::MAX;
        if let Ok(none) = NONE.to_string().parse::<ItemId>() {
            drop(self.session.withdraw(none).await);
        }
    }
}

/// Leaves it to the store, and tells what comes of it there.
async fn leave(place: &StoredTarget, asked: &PushAsk, replies: &Replies) {
    let reply = async {
        let (reply, waits) = offline_items::push(place, asked).await?;
        let Some(waits) = waits.filter(|_| asked.wait != Wait::No) else { return Ok(reply) };
        replies.first(reply);
        waits.rest(None).await
    };
    tokio::select! {
        biased;
        // First: a reply that is there is sent. Losing this branch loses nothing: the store has what it has.
        reply = reply => replies.last(reply.unwrap_or_else(|error| Reply::failed(&error))),
        () = replies.hung_up() => {}
    }
}

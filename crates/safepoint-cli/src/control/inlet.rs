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
    server::{LastReply, Replies},
};
use crate::exit::code;

/// A session of this process, and its store, if it has one.
pub(crate) struct Inlet {
    session: SessionHandle<String>,
    kept: Option<StoredTarget>,
}

impl Inlet {
    pub(crate) fn new(session: SessionHandle<String>, kept: Option<(Arc<dyn Store>, SessionId)>) -> Self {
        Self { session, kept: kept.map(|(store, session)| StoredTarget { store, session }) }
    }

    /// Has it look at its store.
    pub(super) fn look(&self) -> Reply {
        self.session.check_store();
        looking()
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
    ) -> LastReply {
        let put = put(asked.text.clone(), asked.policy()?, asked.client_id.clone());
        let ticket = match (put, &self.kept) {
            (Ok(ticket), _) => ticket,
            // It has just ended: what comes now is the next owner's.
            (Err(PushError::Closed(_)), Some(place)) => return leave(place, &asked, replies).await,
            (Err(error), _) => {
                let number = match &error {
                    PushError::Full(_) | PushError::Closed(_) => code::NO_ROOM,
                    PushError::OtherContent(_) => code::CONFLICT,
                    _ => code::OTHER,
                };
                return Ok(Some(Reply::new(number, error.code(), error.to_string())));
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
                    return Ok(Some(item_reply::in_doubt(&item_reply::name(&ticket))));
                }
                return leave(place, &asked, replies).await;
            }
            _ => {}
        }
        Ok(self.tell(&ticket, asked.wait, replies).await)
    }

    async fn tell(&self, ticket: &Ticket<String>, wait: Wait, replies: &Replies) -> Option<Reply> {
        let name = item_reply::name(ticket);
        let rested = |fate| item_reply::rested(&name, fate, self.kept.is_some());
        let accepted = item_reply::accepted(&name);
        match ticket.fate_now() {
            Some(fate @ ItemOutcome::Returned(_)) => Some(rested(fate)),
            _ if wait == Wait::No => Some(accepted),
            _ => {
                replies.first(accepted);
                replies.unless_gone(ticket.outcome()).await.map(rested)
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
async fn leave(place: &StoredTarget, asked: &PushAsk, replies: &Replies) -> LastReply {
    let reply = async {
        let (reply, waits) = offline_items::push(place, asked).await?;
        let Some(waits) = waits.filter(|_| asked.wait != Wait::No) else { return Ok(reply) };
        replies.first(reply);
        waits.rest(None).await
    };
    replies.unless_gone(reply).await.transpose()
}

/// To a request to look at the store.
pub(super) fn looking() -> Reply {
    Reply::new(code::ACCEPTED, "looking", "it looks at its store")
}

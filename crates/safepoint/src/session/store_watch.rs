//! Watches the store for writes of other processes while the session is alive. Its node wakes it.

use std::{
    collections::HashSet,
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::future::select;
use tokio::time::{sleep, timeout};

use super::{
    Item, SharedSession, exit::store_report, item::Policy, journal::Journal, message::SessionMessage,
    stored_item::decode_row, stored_stop::StoredStop,
};
use crate::{
    contract::store::{ApprovalState, Changes, DecisionUse, Error, ItemState, StopRow},
    sync::callback::{self, Panicked},
    value::{approval::Decision, event::ErrorReport},
};

/// How soon it is looked again after a look that failed.
const AGAIN: Duration = Duration::from_millis(200);

/// Watches one session's rows.
pub(super) struct Watcher<T> {
    shared: Weak<SharedSession<T>>,
    journal: Arc<Journal>,
    /// What was handled; `None`: it is still to be looked at for the first time.
    seen: Option<Changes>,
    known: HashSet<u64>,
    stops: u64,
    /// Items beyond this number are kept here, behind what the last owner left, until all of that has arrived.
    kept: Option<(u64, Vec<FoundItem<T>>)>,
}

/// An item of the store, by its number.
type FoundItem<T> = (u64, (T, Policy));

impl<T: Item> Watcher<T> {
    pub(super) fn new(shared: &Arc<SharedSession<T>>, journal: Arc<Journal>) -> Self {
        let shared = Arc::downgrade(shared);
        Self { shared, journal, seen: None, known: HashSet::new(), stops: 0, kept: None }
    }

    /// Leaves this item to its sender, who pushes it.
    pub(super) fn leave(&mut self, number: u64) {
        self.known.insert(number);
    }

    /// Runs until the session is over, or belongs to another process.
    pub(super) async fn watch(mut self) {
        if let Some(error) = self.until_lost().await {
            self.report_lost(&error);
        }
    }

    /// What ended the lease on the session; `None` if the session has ended.
    async fn until_lost(&mut self) -> Option<Error> {
        let mut is_missed = false;
        loop {
            if !self.wait(is_missed).await {
                return None;
            }
            if let Some(error) = self.journal.node().lost() {
                return Some(self.journal.as_own(error));
            }
            // A passing error is met again at the next look; nothing is handled twice.
            is_missed = match timeout(self.journal.node().bound(), self.look()).await {
                Ok(Err(error)) if is_final(&error) => return Some(error),
                looked => !matches!(looked, Ok(Ok(()))),
            };
        }
    }

    /// Until there is something to look at, or `is_again` and it is time to look again; false once the session has ended.
    async fn wait(&self, is_again: bool) -> bool {
        let Some(shared) = self.shared.upgrade() else { return false };
        let is_over = || shared.exit.get().is_some();
        if is_over() {
            return false;
        }
        // A notification before this call is not lost, because `notify_one` keeps a permit until the next `notified`. The end
        // of the session and the loss of its node notify too.
        if is_again {
            // Either may win: both lead to the same look.
            select(Box::pin(shared.store_changed()), Box::pin(sleep(AGAIN))).await;
        } else {
            shared.store_changed().await;
        }
        !is_over()
    }

    fn post(&self, message: SessionMessage<T>) {
        if let Some(shared) = self.shared.upgrade() {
            shared.mailbox.post(message);
        }
    }

    fn report_lost(&self, error: &Error) {
        let hint = match error {
            Error::Fenced { .. } | Error::Buried(_) => {
                Some("another process has taken the session over; talk to that one".into())
            }
            Error::Lapsed(_) => Some("open the session again once its store can be reached".into()),
            _ => None,
        };
        self.post(SessionMessage::LeaseLost(ErrorReport { hint, ..store_report(error) }));
    }

    /// Items beyond this number are kept back by the first look.
    pub(super) fn keep_behind(&mut self, last: u64) {
        self.kept = Some((last, Vec::new()));
    }

    /// What was kept back comes in now, and nothing is kept back any more.
    pub(super) fn accept_kept(&mut self) {
        if let Some((_, kept)) = self.kept.take() {
            self.accept_all(kept);
        }
    }

    /// Handles everything that is new.
    pub(super) async fn look(&mut self) -> Result<(), Error> {
        let journal = Arc::clone(&self.journal);
        let (store, session) = (journal.store(), journal.session());
        let notice = store.notice(session).await?;
        let epoch = journal.lease().epoch();
        if notice.epoch != epoch {
            return Err(Error::Fenced { session: session.clone(), epoch, newest: notice.epoch });
        }
        let seen = self.seen;
        let is_new = |count: fn(&Changes) -> u64| seen.is_none_or(|seen| count(&seen) != count(&notice));
        // Stops first: an item that comes between the two looks comes after them.
        let stops = match is_new(|changes| changes.stops) {
            true => store.stops(session, self.stops).await?,
            false => Vec::new(),
        };
        if !stops.is_empty() || is_new(|changes| changes.items) {
            self.look_at_items(stops).await?;
        }
        if is_new(|changes| changes.decisions) {
            self.look_at_decisions().await?;
        }
        self.seen = Some(notice);
        journal.saw(notice);
        Ok(())
    }

    /// Hands on these stops and the items that are new, in the order in which they came: a stop is of what came before it. One counts as
    /// read once it is handed on: a look that fails before is repeated with all of them.
    async fn look_at_items(&mut self, stops: Vec<StopRow>) -> Result<(), Error> {
        // Taken before the rows are read, so that an item which another process removes before the first look
        // is noticed too.
        let fresh = self.journal.take_fresh();
        self.known.extend(&fresh);
        let rows = self.journal.store().inbox(self.journal.session()).await?;
        let mut there = HashSet::new();
        let mut found = Vec::new();
        for row in rows {
            there.insert(row.number);
            if row.state == ItemState::Waiting && self.known.insert(row.number) {
                let read = callback::call(|| decode_row::<T>(&row));
                let read =
                    read.map_err(|Panicked(why)| why).and_then(|read| read.map_err(|why| why.to_string()));
                match read {
                    Ok(sealed) => found.push((row.at, (row.number, sealed))),
                    // It stays where it is, for a release that can read it.
                    Err(why) => self.post(SessionMessage::Unreadable(row.number, why)),
                }
            }
        }
        for row in stops {
            self.accept_found(
                found.extract_if(.., |(came, _)| *came <= row.at).map(|(_, item)| item).collect(),
            );
            self.stops = row.number;
            if !row.seen {
                self.post(SessionMessage::StopIntent(row.number, StoredStop::of_stored(&row.bytes)));
            }
        }
        self.accept_found(found.into_iter().map(|(_, item)| item).collect());
        let gone: Vec<u64> = self.known.difference(&there).copied().collect();
        for number in gone {
            self.known.remove(&number);
            self.post(SessionMessage::WithdrawnElsewhere(number));
        }
        Ok(())
    }

    /// Everything that one look has found comes in together, so that one plan sees all of it.
    fn accept_found(&mut self, mut found: Vec<FoundItem<T>>) {
        if let Some((last, kept)) = &mut self.kept {
            kept.extend(found.extract_if(.., |(number, _)| *number > *last));
        }
        self.accept_all(found);
    }

    fn accept_all(&self, found: Vec<FoundItem<T>>) {
        let Some(shared) = self.shared.upgrade() else { return };
        let messages = found.into_iter().map(|(number, (item, policy))| {
            move |ticket| SessionMessage::PushStored(number, item, ticket, policy)
        });
        shared.inbox.push_all_stored(messages);
    }

    async fn look_at_decisions(&mut self) -> Result<(), Error> {
        for row in self.journal.store().approvals(self.journal.session()).await? {
            if let ApprovalState::Decided { bytes, principal, used: DecisionUse::Waiting, .. } = &row.state {
                // An unreadable decision is not an approval, and its question waits for no other answer.
                let unread = |why| Decision::Deny { message: format!("the decision cannot be read: {why}") };
                let decision = serde_json::from_slice(bytes).unwrap_or_else(unread);
                let ruled = decision.by(principal.clone()).taken();
                self.post(SessionMessage::Decided(row.asked.id.clone(), ruled));
            }
        }
        Ok(())
    }
}

/// Whether no later look can succeed: another process owns the session, it is gone, or what is stored cannot
/// be read.
fn is_final(error: &Error) -> bool {
    matches!(
        error,
        Error::Fenced { .. }
            | Error::Buried(_)
            | Error::NoSession(_)
            | Error::Damaged(..)
            | Error::DamagedAfter(..)
            | Error::Newer { .. }
            | Error::Gone
    )
}

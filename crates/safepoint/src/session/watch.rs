//! Looks at the store for what others wrote, and holds on to the lease, while the session lives.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::time::{Instant, sleep_until, timeout};

use super::{
    Item, SharedSession,
    envelope::{LOOK, decode_row},
    intent::StoredStop,
    item::Policy,
    journal::{Journal, LEASE},
    mail::SessionMessage,
    stop::SessionStop,
};
use crate::{
    contract::store::{ApprovalState, ChangeMark, Changes, DecisionUse, Error, ItemState},
    sync::callback::{self, Panicked},
    value::{approval::Decision, event::ErrorReport},
};

/// A part of the lease after which it is renewed.
const RENEW: u32 = 3;

/// How long the store may take before it is asked anew: a lease is asked for more than once.
const ANSWER: Duration = Duration::from_secs(3);

/// How long the store may take when the lease is over, and nobody may have taken it: well within the margin of who would.
const LAST: Duration = Duration::from_secs(1);

/// Watches one session's rows.
pub(super) struct Watcher<T> {
    shared: Weak<SharedSession<T>>,
    journal: Arc<Journal>,
    stamp: Option<ChangeMark>,
    seen: Changes,
    known: std::collections::HashSet<u64>,
    stops: u64,
}

impl<T: Item> Watcher<T> {
    pub(super) fn new(shared: &Arc<SharedSession<T>>, journal: Arc<Journal>) -> Self {
        Self {
            shared: Arc::downgrade(shared),
            journal,
            stamp: None,
            seen: Changes::default(),
            known: std::collections::HashSet::new(),
            stops: 0,
        }
    }

    /// Until the session is over, or is not ours any more.
    pub(super) async fn watch(mut self) {
        if let Some(error) = self.until_lost().await {
            self.tell_lost(&error);
        }
    }

    /// What ended the hold on the session; none if the session has ended.
    async fn until_lost(&mut self) -> Option<Error> {
        let mut renew_at = Instant::now() + LEASE / RENEW;
        loop {
            if !self.rests_until(renew_at).await {
                return None;
            }
            // A lease that is over, as after a pause of the process, is held on to first: nobody may have taken it.
            if Instant::now() >= renew_at || self.journal.lease().left().is_zero() {
                match timeout(self.bound(), self.journal.renew()).await {
                    Ok(Ok(())) => renew_at = Instant::now() + LEASE / RENEW,
                    Ok(Err(error)) if is_final(&error) => return Some(error),
                    Ok(Err(_)) | Err(_) if self.journal.lease().left().is_zero() => {
                        return Some(self.journal.lapse());
                    }
                    Ok(Err(_)) | Err(_) => {}
                }
            }
            // What passes is met again at the next look; nothing that was seen before is seen twice.
            if let Ok(Err(error)) = timeout(self.bound(), self.look()).await
                && is_final(&error)
            {
                return Some(error);
            }
        }
    }

    /// Until it is time to look again; false once the session has ended.
    async fn rests_until(&self, renew_at: Instant) -> bool {
        let Some(shared) = self.shared.upgrade() else { return false };
        let is_over = || shared.exit.get().is_some();
        if is_over() {
            return false;
        }
        let now = Instant::now();
        let nudged = async { shared.nudged.notified().await };
        let soon = sleep_until((now + LOOK).min(renew_at.max(now + LOOK / 2)));
        futures_util::future::select(Box::pin(nudged), Box::pin(soon)).await;
        !is_over()
    }

    /// How long the store may take now: no longer than the lease holds, and once that is over for a last time.
    fn bound(&self) -> Duration {
        self.journal.lease().left().clamp(LAST, ANSWER)
    }

    fn post(&self, mail: SessionMessage<T>) {
        if let Some(shared) = self.shared.upgrade() {
            shared.mailbox.post(mail);
        }
    }

    fn tell_lost(&self, error: &Error) {
        let hint = match error {
            Error::Fenced { .. } => {
                Some("another process has taken the session over; talk to that one".into())
            }
            Error::Lapsed(_) => Some("open the session again once its store can be reached".into()),
            _ => None,
        };
        self.post(SessionMessage::Lost(ErrorReport {
            code: "store".into(),
            message: error.to_string(),
            hint,
        }));
    }

    /// Takes in whatever is new.
    pub(super) async fn look(&mut self) -> Result<(), Error> {
        let journal = Arc::clone(&self.journal);
        let (store, session) = (journal.store(), journal.session());
        let stamp = store.stamp().await?;
        if self.stamp == Some(stamp) {
            return Ok(());
        }
        let notice = store.notice(session).await?;
        let epoch = journal.lease().epoch();
        if notice.epoch != epoch {
            return Err(Error::Fenced { session: session.clone(), epoch, newest: notice.epoch });
        }
        if self.stamp.is_none() || notice.items != self.seen.items {
            self.look_at_items().await?;
        }
        if self.stamp.is_none() || notice.stops != self.seen.stops {
            self.look_at_stops().await?;
        }
        if self.stamp.is_none() || notice.decisions != self.seen.decisions {
            self.look_at_decisions().await?;
        }
        self.stamp = Some(stamp);
        self.seen = notice;
        Ok(())
    }

    async fn look_at_items(&mut self) -> Result<(), Error> {
        // Before the rows are read: what somebody takes out before it was ever seen there is missed all the same.
        let fresh = self.journal.take_fresh();
        self.known.extend(&fresh);
        let rows = self.journal.store().inbox(self.journal.session()).await?;
        let mut there = std::collections::HashSet::new();
        let mut found = Vec::new();
        for row in rows {
            there.insert(row.number);
            if row.state == ItemState::Waiting && self.known.insert(row.number) {
                let read = callback::call(|| decode_row::<T>(&row));
                let read =
                    read.map_err(|Panicked(why)| why).and_then(|read| read.map_err(|why| why.to_string()));
                match read {
                    Ok(sealed) => found.push((row.number, sealed)),
                    // It stays where it is, for a release that can read it.
                    Err(why) => self.post(SessionMessage::Unreadable { number: row.number, why }),
                }
            }
        }
        self.let_in(found);
        let gone: Vec<u64> = self.known.difference(&there).copied().collect();
        for number in gone {
            self.known.remove(&number);
            self.post(SessionMessage::Gone { number });
        }
        Ok(())
    }

    /// What one look has found comes in together, so that one plan sees all of it.
    fn let_in(&self, found: Vec<(u64, (T, Policy))>) {
        let Some(shared) = self.shared.upgrade() else { return };
        let letters = found
            .into_iter()
            .map(|(number, (item, policy))| move |slip| SessionMessage::Adopt { number, item, slip, policy });
        shared.door.adopt(letters);
    }

    async fn look_at_stops(&mut self) -> Result<(), Error> {
        for row in self.journal.store().stops(self.journal.session(), self.stops).await? {
            self.stops = row.number;
            if row.seen {
                continue;
            }
            match StoredStop::from_bytes(&row.bytes) {
                Ok(intent) => self.post(SessionMessage::Intent { number: row.number, intent }),
                // Somebody wanted it to stop; what cannot be read is the strongest that it can have been.
                Err(error) => {
                    let stop = SessionStop::now().with_cause(error.to_string());
                    self.post(SessionMessage::Intent {
                        number: row.number,
                        intent: StoredStop::Session(stop),
                    });
                }
            }
        }
        Ok(())
    }

    async fn look_at_decisions(&mut self) -> Result<(), Error> {
        for row in self.journal.store().approvals(self.journal.session()).await? {
            if let ApprovalState::Decided { bytes, used: DecisionUse::Waiting, .. } = &row.state {
                // What nobody can read is no yes; and its question waits for no other answer.
                let unread = |why| Decision::Deny { message: format!("the decision cannot be read: {why}") };
                let decision = serde_json::from_slice(bytes).unwrap_or_else(unread);
                self.post(SessionMessage::Decided { id: row.asked.id.clone(), decision });
            }
        }
        Ok(())
    }
}

/// Whether no later look can go better: the session is somebody else's, or is gone, or what is stored cannot be read.
fn is_final(error: &Error) -> bool {
    matches!(
        error,
        Error::Fenced { .. } | Error::NoSession(_) | Error::Damaged(..) | Error::Newer { .. } | Error::Gone
    )
}

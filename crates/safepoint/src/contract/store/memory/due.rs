//! What wants an owner in the store in memory, and stops of many sessions.
//!
//! **Invariants**: `dues` has exactly the sessions that are free, not parked and due.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::value::ids::SessionId;

use super::{
    super::{Among, ApprovalsToWithdraw, Cause, Due, Error, NAMED_AGAIN_AFTER, StopIntent},
    MemoryState,
    session::Session,
};

impl MemoryState {
    /// Another process gave the session something to do: its holder is woken, or it wants one.
    pub(super) fn touch(&mut self, id: &SessionId, now: Timestamp) {
        let Some(session) = self.sessions.get(id) else { return };
        match &session.held {
            Some(held) => self.members.touch(&held.node, id),
            None => {
                let due = session.due.map_or(now, |due| due.min(now));
                self.make_due(id, Some(due));
            }
        }
    }

    pub(super) fn make_due(&mut self, id: &SessionId, due: Option<Timestamp>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if let Some(before) = std::mem::replace(&mut session.due, due) {
            self.dues.remove(&(session.priority, before, id.clone()));
        }
        if let Some(due) = due.filter(|_| session.parked.is_none()) {
            self.dues.insert((session.priority, due, id.clone()));
        }
    }

    pub(super) fn due(&mut self, most: usize, pools: &[String], now: Timestamp) -> Vec<Due> {
        let mut found = Vec::new();
        for (_, due, id) in &self.dues {
            let Some(session) = self.sessions.get_mut(id) else { continue };
            let was_named =
                session.named.is_some_and(|at| at <= now && now.duration_since(at) < NAMED_AGAIN_AFTER);
            let is_of_others = !session.pool.is_empty() && !pools.contains(&session.pool);
            if *due > now || was_named || is_of_others {
                continue;
            }
            if found.len() >= most {
                break;
            }
            session.named = Some(now);
            let (pool, priority, tries) = (session.pool.clone(), session.priority, session.tries);
            found.push(Due { session: id.clone(), pool, priority, tries });
        }
        found
    }

    pub(super) fn unpark(&mut self, id: &SessionId, now: Timestamp) -> Result<(), Error> {
        let session = self.session_mut(id)?;
        session.tries = 0;
        if session.parked.take().is_some() {
            self.make_due(id, Some(now));
        }
        Ok(())
    }

    pub(super) fn ask_stops(
        &mut self,
        among: Among,
        stop: &StopIntent,
        now: Timestamp,
    ) -> Result<u64, Error> {
        if stop.approvals != ApprovalsToWithdraw::Stay {
            let why = "a stop of many sessions withdraws no approvals; ask each of them alone";
            return Err(Error::Failed(Cause::new(why)));
        }
        let ids: BTreeSet<SessionId> = match among {
            Among::Held => self.members.held(),
            Among::Node(node) => self.members.held_by(&node),
            Among::Pool(pool) => {
                let is_of = |session: &Session| session.pool == pool;
                self.sessions.iter().filter(|(_, session)| is_of(session)).map(|(id, _)| id.clone()).collect()
            }
            Among::These(these) => these.into_iter().collect(),
        };
        for id in &ids {
            self.session(id)?;
        }
        for id in &ids {
            self.change(id, now, |session| Ok(session.ask_stop(stop.clone(), now)))?;
            self.touch(id, now);
        }
        Ok(ids.len() as u64)
    }
}

//! The nodes of the store in memory: who holds what, and what wants an owner.
//!
//! **Invariants**: a session is in the `held` of one node at most, of the one that its `held` names, and that one is
//! present.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use jiff::Timestamp;
use tokio::sync::Notify;

use crate::value::ids::{NodeId, SessionId};

use super::{
    super::{
        Change, Changes, Environment, Error, FORGOTTEN_AFTER, Lease, Leaving, MOST_TRIES, NewNode, NodeRow,
        NodeState, PARKED, Rest, Tenure, retry_after,
    },
    MemoryState,
    session::Holding,
};

/// A node, and what it holds.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) row: NodeRow,
    /// Its place in the order in which nodes joined.
    order: u64,
    held: BTreeSet<SessionId>,
    /// What others changed and the node has not read.
    touched: BTreeSet<SessionId>,
    pub(super) woken: Arc<Notify>,
}

/// All nodes.
#[derive(Debug, Default)]
pub(super) struct Members {
    by_id: HashMap<NodeId, Member>,
    /// Of those that are present.
    names: HashMap<String, NodeId>,
    /// Those that ended, in this order.
    ended: VecDeque<NodeId>,
    joined: u64,
}

impl Members {
    pub(super) fn rows(&self) -> Vec<NodeRow> {
        let mut all: Vec<&Member> = self.by_id.values().collect();
        all.sort_unstable_by_key(|member| member.order);
        all.into_iter().map(|member| member.row.clone()).collect()
    }

    pub(super) fn get(&self, id: &NodeId) -> Option<&Member> {
        self.by_id.get(id)
    }

    /// The node, if it may hold sessions.
    fn present(&mut self, id: &NodeId) -> Result<&mut Member, Error> {
        let member = self.by_id.get_mut(id).filter(|member| member.row.state.is_present());
        member.ok_or_else(|| Error::Buried(id.clone()))
    }

    /// What others did to a session that this node holds is to be read by it.
    pub(super) fn touch(&mut self, node: &NodeId, session: &SessionId) {
        if let Some(member) = self.by_id.get_mut(node) {
            member.touched.insert(session.clone());
            member.woken.notify_one();
        }
    }

    /// Every session that a node holds.
    pub(super) fn held(&self) -> BTreeSet<SessionId> {
        self.by_id.values().flat_map(|member| member.held.iter().cloned()).collect()
    }

    pub(super) fn held_by(&self, node: &NodeId) -> BTreeSet<SessionId> {
        self.get(node).map(|member| member.held.clone()).unwrap_or_default()
    }

    fn forget_old(&mut self, now: Timestamp) {
        let is_old = |members: &Self, id: &NodeId| {
            let ended = members.by_id.get(id).and_then(|member| member.row.ended);
            ended.is_none_or(|ended| now.duration_since(ended) > FORGOTTEN_AFTER)
        };
        while let Some(id) = self.ended.front().filter(|id| is_old(self, id)).cloned() {
            self.ended.pop_front();
            self.by_id.remove(&id);
        }
    }

    /// Ends it, and gives what it held.
    fn end(&mut self, id: &NodeId, state: NodeState, now: Timestamp) -> BTreeSet<SessionId> {
        let Ok(member) = self.present(id) else { return BTreeSet::new() };
        (member.row.state, member.row.ended) = (state, Some(now));
        member.touched.clear();
        member.woken.notify_one();
        let held = std::mem::take(&mut member.held);
        let name = member.row.node.name.clone();
        self.names.remove(&name);
        self.ended.push_back(id.clone());
        held
    }
}

impl MemoryState {
    pub(super) fn join(&mut self, node: NewNode, outside: &Environment) -> Result<(), Error> {
        let now = outside.now();
        self.members.forget_old(now);
        if let Some(namesake) = self.members.names.get(&node.name).cloned() {
            let is_dead = self.members.get(&namesake).is_some_and(|member| member.row.may_be_buried(outside));
            if !is_dead {
                return Err(Error::NodeExists(node.name));
            }
            self.bury_one(&namesake, now);
        }
        if self.members.by_id.contains_key(&node.id) {
            return Err(Error::NodeExists(node.name));
        }
        let id = node.id.clone();
        self.members.joined += 1;
        self.members.names.insert(node.name.clone(), id.clone());
        let member = Member {
            row: NodeRow::new(node, outside),
            order: self.members.joined,
            held: BTreeSet::new(),
            touched: BTreeSet::new(),
            woken: Arc::default(),
        };
        self.members.by_id.insert(id, member);
        Ok(())
    }

    pub(super) fn beat(&mut self, id: &NodeId, load: u32, outside: &Environment) -> Result<NodeState, Error> {
        let member = self.members.present(id)?;
        member.row.renew(outside);
        member.row.load = load;
        Ok(member.row.state)
    }

    pub(super) fn leave(&mut self, id: &NodeId, how: Leaving, now: Timestamp) {
        match how {
            Leaving::Draining => {
                if let Ok(member) = self.members.present(id) {
                    member.row.state = NodeState::Draining;
                }
            }
            Leaving::Gone => {
                for session in self.members.end(id, NodeState::Gone, now) {
                    self.let_go(&session);
                    self.make_due(&session, Some(now));
                }
            }
        }
    }

    pub(super) fn bury(&mut self, outside: &Environment) -> Vec<NodeId> {
        let mut dead: Vec<&Member> =
            self.members.by_id.values().filter(|member| member.row.may_be_buried(outside)).collect();
        dead.sort_unstable_by_key(|member| member.order);
        let dead: Vec<NodeId> = dead.into_iter().map(|member| member.row.node.id.clone()).collect();
        let now = outside.now();
        dead.iter().for_each(|id| self.bury_one(id, now));
        dead
    }

    fn bury_one(&mut self, id: &NodeId, now: Timestamp) {
        for session in self.members.end(id, NodeState::Buried, now) {
            self.let_go(&session);
            let Some(found) = self.sessions.get_mut(&session) else { continue };
            found.tries = found.tries_after_death();
            if found.tries >= MOST_TRIES {
                found.parked = Some(PARKED.into());
                self.make_due(&session, None);
            } else {
                let wait = retry_after(&session, found.tries);
                self.make_due(&session, Some(now.saturating_add(wait).unwrap_or(Timestamp::MAX)));
            }
        }
    }

    /// The holder that is to be buried before another takes the session; an error if it may be alive.
    pub(super) fn dead_holder(&self, id: &SessionId, outside: &Environment) -> Result<Option<NodeId>, Error> {
        let Some(held) = &self.session(id)?.held else { return Ok(None) };
        let Some(member) = self.members.get(&held.node) else { return Ok(None) };
        if member.row.may_be_buried(outside) {
            return Ok(Some(held.node.clone()));
        }
        Err(Error::Held(id.clone(), Box::new(member.row.as_holder(held.since))))
    }

    pub(super) fn acquire(
        &mut self,
        id: &SessionId,
        node: &NodeId,
        outside: &Environment,
    ) -> Result<u64, Error> {
        let found = self.session(id)?;
        let would_be = found.tries_after_death();
        let parked = found.parked.clone();
        let state = self.members.present(node)?.row.state;
        if state == NodeState::Draining {
            return Err(Error::Draining(node.clone()));
        }
        let dead = self.dead_holder(id, outside)?;
        if dead.as_ref() == Some(node) {
            // Its own lease has been over for long, and it has not beaten since: another node would bury it.
            return Err(Error::Buried(node.clone()));
        }
        let parked = parked.or_else(|| (dead.is_some() && would_be >= MOST_TRIES).then(|| PARKED.into()));
        if let Some(why) = parked {
            return Err(Error::Parked(id.clone(), why));
        }
        let now = outside.now();
        if let Some(dead) = dead {
            self.bury_one(&dead, now);
        }
        self.make_due(id, None);
        self.members.present(node)?.held.insert(id.clone());
        self.epoch += 1;
        let epoch = self.epoch;
        let session = self.session_mut(id)?;
        session.held = Some(Holding { node: node.clone(), since: now });
        session.epoch = epoch;
        session.named = None;
        let head = session.records.len() as u64;
        session.tenures.push(Tenure { epoch, node: node.clone(), head, at: now });
        Ok(epoch)
    }

    pub(super) fn release(
        &mut self,
        lease: &Lease,
        seen: Changes,
        rest: Rest,
        now: Timestamp,
    ) -> Result<(), Error> {
        self.must_hold(lease)?;
        let id = lease.session();
        self.let_go(id);
        let session = self.session_mut(id)?;
        (session.tries, session.is_at_rest) = (0, true);
        let due = match rest {
            _ if session.notice().is_beyond(seen) => Some(now),
            Rest::Nothing => None,
            Rest::After(time) => Some(now.saturating_add(time).unwrap_or(Timestamp::MAX)),
            Rest::Now => Some(now),
        };
        self.make_due(id, due);
        Ok(())
    }

    /// Fails unless the lease is the newest, was not given back, and its node is present.
    pub(super) fn must_hold(&self, lease: &Lease) -> Result<(), Error> {
        let session = self.session(lease.session())?;
        let is_holder = session.held.as_ref().is_some_and(|held| held.node == *lease.node().id());
        if session.epoch == lease.epoch() && is_holder {
            return Ok(());
        }
        let is_buried =
            self.members.get(lease.node().id()).is_some_and(|member| member.row.state == NodeState::Buried);
        if session.epoch == lease.epoch() && is_buried {
            return Err(Error::Buried(lease.node().id().clone()));
        }
        let (session, epoch, newest) = (lease.session().clone(), lease.epoch(), session.epoch);
        Err(Error::Fenced { session, epoch, newest })
    }

    /// No node holds the session any more.
    pub(super) fn let_go(&mut self, id: &SessionId) {
        let Some(held) = self.sessions.get_mut(id).and_then(|session| session.held.take()) else { return };
        if let Some(member) = self.members.by_id.get_mut(&held.node) {
            member.held.remove(id);
            member.touched.remove(id);
        }
    }

    /// What others did that the node has not read yet; an error once it is not present any more.
    pub(super) fn take_changes(&mut self, node: &NodeId) -> Result<Vec<Change>, Error> {
        let touched = std::mem::take(&mut self.members.present(node)?.touched);
        let change = |id: SessionId| {
            let changes = self.sessions.get(&id)?.notice();
            Some(Change { session: id, changes })
        };
        Ok(touched.into_iter().filter_map(change).collect())
    }
}

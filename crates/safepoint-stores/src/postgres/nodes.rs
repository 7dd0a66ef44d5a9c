//! Nodes: who may hold sessions, and until when.

use std::time::Duration;

use safepoint::{
    ids::NodeId,
    raw::store::{Leaving, NodeLease, NodeRow, NodeState, Since},
    store::{Error, NewNode, OwnerProcess},
};
use tokio_postgres::Row;

use super::{
    burial::{JudgedNode, judged_values},
    column::{count, in_micros, int, small, span, stored, text},
    core::{Core, Values, no_row},
    failure::Failure,
    limits,
    tries::{Again, Tries},
};

/// The columns of a node, as [`node`] reads them.
pub(super) const NODE: &str = "n.id, n.name, n.host, n.boot, n.space, n.pid, n.started, n.socket, n.pools, n.room, n.address, n.since, \
     n.ttl, n.expires, n.until, n.load, n.state, n.ended";
/// How many they are.
pub(super) const NODE_COLUMNS: usize = 18;

/// A node, from these columns of which the first is at `from`; `None` where they are null.
pub(super) fn node(row: &Row, from: usize) -> Result<Option<NodeRow>, tokio_postgres::Error> {
    let Some(id) = row.try_get::<_, Option<String>>(from)? else { return Ok(None) };
    let word = |at: usize| row.try_get(from + at).map(text);
    let optional =
        |at: usize| Ok::<_, tokio_postgres::Error>(row.try_get::<_, Option<String>>(from + at)?.map(text));
    let pools: Vec<String> = row.try_get(from + 8)?;
    let owner = OwnerProcess {
        host: word(2)?,
        boot: word(3)?,
        space: word(4)?,
        pid: small(row.try_get(from + 5)?),
        started: count(row.try_get(from + 6)?),
        socket: optional(7)?,
    };
    let new = NewNode {
        id: text(id).into(),
        name: word(1)?,
        owner,
        ttl: span(row.try_get(from + 12)?),
        pools: pools.into_iter().map(text).collect(),
        room: small(row.try_get(from + 9)?),
        address: optional(10)?,
    };
    Ok(Some(NodeRow {
        node: new,
        since: row.try_get(from + 11)?,
        expires: row.try_get(from + 13)?,
        until: row.try_get::<_, Option<i64>>(from + 14)?.map(span),
        load: small(row.try_get(from + 15)?),
        state: state(row.try_get(from + 16)?),
        ended: row.try_get(from + 17)?,
    }))
}

pub(super) fn state(code: i16) -> NodeState {
    match code {
        0 => NodeState::Serving,
        1 => NodeState::Draining,
        2 => NodeState::Buried,
        _ => NodeState::Gone,
    }
}

impl Core {
    pub(super) async fn nodes(&self) -> Result<Vec<NodeRow>, Error> {
        let rows = self.look(&format!("SELECT {NODE} FROM nodes n ORDER BY n.key"), &[]).await?;
        rows.iter().filter_map(|row| node(row, 0).transpose()).collect::<Result<_, _>>().map_err(unreadable)
    }

    pub(super) async fn join(&self, new: NewNode) -> Result<NodeLease, Error> {
        limits::node(&new)?;
        let taken = || Error::NodeExists(new.name.clone());
        let mut tries = self.tries(Again::Always);
        let mut judged = None;
        loop {
            let began = Since::now();
            let (outcome, namesake) = match self.try_join(&new, judged.take(), &tries).await {
                Ok(joined) => joined,
                Err(failure) => {
                    tries.after(failure).await?;
                    continue;
                }
            };
            match (outcome.as_str(), namesake) {
                ("joined", _) => {
                    self.owners.insert(&new.id, new.owner.clone());
                    return Ok(NodeLease::new(new.id, new.ttl, began));
                }
                ("taken", Some(namesake)) => {
                    // One that has ended in the meantime is in the way no more.
                    if let Some((_, dead)) = self.judge_node(&namesake).await? {
                        judged = Some(dead.ok_or_else(taken)?);
                    }
                }
                _ => return Err(taken()),
            }
        }
    }

    /// What has come of it, and who has the name.
    async fn try_join(
        &self,
        new: &NewNode,
        judged: Option<JudgedNode>,
        tries: &Tries,
    ) -> Result<(String, Option<String>), Failure> {
        const CALL: &str =
            "SELECT * FROM join_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";
        let OwnerProcess { host, boot, space, pid, started, socket } = &new.owner;
        let owner = [Some(host), Some(boot), Some(space), socket.as_ref()];
        let owner: Vec<_> = owner.iter().map(|word| word.map(|word| stored(word))).collect();
        let (id, name) = (stored(new.id.as_str()), stored(&new.name));
        let (pid, started, room) = (i64::from(*pid), int(*started), i64::from(new.room));
        let pools: Vec<_> = new.pools.iter().map(|pool| stored(pool)).collect();
        let (address, ttl) = (new.address.as_deref().map(stored), in_micros(new.ttl));
        let (until, is_again, now) = (self.until(&new.owner, new.ttl), tries.is_again(), self.now());
        let (judged_id, expires, judged_until) = judged_values(judged);
        let values: Values<'_> = &[
            &id,
            &name,
            &owner,
            &pid,
            &started,
            &pools,
            &room,
            &address,
            &ttl,
            &until,
            &is_again,
            &judged_id,
            &expires,
            &judged_until,
            &now,
        ];
        let rows = self.once(&self.rooms.short, tries, (CALL, values)).await?;
        let row = rows.first().ok_or_else(no_row)?;
        Ok((row.try_get(0)?, row.try_get(1)?))
    }

    /// When a lease that begins now is over by the clock of its owner's machine.
    fn until(&self, owner: &OwnerProcess, ttl: Duration) -> Option<i64> {
        (self.options.outside.uptime)(owner).map(|up| in_micros(up.saturating_add(ttl)))
    }

    pub(super) async fn beat(&self, lease: &NodeLease, load: u32) -> Result<(Since, NodeState), Error> {
        const BEAT: &str = "UPDATE nodes SET expires = coalesce($4, clock_timestamp()) + ttl * interval '1 microsecond', until = $2, \
             load = $3 WHERE id = $1 AND state < 2 RETURNING state, set_config('synchronous_commit', 'off', true)";
        let (node, ttl) = (lease.id(), lease.ttl());
        let buried = || Error::Buried(node.clone());
        let id = stored(node.as_str());
        let owner = match self.owners.get(node) {
            Some(owner) => owner,
            None => {
                // It joined by another handle.
                let rows = self.look(&format!("SELECT {NODE} FROM nodes n WHERE n.id = $1"), &[&id]).await?;
                let found = rows.first().map(node_of).transpose()?.flatten();
                let owner = found.ok_or_else(buried)?.node.owner;
                self.owners.insert(node, owner.clone());
                owner
            }
        };
        let mut tries = self.tries(Again::Always);
        loop {
            let (began, until, now) = (Since::now(), self.until(&owner, ttl), self.now());
            let load = i64::from(load);
            let beat = (BEAT, &[&id as _, &until as _, &load as _, &now as _][..]);
            match self.once(&self.rooms.short, &tries, beat).await {
                Ok(rows) => {
                    let Some(row) = rows.first() else {
                        self.forget(node);
                        return Err(buried());
                    };
                    return Ok((began, state(row.try_get(0).map_err(unreadable)?)));
                }
                Err(failure) => tries.after(failure).await?,
            }
        }
    }

    fn forget(&self, node: &NodeId) {
        self.owners.remove(node);
        self.seats.remove_of(node);
    }

    pub(super) async fn leave(&self, node: &NodeId, how: Leaving) -> Result<(), Error> {
        const DRAIN: &str = "UPDATE nodes SET state = 1 WHERE id = $1 AND state = 0";
        const GO: &str = "SELECT leave_1($1, $2)";
        let (id, now) = (stored(node.as_str()), self.now());
        match how {
            Leaving::Draining => self.rows(&self.rooms.short, Again::Always, (DRAIN, &[&id])).await?,
            Leaving::Gone => self.rows(&self.rooms.short, Again::Always, (GO, &[&id, &now])).await?,
        };
        if how == Leaving::Gone {
            self.forget(node);
        }
        Ok(())
    }
}

fn node_of(row: &Row) -> Result<Option<NodeRow>, Error> {
    node(row, 0).map_err(unreadable)
}

/// A value that is not what its column holds.
pub(super) fn unreadable(error: tokio_postgres::Error) -> Error {
    Failure::from(error).into_error()
}

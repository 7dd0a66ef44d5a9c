//! Which nodes may be buried. It is judged here, by a node's row, the database's clock, and what this machine knows of its process;
//! the function that buries one does so only if its row is still the one that was judged.
//!
//! A node looks for the dead four times a second. What was seen shortly before is judged again with the time that has passed, and the
//! database is asked only if that finds one, or is too old to know who has joined.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use safepoint::{
    ids::NodeId,
    raw::store::{Environment, Liveness, NodeRow},
    store::Error,
};
use tokio_postgres::Row;

use super::{
    column::{in_micros, span, stored, text},
    core::Core,
    lock,
    nodes::{NODE, NODE_COLUMNS, node, unreadable},
    options::StoreClock,
    tries::Again,
};

/// How long the nodes that were seen are judged without asking again. A node that has joined since is not seen die until then: no lease
/// with its margin is over so soon after it began, so that only a proof of a very young node's death waits for it.
const FRESH: Duration = Duration::from_secs(3);

/// A node that may be buried, as it was when that was judged.
#[derive(Clone, Debug)]
pub(super) struct JudgedNode {
    pub(super) id: String,
    pub(super) expires: Timestamp,
    pub(super) until: Option<i64>,
}

/// The three values of a node that was judged, or nulls.
pub(super) type JudgedValues = (Option<String>, Option<Timestamp>, Option<i64>);

pub(super) fn judged_values(judged: Option<JudgedNode>) -> JudgedValues {
    match judged {
        Some(JudgedNode { id, expires, until }) => (Some(id), Some(expires), until),
        None => (None, None, None),
    }
}

/// A node, and what the database said of the time then.
#[derive(Clone, Debug)]
struct SeenNode {
    row: NodeRow,
    now: Timestamp,
    /// How long the server has run.
    up: Duration,
}

impl SeenNode {
    /// The same node after this time, if nothing of it has changed.
    fn after(&self, passed: Duration) -> Self {
        let now = self.now.checked_add(passed).unwrap_or(Timestamp::MAX);
        Self { row: self.row.clone(), now, up: self.up.saturating_add(passed) }
    }

    /// As one that may be buried, if it may.
    fn judged(&self, core: &Core) -> Option<JudgedNode> {
        let outside = &core.options.outside;
        let now = self.now;
        let at_that_time = Environment { clock: Arc::new(move || now), ..outside.clone() };
        if !self.row.may_be_buried(&at_that_time) {
            return None;
        }
        let is_proven = (outside.witness)(&self.row.node.owner) == Liveness::Dead;
        let could_beat = self.row.node.ttl.saturating_add(outside.margin);
        let is_late = match core.options.clock {
            // Since the last time at which a node may not have reached the database, each could beat.
            StoreClock::Database => self.up > could_beat && core.rooms.identity.is_calm_for(could_beat),
            StoreClock::Environment => true,
        };
        (is_proven || is_late).then(|| JudgedNode {
            id: stored(self.row.node.id.as_str()).into_owned(),
            expires: self.row.expires,
            until: self.row.until.map(in_micros),
        })
    }
}

/// The nodes that were seen last, and when they were asked for.
#[derive(Debug, Default)]
pub(super) struct LastSeen {
    /// Held to copy or to replace it; no other lock is taken under it.
    nodes: Mutex<Option<(Instant, Vec<SeenNode>)>>,
}

impl LastSeen {
    fn replace(&self, asked: Instant, nodes: &[SeenNode]) {
        *lock(&self.nodes) = Some((asked, nodes.to_vec()));
    }

    /// The same nodes now; `None` if they were seen too long ago.
    fn now(&self) -> Option<Vec<SeenNode>> {
        let (asked, nodes) = lock(&self.nodes).clone()?;
        let passed = asked.elapsed();
        (passed < FRESH).then(|| nodes.iter().map(|node| node.after(passed)).collect())
    }
}

impl Core {
    /// The nodes of which this is so, in the order in which they joined.
    async fn seen(&self, filter: &str, value: &str) -> Result<Vec<SeenNode>, Error> {
        let sql = format!(
            "SELECT {NODE}, coalesce($1, clock_timestamp()), \
             (extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) * 1000000)::bigint \
             FROM nodes n WHERE n.state < 2 AND {filter} ORDER BY n.key"
        );
        let now = self.now();
        let rows = self.look(&sql, &[&now, &value]).await?;
        let read = |row: &Row| {
            let (now, up) = (row.try_get(NODE_COLUMNS)?, span(row.try_get(NODE_COLUMNS + 1)?));
            Ok(node(row, 0)?.map(|row| SeenNode { row, now, up }))
        };
        rows.iter().filter_map(|row| read(row).transpose()).collect::<Result<_, _>>().map_err(unreadable)
    }

    /// The node, and as one that may be buried, if it may; `None` if it is not present any more.
    pub(super) async fn judge_node(
        &self,
        stored_id: &str,
    ) -> Result<Option<(NodeRow, Option<JudgedNode>)>, Error> {
        let seen = self.seen("n.id = $2", stored_id).await?;
        Ok(seen.into_iter().next().map(|seen| {
            let judged = seen.judged(self);
            (seen.row, judged)
        }))
    }

    /// Whether those that were seen last are known to live. A clock that is given says nothing about the time that has passed.
    fn is_none_dead(&self) -> bool {
        self.options.clock == StoreClock::Database
            && self.last_seen.now().is_some_and(|nodes| nodes.iter().all(|node| node.judged(self).is_none()))
    }

    /// Buries those that may be. Most looks find none, and neither write nor ask.
    pub(super) async fn bury(&self) -> Result<Vec<NodeId>, Error> {
        const CALL: &str = "SELECT bury_1($1, $2, $3, $4)";
        if self.is_none_dead() {
            return Ok(Vec::new());
        }
        let asked = Instant::now();
        let seen = self.seen("$2::text IS NOT NULL", "").await?;
        self.last_seen.replace(asked, &seen);
        let dead: Vec<JudgedNode> = seen.iter().filter_map(|seen| seen.judged(self)).collect();
        if dead.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<&str> = dead.iter().map(|dead| dead.id.as_str()).collect();
        let expires: Vec<Timestamp> = dead.iter().map(|dead| dead.expires).collect();
        let untils: Vec<Option<i64>> = dead.iter().map(|dead| dead.until).collect();
        let now = self.now();
        let call = (CALL, &[&ids as _, &expires as _, &untils as _, &now as _][..]);
        let row = self.row(&self.rooms.short, Again::Never, call).await?;
        let buried: Vec<String> = row.try_get(0).map_err(unreadable)?;
        Ok(buried.into_iter().map(|id| NodeId::from(text(id))).collect())
    }
}

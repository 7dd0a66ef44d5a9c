//! Stored stops: any process asks, the holder stops.

use std::{collections::BTreeSet, sync::Arc};

use safepoint::{
    ids::SessionId,
    raw::store::{Among, ApprovalsToWithdraw, Cause, StopIntent, StopRow},
    store::Error,
};
use tokio_postgres::Row;

use super::{
    column::{count, int, stored, text},
    core::Core,
    limits,
    looks::{Answers, Look, lists},
    nodes::unreadable,
    tries::Again,
};

/// A look at the stops of a session beyond this number.
#[derive(Debug)]
pub(super) struct StopsOf {
    pub(super) session: SessionId,
    pub(super) after: u64,
}

impl Look for StopsOf {
    type Answer = Vec<StopRow>;

    fn session(&self) -> &SessionId {
        &self.session
    }

    async fn ask(core: &Core, all: &[Self]) -> Answers<Self> {
        const SELECT: &str = "SELECT a.n, t.number, t.at, t.seen, t.bytes \
             FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY a(id, after, n) JOIN sessions s ON s.id = a.id \
             LEFT JOIN stops t ON t.session = s.key AND t.number > a.after ORDER BY a.n, t.number";
        let ids: Vec<_> = all.iter().map(|look| stored(look.session.as_str())).collect();
        let afters: Vec<_> = all.iter().map(|look| int(look.after)).collect();
        let rows = core.look(SELECT, &[&ids, &afters]).await?;
        lists(&rows, all.len(), stop)
    }
}

fn stop(row: &Row) -> Result<Option<StopRow>, tokio_postgres::Error> {
    let Some(number) = row.try_get::<_, Option<i64>>(1)?.map(count) else { return Ok(None) };
    Ok(Some(StopRow { number, at: row.try_get(2)?, seen: row.try_get(3)?, bytes: row.try_get(4)? }))
}

impl Core {
    pub(super) async fn ask_stop(self: &Arc<Self>, id: &SessionId, stop: &StopIntent) -> Result<u64, Error> {
        const CALL: &str = "SELECT * FROM ask_stop_1($1, $2, $3, $4, $5)";
        limits::content("a stop", &stop.bytes)?;
        let only: Option<Vec<_>> = match &stop.approvals {
            ApprovalsToWithdraw::Only(these) => Some(these.iter().map(|id| stored(id.as_str())).collect()),
            ApprovalsToWithdraw::Stay | ApprovalsToWithdraw::Withdrawn => None,
        };
        let is_all = stop.approvals == ApprovalsToWithdraw::Withdrawn;
        let (session, now) = (stored(id.as_str()), self.now());
        let call = (CALL, &[&session as _, &stop.bytes as _, &is_all as _, &only as _, &now as _][..]);
        let row = self.row(&self.rooms.lanes, Again::Never, call).await?;
        let number: Option<i64> = row.try_get(0).map_err(unreadable)?;
        let number = number.ok_or_else(|| Error::NoSession(id.clone()))?;
        self.notify(row.try_get::<_, Option<String>>(1).map_err(unreadable)?);
        Ok(count(number))
    }

    pub(super) async fn ask_stops(self: &Arc<Self>, among: &Among, stop: &StopIntent) -> Result<u64, Error> {
        const CALL: &str = "SELECT * FROM ask_stops_1($1, $2, $3, $4, $5)";
        limits::content("a stop", &stop.bytes)?;
        if stop.approvals != ApprovalsToWithdraw::Stay {
            let why = "a stop of many sessions withdraws no approvals; ask each of them alone";
            return Err(Error::Failed(Cause::new(why)));
        }
        let (how, name) = match among {
            Among::Held => ("held", ""),
            Among::Node(node) => ("node", node.as_str()),
            Among::Pool(pool) => ("pool", pool.as_str()),
            Among::These(_) => ("these", ""),
        };
        let these: BTreeSet<&SessionId> = match among {
            Among::These(these) => these.iter().collect(),
            Among::Held | Among::Node(_) | Among::Pool(_) => BTreeSet::new(),
        };
        let these: Vec<_> = these.into_iter().map(|id| stored(id.as_str())).collect();
        let (name, now) = (stored(name), self.now());
        let call = (CALL, &[&how as _, &name as _, &these as _, &stop.bytes as _, &now as _][..]);
        let row = self.row(&self.rooms.long, Again::Never, call).await?;
        if let Some(missing) = row.try_get::<_, Option<String>>(1).map_err(unreadable)? {
            return Err(Error::NoSession(text(missing).into()));
        }
        let holders: Option<Vec<String>> = row.try_get(2).map_err(unreadable)?;
        self.notify(holders.unwrap_or_default());
        row.try_get(0).map(count).map_err(unreadable)
    }
}

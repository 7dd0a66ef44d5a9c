//! What has become of an append that does not begin where its journal ends.

use safepoint::{
    ids::ApprovalId,
    raw::store::{Appended, ApprovalClose, Cause, Chain, Damage, DamageKind, Write},
    store::Error,
};

use super::{
    append::AppendJob,
    column::{int, stored, text},
    core::Core,
    failure::Failure,
    plan::{AppendPlan, names},
    seats::{FoundSeat, SEAT},
};

impl Core {
    /// What a journal that ends elsewhere says of an append: it was written by an earlier try, it cannot be written any more, or it
    /// is to be planned anew, since another handle of this lease has written.
    pub(super) async fn judge(
        &self,
        job: &AppendJob,
        plan: &AppendPlan,
        is_in_doubt: bool,
    ) -> Result<Option<Appended>, Error> {
        let (id, node) = names(&job.lease);
        let rows = self.look(SEAT, &[&id, &node]).await?;
        let row = rows.first().ok_or_else(|| Error::NoSession(job.lease.session().clone()))?;
        let found = FoundSeat::read(row).map_err(|error| Failure::from(error).into_error())?;
        let is_written = match found.end() {
            Some(end) if is_in_doubt => plan.is_written(end) || self.has_record(job, plan).await?,
            Some(_) | None => false,
        };
        let end = found.of(&job.lease);
        if is_written {
            if let Ok(end) = end {
                self.seats.put(&job.lease, end);
            }
            return Ok(Some(plan.appended(self.decided(job).await?)));
        }
        let is_elsewhere = end.as_ref().map_or(true, |end| end.serial > plan.from.serial);
        if is_in_doubt && plan.chains.is_empty() && is_elsewhere {
            // It left no record by which it would be known, and what came after it hides its mark.
            let why = "an answer was lost, and the session was written by others since";
            return Err(Error::Unknown(Cause::new(why)));
        }
        let end = end?;
        if plan.is_beyond(&end) {
            let flaw = DamageKind::TailLost { head: plan.from.head };
            return Err(Error::Damaged(job.lease.session().clone(), Damage { position: end.head, flaw }));
        }
        self.seats.put(&job.lease, end);
        Ok(None)
    }

    /// Whether the last record of an append stands where it was to, with its checksum.
    async fn has_record(&self, job: &AppendJob, plan: &AppendPlan) -> Result<bool, Error> {
        const CHAIN: &str = "SELECT r.chain = $3 FROM records r JOIN sessions s ON s.key = r.session \
             WHERE s.id = $1 AND r.position = $2";
        let Some(chain) = plan.chains.last().map(Chain::as_bytes) else { return Ok(false) };
        let (id, position) = (stored(job.lease.session().as_str()), int(plan.to.head) - 1);
        let rows = self.look(CHAIN, &[&id, &position, &chain]).await?;
        Ok(rows.first().is_some_and(|row| row.try_get(0).unwrap_or(false)))
    }

    /// The approvals that the append was to close, and that were decided before: that stands.
    async fn decided(&self, job: &AppendJob) -> Result<Vec<ApprovalId>, Error> {
        const DECIDED: &str = "SELECT a.id FROM approvals a JOIN sessions s ON s.key = a.session \
             WHERE s.id = $1 AND a.id = ANY ($2) AND a.state IN (1, 2)";
        let closes = job.writes.iter().filter_map(|write| match write {
            Write::CloseApproval(id, ApprovalClose::Withdrawn | ApprovalClose::Expired) => Some(id),
            _ => None,
        });
        let closed: Vec<&ApprovalId> = closes.collect();
        if closed.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<_> = closed.iter().map(|id| stored(id.as_str())).collect();
        let id = stored(job.lease.session().as_str());
        let rows = self.look(DECIDED, &[&id, &ids]).await?;
        let found: Vec<String> = rows.iter().filter_map(|row| row.try_get(0).ok()).map(text).collect();
        Ok(closed.into_iter().filter(|id| found.iter().any(|found| found == id.as_str())).cloned().collect())
    }
}

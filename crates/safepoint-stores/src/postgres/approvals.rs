//! Approvals: opened and closed by the holder, decided once, by any process.

use std::sync::Arc;

use safepoint::{
    ids::{ApprovalId, CallId, RunId, SessionId},
    raw::store::{
        ApprovalCursor, ApprovalRow, ApprovalState, DecisionResult, DecisionUse, NewApproval, NewDecision,
        SessionApproval,
    },
    store::Error,
};
use tokio_postgres::Row;

use super::{
    column::{int, stored, stored_time, text, time},
    core::{Core, Values},
    limits,
    nodes::unreadable,
    tries::Again,
};

/// Columns of an approval, as [`approval`] reads them.
const APPROVAL: &str = "a.id IS NOT NULL OR NULL, a.id, a.run, a.call, a.digest, a.expires, a.bytes, a.at, a.state, a.principal, \
     a.decided, a.decision";

fn approval(row: &Row) -> Result<ApprovalRow, tokio_postgres::Error> {
    let asked = NewApproval {
        id: ApprovalId::from(text(row.try_get(1)?)),
        run: RunId::from(text(row.try_get(2)?)),
        call: CallId::from(text(row.try_get(3)?)),
        digest: text(row.try_get(4)?),
        expires: time(row.try_get(5)?),
        bytes: row.try_get(6)?,
    };
    let decided = |used| -> Result<ApprovalState, tokio_postgres::Error> {
        Ok(ApprovalState::Decided {
            principal: text(row.try_get(9)?),
            at: row.try_get(10)?,
            bytes: row.try_get(11)?,
            used,
        })
    };
    let state = match row.try_get::<_, i16>(8)? {
        0 => ApprovalState::Open,
        1 => decided(DecisionUse::Waiting)?,
        2 => decided(DecisionUse::Used)?,
        3 => ApprovalState::Withdrawn,
        // Whatever else stands there, it is not to be decided any more.
        _ => ApprovalState::Expired,
    };
    Ok(ApprovalRow { asked, at: row.try_get(7)?, state })
}

impl Core {
    pub(super) async fn decide(
        self: &Arc<Self>,
        id: &SessionId,
        decision: &NewDecision,
    ) -> Result<DecisionResult, Error> {
        const CALL: &str = "SELECT * FROM decide_1($1, $2, $3, $4, $5, $6)";
        limits::content("a decision", &decision.bytes)?;
        limits::words(&decision.principal)?;
        let (session, asked) = (stored(id.as_str()), stored(decision.id.as_str()));
        let (digest, principal, now) = (stored(&decision.digest), stored(&decision.principal), self.now());
        let call = (
            CALL,
            &[&session as _, &asked as _, &digest as _, &principal as _, &decision.bytes as _, &now as _][..],
        );
        let row = self.row(&self.rooms.lanes, Again::Never, call).await?;
        let result = decided(&row).map_err(unreadable)?.ok_or_else(|| Error::NoSession(id.clone()))?;
        if result == DecisionResult::Taken {
            self.notify(row.try_get::<_, Option<String>>(1).map_err(unreadable)?);
        }
        Ok(result)
    }

    pub(super) async fn approval(
        &self,
        id: &SessionId,
        asked: &ApprovalId,
    ) -> Result<Option<ApprovalRow>, Error> {
        let sql = format!(
            "SELECT {APPROVAL} FROM sessions s LEFT JOIN approvals a ON a.session = s.key AND a.id = $2 WHERE s.id = $1"
        );
        let values: Values<'_> = &[&stored(id.as_str()), &stored(asked.as_str())];
        let rows = self.of_session(id, (&sql, values)).await?;
        rows.first().map(approval).transpose().map_err(unreadable)
    }

    pub(super) async fn approvals(&self, id: &SessionId) -> Result<Vec<ApprovalRow>, Error> {
        let sql = format!(
            "SELECT {APPROVAL} FROM sessions s LEFT JOIN approvals a ON a.session = s.key WHERE s.id = $1 ORDER BY a.nth"
        );
        let rows = self.of_session(id, (&sql, &[&stored(id.as_str())])).await?;
        rows.iter().map(approval).collect::<Result<_, _>>().map_err(unreadable)
    }

    /// Those of all sessions that are open, from the index of the open ones alone: it is ordered by the time.
    pub(super) async fn open_approvals(
        &self,
        most: usize,
        after: Option<&ApprovalCursor>,
    ) -> Result<Vec<SessionApproval>, Error> {
        const FROM: &str = "FROM approvals a JOIN sessions s ON s.key = a.session WHERE a.state = 0";
        const ORDER: &str = "ORDER BY a.at, s.id, a.id LIMIT $1";
        let most = int(most as u64);
        let rows = match after {
            Some(ApprovalCursor { at, session, id }) => {
                let sql = format!(
                    "SELECT {APPROVAL}, s.id {FROM} AND a.at >= $2 AND (a.at, s.id, a.id) > ($2, $3, $4) {ORDER}"
                );
                let (at, session, id) = (stored_time(*at), stored(session.as_str()), stored(id.as_str()));
                self.look(&sql, &[&most, &at, &session, &id]).await?
            }
            None => self.look(&format!("SELECT {APPROVAL}, s.id {FROM} {ORDER}"), &[&most]).await?,
        };
        let read = |row: &Row| {
            let session = SessionId::from(text(row.try_get(12)?));
            Ok(SessionApproval { session, row: approval(row)? })
        };
        rows.iter().map(read).collect::<Result<_, _>>().map_err(unreadable)
    }
}

/// `None`: there is no such session.
fn decided(row: &Row) -> Result<Option<DecisionResult>, tokio_postgres::Error> {
    Ok(Some(match row.try_get(0)? {
        "taken" => DecisionResult::Taken,
        "already" => DecisionResult::AlreadyDecided {
            principal: text(row.try_get(2)?),
            at: row.try_get(3)?,
            bytes: row.try_get(4)?,
        },
        "withdrawn" => DecisionResult::Withdrawn,
        "expired" => DecisionResult::Expired,
        "other" => DecisionResult::OtherArguments { digest: text(row.try_get(2)?) },
        "unknown" => DecisionResult::Unknown,
        _ => return Ok(None),
    }))
}

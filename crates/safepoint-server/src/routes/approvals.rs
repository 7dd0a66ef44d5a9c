//! Questions: listed, and answered once, bound to the digest and to who answers (S13.9).

use axum::{http::StatusCode, response::Response};
use safepoint::{approval::Decision, raw::store::ApprovalState};

use super::{Call, json, sessions::MOST};
use crate::{
    answer::ListPage, ask::DecisionAsk, caller::decisions::shown, host::setup::Setup, problem::Answered,
};

pub(crate) async fn list(call: Call) -> Answered<Response> {
    let kept = call.session().await?;
    let rows = call.by.store().approvals(kept.id()).await?;
    let data: Vec<_> = rows.iter().filter_map(|approval| shown(kept.id(), approval)).collect();
    json(StatusCode::OK, &ListPage { data, next: None })
}

/// The open questions of all sessions that wait for a decision, those that changed last first.
pub(crate) async fn all(call: Call) -> Answered<Response> {
    let mut data = Vec::new();
    let mut older = None;
    loop {
        let rows = call.by.store().list(MOST, older).await?;
        let is_last = rows.len() < MOST;
        older = rows.last().map(safepoint::store::SessionRow::older);
        for row in rows {
            let setup = Setup::of(&row);
            // At work, too: a question is asked while the turn runs, before the turn is suspended.
            if !matches!(row.label.as_str(), "suspended" | "running")
                || !call.by.who.sees(&setup.principal, &setup.agent)
            {
                continue;
            }
            let approvals = call.by.store().approvals(&row.id).await?;
            let open = approvals.iter().filter(|approval| approval.state == ApprovalState::Open);
            data.extend(open.filter_map(|approval| shown(&row.id, approval)));
        }
        if is_last {
            return json(StatusCode::OK, &ListPage { data, next: None });
        }
    }
}

pub(crate) async fn decide(call: Call) -> Answered<Response> {
    let ask: DecisionAsk = call.body()?;
    let kept = call.session().await?;
    let digest = ask.digest.clone();
    let decision: Decision = ask.decision()?;
    let answer = call.by.decide(&kept, call.param("approval"), digest, &decision).await?;
    json(StatusCode::OK, &answer)
}

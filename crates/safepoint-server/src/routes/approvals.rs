//! Questions: listed, and answered once, bound to the digest and to who answers (S13.9).

use axum::{http::StatusCode, response::Response};
use safepoint::{
    approval::{ApprovalRequest, Decision},
    ids::SessionId,
    raw::store::{ApprovalRow, ApprovalState},
};
use serde_json::json as value;

use super::{Call, json, sessions::MOST};
use crate::{
    answer::{ApprovalAnswer, ListPage},
    ask::DecisionAsk,
    host::setup::Setup,
    problem::Answered,
};

pub(crate) async fn list(call: Call) -> Answered<Response> {
    let kept = call.session().await?;
    let rows = call.by.store().approvals(kept.id()).await?;
    let data: Vec<_> = rows.iter().filter_map(|approval| answer(kept.id(), approval)).collect();
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
            data.extend(open.filter_map(|approval| answer(&row.id, approval)));
        }
        if is_last {
            return json(StatusCode::OK, &ListPage { data, next: None });
        }
    }
}

/// None: this release cannot read the question.
fn answer(session: &SessionId, row: &ApprovalRow) -> Option<ApprovalAnswer> {
    let asked: ApprovalRequest = serde_json::from_slice(&row.asked.bytes).ok()?;
    let (state, by, at) = match &row.state {
        ApprovalState::Open => ("open", None, None),
        ApprovalState::Decided { principal, at, .. } => ("decided", Some(principal.clone()), Some(*at)),
        ApprovalState::Withdrawn => ("withdrawn", None, None),
        ApprovalState::Expired => ("expired", None, None),
    };
    Some(ApprovalAnswer {
        id: asked.id.to_string(),
        session: session.to_string(),
        tool: asked.tool,
        question: value!(asked.question),
        args: asked.args,
        digest: asked.digest,
        asked_at: asked.asked_at,
        expires_at: asked.expires_at,
        state,
        by,
        at,
    })
}

pub(crate) async fn decide(call: Call) -> Answered<Response> {
    let ask: DecisionAsk = call.body()?;
    let kept = call.session().await?;
    let digest = ask.digest.clone();
    let decision: Decision = ask.decision()?;
    let answer = call.by.decide(&kept, call.param("approval"), digest, &decision).await?;
    json(StatusCode::OK, &answer)
}

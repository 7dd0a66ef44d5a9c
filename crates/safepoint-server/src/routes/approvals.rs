//! Questions: listed, and answered once, bound to the digest and to who answers (S13.9).

use axum::{http::StatusCode, response::Response};
use safepoint::{
    approval::{ApprovalRequest, Decision},
    ids::{ApprovalId, SessionId},
    raw::store::{ApprovalRow, ApprovalState, DecisionResult, NewDecision},
};
use serde_json::json as value;

use super::{Call, json, load::Load, sessions::MOST};
use crate::{
    answer::{ApprovalAnswer, DecisionAnswer, ListPage},
    ask::DecisionAsk,
    host::setup::Setup,
    problem::{Answered, Problem},
};

pub(crate) async fn list(call: Call) -> Answered<Response> {
    let (row, _setup) = call.session().await?;
    let rows = call.store().approvals(&row.id).await?;
    let data: Vec<_> = rows.iter().filter_map(|approval| answer(&row.id, approval)).collect();
    json(StatusCode::OK, &ListPage { data, next: None })
}

/// The open questions of all sessions that wait for a decision, those that changed last first.
pub(crate) async fn all(call: Call) -> Answered<Response> {
    let mut data = Vec::new();
    let mut older = None;
    loop {
        let rows = call.store().list(MOST, older).await?;
        let is_last = rows.len() < MOST;
        older = rows.last().map(safepoint::store::SessionRow::older);
        for row in rows {
            let setup = Setup::of(&row);
            // At work, too: a question is asked while the turn runs, before the turn is suspended.
            if !matches!(row.label.as_str(), "suspended" | "running")
                || !call.who.sees(&setup.principal, &setup.agent)
            {
                continue;
            }
            let approvals = call.store().approvals(&row.id).await?;
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
    let (row, setup) = call.session().await?;
    let id = ApprovalId::from(call.param("approval"));
    let digest = ask.digest.clone();
    let decision: Decision = ask.decision()?;
    let bytes = serde_json::to_vec(&decision)?;
    let principal = call.who.name().to_owned();
    let new = NewDecision { id: id.clone(), digest, principal, bytes: bytes.clone() };
    Load::count(&call.app.load.decisions);
    let already = match call.store().decide(&row.id, new).await? {
        DecisionResult::Taken => {
            call.wake(&row, &setup);
            false
        }
        DecisionResult::AlreadyDecided { bytes: other, .. } if other == bytes => true,
        DecisionResult::AlreadyDecided { principal, at, bytes } => {
            let other = serde_json::from_slice::<serde_json::Value>(&bytes).unwrap_or_default();
            let problem = Problem::conflict("decided_otherwise", format!("{principal} decided it before"));
            let problem = problem.with("by", principal).with("at", at.to_string());
            return Err(problem.with("decision", other["decision"].clone()));
        }
        DecisionResult::Withdrawn => {
            return Err(Problem::conflict(
                "withdrawn",
                "a stop withdrew the question, and the call did not begin",
            ));
        }
        DecisionResult::Expired => {
            return Err(Problem::conflict("expired", "the question expired: the call was denied"));
        }
        DecisionResult::OtherArguments { digest } => {
            let problem =
                Problem::conflict("other_arguments", "the question is about other arguments: look again");
            return Err(problem.with("digest", digest));
        }
        DecisionResult::Unknown => return Err(Problem::no_such("approval")),
    };
    json(StatusCode::OK, &DecisionAnswer { approval: id.to_string(), already })
}

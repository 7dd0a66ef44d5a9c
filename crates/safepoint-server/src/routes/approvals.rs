//! Questions: listed, and answered once, bound to the digest and to who answers (S13.9).

use std::collections::HashMap;

use axum::{http::StatusCode, response::Response};
use safepoint::{
    approval::{ApprovalRequest, Decision},
    ids::{ApprovalId, SessionId},
    raw::store::{ApprovalRow, ApprovalState, DecisionResult, NewDecision, SessionApproval},
    store::Error,
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

/// The open questions of all sessions, those that were asked first first.
pub(crate) async fn all(call: Call) -> Answered<Response> {
    let (mut data, mut seen) = (Vec::new(), HashMap::new());
    let mut after = None;
    loop {
        let page = call.store().open_approvals(MOST, after).await?;
        let is_last = page.len() < MOST;
        after = page.last().map(SessionApproval::after);
        for SessionApproval { session, row } in &page {
            let is_seen = match seen.get(session) {
                Some(is_seen) => *is_seen,
                None => {
                    let is_seen = is_seen(&call, session).await?;
                    seen.insert(session.clone(), is_seen);
                    is_seen
                }
            };
            data.extend(answer(session, row).filter(|_| is_seen));
        }
        if is_last {
            return json(StatusCode::OK, &ListPage { data, next: None });
        }
    }
}

/// Whether the caller may see this session. One that was removed meanwhile has no questions.
async fn is_seen(call: &Call, session: &SessionId) -> Answered<bool> {
    let row = match call.store().open(session).await {
        Err(Error::NoSession(_)) => return Ok(false),
        row => row?,
    };
    let setup = Setup::of(&row);
    Ok(call.who.sees(&setup.principal, &setup.agent))
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

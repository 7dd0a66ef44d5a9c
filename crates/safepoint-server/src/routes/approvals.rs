//! Questions: listed, and answered once, bound to the digest and to who answers (S13.9).

use std::collections::HashMap;

use axum::{http::StatusCode, response::Response};
use safepoint::{approval::Decision, ids::SessionId, raw::store::SessionApproval, store::Error};

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

/// The open questions of all sessions, those that were asked first first.
pub(crate) async fn all(call: Call) -> Answered<Response> {
    let (mut data, mut seen) = (Vec::new(), HashMap::new());
    let mut after = None;
    loop {
        let page = call.by.store().open_approvals(MOST, after).await?;
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
            data.extend(shown(session, row).filter(|_| is_seen));
        }
        if is_last {
            return json(StatusCode::OK, &ListPage { data, next: None });
        }
    }
}

/// Whether the caller may see this session. One that was removed meanwhile has no questions.
async fn is_seen(call: &Call, session: &SessionId) -> Answered<bool> {
    let row = match call.by.store().open(session).await {
        Err(Error::NoSession(_)) => return Ok(false),
        row => row?,
    };
    let setup = Setup::of(&row);
    Ok(call.by.who.sees(&setup.principal, &setup.agent))
}

pub(crate) async fn decide(call: Call) -> Answered<Response> {
    let ask: DecisionAsk = call.body()?;
    let kept = call.session().await?;
    let digest = ask.digest.clone();
    let decision: Decision = ask.decision()?;
    let answer = call.by.decide(&kept, call.param("approval"), digest, &decision).await?;
    json(StatusCode::OK, &answer)
}

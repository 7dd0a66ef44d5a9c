//! The questions of a call that has ended with them.

use axum::http::StatusCode;
use rmcp::model::InputResponses;
use safepoint::raw::store::{ApprovalRow, ApprovalState};
use serde_json::Value;

use super::question::{ACCEPTED, Given};
use crate::{
    access::AccessScope,
    caller::{Caller, KeptItem, decisions::is_over},
    problem::{Answered, Problem},
    routes::table::Refuses,
};

/// What became of answers. Exhaustive: those that name a question are decided by now, a question was dismissed and stays open, or none
/// of them was taken.
pub(super) enum TakenAnswers {
    Decided,
    LeftOpen,
    Refused(Problem),
}

/// Takes the answers to its questions. The same decision again is taken as it was before; what names no question that is open is passed
/// over while the call asks. Where one is not valid, none is taken.
///
/// # Errors
/// `invalid_answer`, `scope_missing`, and the store's.
///
/// # Cancel safety
/// Some of them may have been taken.
pub(super) async fn decide(by: &Caller, call: &KeptItem, given: &InputResponses) -> Answered<TakenAnswers> {
    by.needs(AccessScope::Approve, Refuses::Never)?;
    // Before the questions: one that is open is of this call then, since no other turn of the session is suspended.
    let item = call.item(by).await?;
    let asks = item.outcome == Some("suspended");
    let (mut taken, mut left_open, mut refused) = (false, false, None);
    let rows = by.store().approvals(call.kept.id()).await?;
    let named = rows.into_iter().filter(|row| (row.state == ApprovalState::Open) == asks);
    let read = named.filter_map(|row| given.get(row.asked.id.as_str()).map(|answer| valid(row, answer)));
    for (row, answer) in read.collect::<Answered<Vec<_>>>()? {
        let Given::Decision(decision) = answer else {
            left_open |= asks;
            continue;
        };
        match by.decide(&call.kept, row.asked.id.as_str(), row.asked.digest, &decision).await {
            Ok(_) => taken = true,
            // Another one decided it, or it is over: the turn says how it continues.
            Err(problem) if is_over(&problem) => refused = Some(problem),
            Err(problem) => return Err(problem),
        }
    }
    Ok(match refused {
        _ if left_open => TakenAnswers::LeftOpen,
        _ if taken => TakenAnswers::Decided,
        Some(problem) => TakenAnswers::Refused(problem),
        None if asks => TakenAnswers::Decided,
        None => {
            let state = item.outcome.unwrap_or("it works");
            let detail = format!("the task asks nothing: {state}");
            TakenAnswers::Refused(Problem::conflict("nothing_asked", detail))
        }
    })
}

/// The question with its answer.
fn valid(row: ApprovalRow, answer: &Value) -> Answered<(ApprovalRow, Given)> {
    let Some(given) = Given::of(answer) else {
        let detail = format!("the answer to `{}` is not valid: it is {ACCEPTED}", row.asked.id);
        return Err(Problem::new(StatusCode::BAD_REQUEST, "invalid_answer", detail));
    };
    Ok((row, given))
}

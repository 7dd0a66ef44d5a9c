//! The questions of a call that has ended with them.

use rmcp::model::InputResponses;

use super::question::Given;
use crate::{
    access::AccessScope,
    caller::{Caller, KeptItem, decisions::is_over},
    problem::Answered,
    routes::table::Refuses,
};

/// Takes the answers to its questions; returns whether each was decided, here or elsewhere.
///
/// # Errors
/// `scope_missing`, and the store's.
///
/// # Cancel safety
/// Some of them may have been taken.
pub(super) async fn decide(by: &Caller, call: &KeptItem, given: &InputResponses) -> Answered<bool> {
    by.needs(AccessScope::Approve, Refuses::Never)?;
    let mut all = true;
    for asked in by.questions(call.kept.id()).await? {
        let Some(answer) = given.get(asked.id.as_str()) else { continue };
        let Given::Decision(decision) = Given::of(answer) else {
            all = false;
            continue;
        };
        match by.decide(&call.kept, asked.id.as_str(), asked.digest, &decision).await {
            Ok(_) => {}
            // Another one decided it, or it is over: the turn says how it continues.
            Err(problem) if is_over(&problem) => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok(all)
}

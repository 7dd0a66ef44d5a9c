//! A call by its name: the session, and the number of the item. It is found by every process that has the store.

use rmcp::model::InputResponses;

use super::question::{self, Given};
use crate::{
    access::AccessScope,
    answer::ItemAnswer,
    caller::{Caller, Kept, items::view},
    problem::{Answered, Problem},
    routes::table::Refuses,
};

/// The item of a call, in a session that the caller sees.
#[derive(Clone)]
pub(super) struct KeptCall {
    pub(super) kept: Kept,
    pub(super) number: u64,
}

impl KeptCall {
    /// The call of this name, if it is one of the agent and the caller sees it.
    ///
    /// # Errors
    /// `no_such_task`, for one that it does not see too.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn find(by: &Caller, agent: &str, named: &str) -> Answered<Self> {
        let none = || Problem::no_such("task");
        let (session, number) = named.rsplit_once('.').ok_or_else(none)?;
        let number = number.parse().map_err(|_no_number| none())?;
        let kept = by.session(session).await.map_err(hidden)?;
        if kept.setup.agent != agent {
            return Err(none());
        }
        let call = Self { kept, number };
        call.item(by).await?;
        Ok(call)
    }

    pub(super) fn name(&self) -> String {
        format!("{}.{}", self.kept.id(), self.number)
    }

    /// Where its item is.
    ///
    /// # Errors
    /// `no_such_task`, and the store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn item(&self, by: &Caller) -> Answered<ItemAnswer> {
        view(&by.host, self.kept.id(), self.number).await.map_err(hidden)
    }

    /// Takes the answers to its questions; returns whether each was decided, here or elsewhere.
    ///
    /// # Errors
    /// `scope_missing`, and the store's.
    ///
    /// # Cancel safety
    /// Some of them may have been taken.
    pub(super) async fn decide(&self, by: &Caller, given: &InputResponses) -> Answered<bool> {
        by.needs(AccessScope::Approve, Refuses::Never)?;
        let mut all = true;
        for asked in by.questions(self.kept.id()).await? {
            let Some(answer) = given.get(asked.id.as_str()) else { continue };
            let Given::Decision(decision) = Given::of(answer) else {
                all = false;
                continue;
            };
            match by.decide(&self.kept, asked.id.as_str(), asked.digest, &decision).await {
                Ok(_) => {}
                // Another one decided it, or it is over: the turn says how it continues.
                Err(problem) if question::is_over(&problem) => {}
                Err(problem) => return Err(problem),
            }
        }
        Ok(all)
    }
}

fn hidden(problem: Problem) -> Problem {
    match problem.code() {
        "no_such_session" | "no_such_item" => Problem::no_such("task"),
        _ => problem,
    }
}

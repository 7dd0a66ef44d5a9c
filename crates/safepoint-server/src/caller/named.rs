//! An item by its name, as the protocols have it: the session, and its number. Every process that has the store finds it.

use std::{fmt, str::FromStr};

use axum::http::StatusCode;

use super::{Caller, Kept, items::view};
use crate::{
    answer::ItemAnswer,
    problem::{Answered, Problem},
};

/// The name of an item among those of all sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ItemName {
    pub(crate) session: String,
    pub(crate) number: u64,
}

/// An item of a session that the caller sees: what a protocol calls a task.
#[derive(Clone)]
pub(crate) struct KeptItem {
    pub(crate) kept: Kept,
    pub(crate) number: u64,
}

impl fmt::Display for ItemName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.session, self.number)
    }
}

impl FromStr for ItemName {
    type Err = Problem;
    fn from_str(text: &str) -> Result<Self, Problem> {
        let no_task = || Problem::no_such("task");
        let (session, number) = text.rsplit_once('.').ok_or_else(no_task)?;
        let number = number.parse().map_err(|_no_number| no_task())?;
        Ok(Self { session: session.to_owned(), number })
    }
}

impl KeptItem {
    /// The item of this name, if it is one of the agent and the caller sees it.
    ///
    /// # Errors
    /// `no_such_task`, for one that it does not see too.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn find(by: &Caller, agent: &str, named: &str) -> Answered<Self> {
        let name: ItemName = named.parse()?;
        let kept = by.session(&name.session).await.map_err(hidden)?;
        if kept.setup.agent != agent {
            return Err(Problem::no_such("task"));
        }
        let found = Self { kept, number: name.number };
        found.item(by).await?;
        Ok(found)
    }

    pub(crate) fn name(&self) -> ItemName {
        ItemName { session: self.kept.id().to_string(), number: self.number }
    }

    /// Where it is.
    ///
    /// # Errors
    /// `no_such_task`, and the store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn item(&self, by: &Caller) -> Answered<ItemAnswer> {
        view(&by.host, self.kept.id(), self.number).await.map_err(hidden)
    }
}

/// What is not there is a task that is not there.
pub(crate) fn hidden(problem: Problem) -> Problem {
    if problem.status() == StatusCode::NOT_FOUND { Problem::no_such("task") } else { problem }
}

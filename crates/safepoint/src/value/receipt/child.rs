//! What a receipt says of a child run: where it hangs, how, and its own account.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Receipt, SideEffect};
use crate::value::ids::Path;

/// What does the work of a call. Exhaustive: a stop and a resume treat each in its own way (S9.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// A tool's own code.
    #[default]
    #[serde(rename = "body")]
    Tool,
    /// A run of another agent; the call ends with it.
    Child,
    /// A run of another agent that goes on by itself; the call ends when it has begun.
    Background,
}

/// A child run as its call's row shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildReport {
    /// Where it hangs in the tree.
    pub path: Path,
    /// Whether the call ended with it.
    pub work: CallKind,
    /// Its own account; none while it runs.
    pub receipt: Option<Arc<Receipt>>,
    /// What it and its own child runs cost, as the prices of their agents say; zero where none has a price.
    pub cost: f64,
}

impl SideEffect {
    /// Both together: what is known of neither is unknown.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Done, _) | (_, Self::Done) => Self::Done,
            (Self::None, Self::None) => Self::None,
        }
    }
}

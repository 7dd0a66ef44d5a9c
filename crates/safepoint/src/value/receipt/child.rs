//! A child run in a receipt: its place, its kind, and its own receipt.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Receipt;
use crate::value::ids::Path;

/// What does the work of a call. Exhaustive: a stop and a resume treat each in its own way (S9.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// A tool's own code.
    #[default]
    #[serde(rename = "body")]
    Tool,
    /// A run of another agent; the call ends with it.
    Child,
    /// A run of another agent that continues in the background; the call ends once it has begun.
    Background,
}

/// A child run as its call's row shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ChildReport {
    /// Its place in the tree.
    pub path: Path,
    /// Whether the call ended with it.
    pub work: CallKind,
    /// Its own receipt; `None` while it runs.
    pub receipt: Option<Arc<Receipt>>,
    /// The cost of it and its child runs, by the prices of their agents; zero without prices.
    pub cost: f64,
}

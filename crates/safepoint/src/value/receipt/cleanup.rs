//! What became of a call's clean-ups.

use serde::{Deserialize, Serialize};

/// What became of one clean-up. Exhaustive: it ran, failed, or was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CleanupEnd {
    /// It ran.
    Ran,
    /// It panicked.
    Failed,
    /// Its time was over.
    TimedOut,
}

/// One clean-up's row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CleanupReport {
    /// What it was.
    pub label: String,
    /// What became of it.
    pub end: CleanupEnd,
}

//! What running a call may change, and what it did change.

use serde::{Deserialize, Serialize};

/// What running a call may change (S4.4). Exhaustive: a resume must know what to do with each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    /// Nothing.
    ReadOnly,
    /// The same, however often it runs.
    Idempotent,
    /// Once per idempotency key.
    Keyed,
    /// Something new each time.
    Unsafe,
}

/// What a call did to the world (S3.8). Exhaustive: nothing, something, or unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SideEffect {
    /// It never started, or only reads.
    #[default]
    None,
    /// It ran to its end.
    Done,
    /// It started, and no end says what it did.
    Unknown,
}

impl SideEffect {
    /// Both together: unknown if either is, otherwise done if either is.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Done, _) | (_, Self::Done) => Self::Done,
            (Self::None, Self::None) => Self::None,
        }
    }
}

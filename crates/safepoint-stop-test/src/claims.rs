//! What a target said, and when its caller got control back.

use std::{fmt, time::Duration};

use serde::Serialize;

/// What was said of one stop. Each time counts from the moment in which the stop was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Claims {
    /// When the caller got control back: a call returned, a turn was said to be over, a process ended.
    pub free: Option<Duration>,
    /// What it was told then.
    pub says: Said,
    /// What the target named as still at work.
    pub named: Vec<String>,
}

/// What a caller is told when it gets control back. Exhaustive: the judge looks at each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Said {
    /// That it was stopped.
    Stopped,
    /// That it is done.
    Done,
    /// That it failed.
    Failed,
    /// Nothing but that.
    #[default]
    Nothing,
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Stopped => "stopped",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Nothing => "nothing",
        })
    }
}

impl Said {
    /// Whether it says that the work is over.
    #[must_use]
    pub fn is_of_an_end(self) -> bool {
        match self {
            Self::Stopped | Self::Done | Self::Failed => true,
            Self::Nothing => false,
        }
    }
}

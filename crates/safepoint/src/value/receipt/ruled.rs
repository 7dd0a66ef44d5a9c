//! What policy decided about a question that a call asked while it ran: no person was asked (S10.67).

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

/// What decided. Exhaustive: each is shown in its own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RuledBy {
    /// A rule of the agent's.
    Rule,
    /// That only a rule could have allowed it, and none does.
    NoRule,
    /// The mode in which every call that needs approval may run.
    Auto,
    /// The mode in which no call that needs approval may run.
    Deny,
    /// There is no approver here.
    #[serde(rename = "nobody")]
    NoApprover,
    /// A lasting approval that a person gave before.
    Always,
}

/// What it decided. Exhaustive: yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// It may be done.
    Allowed,
    /// It may not.
    Denied,
}

/// Such decisions about one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RuledReport {
    /// What would be done: the call's tool and, behind a slash, what it asked for.
    pub tool: String,
    /// What that was, in the words of the requester; of several the first.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub what: String,
    /// What was decided.
    pub permission: Permission,
    /// What decided it.
    pub by: RuledBy,
    /// How often.
    pub times: u32,
}

impl RuledReport {
    /// Whether a further decision is one of these.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (&self.tool, self.permission, self.by) == (&other.tool, other.permission, other.by)
    }
}

/// As people read it.
impl Display for RuledReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let what = if self.what.is_empty() { String::new() } else { format!(" ({})", self.what) };
        let permission = match self.permission {
            Permission::Allowed => "allowed",
            Permission::Denied => "denied",
        };
        let by = match self.by {
            RuledBy::Rule => "by a rule",
            RuledBy::NoRule => "because no rule allows it",
            RuledBy::Auto => "like every call that needs approval",
            RuledBy::Deny => "because no call that needs approval may run",
            RuledBy::NoApprover => "because no approver is available",
            RuledBy::Always => "by an earlier approval",
        };
        write!(f, "asked for {}{what}: {permission} {by}", self.tool)?;
        if self.times > 1 { write!(f, " ({} times)", self.times) } else { Ok(()) }
    }
}

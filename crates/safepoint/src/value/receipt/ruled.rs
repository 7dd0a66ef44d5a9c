//! What policy decided about a question that a call asked while it ran: no person was asked (S10.67).

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

/// What decided. Exhaustive: who asks is told, and each is told in its own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuledBy {
    /// A rule of the agent's.
    Rule,
    /// That only a rule could have allowed it, and none does.
    NoRule,
    /// The mode in which every call that asks may run.
    Auto,
    /// The mode in which no call that asks may run.
    Deny,
    /// That nobody can be asked here.
    Nobody,
    /// A yes that a person gave before, and that lasts.
    Always,
}

/// What it decided. Exhaustive: yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// It may be done.
    Allowed,
    /// It may not.
    Denied,
}

/// Such decisions about one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuledReport {
    /// What would be done: the call's tool and, behind a slash, what it asked for.
    pub tool: String,
    /// What that was, in the words of whoever asked; of several the first.
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
            RuledBy::NoRule => "since no rule allows it, as only a rule could",
            RuledBy::Auto => "as every call that asks",
            RuledBy::Deny => "as no call that asks may run",
            RuledBy::Nobody => "since nobody can be asked here",
            RuledBy::Always => "by a yes that lasts",
        };
        write!(f, "asked for {}{what}: {permission} {by}", self.tool)?;
        if self.times > 1 { write!(f, " ({} times)", self.times) } else { Ok(()) }
    }
}

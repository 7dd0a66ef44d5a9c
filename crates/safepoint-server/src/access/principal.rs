//! Who sends a request, and what a token lets it do.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// What a token may be used for. None implies another. Exhaustive: each route needs one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessScope {
    /// Sessions, turns, events and questions are read.
    Read,
    /// Sessions are made, and items pushed and withdrawn.
    Talk,
    /// Questions are answered.
    Approve,
    /// Turns and sessions are stopped.
    Stop,
    /// Sessions are removed, the server is measured and drained.
    Admin,
}

impl AccessScope {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Read, Self::Talk, Self::Approve, Self::Stop, Self::Admin];

    /// The name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Talk => "talk",
            Self::Approve => "approve",
            Self::Stop => "stop",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for AccessScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for AccessScope {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|scope| scope.as_str() == text);
        known.ok_or_else(|| format!("`{text}` is no scope: use read, talk, approve, stop or admin"))
    }
}

/// Who sends a request: a token, or what a login of your own says.
///
/// ```
/// use safepoint_server::{AccessScope, Principal};
/// let anna = Principal::new("anna", [AccessScope::Read, AccessScope::Approve]).seeing_all();
/// assert!(anna.may(AccessScope::Approve) && !anna.may(AccessScope::Talk));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    name: String,
    scopes: Vec<AccessScope>,
    agents: Option<Vec<String>>,
    sees_all: bool,
    /// The id of the token that it came with.
    token: Option<String>,
}

impl Principal {
    /// A principal of this name with these scopes. It may use every agent, and sees its own sessions.
    #[must_use]
    pub fn new(name: impl Into<String>, scopes: impl IntoIterator<Item = AccessScope>) -> Self {
        Self { name: name.into(), scopes: Vec::from_iter(scopes), agents: None, sees_all: false, token: None }
    }

    /// It may use these agents alone.
    #[must_use]
    pub fn only_agents<A: Into<String>>(mut self, agents: impl IntoIterator<Item = A>) -> Self {
        self.agents = Some(agents.into_iter().map(Into::into).collect());
        self
    }

    /// It sees the sessions of all principals, of its agents.
    #[must_use]
    pub fn seeing_all(mut self) -> Self {
        self.sees_all = true;
        self
    }

    /// Its name, which its stops and decisions are recorded with.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it has this scope.
    #[must_use]
    pub fn may(&self, scope: AccessScope) -> bool {
        self.scopes.contains(&scope)
    }

    /// Whether it may use this agent.
    #[must_use]
    pub fn uses(&self, agent: &str) -> bool {
        self.agents.as_ref().is_none_or(|agents| agents.iter().any(|known| known == agent))
    }

    /// Whether it sees a session of this principal and this agent.
    #[must_use]
    pub fn sees(&self, owner: &str, agent: &str) -> bool {
        self.uses(agent) && (self.sees_all || self.name == owner)
    }

    /// It came with the token of this id.
    pub(super) fn with_token(mut self, id: &str) -> Self {
        self.token = Some(id.to_owned());
        self
    }

    /// The id of the token that it came with.
    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Its name, its agents, and whether it sees all.
    pub(super) fn parts(&self) -> (String, Option<Vec<String>>, bool) {
        (self.name.clone(), self.agents.clone(), self.sees_all)
    }
}

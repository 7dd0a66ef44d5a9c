//! What a call asks while it runs: what it would do, what rules see, and how long an approval is valid.

use serde_json::Value;

use crate::value::approval::Holds;

/// A question of a running call; see [`ToolContext::put`](super::ToolContext::put).
#[derive(Clone, Debug)]
pub struct Asks {
    pub(crate) tool: String,
    pub(crate) args: Value,
    pub(crate) ruled_by: Value,
    pub(crate) holds: Holds,
    /// With what text it is refused, unless a rule that names it without a `*` says otherwise. `None`: without
    /// a rule a person decides.
    pub(crate) refusal: Option<String>,
}

impl Asks {
    /// Asks whether this may be done. `tool` and `args` say what, and an approval is bound to both.
    #[must_use]
    pub fn about(tool: impl Into<String>, args: Value) -> Self {
        Self { tool: tool.into(), ruled_by: args.clone(), args, holds: Holds::Once, refusal: None }
    }

    /// Sets what rules see, if that is more than an approval is bound to.
    #[must_use]
    pub fn ruled_by(mut self, args: Value) -> Self {
        self.ruled_by = args;
        self
    }

    /// Makes a plain approval valid for the rest of the session.
    #[must_use]
    pub fn for_the_session(mut self) -> Self {
        self.holds = Holds::Session;
        self
    }

    /// Asks no person and no mode unless a rule that names it says so: without one it is denied, with this
    /// text.
    #[must_use]
    pub fn only_by_rule(mut self, otherwise: impl Into<String>) -> Self {
        self.refusal = Some(otherwise.into());
        self
    }
}

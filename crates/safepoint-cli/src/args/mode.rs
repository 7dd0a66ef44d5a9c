//! How much an agent does without a question: what `--mode` and `--approve` name, and what Shift-Tab goes through.

use clap::ValueEnum;
use serde::Deserialize;

use super::agent::Approve;

/// The mode that `--mode` names. Exhaustive: the three that Shift-Tab goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StartMode {
    /// Each call with side effects asks
    Ask,
    /// As `ask`, but changes of files below the root and commands inside the sandbox run unasked
    Edits,
    /// Only tools that read are offered and run; a chat then asks whether to carry out the plan
    Plan,
}

/// The mode that holds. Exhaustive: the three of `--mode`, and what else `--approve` names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WorkMode {
    #[default]
    Ask,
    Edits,
    Plan,
    Auto,
    Deny,
}

impl WorkMode {
    /// The mode that these arguments begin with.
    pub(crate) fn first(mode: Option<StartMode>, approve: Option<Approve>) -> Self {
        match (mode, approve) {
            (Some(StartMode::Plan), _) => Self::Plan,
            (Some(StartMode::Edits), _) => Self::Edits,
            (Some(StartMode::Ask), _) => Self::Ask,
            (None, Some(Approve::Edits)) => Self::Edits,
            (None, approve) => Self::base(approve),
        }
    }

    /// The mode that follows a plan, where no other one is chosen.
    pub(crate) fn base(approve: Option<Approve>) -> Self {
        match approve {
            Some(Approve::Auto) => Self::Auto,
            Some(Approve::Deny) => Self::Deny,
            Some(Approve::Ask | Approve::Edits) | None => Self::Ask,
        }
    }

    /// The mode after this one. Where `--approve auto` or `deny` decides, there is only that and `plan`: who decides about
    /// questions stays as it is.
    pub(crate) fn next(self, base: Self) -> Self {
        match (self, base) {
            (Self::Ask, Self::Ask) => Self::Edits,
            (Self::Ask | Self::Edits | Self::Auto | Self::Deny, _) => Self::Plan,
            (Self::Plan, base) => base,
        }
    }

    /// Whether this mode can hold beside this base.
    pub(crate) fn fits(self, base: Self) -> bool {
        self == Self::Plan || self == base || base == Self::Ask && self == Self::Edits
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Ask, Self::Edits, Self::Plan, Self::Auto, Self::Deny]
            .into_iter()
            .find(|mode| mode.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Edits => "edits",
            Self::Plan => "plan",
            Self::Auto => "auto",
            Self::Deny => "deny",
        }
    }

    /// What it means, in a line.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Ask => "each call with side effects asks",
            Self::Edits => {
                "changes of files below the root and commands in the sandbox run unasked; all else asks"
            }
            Self::Plan => "only tools that read are offered and run",
            Self::Auto => "every call runs unasked",
            Self::Deny => "calls that need approval are denied",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shift_tab_comes_back_to_where_it_began() {
        for (base, round) in [
            (WorkMode::Ask, &[WorkMode::Ask, WorkMode::Edits, WorkMode::Plan][..]),
            (WorkMode::Auto, &[WorkMode::Auto, WorkMode::Plan]),
            (WorkMode::Deny, &[WorkMode::Deny, WorkMode::Plan]),
        ] {
            let mut mode = base;
            for expected in round {
                assert_eq!(mode, *expected);
                assert!(mode.fits(base));
                mode = mode.next(base);
            }
            assert_eq!(mode, base);
        }
    }

    #[test]
    fn a_plan_comes_before_what_approve_says() {
        assert_eq!(WorkMode::first(Some(StartMode::Plan), Some(Approve::Auto)), WorkMode::Plan);
        assert_eq!(WorkMode::base(Some(Approve::Auto)), WorkMode::Auto);
        assert_eq!(WorkMode::first(None, Some(Approve::Edits)), WorkMode::Edits);
        assert_eq!(WorkMode::first(None, None), WorkMode::Ask);
        assert!(!WorkMode::Edits.fits(WorkMode::Auto), "who decides about questions stays as it is");
    }
}

//! Turns that another agent does than the usual one.

/// What such a turn does. Exhaustive: the planner has an agent for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OwnTurn {
    /// It compacts the conversation; its summary keeps this.
    Compacts(String),
    /// It has tools that read only.
    Reviews,
}

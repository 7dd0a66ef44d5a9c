//! How the last owner left the turn that can be resumed.

/// How the turn was left. Exhaustive: it is over; it was cut by the end of its process and by nothing else; or it waited for questions
/// that the store has withdrawn since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::session) enum InheritedTurn {
    #[default]
    Over,
    CutOff,
    Withdrawn,
}

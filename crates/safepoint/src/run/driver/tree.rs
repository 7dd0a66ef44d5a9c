//! A run's place in its tree: the run above it, and those below.

use super::{children::Children, parent::Parent};

/// The runs above and below.
#[derive(Default)]
pub(super) struct TreeLinks {
    /// None of a run that nobody's call has begun.
    pub(super) parent: Option<Parent>,
    pub(super) children: Children,
}

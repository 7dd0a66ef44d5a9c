//! What stands between those who wake sessions and the nodes that take them up.

use std::{error::Error, fmt, sync::Arc};

use futures_core::future::BoxFuture;

use crate::taker::{NodeCapacity, Taker, Wake};

/// Brings wakes to nodes.
///
/// It is a hint, never the authority: a node that takes a session asks the store for it, and what wants an owner stays due there until
/// it has one.
pub trait Placement: fmt::Debug + Send + Sync + 'static {
    /// Asks that a node takes these up. It may be lost, come twice, or come late.
    ///
    /// # Errors
    /// The placement cannot be reached. The sessions stay due.
    ///
    /// # Cancel safety
    /// Some of them may have been asked for.
    fn wake(&self, wakes: Vec<Wake>) -> BoxFuture<'_, Result<(), PlacementError>>;

    /// Hands sessions to this taker until `leave`; then hands over none, and waits for those that it has handed over. The same session
    /// is not handed over again while the first take of it lasts.
    ///
    /// # Errors
    /// The placement cannot be reached any more. Takes that run are dropped; what was opened stays open.
    ///
    /// # Cancel safety
    /// As for an error.
    fn serve(
        &self,
        taker: Arc<dyn Taker>,
        capacity: NodeCapacity,
        leave: BoxFuture<'static, ()>,
    ) -> BoxFuture<'_, Result<(), PlacementError>>;

    /// How many more wakes have a use now: a node whose own room is all that there is says how much is left of it, so that it does not
    /// keep from others what it could not take.
    fn wanted(&self) -> usize {
        usize::MAX
    }
}

/// Why a placement cannot be used.
#[derive(Debug)]
pub struct PlacementError {
    what: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl PlacementError {
    /// An error with this text: what was attempted.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), source: None }
    }

    /// The same, with what is behind it.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for PlacementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Error for PlacementError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

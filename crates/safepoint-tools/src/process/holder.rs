//! Who holds a command's tree: the guard's keeper, or a process group.

use super::{
    contacts::Root,
    guarded::GuardedCommand,
    process_group::ProcessGroup,
    started::{End, Started},
    wire::Rungs,
};

/// Who holds the tree.
#[derive(Debug)]
pub(super) enum Holder {
    Keeper(Box<GuardedCommand>),
    Group(Box<ProcessGroup>),
    /// Its witness has it now.
    SeenOff,
}

impl Holder {
    /// What it holds, if anything was started.
    pub(super) fn started(&self) -> Option<&Started> {
        match self {
            Self::Keeper(held) => held.started(),
            Self::Group(group) => Some(group.started()),
            Self::SeenOff => None,
        }
    }

    pub(super) fn root(&self) -> Root {
        match self {
            Self::Keeper(held) => held.root(),
            Self::Group(group) => group.root(),
            Self::SeenOff => Root::Nowhere,
        }
    }

    pub(super) async fn order(&mut self, rungs: Rungs) {
        match self {
            Self::Keeper(held) => held.order(rungs).await,
            Self::Group(group) => group.order(rungs),
            Self::SeenOff => {}
        }
    }

    /// What it says next.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn next(&mut self) -> End {
        match self {
            Self::Keeper(held) => held.next().await,
            Self::Group(group) => group.next().await,
            Self::SeenOff => std::future::pending().await,
        }
    }
}

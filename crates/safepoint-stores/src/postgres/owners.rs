//! The processes behind the nodes that this handle let join: by whose clock their leases are counted.

use std::{collections::HashMap, sync::Mutex};

use safepoint::{ids::NodeId, store::OwnerProcess};

use super::lock;

/// Who joined by this handle.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// Held to look or to change it; no other lock is taken under it.
    by_node: Mutex<HashMap<NodeId, OwnerProcess>>,
}

impl Owners {
    pub(super) fn insert(&self, node: &NodeId, owner: OwnerProcess) {
        lock(&self.by_node).insert(node.clone(), owner);
    }

    pub(super) fn get(&self, node: &NodeId) -> Option<OwnerProcess> {
        lock(&self.by_node).get(node).cloned()
    }

    pub(super) fn remove(&self, node: &NodeId) {
        lock(&self.by_node).remove(node);
    }
}

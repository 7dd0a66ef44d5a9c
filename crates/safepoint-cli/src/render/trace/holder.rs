//! Which node held a session when something was recorded.

use std::collections::HashMap;

use safepoint::{
    ids::{NodeId, SessionId},
    store::{Error, Store},
};
use serde_json::{Value, json};

use super::timeline::Timeline;

/// One node, for as long as it held the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The first record that it could write.
    from: u64,
    node: NodeId,
    /// Its name; none if the node was given none, or ended so long ago that it is forgotten.
    name: Option<String>,
}

/// Those that the store knows, in their order.
///
/// # Errors
/// The store's.
///
/// # Cancel safety
/// Nothing is lost.
pub(super) async fn all(store: &dyn Store, session: &SessionId) -> Result<Vec<Holder>, Error> {
    let nodes = store.nodes().await?.into_iter().map(|row| row.node);
    let names: HashMap<NodeId, String> = nodes.map(|node| (node.id, node.name)).collect();
    let tenures = store.tenures(session).await?.into_iter();
    Ok(tenures
        .map(|tenure| {
            let name = names.get(&tenure.node).filter(|name| **name != tenure.node.as_str()).cloned();
            Holder { from: tenure.head, node: tenure.node, name }
        })
        .collect())
}

impl Holder {
    /// For people.
    pub(super) fn shown(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| self.node.as_str())
    }

    pub(super) fn json(&self) -> Value {
        json!({"id": self.node, "name": self.name})
    }
}

impl Timeline {
    /// Who held the session when the record of this position was written, if that is known.
    pub(super) fn holder(&self, position: u64) -> Option<&Holder> {
        self.holders.iter().rfind(|holder| holder.from <= position)
    }

    /// Whether people know any of its holders by name.
    pub(super) fn has_named_holders(&self) -> bool {
        self.holders.iter().any(|holder| holder.name.is_some())
    }
}

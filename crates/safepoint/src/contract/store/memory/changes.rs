//! What others do to the sessions of a node, as soon as it is done.

use std::{collections::VecDeque, sync::Arc};

use futures_util::stream;

use crate::{sync::Mutex, value::ids::NodeId};

use super::{
    super::{Change, ChangeStream, Error},
    MemoryState,
};

/// A node that listens.
struct Listening {
    /// The store's. Held to take what is new, and never across an await.
    state: Arc<Mutex<MemoryState>>,
    node: NodeId,
    found: VecDeque<Change>,
    is_over: bool,
}

pub(super) fn of(state: Arc<Mutex<MemoryState>>, node: NodeId) -> ChangeStream {
    let listening = Listening { state, node, found: VecDeque::new(), is_over: false };
    Box::pin(stream::unfold(listening, |mut listening| async move {
        let next = listening.next().await?;
        Some((next, listening))
    }))
}

impl Listening {
    async fn next(&mut self) -> Option<Result<Change, Error>> {
        loop {
            if self.is_over {
                return None;
            }
            if let Some(change) = self.found.pop_front() {
                return Some(Ok(change));
            }
            let woken = {
                let mut state = self.state.lock();
                match state.take_changes(&self.node) {
                    Ok(found) => self.found.extend(found),
                    Err(over) => {
                        self.is_over = true;
                        return Some(Err(over));
                    }
                }
                state.members.get(&self.node).map(|member| Arc::clone(&member.woken))
            };
            if let Some(woken) = woken.filter(|_| self.found.is_empty()) {
                // What was touched in between has left its permit.
                woken.notified().await;
            }
        }
    }
}

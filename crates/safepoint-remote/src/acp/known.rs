//! Which session of the agent a conversation of ours is.
//!
//! **Invariants** A conversation has one process at a time: the next may begin when the last is gone, so that what an
//! agent writes down at its end is there when its session is taken up.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Mutex as Turns, OwnedMutexGuard};

use super::limits;

/// The right to be the process of a conversation.
pub(super) type Turn = OwnedMutexGuard<()>;

/// Remembers the newest conversations of this process.
#[derive(Default)]
pub(super) struct Known {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    conversations: HashMap<String, Conversation>,
    oldest_first: VecDeque<String>,
}

#[derive(Clone, Default)]
struct Conversation {
    session: Option<String>,
    turns: Arc<Turns<()>>,
}

impl Known {
    /// Waits until the conversation has no process, and says which session it is.
    ///
    /// # Cancel safety
    /// Nothing is taken.
    pub(super) async fn turn(&self, conversation: &str) -> (Turn, Option<String>) {
        let turns = Arc::clone(&self.conversation(conversation).turns);
        let turn = turns.lock_owned().await;
        (turn, self.conversation(conversation).session)
    }

    pub(super) fn note(&self, conversation: &str, session: &str) {
        if let Some(known) = self.lock().conversations.get_mut(conversation) {
            known.session = Some(session.to_owned());
        }
    }

    fn conversation(&self, name: &str) -> Conversation {
        let mut state = self.lock();
        if let Some(known) = state.conversations.get(name) {
            return known.clone();
        }
        state.oldest_first.push_back(name.to_owned());
        if state.oldest_first.len() > limits::CONVERSATIONS
            && let Some(oldest) = state.oldest_first.pop_front()
        {
            state.conversations.remove(&oldest);
        }
        state.conversations.entry(name.to_owned()).or_default().clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

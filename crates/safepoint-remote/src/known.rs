//! What a peer calls a conversation of ours, such as its session, or its newest answer.
//!
//! **Invariants** A conversation has one piece of work at a time: the next may begin when the last is gone, so that what
//! an agent writes down at its end is there when its session is taken up.

use std::{
    collections::{HashMap, VecDeque},
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Mutex as Turns, OwnedMutexGuard};

/// Bytes of a conversation's name that make the name of a file.
const NAME_BYTES: usize = 128;
/// Conversations that are remembered.
const CONVERSATIONS: usize = 1024;

/// The right to be the work of a conversation.
pub(crate) type Turn = OwnedMutexGuard<()>;

/// Remembers the newest conversations of this process; and those of earlier ones, where it has a folder for that.
#[derive(Default)]
pub(crate) struct Known {
    state: Mutex<State>,
    folder: Option<PathBuf>,
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
    pub(crate) fn kept_in(folder: PathBuf) -> Self {
        Self { state: Mutex::default(), folder: Some(folder) }
    }

    /// Waits until nothing of the conversation is under way, and says what the peer calls it.
    ///
    /// # Cancel safety
    /// Nothing is taken.
    pub(crate) async fn turn(&self, conversation: &str) -> (Turn, Option<String>) {
        let turns = Arc::clone(&self.conversation(conversation).turns);
        let turn = turns.lock_owned().await;
        let session = self.conversation(conversation).session;
        (turn, session.or_else(|| self.read(conversation)))
    }

    /// What the peer calls it, where that is known; for peers that take several messages at a time.
    pub(crate) fn name_of(&self, conversation: &str) -> Option<String> {
        let known = self.lock().conversations.get(conversation).and_then(|known| known.session.clone());
        known.or_else(|| self.read(conversation))
    }

    pub(crate) fn note(&self, conversation: &str, session: &str) {
        // It has a place also where its work was begun by an earlier process.
        drop(self.conversation(conversation));
        if let Some(known) = self.lock().conversations.get_mut(conversation) {
            known.session = Some(session.to_owned());
        }
        // A few bytes, once in a conversation. Who cannot write them goes on without: the next process of the
        // conversation then says that the agent knows nothing of it.
        let Some(file) =
            self.file(conversation).filter(|_| self.read(conversation).as_deref() != Some(session))
        else {
            return;
        };
        let written =
            file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&file, session));
        if let Err(error) = written {
            tracing::debug!(%error, file = %file.display(), "an agent's session is not remembered");
        }
    }

    /// What an earlier process wrote down.
    fn read(&self, conversation: &str) -> Option<String> {
        fs::read_to_string(self.file(conversation)?).ok().filter(|session| !session.is_empty())
    }

    /// Where it is written down; a name that is none of ours is not.
    fn file(&self, conversation: &str) -> Option<PathBuf> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let fits = (1..=NAME_BYTES).contains(&conversation.len()) && conversation.bytes().all(is_plain);
        self.folder.as_ref().filter(|_| fits).map(|folder| folder.join(conversation))
    }

    fn conversation(&self, name: &str) -> Conversation {
        let mut state = self.lock();
        if let Some(known) = state.conversations.get(name) {
            return known.clone();
        }
        state.oldest_first.push_back(name.to_owned());
        if state.oldest_first.len() > CONVERSATIONS
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

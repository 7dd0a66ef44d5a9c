//! The remote agent's name for a conversation, such as its session or its newest answer.
//!
//! **Invariants** A conversation has one piece of work at a time. The next begins when the last is gone, so
//! that what an agent stores at its end is there when its session is resumed.

use std::{
    collections::{HashMap, VecDeque},
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Mutex as Turns, OwnedMutexGuard};

/// How many bytes of a conversation's name make the name of a file.
const NAME_BYTES: usize = 128;
/// How many conversations are remembered.
const CONVERSATIONS: usize = 1024;

/// The right to run a conversation's work.
pub(crate) type Turn = OwnedMutexGuard<()>;

/// Remembers the newest conversations of this process; with a folder, also those of earlier processes.
#[derive(Default)]
pub(crate) struct ConversationIds {
    /// Held for one look-up or one entry; files are read and written after it is released. The order of
    /// locks: a turn of a conversation is asynchronous, held for its work, and taken while this is not held;
    /// this is taken under a turn.
    state: Mutex<IdsState>,
    folder: Option<PathBuf>,
}

#[derive(Default)]
struct IdsState {
    conversations: HashMap<String, Conversation>,
    oldest_first: VecDeque<String>,
}

#[derive(Clone, Default)]
struct Conversation {
    session: Option<String>,
    /// One piece of work at a time. A conversation that was forgotten, and named again, has a new lock.
    turns: Arc<Turns<()>>,
}

impl ConversationIds {
    pub(crate) fn kept_in(folder: PathBuf) -> Self {
        Self { state: Mutex::default(), folder: Some(folder) }
    }

    /// Waits until no work of the conversation is running, and returns the remote agent's name for it.
    ///
    /// # Cancel safety
    /// A dropped call takes no turn.
    pub(crate) async fn turn(&self, conversation: &str) -> (Turn, Option<String>) {
        let turns = Arc::clone(&self.conversation(conversation).turns);
        let turn = turns.lock_owned().await;
        let session = self.conversation(conversation).session;
        (turn, session.or_else(|| self.read(conversation)))
    }

    /// The remote agent's name for a conversation, where known; for agents that take several messages at a
    /// time.
    pub(crate) fn name_of(&self, conversation: &str) -> Option<String> {
        let known = self.lock().conversations.get(conversation).and_then(|known| known.session.clone());
        known.or_else(|| self.read(conversation))
    }

    pub(crate) fn note(&self, conversation: &str, session: &str) {
        // The conversation has a place also where an earlier process began its work.
        drop(self.conversation(conversation));
        if let Some(known) = self.lock().conversations.get_mut(conversation) {
            known.session = Some(session.to_owned());
        }
        // A few bytes, once in a conversation. Without the file the work continues; the next process of the
        // conversation then reports that the agent has lost it.
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

    /// The name that an earlier process stored.
    fn read(&self, conversation: &str) -> Option<String> {
        fs::read_to_string(self.file(conversation)?).ok().filter(|session| !session.is_empty())
    }

    /// The file of a conversation; none for a name that is not one of ours.
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

    fn lock(&self) -> MutexGuard<'_, IdsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

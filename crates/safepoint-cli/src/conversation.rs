//! What turns are part of: a history in memory, or a session that a store keeps.

use std::{path::PathBuf, sync::Arc};

use anyhow::Context as _;
use safepoint::{
    Agent, History, Outcome, RunHandle,
    event::Events,
    ids::SessionId,
    message::UserMessage,
    session::{Chat, Fate, OnFailure, Session, SessionEvent, SessionStop},
    store::{self, ApprovalState, Store, Use},
};
use safepoint_stores::SqliteStore;

use crate::{
    args::{RunArgs, Usage},
    survivors,
};

/// Turns one after the other. Exhaustive: kept in memory, or in a store.
pub(crate) enum Conversation {
    Bare { agent: Box<Agent>, history: History },
    Kept(Box<Kept>),
}

/// A session of a store that this process owns.
pub(crate) struct Kept {
    session: Session<String>,
    events: Events<SessionEvent>,
    id: SessionId,
    store: Arc<dyn Store>,
}

/// Whether the session must be there. Exhaustive: it must, or it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Must {
    Exist,
    BeMade,
}

/// There is no such session: exit code 3.
#[derive(Debug, thiserror::Error)]
#[error("there is no session {0}; `safepoint sessions ls` lists them")]
pub(crate) struct NoSession(SessionId);

/// Somebody else holds the session: exit code 5.
#[derive(Debug, thiserror::Error)]
#[error("{0}; ask that one to stop (safepoint stop {1}), or wait for its end")]
pub(crate) struct Elsewhere(store::Error, SessionId);

impl Conversation {
    /// Opens what the command line names: a session if there is `--session` or `--store`.
    pub(crate) async fn open(args: &RunArgs, agent: Agent, is_there: Must) -> anyhow::Result<Self> {
        if args.session.is_none() && args.store.is_none() {
            return Ok(Self::Bare { agent: Box::new(agent), history: History::new() });
        }
        let id = args.session.as_deref().map_or_else(SessionId::fresh, SessionId::from);
        let store = open_store(args.store.clone())?;
        if is_there == Must::Exist
            && let Err(store::Error::NoSession(_)) = store.open(&id).await
        {
            return Err(NoSession(id).into());
        }
        let dead = store.open(&id).await.ok().as_ref().and_then(survivors::dead_holder);
        // The next prompt is typed by somebody who has seen that the last turn failed.
        let builder = Session::builder(Chat::new(agent)).on_failure(OnFailure::GoOn);
        let session = match builder.open(Arc::clone(&store), id.clone(), store::Owner::here()).await {
            Ok(session) => session,
            Err(error @ store::Error::Held(..)) => return Err(Elsewhere(error, id).into()),
            Err(error) => return Err(error).context(format!("the session {id} cannot be opened")),
        };
        // The session is ours: nobody else looks for them.
        if let Some(dead) = dead {
            survivors::reap(dead).await;
        }
        let events = session.events();
        Ok(Self::Kept(Box::new(Kept { session, events, id, store })))
    }

    /// The session's id, where there is one.
    pub(crate) fn id(&self) -> Option<&SessionId> {
        match self {
            Self::Bare { .. } => None,
            Self::Kept(kept) => Some(&kept.id),
        }
    }

    /// What has it look at its store at once, where it has one.
    pub(crate) fn looker(&self) -> Option<impl Fn() + Send + Sync + use<>> {
        match self {
            Self::Bare { .. } => None,
            Self::Kept(kept) => {
                let session = kept.session.handle();
                Some(move || session.look())
            }
        }
    }

    /// Begins a turn on this prompt. The run goes on until its handle stops it.
    pub(crate) async fn begin(&mut self, prompt: UserMessage) -> anyhow::Result<RunHandle> {
        match self {
            Self::Bare { agent, history } => Ok(agent.run_on(std::mem::take(history), prompt).detach()),
            Self::Kept(kept) => {
                let ticket = kept.session.push(prompt.text).map_err(|error| Usage(error.to_string()))?;
                ticket.recorded().await.context("the store did not take the prompt")?;
                kept.started().await
            }
        }
    }

    /// Takes the turn up again that ended early; none if there is none, or it waits for a decision.
    pub(crate) async fn resume(&mut self) -> anyhow::Result<Option<RunHandle>> {
        match self {
            Self::Bare { .. } => Ok(None),
            Self::Kept(kept) => {
                // A decision that was taken meanwhile takes the turn up by itself.
                let decided = kept.has_decided().await;
                if decided || kept.session.resume().await {
                    return kept.started().await.map(Some);
                }
                Ok(None)
            }
        }
    }

    /// How many questions wait for a decision.
    pub(crate) async fn open_questions(&self) -> usize {
        let Self::Kept(kept) = self else { return 0 };
        let rows = kept.store.approvals(&kept.id).await.unwrap_or_default();
        rows.iter().filter(|row| row.state == ApprovalState::Open).count()
    }

    /// Whether somebody has stopped the session: no further turn begins.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self, Self::Kept(kept) if kept.session.is_done())
    }

    /// The turn is over.
    pub(crate) fn after(&mut self, outcome: &Outcome) {
        if let Self::Bare { history, .. } = self {
            *history = outcome.history().clone();
        }
    }

    /// Gives the session back to the store.
    pub(crate) async fn close(self) {
        if let Self::Kept(kept) = self {
            drop(kept.session.stop(SessionStop::at_turn_end()));
            drop(kept.session.done().await);
        }
    }
}

impl Kept {
    /// Whether a decision waits to be acted on.
    async fn has_decided(&self) -> bool {
        let rows = self.store.approvals(&self.id).await.unwrap_or_default();
        rows.iter().any(|row| matches!(row.state, ApprovalState::Decided { used: Use::Waiting, .. }))
    }

    /// Waits for the next turn to begin.
    async fn started(&mut self) -> anyhow::Result<RunHandle> {
        while let Some(event) = self.events.next().await {
            match event.kind {
                SessionEvent::TurnStarted { run, .. } => return Ok(run),
                SessionEvent::Fate { fate: Fate::Unhandled, .. } => {
                    let exit = self.session.done().await;
                    let cause = exit.cause().unwrap_or("a stop was asked before it began");
                    anyhow::bail!("the session was stopped before this turn: {cause}");
                }
                _ => {}
            }
        }
        let exit = self.session.done().await;
        anyhow::bail!("the session ended: {:?}", exit.reason())
    }
}

/// Opens the store at `path`, or the usual one.
///
/// # Errors
/// If there is no place for it, or it cannot be used.
pub(crate) fn open_store(path: Option<PathBuf>) -> anyhow::Result<Arc<dyn Store>> {
    let path = path.map_or_else(usual_store, Ok)?;
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("the folder {} cannot be made", folder.display()))?;
    }
    let store =
        SqliteStore::open(&path).with_context(|| format!("the store {} cannot be opened", path.display()))?;
    Ok(Arc::new(store))
}

/// The same, but where there is no such file, or no place for one, it is not made: there is none.
///
/// # Errors
/// If it cannot be used.
pub(crate) fn existing_store(path: Option<PathBuf>) -> anyhow::Result<Option<Arc<dyn Store>>> {
    let path = match path.map_or_else(usual_store, Ok) {
        Ok(path) => path,
        Err(_no_home) => return Ok(None),
    };
    if path.exists() { open_store(Some(path)).map(Some) } else { Ok(None) }
}

/// Whether there is such a file: commands that only look do not make one.
pub(crate) fn store_is_there(path: Option<&std::path::Path>) -> bool {
    match path {
        Some(path) => path.exists(),
        None => usual_store().is_ok_and(|path| path.exists()),
    }
}

/// `$XDG_DATA_HOME/safepoint/store.db`, or the same under `~/.local/share`.
fn usual_store() -> anyhow::Result<PathBuf> {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    let Some(data) = data.or_else(home) else {
        return Err(Usage("there is no home directory for the store; name a file with --store".into()).into());
    };
    Ok(data.join("safepoint").join("store.db"))
}

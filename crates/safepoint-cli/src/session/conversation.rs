//! What turns are part of: a history in memory, or a session that a store keeps.

use std::sync::Arc;

use anyhow::Context as _;
use safepoint::{
    Agent, History, Outcome, RunHandle, Session, SessionHandle,
    ids::{ItemId, SessionId},
    message::UserMessage,
    session::{ChatPlanner, OnTurnFailure, Push, SessionBuilder, SessionStop},
    store::{self, Store},
};
use safepoint_tools::process::Deadline;

use crate::{
    args::run::RunArgs,
    exit::{HeldElsewhere, NoSession},
    session::{
        stored::{NextTurn, StoredSession, Turn},
        survivors,
    },
    settings::{AgentSettings, store::open_store},
    signals::LAST_CAP,
};

/// A sequence of turns. Exhaustive: in memory, or in a store.
pub(crate) enum Conversation {
    Bare { agent: Box<Agent>, history: History, turns: u64, begun: Option<RunHandle> },
    Stored(Box<StoredSession>),
}

/// A handle of the session for use while a caller waits for its turn.
pub(crate) struct EarlyStop {
    session: SessionHandle<String>,
    said: Option<ItemId>,
}

/// What a command does first with the session. Exhaustive: it resumes a session that exists, or says this in
/// one that it creates if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First<'a> {
    Resume,
    Prompt(&'a str),
}

impl Conversation {
    /// Opens what the command line names: a session if there is `--session` or `--store`. Its commands end with its lease.
    /// A session that does not exist yet is created together with its first prompt.
    pub(crate) async fn open(
        (args, settings): (&RunArgs, &AgentSettings),
        agent: Agent,
        first: First<'_>,
        deadline: Deadline,
    ) -> anyhow::Result<Self> {
        if args.session.is_none() && args.store.is_none() {
            return Ok(Self::Bare { agent: Box::new(agent), history: History::new(), turns: 0, begun: None });
        }
        let id = args.session.as_deref().map_or_else(SessionId::fresh, SessionId::from);
        let store = open_store(args.store.clone()).await?;
        if first == First::Resume
            && let Err(store::Error::NoSession(_)) = store.open(&id).await
        {
            return Err(NoSession(id).into());
        }
        // The person who types the next prompt has seen that the last turn failed.
        let mut builder = Session::builder(ChatPlanner::new(agent)).on_failure(OnTurnFailure::Continue);
        if let Some(setup) = &settings.remembered {
            builder = builder.setup(setup);
        }
        let push = match first {
            First::Prompt(text) => Some(Push::new(text.to_owned())),
            First::Resume => None,
        };
        let (session, first) = own(builder, deadline, (&store, &id), push).await?;
        let epoch = store.open(&id).await?.epoch;
        Ok(Self::Stored(Box::new(StoredSession::new((session, first), (id, epoch), store))))
    }

    /// The stored session, if there is one.
    pub(crate) fn stored(&self) -> Option<&StoredSession> {
        match self {
            Self::Bare { .. } => None,
            Self::Stored(stored) => Some(stored),
        }
    }

    /// Says this; its turn is one of the next.
    pub(crate) fn say(&mut self, prompt: UserMessage) -> anyhow::Result<()> {
        match self {
            Self::Bare { agent, history, turns, begun } => {
                *turns += 1;
                *begun = Some(agent.run_on(std::mem::take(history), prompt).detach());
                Ok(())
            }
            Self::Stored(stored) => stored.say(prompt.text),
        }
    }

    /// Resumes the turn that ended early, and what waits.
    pub(crate) fn resume(&mut self) {
        if let Self::Stored(stored) = self {
            stored.resume();
        }
    }

    /// Waits for the next turn. The run continues until its handle stops it.
    ///
    /// # Errors
    /// If the store did not take the prompt, or the session failed.
    pub(crate) async fn next(&mut self) -> anyhow::Result<NextTurn> {
        match self {
            Self::Bare { begun, turns, .. } => {
                let number = *turns;
                Ok(begun.take().map_or(NextTurn::Nothing, |run| NextTurn::Own(Turn { number, run })))
            }
            Self::Stored(stored) => stored.next().await,
        }
    }

    /// What reaches it while its next turn is waited for.
    pub(crate) fn early_stop(&self) -> Option<EarlyStop> {
        let stored = self.stored()?;
        Some(EarlyStop { session: stored.session.handle(), said: stored.said() })
    }

    /// Whether a resumed session continues after the turn that has begun, because something waits. If not, that turn is
    /// the last one of this caller: items of other senders stay for the next owner.
    pub(crate) async fn continues(&mut self) -> bool {
        match self {
            Self::Bare { .. } => false,
            Self::Stored(stored) if stored.has_more().await => true,
            Self::Stored(stored) => {
                drop(stored.session.stop(SessionStop::at_turn_end()));
                false
            }
        }
    }

    /// Whether the session was stopped, so that no further turn begins.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self, Self::Stored(stored) if stored.session.is_done())
    }

    /// The turn is over.
    pub(crate) fn after(&mut self, outcome: &Outcome) {
        if let Self::Bare { history, .. } = self {
            *history = outcome.history().clone();
        }
    }

    /// Gives the session back to the store, before anything was said. The prompt that it was created with is
    /// withdrawn.
    pub(crate) async fn leave_unsaid(self) {
        if let Self::Stored(kept) = self {
            kept.leave_unsaid().await;
        }
    }

    /// Gives the session back to the store.
    pub(crate) async fn close(self) {
        if let Self::Stored(stored) = self {
            drop(stored.session.stop(SessionStop::at_turn_end()));
            drop(stored.session.done().await);
        }
    }
}

impl EarlyStop {
    /// Ends the session, and withdraws the prompt if no turn has it: nothing waits for its turn any more.
    pub(crate) fn leave(&self, stop: SessionStop) {
        let (session, said) = (self.session.clone(), self.said);
        tokio::spawn(async move {
            let stop = async { drop(session.stop(stop)) };
            match said {
                // The first is posted before the second.
                Some(item) => drop(futures_util::future::join(session.withdraw(item), stop).await),
                None => stop.await,
            }
        });
    }

    /// Ends it at once.
    pub(crate) fn end_now(&self) {
        drop(self.session.stop(SessionStop::now().cleanup_cap(LAST_CAP)));
    }
}

/// Becomes the owner of a session, whose commands end with its lease, and ends what a killed owner of it has
/// left running. A session that does not exist yet is created with the prompt that is said next, if there is one.
///
/// # Errors
/// [`HeldElsewhere`] if another process holds it; the store's.
pub(crate) async fn own(
    builder: SessionBuilder<String>,
    deadline: Deadline,
    (store, id): (&Arc<dyn Store>, &SessionId),
    first: Option<Push<String>>,
) -> anyhow::Result<(Session<String>, Option<Push<String>>)> {
    let dead = store.open(id).await.ok().as_ref().and_then(survivors::dead_holder);
    let builder = builder.on_lease(move |until| deadline.extend(until));
    let (kept, here) = (Arc::clone(store), store::OwnerProcess::here());
    let opened = match first {
        None => builder.open(kept, id.clone(), here).await.map(|session| (session, None)),
        Some(first) => {
            let opened = builder.open_with(kept, id.clone(), here, first).await;
            opened.map(|(session, first)| (session, Some(first)))
        }
    };
    let opened = match opened {
        Ok(opened) => opened,
        Err(error @ store::Error::Held(..)) => return Err(HeldElsewhere(error, id.clone()).into()),
        Err(error) => return Err(error).context(format!("the session {id} cannot be opened")),
    };
    // This process owns the session, so no other process looks for them.
    if let Some(dead) = dead {
        survivors::reap(dead).await;
    }
    Ok(opened)
}

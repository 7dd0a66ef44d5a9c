//! What a session shows: one sequenced stream over all its turns (S11.1).

use std::{sync::Arc, time::Duration};

use crate::{
    run::RunHandle,
    value::{
        event::{Event, StreamEvent},
        ids::{ItemId, TurnId},
        message::UserMessage,
        receipt::Receipt,
    },
};

use super::{
    lost_runs::LostRun,
    outcome::{ItemOutcome, PreemptOutcome},
    ticket::Delivery,
};

/// The kinds of event of a session.
///
/// ```
/// use safepoint::{SessionHandle, event::EventKind, session::SessionEvent};
/// async fn show(session: &SessionHandle<String>) {
///     let mut events = session.events();
///     while let Some(event) = events.next().await {
///         match event.kind {
///             SessionEvent::TurnStarted { turn, .. } => println!("{turn} begins"),
///             SessionEvent::Run { event, .. } => if let EventKind::Text(text) = event.kind { print!("{text}") },
///             SessionEvent::TurnEnded { receipt, .. } => println!("{receipt}"),
///             _ => {}
///         }
///     }
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SessionEvent {
    /// An item was accepted.
    Accepted(ItemId),
    /// It waits again.
    Requeued(ItemId),
    /// An item is blocked by a turn that waits for a decision (S8.1).
    Blocked {
        /// Which.
        item: ItemId,
        /// The suspended turn.
        turn: TurnId,
    },
    /// The planner is asked.
    Planning {
        /// What about: the turn that is to be resumed, or the number of a new one. Which turn begins is said by
        /// [`TurnStarted`](Self::TurnStarted).
        turn: TurnId,
    },
    /// A turn started.
    TurnStarted {
        /// Which.
        turn: TurnId,
        /// What it is about.
        items: Vec<ItemId>,
        /// Its run.
        run: RunHandle,
        /// What was said to begin it; nothing where an earlier turn continues. The conversation before it is
        /// [`SessionHandle::history`](crate::SessionHandle::history).
        input: Arc<[UserMessage]>,
    },
    /// An event of the turn's run.
    Run {
        /// Which turn.
        turn: TurnId,
        /// The event.
        event: Event,
    },
    /// An event of a background run that outlives its turn: as in [`Run`](Self::Run), with its path.
    Background {
        /// The turn that began it.
        turn: TurnId,
        /// The event.
        event: Event,
    },
    /// A background run of another owner ended with that owner and does not continue. Reported when the
    /// session is opened, until the model has learned of it too, with the next request of any turn (S9.1).
    BackgroundLost(LostRun),
    /// The turn was steered with an item.
    Steered {
        /// With which.
        item: ItemId,
        /// And where it was delivered.
        delivered: Delivery,
    },
    /// A preempt was answered.
    Preempted {
        /// The item that came with it.
        item: ItemId,
        /// Its status.
        preempted: PreemptOutcome,
    },
    /// An item came to rest.
    ItemSettled {
        /// Which.
        item: ItemId,
        /// Where.
        fate: ItemOutcome,
    },
    /// The session was asked to stop.
    StopRequested {
        /// What was said.
        cause: Option<String>,
        /// For how long it is to have been idle before that; none: the stop begins at once.
        once_idle_for: Option<Duration>,
    },
    /// A turn is settled.
    TurnEnded {
        /// Which.
        turn: TurnId,
        /// How.
        fate: ItemOutcome,
        /// The account.
        receipt: Arc<Receipt>,
    },
    /// Nothing of the turn is alive, background runs included, or what is alive has been named. The next turn
    /// may start.
    TurnQuiet {
        /// Which.
        turn: TurnId,
        /// What is alive.
        survivors: Vec<String>,
        /// The account, now that this is known: [`Receipt::quiet_at`] and the survivors.
        receipt: Arc<Receipt>,
    },
    /// An item in the store that this release cannot read, or that was altered there. It is not delivered, and stays there.
    Unreadable {
        /// Its number.
        number: u64,
        /// Why.
        why: String,
    },
    /// This reader lagged behind.
    Missed(u64),
    /// The session is over: the last event.
    Ended,
}

impl StreamEvent for SessionEvent {
    fn is_provisional(&self) -> bool {
        matches!(self, Self::Run { event, .. } | Self::Background { event, .. } if event.kind.is_provisional())
    }
    fn weight(&self) -> usize {
        match self {
            Self::Run { event, .. } | Self::Background { event, .. } => event.kind.weight(),
            _ => 0,
        }
    }
    fn missed(count: u64) -> Self {
        Self::Missed(count)
    }
}

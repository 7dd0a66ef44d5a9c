//! What a turn is about (S6.1).

use futures_core::future::BoxFuture;
use safepoint_scope::Failure;

use super::{Item, PlanRequest, PreemptedItems};
use crate::{
    agent::Agent,
    value::{
        history::History,
        ids::{ItemId, TurnId},
        message::UserMessage,
    },
};

/// Turns waiting items into turns.
///
/// The default for chat is [`ChatPlanner`]: one message a turn. An error or a panic ends the session with every item
/// accounted for (S6.9).
pub trait Planner<T>: Send + Sync + 'static {
    /// Decides what comes next.
    ///
    /// # Errors
    /// Any error ends the session.
    ///
    /// # Cancel safety
    /// A stop of the session, a preempt, or a withdrawal drops the future. Nothing was taken by then, and the
    /// planner is asked again.
    fn plan(&self, situation: PlanContext<T>) -> BoxFuture<'_, Result<Plan, Failure>>;

    /// What an item says to a turn that is steered with it.
    fn steer(&self, item: &T) -> UserMessage;

    /// Whether an item holds nothing that a model could answer. Such an item is refused when it is pushed.
    /// Called on the thread of the caller. Default: false.
    fn is_blank(&self, item: &T) -> bool {
        let _ = item;
        false
    }

    /// The agent that resumes a turn which another process began. `None`: this process cannot resume it.
    fn resumes(&self, turn: TurnId) -> Option<Agent> {
        let _ = turn;
        None
    }

    /// What happens to the items of a preempted turn. Their messages stay in the history in any case.
    fn preempted(&self, turn: TurnId, items: &[ItemId]) -> PreemptedItems {
        let (_, _) = (turn, items);
        PreemptedItems::Drop
    }
}

/// What a planner sees.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlanContext<T> {
    /// The number of the turn that a plan for a new one begins.
    pub turn: TurnId,
    /// What waits, in the order in which it came.
    pub waiting: Vec<QueuedItem<T>>,
    /// The last turn, if it ended early and can be resumed.
    pub ended_early: Option<TurnId>,
    /// Whether a caller asked for exactly that.
    pub wanted: PlanRequest,
    /// The conversation so far.
    pub history: History,
}

/// One item that waits.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QueuedItem<T> {
    /// Its position.
    pub id: ItemId,
    /// The item.
    pub item: T,
    /// How it came.
    pub came: Arrival,
}

/// How an item arrived. Exhaustive: to wait for its turn, or to replace the running turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrival {
    /// It waits for its turn. So does an item that a turn had before, however it arrived.
    #[default]
    Queued,
    /// With a preempt or a rollback, whether or not there was a turn to stop.
    Preempting,
}

/// What comes next. Exhaustive: a new turn, the last one again, or nothing until something is pushed.
#[derive(Debug)]
pub enum Plan {
    /// A new turn. If it takes no items, nothing happens until something is pushed.
    Turn(TurnPlan),
    /// The turn that ended early resumes.
    Resume,
    /// Nothing.
    Wait,
}

/// A planned turn.
#[derive(Debug)]
pub struct TurnPlan {
    /// The agent of the turn.
    pub agent: Agent,
    /// The input, as one or more user messages. Without a message, or with a blank one, the planner has
    /// failed.
    pub input: Vec<UserMessage>,
    /// The items that it is about: they wait no more.
    pub take: Vec<ItemId>,
    /// Items to drop unhandled.
    pub drop: Vec<ItemId>,
}

/// One message a turn, always the same agent. Items with a preempt or a rollback come before the queue, in
/// order.
///
/// ```
/// use safepoint::{Agent, Session, session::ChatPlanner};
/// /// A chat in memory: each message that is pushed is one turn of this agent.
/// fn chat(agent: Agent) -> Session<String> {
///     Session::builder(ChatPlanner::new(agent)).start()
/// }
/// ```
#[derive(Clone, Debug)]
pub struct ChatPlanner {
    agent: Agent,
}

impl ChatPlanner {
    /// A chat with this agent.
    #[must_use]
    pub fn new(agent: Agent) -> Self {
        Self { agent }
    }
}

impl<T: Item + Into<UserMessage>> Planner<T> for ChatPlanner {
    fn plan(&self, situation: PlanContext<T>) -> BoxFuture<'_, Result<Plan, Failure>> {
        let PlanContext { mut waiting, wanted, .. } = situation;
        // A preempt does not mean that the queue should continue.
        waiting.sort_by_key(|waiting| waiting.came == Arrival::Queued);
        let plan = match (wanted, waiting.into_iter().next()) {
            (PlanRequest::Resume, _) => Plan::Resume,
            (PlanRequest::Any, None) => Plan::Wait,
            (PlanRequest::Any, Some(QueuedItem { id, item, .. })) => Plan::Turn(TurnPlan {
                agent: self.agent.clone(),
                input: vec![item.into()],
                take: vec![id],
                drop: Vec::new(),
            }),
        };
        Box::pin(std::future::ready(Ok(plan)))
    }

    fn steer(&self, item: &T) -> UserMessage {
        item.clone().into()
    }

    fn is_blank(&self, item: &T) -> bool {
        let said: UserMessage = item.clone().into();
        said.is_blank()
    }

    fn resumes(&self, _turn: TurnId) -> Option<Agent> {
        Some(self.agent.clone())
    }
}

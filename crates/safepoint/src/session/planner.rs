//! Who decides what a turn is about (S6.1).

use futures_core::future::BoxFuture;
use safepoint_scope::Failure;

use super::{Item, PreemptedItems, machine};
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
    /// Says what comes next.
    ///
    /// # Errors
    /// Any error ends the session.
    ///
    /// # Cancel safety
    /// A stop of the session, a preempt, or a withdrawal drops the future; nothing was taken, and it is asked again.
    fn plan(&self, situation: PlanContext<T>) -> BoxFuture<'_, Result<Plan, Failure>>;

    /// What an item says to a turn that is steered with it.
    fn steer(&self, item: &T) -> UserMessage;

    /// Whether there is nothing in an item that a model could answer: it is refused at the door. Asked by whoever
    /// pushes, in his own thread. Default: there always is.
    fn is_blank(&self, item: &T) -> bool {
        let _ = item;
        false
    }

    /// Who takes up a turn that another process began. None: it cannot be taken up here.
    fn resumes(&self, turn: TurnId) -> Option<Agent> {
        let _ = turn;
        None
    }

    /// What becomes of the items of a turn that was preempted. Their messages stay in the history in any case.
    fn preempted(&self, turn: TurnId, items: &[ItemId]) -> PreemptedItems {
        let (_, _) = (turn, items);
        PreemptedItems::Drop
    }
}

/// What a planner sees.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlanContext<T> {
    /// What waits, in the order in which it came.
    pub waiting: Vec<QueuedItem<T>>,
    /// The last turn, if it ended early and can be taken up again.
    pub ended_early: Option<TurnId>,
    /// Whether somebody asked for exactly that.
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

/// How an item came. Exhaustive: to wait for its turn, or to take the place of the turn at work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrival {
    /// It waits its turn. So does an item that a turn had before, whichever way it came.
    #[default]
    Queued,
    /// With a preempt or a rollback, whether there was a turn to hit or not.
    Preempting,
}

/// What is asked of a planner. Exhaustive: whatever it likes, or a resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanRequest {
    /// Whatever it likes.
    Any,
    /// The turn that ended early.
    Resume,
}

impl From<machine::Wanted> for PlanRequest {
    fn from(wanted: machine::Wanted) -> Self {
        match wanted {
            machine::Wanted::Any => Self::Any,
            machine::Wanted::Resume => Self::Resume,
        }
    }
}

/// What comes next. Exhaustive: a new turn, the last one again, or nothing before something is pushed.
#[derive(Debug)]
pub enum Plan {
    /// A new turn. If it takes nothing, nothing happens before something is pushed.
    Turn(TurnPlan),
    /// The turn that ended early goes on where it was.
    Resume,
    /// Nothing.
    Wait,
}

/// A turn to be.
#[derive(Debug)]
pub struct TurnPlan {
    /// Who does it.
    pub agent: Agent,
    /// What it is told, as one or more messages of a person. With none, or a blank one, the planner has failed.
    pub input: Vec<UserMessage>,
    /// The items that it is about: they wait no more.
    pub take: Vec<ItemId>,
    /// Items that nobody handles.
    pub drop: Vec<ItemId>,
}

/// One message a turn, always the same agent. What came with a preempt or a rollback goes before the queue, in its order.
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
        // Whoever preempts does not mean that the queue is to go on.
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

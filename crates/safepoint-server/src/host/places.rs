//! Places for running turns: a turn waits for one before it begins, and a stop ends that wait (S6.9).

use std::sync::{Arc, Mutex, MutexGuard};

use futures_core::future::BoxFuture;
use futures_util::FutureExt as _;
use safepoint::{
    Agent,
    ids::TurnId,
    message::UserMessage,
    session::{ChatPlanner, Plan, PlanContext, Planner},
    stop::Failure,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The place of one session, while a turn of it runs.
#[derive(Clone, Debug)]
pub(super) struct RunningPlace {
    all: Arc<Semaphore>,
    /// Held for one look or one entry; no other lock is taken under it.
    held: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl RunningPlace {
    pub(super) fn among(all: &Arc<Semaphore>) -> Self {
        Self { all: Arc::clone(all), held: Arc::default() }
    }

    /// Waits for it, unless the session has it.
    async fn take(&self) {
        if self.held().is_some() {
            return;
        }
        let taken = Arc::clone(&self.all).acquire_owned().await.expect("the host closes no places");
        *self.held() = Some(taken);
    }

    /// The turn is over.
    pub(super) fn leave(&self) {
        drop(self.held().take());
    }

    fn held(&self) -> MutexGuard<'_, Option<OwnedSemaphorePermit>> {
        self.held.lock().expect("no code under this lock panics")
    }
}

/// One message a turn, which begins once it has a place.
#[derive(Debug)]
pub(super) struct PlacedPlanner {
    chat: ChatPlanner,
    place: RunningPlace,
}

impl PlacedPlanner {
    pub(super) fn new(agent: Agent, place: RunningPlace) -> Self {
        Self { chat: ChatPlanner::new(agent), place }
    }

    fn chat(&self) -> &dyn Planner<String> {
        &self.chat
    }
}

impl Planner<String> for PlacedPlanner {
    fn plan(&self, situation: PlanContext<String>) -> BoxFuture<'_, Result<Plan, Failure>> {
        async move {
            let plan = self.chat().plan(situation).await?;
            if !matches!(plan, Plan::Wait) {
                self.place.take().await;
            }
            Ok(plan)
        }
        .boxed()
    }

    fn steer(&self, item: &String) -> UserMessage {
        self.chat().steer(item)
    }

    fn is_blank(&self, item: &String) -> bool {
        self.chat().is_blank(item)
    }

    fn resumes(&self, turn: TurnId) -> Option<Agent> {
        self.chat().resumes(turn)
    }
}

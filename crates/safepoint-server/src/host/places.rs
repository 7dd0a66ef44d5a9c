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

use super::traces::SessionTraces;

/// The place of one session, while a turn of it runs.
#[derive(Clone, Debug)]
pub(super) struct RunningPlace {
    all: Arc<Semaphore>,
    /// Held for one look or one entry; no other lock is taken under it.
    held: Arc<Mutex<Option<(TurnId, OwnedSemaphorePermit)>>>,
}

impl RunningPlace {
    pub(super) fn among(all: &Arc<Semaphore>) -> Self {
        Self { all: Arc::clone(all), held: Arc::default() }
    }

    /// Waits for it. A session that has that of an earlier turn, which is over, keeps it for this one.
    async fn take(&self, turn: TurnId) {
        if let Some((of, _)) = &mut *self.held() {
            *of = turn;
            return;
        }
        let taken = Arc::clone(&self.all).acquire_owned().await.expect("the host closes no places");
        *self.held() = Some((turn, taken));
    }

    /// This turn is over. That may be learned when the next one has the place already.
    pub(super) fn leave(&self, turn: TurnId) {
        drop(self.held().take_if(|(of, _)| *of == turn));
    }

    /// Whether a turn has it.
    fn is_taken(&self) -> bool {
        self.held().is_some()
    }

    /// The session is over.
    pub(super) fn leave_for_good(&self) {
        drop(self.held().take());
    }

    fn held(&self) -> MutexGuard<'_, Option<(TurnId, OwnedSemaphorePermit)>> {
        self.held.lock().expect("no code under this lock panics")
    }
}

/// One message a turn, which begins once it has a place.
#[derive(Debug)]
pub(super) struct PlacedPlanner {
    chat: ChatPlanner,
    place: RunningPlace,
    traces: SessionTraces,
}

impl PlacedPlanner {
    pub(super) fn new(agent: Agent, place: RunningPlace, traces: SessionTraces) -> Self {
        Self { chat: ChatPlanner::new(agent), place, traces }
    }

    fn chat(&self) -> &dyn Planner<String> {
        &self.chat
    }
}

impl Planner<String> for PlacedPlanner {
    fn plan(&self, situation: PlanContext<String>) -> BoxFuture<'_, Result<Plan, Failure>> {
        async move {
            let (new, left) = (situation.turn, situation.ended_early);
            let texts: Vec<_> =
                situation.waiting.iter().map(|item| (item.id, self.traces.key(&item.item))).collect();
            let mut plan = self.chat().plan(situation).await?;
            match &mut plan {
                Plan::Wait => {}
                Plan::Resume => self.place.take(left.unwrap_or(new)).await,
                Plan::Turn(turn) => {
                    self.place.take(new).await;
                    // Last: what is dropped before has taken nothing.
                    let taken = texts.iter().filter(|(item, _)| turn.take.contains(item));
                    turn.agent = self.traces.below(turn.agent.clone(), taken.map(|(_, text)| *text));
                }
            }
            Ok(plan)
        }
        .boxed()
    }

    fn steer(&self, item: &String) -> UserMessage {
        if self.place.is_taken() {
            self.traces.steered(item);
        }
        self.chat().steer(item)
    }

    fn is_blank(&self, item: &String) -> bool {
        self.chat().is_blank(item)
    }

    fn resumes(&self, turn: TurnId) -> Option<Agent> {
        self.chat().resumes(turn)
    }
}

//! The planner of a chat: each turn is done by whatever its agent is now.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use safepoint::{
    Agent,
    ids::TurnId,
    message::UserMessage,
    session::{ChatPlanner, Plan, PlanContext, Planner},
    stop::Failure,
};

use super::current::CurrentAgent;
use crate::{render::chat::compact, sync::lock};

/// Plans turns with the current agent.
pub(crate) struct CurrentPlanner(pub(crate) Arc<CurrentAgent>);

impl Planner<String> for CurrentPlanner {
    fn plan(&self, situation: PlanContext<String>) -> BoxFuture<'_, Result<Plan, Failure>> {
        Box::pin(async move {
            let number = situation.turn;
            let mut plan = ChatPlanner::new(self.0.next().await).plan(situation).await?;
            if let Plan::Turn(turn) = &mut plan {
                if let Some(keep) = turn.input.first().and_then(|message| compact::keep(&message.text)) {
                    turn.agent = self.0.compacting(keep);
                    *lock(&self.0.compacts) = Some((number, keep.to_owned()));
                }
                turn.input.iter_mut().for_each(|message| self.0.attached.put_into(message));
            }
            Ok(plan)
        })
    }

    fn steer(&self, item: &String) -> UserMessage {
        let mut message = item.as_str().into();
        self.0.attached.put_into(&mut message);
        message
    }

    fn resumes(&self, turn: TurnId) -> Option<Agent> {
        let compacts = lock(&self.0.compacts).clone().filter(|(number, _)| *number == turn);
        Some(compacts.map_or_else(|| self.0.agent(), |(_, keep)| self.0.compacting(&keep)))
    }
}

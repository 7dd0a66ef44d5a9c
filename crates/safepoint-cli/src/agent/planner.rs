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

use super::{current::CurrentAgent, own_turn::OwnTurn};
use crate::{
    render::chat::{asked, compact},
    sync::lock,
};

/// Plans turns with the current agent.
pub(crate) struct CurrentPlanner(pub(crate) Arc<CurrentAgent>);

impl Planner<String> for CurrentPlanner {
    fn plan(&self, situation: PlanContext<String>) -> BoxFuture<'_, Result<Plan, Failure>> {
        Box::pin(async move {
            let number = situation.turn;
            let mut plan = ChatPlanner::new(self.0.next().await).plan(situation).await?;
            if let Plan::Turn(turn) = &mut plan {
                if let Some(own) = turn.input.first().and_then(|message| own_turn(&message.text)) {
                    turn.agent = self.agent(&own).map_err(|why| Failure::new(format!("{why:#}")))?;
                    *lock(&self.0.own_turn) = Some((number, own));
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
        let own = lock(&self.0.own_turn).clone().filter(|(number, _)| *number == turn);
        own.map_or_else(|| Some(self.0.agent()), |(_, own)| self.agent(&own).ok())
    }
}

impl CurrentPlanner {
    fn agent(&self, own: &OwnTurn) -> anyhow::Result<Agent> {
        match own {
            OwnTurn::Compacts(keep) => Ok(self.0.compacting(keep)),
            OwnTurn::Reviews => self.0.reviewing(),
        }
    }
}

/// What a turn with this message does, if another agent does it than the usual one.
fn own_turn(message: &str) -> Option<OwnTurn> {
    let reviews = asked::is_review(message).then_some(OwnTurn::Reviews);
    compact::keep(message).map(|keep| OwnTurn::Compacts(keep.to_owned())).or(reviews)
}

//! What may happen next in a world.

use super::{
    Input, ItemId, ItemPlace, PlanResult, PreemptedItems, PushKind, QueueAfterStop, Strength, TurnEnd,
    TurnId, World, WorldStep,
};

impl World {
    /// All that may happen next.
    pub(in super::super) fn steps(&self, pushes: &[PushKind]) -> Vec<WorldStep> {
        let mut all = Vec::new();
        if self.ended {
            return all;
        }
        if self.budget.pushes > 0 {
            all.extend(pushes.iter().map(|how| WorldStep::Come(*how)));
        }
        if self.budget.stops > 0 {
            all.extend([Strength::AtTurnEnd, Strength::Graceful, Strength::Now].map(WorldStep::Stop));
        }
        all.extend((!self.mail.is_empty()).then_some(WorldStep::Deliver));
        all.extend(self.inputs().into_iter().map(WorldStep::Happen));
        all
    }

    pub(super) fn inputs(&self) -> Vec<Input> {
        let mut all = Vec::new();
        let left = self.budget;
        if left.stops > 0 {
            all.extend([Input::StopWhenIdle(4), Input::WithdrawIdleStop]);
        }
        if left.stop_turns > 0 {
            all.extend([Input::StopTurn(None), Input::StopTurn(Some(TurnId::new(1)))]);
        }
        if left.stop_items > 0 {
            let queues = [QueueAfterStop::Holds, QueueAfterStop::Continues];
            all.extend(
                (0..=self.seen_items().number())
                    .flat_map(|n| queues.map(|queue| Input::StopItem(ItemId::new(n), queue))),
            );
        }
        if left.resumes > 0 {
            all.extend([Input::Resume, Input::Decided]);
        }
        if left.withdraws > 0 {
            all.extend((0..self.seen_items().number()).map(|n| Input::Withdraw(ItemId::new(n))));
            let steered =
                (0..self.places.len()).filter(|n| matches!(self.places[*n], ItemPlace::Steering(_)));
            all.extend(steered.map(|n| Input::SteerReturned(ItemId::new(n as u64))));
        }
        if left.ticks > 0 && self.machine.deadline().is_some() {
            all.push(Input::Tick);
        }
        if left.breaks > 0 {
            all.push(Input::Broke);
        }
        if left.asides > 0 && self.run.is_some() && !self.has_background {
            all.push(Input::Background { is_alive: true });
        }
        if self.has_background {
            all.push(Input::Background { is_alive: false });
        }
        self.add_answers(&mut all);
        all
    }

    /// What planner, run and reader may answer.
    pub(super) fn add_answers(&self, all: &mut Vec<Input>) {
        if let Some((plan, waiting, left)) = &self.plan {
            let mades = [
                PlanResult::Turn { take: waiting.clone(), drop: Vec::new() },
                PlanResult::Turn {
                    take: waiting.iter().take(1).copied().collect(),
                    drop: waiting.iter().skip(1).copied().collect(),
                },
                PlanResult::Wait,
            ];
            all.extend(mades.map(|made| Input::Planned(*plan, made)));
            if left.is_some() && self.budget.resumes > 0 {
                all.push(Input::Planned(*plan, PlanResult::Resume));
            }
            if self.budget.breaks > 0 {
                // It names what is not there, or twice what is.
                let unknown = vec![ItemId::new(self.places.len() as u64)];
                let twice: Vec<ItemId> = waiting.iter().chain(waiting).copied().collect();
                all.extend(
                    [unknown, twice]
                        .map(|take| Input::Planned(*plan, PlanResult::Turn { take, drop: Vec::new() })),
                );
            }
            // One that was dropped may still answer.
            all.push(Input::Planned(plan - 1, PlanResult::Wait));
        }
        if let Some(turn) = self.run {
            all.extend((!self.at_work.is_read).then_some(Input::Read(turn)));
            let mut ends = vec![TurnEnd::Done, TurnEnd::Failed, TurnEnd::Suspended, TurnEnd::Stopped];
            if self.at_work.is_preempted {
                ends.extend([PreemptedItems::Drop, PreemptedItems::Requeue].map(TurnEnd::Preempted));
            }
            all.extend(ends.into_iter().map(|end| Input::Settled(turn, end)));
            let steered = (0..self.places.len()).filter(|n| self.places[*n] == ItemPlace::Steering(turn));
            all.extend(steered.map(|n| Input::SteerTaken(turn, ItemId::new(n as u64))));
        }
        if let Some((turn, quiet, read)) = self.winding {
            all.extend((!quiet).then_some(Input::Quiet(turn)));
            all.extend((!read).then_some(Input::Read(turn)));
        }
    }
}

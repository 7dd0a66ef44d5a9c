//! The planner: runs in its own task, and is dropped by whatever overtakes it.

use safepoint_scope::DropHandle;

use super::{Driver, ErrorReport, Input, Item, ItemId, Request, SessionEvent, SessionMessage, TurnId};
use crate::session::{
    machine::{PlanRequest, PlanResult},
    planner::{Plan, PlanContext, QueuedItem, TurnPlan},
};
use crate::{
    sync::callback::{self, Panicked},
    value::message::UserMessage,
};

/// The planner's current request.
#[derive(Default)]
pub(super) struct Planning {
    pub(super) planner: Option<DropHandle>,
}

impl<T: Item> Driver<T> {
    pub(super) fn ask_planner(
        &mut self,
        plan: u64,
        waiting: &[ItemId],
        left: Option<TurnId>,
        wanted: PlanRequest,
    ) {
        self.show(SessionEvent::Planning);
        let copied = callback::call(|| {
            let held = waiting.iter().filter_map(|id| self.items.held.get(id).map(|held| (*id, held)));
            held.map(|(id, held)| QueuedItem { id, item: held.item.clone(), came: held.came }).collect()
        });
        let waiting = match copied {
            Ok(waiting) => waiting,
            Err(Panicked(why)) => {
                let made = Err(report("copying an item panicked", &why));
                return self.cx.shared.mailbox.post(SessionMessage::Planned { plan, made });
            }
        };
        let situation =
            PlanContext { waiting, ended_early: left, wanted, history: self.turns.history.clone() };
        let planner = self.cx.settings.planner.clone();
        let mailbox = self.cx.shared.mailbox.clone();
        let asked = self.cx.scope.spawn("planner", async move {
            let made = match planner.run(move |planner| planner.plan(situation)).await {
                Ok(planned) => planned.map_err(|failure| report("the planner failed", &failure.to_string())),
                Err(Panicked(why)) => Err(report("the planner panicked", &why)),
            };
            mailbox.post(SessionMessage::Planned { plan, made });
        });
        self.planning.planner = Some(asked.dropper());
    }

    pub(super) async fn planned(&mut self, plan: u64, made: Result<Plan, ErrorReport>) {
        if !self.machine.is_planning(plan) {
            return;
        }
        self.planning.planner = None;
        let mut request = Request::None;
        let made = match made {
            Err(error) => return self.broke(error).await,
            Ok(Plan::Wait) => PlanResult::Wait,
            Ok(Plan::Resume) => PlanResult::Resume,
            Ok(Plan::Turn(TurnPlan { input, take, .. }))
                if !take.is_empty() && (input.is_empty() || input.iter().any(UserMessage::is_blank)) =>
            {
                return self.broke(report("the planner failed", "it planned a turn that says nothing")).await;
            }
            Ok(Plan::Turn(turn)) => {
                let made = PlanResult::Turn { take: turn.take.clone(), drop: turn.drop.clone() };
                if let Some(item) = self.machine.stranger(&made) {
                    // The machine ends the session for this error.
                    let why = format!("its plan names {item}, which does not wait, or names it twice");
                    self.fail(report("the planner failed", &why));
                }
                request = Request::Plan(Box::new(turn));
                made
            }
        };
        self.ask(Input::Planned { plan, made }, request).await;
    }
}

pub(super) fn report(what: &str, why: &str) -> ErrorReport {
    ErrorReport { code: "callback".into(), message: format!("{what}: {why}"), hint: None }
}

pub(super) fn store_report(error: &crate::contract::store::Error) -> ErrorReport {
    ErrorReport { code: "store".into(), message: error.to_string(), hint: None }
}

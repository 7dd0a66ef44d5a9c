//! What users' code decides: the planner, which runs in its own task and is dropped by whatever overtakes it, and
//! push strategies, which are asked while nothing else happens, so that what they saw still holds when they have
//! chosen (S6.4).

use std::sync::Arc;

use futures_util::future::{Either, select};
use safepoint_scope::TaskEnd;

use super::{
    Driver, ErrorReport, Input, Item, ItemId, Policy, Request, SessionEvent, SessionMessage, TicketState,
    TurnId, report,
};
use crate::{
    session::{
        machine::{PlanRequest, PlanResult},
        message::Strategy,
        planner::{Plan, PlanContext, QueuedItem, TurnPlan},
        stop::StopWhen,
    },
    sync::callback::{self, Panicked},
    value::message::UserMessage,
};

impl<T: Item> Driver<T> {
    pub(super) fn ask_planner(
        &mut self,
        plan: u64,
        waiting: &[ItemId],
        left: Option<TurnId>,
        wanted: PlanRequest,
    ) {
        let turn = self.machine.next_turn();
        let about = left.filter(|_| wanted == PlanRequest::Resume).unwrap_or(turn);
        self.show(SessionEvent::Planning { turn: about });
        let copied = callback::call(|| {
            let held = waiting.iter().filter_map(|id| self.items.held.get(id).map(|held| (*id, held)));
            held.map(|(id, held)| QueuedItem { id, item: held.item.clone(), came: held.arrival }).collect()
        });
        let waiting = match copied {
            Ok(waiting) => waiting,
            Err(Panicked(why)) => {
                let made = Err(report("copying an item panicked", &why));
                return self.cx.shared.mailbox.post(SessionMessage::Planned(plan, made));
            }
        };
        let history = self.turns.history.clone();
        let situation = PlanContext { turn, waiting, ended_early: left, wanted, history };
        let planner = self.cx.shared.planner.clone();
        let mailbox = self.cx.shared.mailbox.clone();
        let asked = self.cx.scope.spawn("planner", async move {
            let made = match planner.run(move |planner| planner.plan(situation)).await {
                Ok(planned) => planned.map_err(|failure| report("the planner failed", &failure.to_string())),
                Err(Panicked(why)) => Err(report("the planner panicked", &why)),
            };
            mailbox.post(SessionMessage::Planned(plan, made));
        });
        self.planner = Some(asked.dropper());
    }

    pub(super) async fn planned(&mut self, plan: u64, made: Result<Plan, ErrorReport>) {
        if !self.machine.is_planning(plan) {
            return;
        }
        self.planner = None;
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
                if let Some(item) = self.machine.wrong_item(&made) {
                    // The machine ends the session for this error.
                    let why = format!("its plan names {item}, which does not wait, or names it twice");
                    self.fail(report("the planner failed", &why));
                }
                request = Request::Plan(Box::new(turn));
                made
            }
        };
        self.step_with(Input::Planned(plan, made), request).await;
    }

    /// An item whose policy its strategy chooses.
    pub(super) async fn push_with_strategy(
        &mut self,
        item: T,
        ticket: Arc<TicketState<T>>,
        strategy: Strategy,
    ) {
        if let Some((item, policy)) = self.ask_strategy((item, &ticket), strategy).await
            && let Some(item) = self.store_item(item, &ticket, policy, None).await
        {
            self.accept(item, ticket, policy).await;
        }
        self.cx.shared.inbox.note(1, self.machine.room_taken());
    }

    /// Runs the strategy off the async threads. Past its bound the item is enqueued; a panic ends the
    /// session. Messages that arrive meanwhile are handled afterwards, in order. A stop of the session does
    /// not wait for the strategy (S2.8).
    async fn ask_strategy(
        &mut self,
        (item, ticket): (T, &Arc<TicketState<T>>),
        strategy: Strategy,
    ) -> Option<(T, Policy)> {
        self.items.in_hand = Some(Box::new((item, Arc::clone(ticket))));
        let policy = self.choose_policy(strategy).await;
        self.items.in_hand.take().map(|held| (held.0, policy))
    }

    async fn choose_policy(&mut self, strategy: Strategy) -> Policy {
        // An ending session does not wait for a strategy: the item is unhandled under any policy.
        if self.end.exit.is_some() || self.queue.ahead.iter().any(|message| is_stop(message)) {
            return Policy::Enqueue;
        }
        let view = self.view();
        let asked = self.cx.scope.spawn_blocking("push strategy", move || strategy(view.as_ref()));
        let mut asked = Box::pin(tokio::time::timeout(self.cx.settings.strategy, asked));
        loop {
            // Nothing is lost: receiving is cancel-safe, and the strategy keeps running.
            let next = match select(&mut asked, Box::pin(self.queue.received.next())).await {
                Either::Left((chosen, _)) => Either::Left(chosen),
                Either::Right((message, _)) => Either::Right(message),
            };
            match next {
                Either::Left(Ok(Ok(policy))) => return policy,
                Either::Left(Ok(Err(TaskEnd::Panicked(why)))) => {
                    self.broke(report("a push strategy panicked", &why)).await;
                    return Policy::Enqueue;
                }
                Either::Left(Ok(Err(TaskEnd::Dropped)) | Err(_)) => return Policy::Enqueue,
                Either::Right(message) => {
                    let ends_it = is_stop(&message);
                    self.queue.ahead.push_back(message);
                    if ends_it {
                        return Policy::Enqueue;
                    }
                }
            }
        }
    }
}

fn is_stop<T>(message: &SessionMessage<T>) -> bool {
    matches!(message, SessionMessage::Stop(stop, _) if matches!(stop.how, StopWhen::Strength(_)))
}

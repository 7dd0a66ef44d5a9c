//! Push strategies: asked while nothing else happens, so that what they saw still holds when they have chosen
//! (S6.4).

use std::sync::Arc;

use futures_util::future::{Either, select};
use safepoint_scope::TaskEnd;

use super::{Driver, Item, SessionMessage, planning::report};
use crate::session::{item::Policy, message::Strategy, stop::StopWhen, ticket::TicketState};

impl<T: Item> Driver<T> {
    /// An item whose policy its strategy chooses.
    pub(super) async fn push_by(&mut self, item: T, slip: Arc<TicketState<T>>, strategy: Strategy) {
        if let Some((item, policy)) = self.ask_strategy((item, &slip), strategy).await
            && let Some(item) = self.store_item(item, &slip, policy, None).await
        {
            self.accept(item, slip, policy).await;
        }
        self.cx.shared.door.note(1, self.machine.room_taken());
    }

    /// Runs the strategy off the async threads. Past its bound the item is enqueued; a panic ends the
    /// session. Messages that arrive meanwhile are handled afterwards, in order. A stop of the session does
    /// not wait for the strategy (S2.8).
    async fn ask_strategy(
        &mut self,
        (item, slip): (T, &Arc<TicketState<T>>),
        strategy: Strategy,
    ) -> Option<(T, Policy)> {
        self.items.in_hand = Some((item, Arc::clone(slip)));
        let policy = self.chosen_by(strategy).await;
        self.items.in_hand.take().map(|(item, _)| (item, policy))
    }

    async fn chosen_by(&mut self, strategy: Strategy) -> Policy {
        // An ending session does not wait for a strategy: the item is unhandled under any policy.
        if self.end.exit.is_some() || self.queue.ahead.iter().any(|mail| is_stop(mail)) {
            return Policy::Enqueue;
        }
        let view = self.view();
        let asked = self.cx.scope.spawn_blocking("push strategy", move || strategy(view.as_ref()));
        let mut asked = Box::pin(tokio::time::timeout(self.cx.settings.strategy, asked));
        loop {
            // Nothing is lost: receiving is cancel-safe, and the strategy keeps running.
            let next = match select(&mut asked, Box::pin(self.queue.mail.next())).await {
                Either::Left((chosen, _)) => Either::Left(chosen),
                Either::Right((mail, _)) => Either::Right(mail),
            };
            match next {
                Either::Left(Ok(Ok(policy))) => return policy,
                Either::Left(Ok(Err(TaskEnd::Panicked(why)))) => {
                    self.broke(report("a push strategy panicked", &why)).await;
                    return Policy::Enqueue;
                }
                Either::Left(Ok(Err(TaskEnd::Dropped)) | Err(_)) => return Policy::Enqueue,
                Either::Right(mail) => {
                    let ends_it = is_stop(&mail);
                    self.queue.ahead.push_back(mail);
                    if ends_it {
                        return Policy::Enqueue;
                    }
                }
            }
        }
    }
}

fn is_stop<T>(mail: &SessionMessage<T>) -> bool {
    matches!(mail, SessionMessage::Stop { stop, .. } if matches!(stop.how, StopWhen::Strength(_)))
}

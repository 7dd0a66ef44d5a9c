//! Push strategies: asked while nothing else happens, so that what they saw still holds when they have chosen (S6.4).

use safepoint_scope::TaskEnd;

use super::{Item, Owner, plan::report};
use crate::session::{item::Policy, mail::Strategy};

impl<T: Item> Owner<T> {
    /// Asks off the async threads. Past its bound the item simply waits; a panic ends the session.
    pub(super) async fn ask_strategy(&mut self, strategy: Strategy) -> Policy {
        let view = self.view();
        let asked = self.scope.spawn_blocking("push strategy", move || strategy(view.as_ref()));
        match tokio::time::timeout(self.settings.strategy, asked).await {
            Ok(Ok(policy)) => policy,
            Ok(Err(TaskEnd::Dropped)) => Policy::Enqueue,
            Ok(Err(TaskEnd::Panicked(why))) => {
                self.broke(report("a push strategy panicked", &why)).await;
                Policy::Enqueue
            }
            Err(_elapsed) => Policy::Enqueue,
        }
    }
}

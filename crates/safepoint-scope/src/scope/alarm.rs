//! Waiting for what is asked: registered once, looked at again only when something on the path is no longer silent.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;
use tokio::{
    sync::{Notify, futures::OwnedNotified},
    time::{Sleep, sleep_until},
};

use crate::scope::node::{Node, WakeOrder};

pin_project! {
/// Wakes its task when a request or a deadline may have changed what reaches a node.
///
/// A waiter waits only after it has registered and then looked: a request between the two wakes it, so none is missed.
pub(crate) struct Alarm {
    node: Arc<Node>,
    order: WakeOrder,
    // On the notification of the node's own run. In place, since most nodes have no other on their path.
    #[pin]
    own: Option<OwnedNotified>,
    // On those of the runs around it.
    outer: Vec<Pin<Box<OwnedNotified>>>,
    sleep: Option<Pin<Box<Sleep>>>,
}
}

impl Alarm {
    pub(crate) fn new(node: &Arc<Node>, order: WakeOrder) -> Self {
        Self { node: Arc::clone(node), order, own: None, outer: Vec::new(), sleep: None }
    }

    /// Looks with `look`, and if that finds nothing leaves the waker wherever something could change.
    pub(crate) fn poll<T>(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        look: impl Fn(&Arc<Node>) -> Option<T>,
    ) -> Poll<T> {
        loop {
            // A waiter that is woken by its own event is done, and registers nowhere again: in a wide tree all wait on the
            // root's notification, and would queue for its lock once more each, while it still wakes the others.
            if !self.node.is_silent()
                && let Some(found) = look(&self.node)
            {
                return Poll::Ready(found);
            }
            // Registered before the look that ends in waiting, every time: a notification that was for another waiter (a sibling's end, a stop of one
            // call alone) uses the registration up, and the next one must not be missed.
            self.as_mut().register(cx);
            if self.node.is_silent() {
                return Poll::Pending;
            }
            // Taken before the look: a deadline that comes between the two is then either seen or slept on.
            let deadline = self.node.next_deadline();
            if let Some(found) = look(&self.node) {
                return Poll::Ready(found);
            }
            let Some(deadline) = deadline else { return Poll::Pending };
            // The timer in hand is kept while its deadline holds: arming one costs far more than asking it.
            let slot = self.as_mut().project().sleep;
            let held = slot.take().filter(|sleep| sleep.deadline() == deadline);
            let mut sleep = held.unwrap_or_else(|| Box::pin(sleep_until(deadline)));
            let passed = sleep.as_mut().poll(cx).is_ready();
            *slot = (!passed).then_some(sleep);
            if !passed {
                return Poll::Pending;
            }
        }
    }

    fn register(self: Pin<&mut Self>, cx: &mut Context<'_>) {
        let mut this = self.project();
        let order = *this.order;
        let own = this.node.run.waiters(order);
        if this.own.is_none() {
            this.own.set(Some(Arc::clone(own).notified_owned()));
            let outer = this.node.wakes(order).skip(1);
            *this.outer = outer.map(|wake| Box::pin(Arc::clone(wake).notified_owned())).collect();
        }
        if let Some(held) = this.own.as_pin_mut() {
            hear(held, own, cx);
        }
        for (held, wake) in this.outer.iter_mut().zip(this.node.wakes(order).skip(1)) {
            hear(held.as_mut(), wake, cx);
        }
    }
}

/// Registers, again if the registration was used up.
fn hear(mut held: Pin<&mut OwnedNotified>, wake: &Arc<Notify>, cx: &mut Context<'_>) {
    while held.as_mut().poll(cx).is_ready() {
        held.set(Arc::clone(wake).notified_owned());
    }
}

#[cfg(all(test, not(loom)))]
mod tests;

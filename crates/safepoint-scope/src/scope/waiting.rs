//! The futures that wait for a scope or for work under it. Written out, since many wait at once: an async function has room
//! for what it is given and for what it then pins.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

use crate::{
    request::demand::Demand,
    scope::{Scope, alarm::Alarm, node::WakeOrder, stop::Stop},
};

pin_project! {
/// Work, until it ends or the scope must.
pub(super) struct Running<'s, F> {
    scope: &'s Scope,
    // None once it has ended: it is dropped then, and not with this future.
    #[pin]
    work: Option<F>,
    // None before the first look.
    #[pin]
    alarm: Option<Alarm>,
}
}

impl<'s, F> Running<'s, F> {
    pub(super) fn new(scope: &'s Scope, work: F) -> Self {
        Self { scope, work: Some(work), alarm: None }
    }
}

impl<F: Future> Future for Running<'_, F> {
    type Output = Result<F::Output, Stop>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if this.alarm.is_none() {
            // What must end does not begin.
            if let Some(stop) = this.scope.stopping() {
                this.work.set(None);
                return Poll::Ready(Err(stop));
            }
            this.alarm.set(Some(Alarm::new(&this.scope.node, WakeOrder::Ending)));
        }
        let (Some(work), Some(alarm)) = (this.work.as_mut().as_pin_mut(), this.alarm.as_pin_mut()) else {
            return Poll::Pending;
        };
        let end = match work.poll(cx) {
            Poll::Ready(output) => Ok(output),
            Poll::Pending => match alarm.poll(cx, |node| node.firing(None).map(Stop::new)) {
                Poll::Ready(stop) => Err(stop),
                Poll::Pending => return Poll::Pending,
            },
        };
        this.work.set(None);
        Poll::Ready(end)
    }
}

pin_project! {
/// The next demand that was not seen.
pub(super) struct Changed {
    #[pin]
    alarm: Alarm,
    seen: Option<Demand>,
}
}

impl Changed {
    pub(super) fn new(scope: &Scope, seen: Option<Demand>) -> Self {
        Self { alarm: Alarm::new(&scope.node, WakeOrder::Following), seen }
    }
}

impl Future for Changed {
    type Output = Demand;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Demand> {
        let this = self.project();
        let is_new = |demand: &Demand| Some(*demand) != *this.seen;
        this.alarm.poll(cx, |node| node.demand().filter(is_new))
    }
}

//! What ends a call before its item rests: the client cancels it, or is lost.

use std::pin::pin;

use futures_util::future::{Either, select};
use rmcp::{RoleServer, service::RequestContext};
use safepoint::{
    Reason, StopRequest,
    stop::{Actor, Code},
};
use tokio::sync::watch;

use super::link::LinkState;
use crate::caller::left;

/// What happened with the client of a call. Exhaustive: it cancelled the call, it left a response that has no other end, it closed its
/// connection, or that ended without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    Cancelled,
    Disconnected,
    Closed,
    Lost,
}

/// Where it is learned.
pub(super) struct Losses {
    context: RequestContext<RoleServer>,
    link: watch::Receiver<LinkState>,
    is_over: bool,
}

impl Losses {
    pub(super) fn of(context: &RequestContext<RoleServer>, link: &watch::Sender<LinkState>) -> Self {
        Self { context: context.clone(), link: link.subscribe(), is_over: false }
    }

    /// Whether one was returned.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// The first of them; later ones are none.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn next(&mut self) -> Loss {
        if self.is_over {
            std::future::pending::<()>().await;
        }
        loop {
            let state = *self.link.borrow_and_update();
            match state {
                LinkState::Closed => return self.over(Loss::Closed),
                LinkState::Lost => return self.over(Loss::Lost),
                LinkState::Single | LinkState::Open => {}
            }
            let is_cancelled = {
                let (changed, cancelled) = (pin!(self.link.changed()), pin!(self.context.ct.cancelled()));
                // Whichever it is, the state is looked at first: a connection that ended cancels its requests.
                matches!(select(changed, cancelled).await, Either::Right(_))
            };
            let state = *self.link.borrow();
            match state {
                LinkState::Single if is_cancelled => return self.over(Loss::Disconnected),
                LinkState::Open if is_cancelled => return self.over(Loss::Cancelled),
                _ => {}
            }
        }
    }

    fn over(&mut self, loss: Loss) -> Loss {
        self.is_over = true;
        loss
    }
}

impl Loss {
    /// The stop that it asks for; none: a client that is lost here has detached.
    pub(super) fn stop(self, who: &str) -> Option<StopRequest> {
        let reason = |code, text: &'static str| {
            Reason::new(code).with_text(text).with_actor(Actor::Remote(who.to_owned()))
        };
        let closed = || reason(Code::DISCONNECT, "the client closed its connection");
        match self {
            Self::Cancelled => {
                Some(StopRequest::now().with_reason(reason(Code::USER, "the client cancelled the call")))
            }
            Self::Disconnected => {
                Some(StopRequest::now().with_reason(reason(Code::DISCONNECT, "the client left the call")))
            }
            Self::Closed => Some(left::stop(closed())),
            Self::Lost => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S13.3: a connection that ends without its client is a detach, and a client that leaves is a stop.
    #[test]
    fn a_connection_that_ends_by_itself_is_a_detach() {
        assert!(Loss::Lost.stop("ci").is_none());
        for loss in [Loss::Cancelled, Loss::Disconnected, Loss::Closed] {
            assert!(loss.stop("ci").is_some(), "{loss:?}");
        }
    }
}

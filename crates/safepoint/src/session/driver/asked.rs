//! Requests about the session or its turn, and the answers to them.

use std::sync::OnceLock;

use safepoint_scope::StopRequest;
use tokio::sync::oneshot;

use super::{Answer, Driver, Input, Item, Request, SessionEvent, TurnId};
use crate::{
    session::{
        item,
        stop::{How, SessionStop, StoppedTurn},
    },
    sync,
};

impl<T: Item> Driver<T> {
    pub(super) async fn stop(&mut self, stop: SessionStop, reply: oneshot::Sender<Answer>) {
        let SessionStop { how, cause, after, .. } = stop;
        if self.end.cause.is_none() {
            self.end.cause = cause;
        }
        if after == StoppedTurn::Abandoned {
            self.end.stopped_turn = StoppedTurn::Abandoned;
        }
        let once_idle_for = match how {
            How::WhenIdle(idle) => Some(idle),
            How::Strength(_) => None,
        };
        self.show(SessionEvent::StopRequested { cause: self.end.cause.clone(), once_idle_for });
        let input = match how {
            How::Strength(strength) => Input::Stop(strength),
            How::WhenIdle(idle) => Input::StopWhenIdle(item::micros(idle)),
        };
        tell(reply, self.ask(input, Request::None).await);
    }

    pub(super) async fn stop_turn(
        &mut self,
        (turn, request): (Option<TurnId>, StopRequest),
        reached: &OnceLock<TurnId>,
        reply: oneshot::Sender<Answer>,
    ) {
        let answer = self.ask(Input::StopTurn(turn), Request::Stop(Box::new(request.clone()))).await;
        if let Some(Answer::StoppingTurn(turn)) = answer {
            reached.get_or_init(|| turn);
            self.turns.stop_request.get_or_insert_with(|| Box::new(request));
        }
        tell(reply, answer);
    }
}

/// Sends the answer to the caller. Without one, the caller learns that the session is over.
pub(super) fn tell(reply: oneshot::Sender<Answer>, answer: Option<Answer>) {
    if let Some(answer) = answer {
        sync::reply(reply, answer);
    }
}

//! What is asked of the session or of its turn, and what the asker is told.

use std::sync::OnceLock;

use safepoint_scope::StopRequest;
use tokio::sync::oneshot;

use super::{Answer, Driver, Input, Item, SessionEvent, TurnId};
use crate::session::{
    item,
    stop::{How, SessionStop, StoppedTurn},
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
        self.step_for(input, reply).await;
    }

    /// Steps, and hands the answer to whoever asked.
    pub(super) async fn step_for(&mut self, input: Input, reply: oneshot::Sender<Answer>) {
        self.step(input).await;
        self.reply(reply);
    }

    pub(super) fn reply(&mut self, reply: oneshot::Sender<Answer>) {
        if let Some(answer) = self.answer.take()
            && reply.send(answer).is_err()
        {
            // Nobody waits for it.
        }
    }

    pub(super) async fn stop_turn(
        &mut self,
        (turn, request): (Option<TurnId>, StopRequest),
        reached: &OnceLock<TurnId>,
        reply: oneshot::Sender<Answer>,
    ) {
        self.turns.request = Some(Box::new(request.clone()));
        self.step(Input::StopTurn(turn)).await;
        if let Some(Answer::StoppingTurn(turn)) = self.answer {
            reached.get_or_init(|| turn);
            self.turns.stop_request.get_or_insert_with(|| Box::new(request));
        }
        self.reply(reply);
    }
}

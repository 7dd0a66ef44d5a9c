//! The reader of a turn's events: runs in its own task, within a bound, and reports how it ended.

use futures_util::future::{Either, select};
use safepoint_scope::{Code, Reason, StopRequest};

use super::{Driver, ErrorReport, Input, Item, Request, RunHandle, SessionMessage, TurnId, report};
use crate::{
    session::{machine::SessionPhase, reader::Reader},
    sync::callback::{Foreign, Panicked},
};

impl<T: Item> Driver<T> {
    pub(super) fn read(&self, turn: TurnId, reader: Foreign<dyn Reader>, handle: RunHandle) {
        let mailbox = self.cx.shared.mailbox.clone();
        let bound = self.cx.settings.callback;
        drop(self.cx.scope.spawn("turn's reader", async move {
            let over = async {
                drop(handle.done().await);
                tokio::time::sleep(bound).await;
            };
            // The reader is polled first: if it returns at the same moment as its time ends, its result counts. Dropping it
            // loses nothing, because its events stay in the run's feed.
            let read = select(Box::pin(followed(&reader, turn, &handle)), Box::pin(over)).await;
            match read {
                // A reader that returns before the turn's end has seen enough.
                Either::Left((Ok(()), _)) if !handle.is_done() => {
                    mailbox.post(SessionMessage::ReadEnough(turn))
                }
                Either::Left((Err(error), _)) => mailbox.post(SessionMessage::Broke(error)),
                // The reader saw the end, or its time is over: the session continues without it.
                Either::Left((Ok(()), _)) | Either::Right(((), _)) => {}
            }
            mailbox.post(SessionMessage::Read(turn));
        }));
    }

    /// Ends the turn before the next one starts. A turn that waits for a decision has ended already.
    pub(in crate::session::driver) async fn read_enough(&mut self, turn: TurnId) {
        if matches!(self.machine.phase(), SessionPhase::Running(running) if running.turn == turn) {
            let reason = Reason::new(Code::DISCONNECT).with_text("the reader of its events returned");
            self.step_with(
                Input::StopTurn(Some(turn)),
                Request::Stop(Box::new(StopRequest::now().with_reason(reason))),
            )
            .await;
        }
    }
}

async fn followed(reader: &Foreign<dyn Reader>, turn: TurnId, handle: &RunHandle) -> Result<(), ErrorReport> {
    let events = handle.events();
    match reader.run(move |reader| reader.read(turn, events)).await {
        Ok(read) => read.map_err(|failure| report("the reader failed", &failure.to_string())),
        Err(Panicked(why)) => Err(report("the reader panicked", &why)),
    }
}

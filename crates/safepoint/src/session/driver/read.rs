//! The reader of a turn's events: followed in a task of its own, bounded, and what it comes to told.

use futures_util::future::{Either, select};
use safepoint_scope::{Code, Reason, StopRequest};

use super::{Driver, ErrorReport, Input, Item, Request, RunHandle, SessionMessage, TurnId, plan::report};
use crate::{
    session::{machine::Phase, reader::Reader},
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
            let read = select(Box::pin(followed(&reader, turn, &handle)), Box::pin(over)).await;
            match read {
                // One that returns before the turn's end has seen enough.
                Either::Left((Ok(()), _)) if !handle.is_done() => {
                    mailbox.post(SessionMessage::ReadEnough { turn })
                }
                Either::Left((Err(error), _)) => mailbox.post(SessionMessage::Broke(error)),
                // It saw the end, or it had its time: the session goes on without it.
                Either::Left((Ok(()), _)) | Either::Right(((), _)) => {}
            }
            mailbox.post(SessionMessage::Read { turn });
        }));
    }

    /// The turn ends before the next one starts. One that waits for a decision has ended.
    pub(super) async fn read_enough(&mut self, turn: TurnId) {
        if matches!(self.machine.phase(), Phase::Running(running) if running.turn == turn) {
            let reason = Reason::new(Code::DISCONNECT).with_text("the reader of its events returned");
            self.ask(
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

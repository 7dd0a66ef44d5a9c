//! What a stop or a cut left open is closed, so that a provider accepts the history (S5.2, S5.3).

use std::sync::Arc;

use super::{History, Message, OpenEnd, note};
use crate::message::{AssistantMessage, Block, CallResult, ResultStatus};

impl History {
    /// Closes the open end with deterministic notes, so that a new turn can start (S5.2, S5.4).
    ///
    /// A cut message is kept as far as it was shown, marked interrupted, and its complete calls are closed as not
    /// started. The same history closes to the same bytes.
    pub fn close(&mut self) {
        match std::mem::take(&mut self.tail) {
            OpenEnd::Whole => {}
            OpenEnd::Cut { message } => self.close_cut(message, note::NOT_STARTED),
            OpenEnd::Open { message, calls } => {
                self.push(Message::Assistant(message));
                self.push(Message::Results { results: calls.into_iter().map(|call| call.result).collect() });
            }
        }
    }

    /// Adds a message that was cut, as far as it was shown; `call_note` says what became of its complete
    /// calls.
    pub fn close_cut(&mut self, message: Arc<AssistantMessage>, call_note: &str) {
        if message.is_blank() {
            return;
        }
        let results: Vec<CallResult> = message
            .calls()
            .map(|call| CallResult::of_text(call.id.clone(), &call.name, call_note, ResultStatus::Error))
            .collect();
        let (calls, mut blocks): (Vec<Block>, Vec<Block>) = Arc::unwrap_or_clone(message)
            .blocks
            .into_iter()
            .partition(|block| matches!(block, Block::Call(_)));
        blocks.push(Block::Text { text: note::INTERRUPTED.into() });
        blocks.extend(calls);
        self.push(Message::Assistant(AssistantMessage { blocks }.into()));
        if !results.is_empty() {
            self.push(Message::Results { results });
        }
    }
}

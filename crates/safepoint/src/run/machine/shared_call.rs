//! A call of a message, without a copy of it.

use std::{ops::Deref, sync::Arc};

use crate::value::message::{AssistantMessage, Block, ToolCall};

/// A call that a model asks for, in its message.
#[derive(Clone, Debug)]
pub(crate) struct SharedCall {
    message: Arc<AssistantMessage>,
    /// Which block of the message it is.
    block: usize,
}

impl SharedCall {
    /// The calls of this message, in order.
    pub(crate) fn all(message: &Arc<AssistantMessage>) -> impl Iterator<Item = Self> {
        let is_call = |(_, block): &(usize, &Block)| matches!(block, Block::Call(_));
        let calls = message.blocks.iter().enumerate().filter(is_call);
        calls.map(|(block, _)| Self { message: Arc::clone(message), block })
    }
}

impl Deref for SharedCall {
    type Target = ToolCall;

    fn deref(&self) -> &ToolCall {
        match self.message.blocks.get(self.block) {
            Some(Block::Call(call)) => call,
            _ => unreachable!("it was made of a call, and a shared message does not change"),
        }
    }
}

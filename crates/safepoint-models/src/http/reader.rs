//! What a wire knows of a reply.

use std::collections::VecDeque;

use safepoint::model::{Delta, ModelError};

use crate::sse::SseEvent;

/// Reads one wire's events into deltas.
pub(crate) trait ReplyReader: Send + Sync + Unpin + 'static {
    /// Takes one event.
    fn event(&mut self, event: &SseEvent, out: &mut VecDeque<Delta>) -> Result<(), ModelError>;
    /// The stream is over; whether it had said so.
    fn end(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelError>;
    /// Whether the message is complete, so that nothing more needs to be read.
    fn is_complete(&self) -> bool;
    /// Bytes of the message that were taken and not given yet: a part of it that is not complete.
    fn held(&self) -> usize;
    /// Where the rest of the reply can be read if the stream breaks, as what follows the request's own address; none
    /// where a broken stream is lost.
    fn resume(&self) -> Option<String> {
        None
    }
}

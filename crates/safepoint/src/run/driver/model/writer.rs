//! Where a reply is written, through the hooks that filter it, and who reads it.

use std::sync::Arc;

use safepoint_scope::Scope;
use tracing::{Instrument as _, Span};

use super::{
    super::{
        Driver,
        filters::Filters,
        reading::Reader,
        stream::{DraftWriter, Writer, read},
    },
    ModelCall,
};
use crate::{
    contract::{
        hook::HookOf,
        model::{GuardedReply, OnModelStop},
    },
    value::event::Fact,
};

impl Driver {
    /// Where the reply is written; `None` where a hook that filters it panicked, and then the run fails.
    pub(super) fn writer(&mut self, streaming: &ModelCall) -> Option<DraftWriter> {
        let hooks = if self.cx.def.is_remote { &[][..] } else { &self.cx.def.hooks };
        let filters = match Filters::of(hooks) {
            Ok(filters) => filters.map(Box::new),
            Err((hook, panic)) => {
                self.hook_panicked(&hook, &panic);
                return None;
            }
        };
        let (draft, shared) = (Arc::clone(&streaming.draft), Arc::clone(&self.cx.shared));
        let (round, is_shown) = (streaming.round, streaming.summary.is_none());
        let said = std::mem::take(&mut self.model.said);
        Some(DraftWriter { draft, shared, round, is_shown, said, filters })
    }

    /// The reply, and whether reading it never blocks: to the conversation as the hooks have left it, or to what is summarised.
    pub(super) fn reply(&mut self, streaming: &mut ModelCall) -> (GuardedReply, bool) {
        let changed = self.hooks.take_request(&HookOf::Model(streaming.round));
        if let Some(summary) = &mut streaming.summary {
            return (summary.stream(), false);
        }
        let history = self.machine.history();
        let conversation = self.model.open(&self.cx, history);
        let stream = match &changed {
            None => conversation.stream(&history.sent()),
            Some(changed) => conversation.stream(changed),
        };
        (stream, conversation.never_blocks())
    }

    /// Who reads the reply: the driver itself, where nothing in it can block.
    pub(super) fn reader(
        &self,
        (stream, never_blocks): (GuardedReply, bool),
        writer: DraftWriter,
        (span, scope): (&Span, Scope),
    ) -> Reader {
        let (on_cut, round) = (self.cx.def.on_cut, writer.round);
        let is_read_here =
            writer.is_shown && writer.filters.is_none() && on_cut == OnModelStop::Disconnect && never_blocks;
        let work = read(stream, writer, (on_cut, scope.clone())).instrument(span.clone());
        if is_read_here {
            Reader::driver(Box::pin(work), scope)
        } else {
            Reader::task(work, (&scope, on_cut), (&self.cx.shared, round))
        }
    }
}

/// What hooks have changed of the message, which nothing is written to from here on.
pub(super) fn changed_facts(streaming: &ModelCall) -> Vec<Arc<Fact>> {
    let mut locked = streaming.draft.lock();
    locked.permission = Writer::Closed;
    let changed = std::mem::take(&mut locked.changed);
    changed.into_iter().map(|changed| Arc::new(Fact::HookActed(changed))).collect()
}

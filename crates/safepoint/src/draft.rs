//! A model's message while it arrives: it lives outside the future that fills it, so a cut loses nothing of it.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    ids::CallId,
    message::{AssistantMessage, Block, Reasoning},
    model::{Delta, Finish},
    usage::{Beyond, Usage, UsageSource},
};

/// What has arrived of one message.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    blocks: Vec<Block>,
    bytes: usize,
    usage: Option<Usage>,
    finish: Option<Finish>,
    sent: Sent,
    model: Option<Arc<str>>,
}

/// Whether anything left this process. Exhaustive: it did or it did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sent {
    #[default]
    No,
    Yes,
}

impl Draft {
    /// Takes one delta in; what is only for show changes nothing.
    pub(crate) fn take(&mut self, delta: &Delta) {
        match delta {
            Delta::Sent | Delta::Opened => self.sent = Sent::Yes,
            Delta::Text(text) => self.text(text),
            Delta::Reasoning(text) => self.reasoning(text),
            Delta::Sealed(seal) => self.seal(seal),
            Delta::CallReady(call) => {
                self.bytes += call.args.len();
                self.blocks.push(Block::Call(call.clone()));
            }
            Delta::Usage(usage) => self.used(usage.clone()),
            Delta::Ended(finish) => self.finish = Some(finish.clone()),
            Delta::Retrying { .. } => self.sent = Sent::No,
            // What was sent to the model before may have cost something.
            Delta::FailedOver { to, .. } => self.model = Some(Arc::clone(to)),
            Delta::CallBegun { .. } | Delta::Rejoining { .. } => {}
        }
    }

    /// A later word replaces an earlier one, but a provider that names no input at all says nothing about it: the
    /// floor stays.
    fn used(&mut self, mut usage: Usage) {
        if let Some(known) = self.usage.as_ref().filter(|known| usage.input == 0 && known.input > 0) {
            usage.input = known.input;
            usage.source = UsageSource::Estimated;
        }
        self.usage = Some(usage);
    }

    fn text(&mut self, more: &str) {
        self.bytes += more.len();
        match self.blocks.last_mut() {
            Some(Block::Text { text }) => text.push_str(more),
            _ => self.blocks.push(Block::Text { text: more.to_owned() }),
        }
    }

    fn reasoning(&mut self, more: &str) {
        self.bytes += more.len();
        match self.blocks.last_mut() {
            Some(Block::Reasoning(Reasoning { text, seal: None })) => text.push_str(more),
            _ => self.blocks.push(Block::Reasoning(Reasoning { text: more.to_owned(), seal: None })),
        }
    }

    fn seal(&mut self, seal: &Value) {
        match self.blocks.last_mut() {
            Some(Block::Reasoning(Reasoning { seal: open @ None, .. })) => *open = Some(seal.clone()),
            _ => self
                .blocks
                .push(Block::Reasoning(Reasoning { text: String::new(), seal: Some(seal.clone()) })),
        }
    }

    /// Bytes of text, reasoning and arguments so far.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn finish(&self) -> Option<&Finish> {
        self.finish.as_ref()
    }

    /// The host was never reached: what was handed to the transport did not leave.
    pub(crate) fn never_left(&mut self) {
        self.sent = Sent::No;
    }

    pub(crate) fn sent(&self) -> Sent {
        self.sent
    }

    /// The model that is asked now, where it is not the first.
    pub(crate) fn model(&self) -> Option<Arc<str>> {
        self.model.clone()
    }

    /// The message, every call under an id of its own: `is_taken` knows those of earlier messages.
    pub(crate) fn message(&self, is_taken: impl Fn(&CallId) -> bool) -> AssistantMessage {
        let mut blocks = self.blocks.clone();
        let mut mine: Vec<CallId> = Vec::new();
        for block in &mut blocks {
            if let Block::Call(call) = block {
                if call.id.as_str().is_empty() || is_taken(&call.id) || mine.contains(&call.id) {
                    call.id = CallId::fresh();
                }
                mine.push(call.id.clone());
            }
        }
        AssistantMessage { blocks }
    }

    /// What was used: the provider's word, or a floor where it said nothing, never zero for a call that was sent.
    pub(crate) fn usage(&self) -> Usage {
        if self.sent == Sent::No {
            return Usage::default();
        }
        let mut usage =
            self.usage.clone().unwrap_or(Usage { source: UsageSource::Estimated, ..Usage::default() });
        let says_enough = usage.input > 0 && (usage.output > 0 || self.bytes == 0);
        if self.finish.is_some() && usage.source == UsageSource::Exact && says_enough {
            return usage;
        }
        let floor = if self.bytes == 0 { 0 } else { Usage::floor_of_bytes(self.bytes) };
        if floor > usage.output {
            usage.output = floor;
            usage.source = UsageSource::Estimated;
        }
        if usage.input == 0 {
            usage.input = 1;
            usage.source = UsageSource::Estimated;
        }
        if self.finish.is_none() {
            usage.billed_beyond = Beyond::Unknown;
        }
        usage
    }
}

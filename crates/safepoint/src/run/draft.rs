//! A model's message while it arrives. It lives outside the future that fills it, so a cut loses nothing.
//!
//! **Invariants**: it never exceeds its bounds in bytes or calls; taking a delta costs no more than the
//! delta's length.

use std::{collections::HashSet, sync::Arc};

use serde_json::Value;

use crate::{
    contract::model::{Delta, Finish},
    value::{
        ids::CallId,
        limits::Limits,
        message::{AssistantMessage, Block, Reasoning},
        text::head,
        usage::{ExtraBilling, Usage, UsageSource},
    },
};

/// What has arrived of one message.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// How many bytes are kept (S12.3), and how many calls (S12.4).
    most_bytes: usize,
    most_calls: usize,
    blocks: Vec<Block>,
    /// The size of all fields.
    bytes: usize,
    /// The size of all fragments of arguments that were for display alone.
    previewed: usize,
    /// The part that a provider bills as output: text, reasoning and arguments.
    billed: usize,
    is_full: bool,
    calls: usize,
    calls_left_out: u64,
    usage: Option<Usage>,
    finish: Option<Finish>,
    /// Whether no model makes the message: the agent is a remote one, and its next call follows from the
    /// history.
    is_remote: bool,
    sending: Sending,
    model: Option<Arc<str>>,
}

/// Whether anything left this process. Exhaustive: not yet; it waits for a turn or a retry, and may have been sent before; or it
/// has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sending {
    #[default]
    NotYet,
    Waits {
        was_sent: bool,
    },
    Sent,
}

impl Draft {
    pub(crate) fn new(limits: &Limits, is_remote: bool) -> Self {
        let (most_bytes, most_calls) = (limits.model_output_bytes, limits.message_calls);
        Self { most_bytes, most_calls, is_remote, ..Self::default() }
    }

    /// Takes a delta as far as there is room for it. What is only for display is counted, and changes
    /// nothing.
    pub(crate) fn take(&mut self, delta: Delta) {
        let left = self.most_bytes.saturating_sub(self.bytes);
        let brings = delta.bytes();
        self.bytes = self.bytes.saturating_add(brings);
        self.is_full |= brings > left;
        self.sending = match (&delta, self.sending) {
            (Delta::Retrying { .. }, _) => Sending::Waits { was_sent: false },
            (Delta::Waiting { .. }, _) => Sending::Waits { was_sent: self.is_sent() },
            (_, Sending::Waits { was_sent: true }) => Sending::Sent,
            (_, Sending::Waits { was_sent: false }) => Sending::NotYet,
            (_, sending) => sending,
        };
        // A model that does not report sending has sent if there is an answer or a bill (S2.15).
        if !self.is_remote && (brings > 0 || matches!(delta, Delta::Usage(_))) {
            self.sending = Sending::Sent;
        }
        match delta {
            Delta::Sent | Delta::Opened => self.sending = Sending::Sent,
            Delta::Text(_) | Delta::Reasoning(_) if self.is_full && left == 0 => {}
            Delta::Text(mut text) => {
                text.truncate(head(&text, left).len());
                self.text(text);
            }
            Delta::Reasoning(text) => self.reasoning(head(&text, left)),
            Delta::ReasoningSeal(_) | Delta::CallReady(_) | Delta::Provider(_) if self.is_full => {}
            Delta::Provider(block) => self.push(Block::Provider(block)),
            Delta::ReasoningSeal(seal) => self.seal(seal),
            Delta::CallReady(_) if self.calls >= self.most_calls => self.calls_left_out += 1,
            Delta::CallReady(call) => {
                self.calls += 1;
                self.billed += call.args.len();
                self.push(Block::Call(call));
            }
            Delta::Usage(usage) => self.used(usage),
            Delta::Ended(finish) => self.finish = Some(finish),
            // What was sent to the previous model may have cost something.
            Delta::FailedOver { to, .. } => self.model = Some(to),
            // A call that is larger than the message may be, even before it is complete.
            Delta::CallArguments { text, .. } => {
                self.previewed = self.previewed.saturating_add(text.len());
                self.is_full |= self.previewed > self.most_bytes;
            }
            Delta::CallPreview { .. }
            | Delta::Reconnecting { .. }
            | Delta::Retrying { .. }
            | Delta::Waiting { .. } => {}
        }
    }

    /// A later report replaces an earlier one. A provider that reports no input at all says nothing about it:
    /// the floor stays.
    fn used(&mut self, mut usage: Usage) {
        if let Some(known) = self.usage.as_ref().filter(|known| usage.input == 0 && known.input > 0) {
            usage.input = known.input;
            usage.source = UsageSource::Estimated;
        }
        self.usage = Some(usage);
    }

    fn text(&mut self, more: String) {
        self.billed += more.len();
        match self.blocks.last_mut() {
            Some(Block::Text { text }) => text.push_str(&more),
            // Text that comes in one piece is not copied (S12.4).
            _ => self.open(Block::Text { text: more }),
        }
    }

    fn reasoning(&mut self, more: &str) {
        self.billed += more.len();
        match self.blocks.last_mut() {
            Some(Block::Reasoning(Reasoning { text, seal: None })) => text.push_str(more),
            _ => self.open(Block::Reasoning(Reasoning { text: more.to_owned(), seal: None })),
        }
    }

    /// Opens a block of text or reasoning. A stream that alternates makes many blocks, so they are counted by
    /// the memory they take (S12.4). The first few are not counted, so that a small limit measures the
    /// content.
    fn open(&mut self, block: Block) {
        const UNCOUNTED: usize = 64;
        const BLOCK_BYTES: usize = 256;
        if self.blocks.len() >= UNCOUNTED {
            self.bytes = self.bytes.saturating_add(BLOCK_BYTES);
        }
        self.push(block);
    }

    fn push(&mut self, block: Block) {
        // Most messages have one, and many runs wait with it or keep it.
        if self.blocks.is_empty() {
            self.blocks.reserve_exact(1);
        }
        self.blocks.push(block);
    }

    fn seal(&mut self, seal: Value) {
        match self.blocks.last_mut() {
            Some(Block::Reasoning(Reasoning { seal: open @ None, .. })) => *open = Some(seal),
            _ => self.push(Block::Reasoning(Reasoning { text: String::new(), seal: Some(seal) })),
        }
    }

    /// Whether the message exceeds its bounds.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// The wire's decoder has exceeded what it may pass on.
    pub(crate) fn fill(&mut self) {
        self.is_full = true;
    }

    /// Calls that the model requested beyond the limit of one message.
    pub(crate) fn calls_left_out(&self) -> u64 {
        self.calls_left_out
    }

    pub(crate) fn finish(&self) -> Option<&Finish> {
        self.finish.as_ref()
    }

    /// The host was never reached: what the transport got did not leave.
    pub(crate) fn never_left(&mut self) {
        self.sending = Sending::NotYet;
    }

    /// Whether nothing of a message has arrived.
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.bytes == 0 && self.finish.is_none()
    }

    /// Whether the request waits for a turn or a retry: nothing has changed since the boundary before it (S2.21).
    pub(crate) fn is_unsent(&self) -> bool {
        matches!(self.sending, Sending::Waits { .. })
    }

    pub(crate) fn is_sent(&self) -> bool {
        matches!(self.sending, Sending::Sent | Sending::Waits { was_sent: true })
    }

    /// The model that answers now, if it is not the first.
    pub(crate) fn model(&self) -> Option<Arc<str>> {
        self.model.clone()
    }

    /// The message, with a unique id for every call: `is_taken` knows the ids of earlier messages. The
    /// content is moved out, not copied; the draft keeps only the usage.
    pub(crate) fn message(&mut self, is_taken: impl Fn(&CallId) -> bool) -> AssistantMessage {
        let mut blocks = std::mem::take(&mut self.blocks);
        let has_one = self.calls <= 1;
        let mut mine: HashSet<CallId> = HashSet::new();
        for block in &mut blocks {
            if let Block::Call(call) = block {
                if call.id.as_str().is_empty() || is_taken(&call.id) || mine.contains(&call.id) {
                    call.id = CallId::fresh();
                }
                if !has_one {
                    mine.insert(call.id.clone());
                }
            }
        }
        AssistantMessage { blocks }
    }

    /// The usage: the provider's report, or a floor if there is none. Never zero for a call that was sent.
    pub(crate) fn usage(&self) -> Usage {
        if !self.is_sent() {
            return Usage::default();
        }
        let mut usage =
            self.usage.clone().unwrap_or_else(|| Usage::default().with_source(UsageSource::Estimated));
        let says_enough = usage.input > 0 && (usage.output > 0 || self.billed == 0);
        if self.finish.is_some() && usage.source == UsageSource::Exact && says_enough {
            return usage;
        }
        let floor = if self.billed == 0 { 0 } else { Usage::floor_of_bytes(self.billed) };
        if floor > usage.output {
            usage.output = floor;
            usage.source = UsageSource::Estimated;
        }
        if usage.input == 0 {
            usage.input = 1;
            usage.source = UsageSource::Estimated;
        }
        if self.finish.is_none() {
            usage.billed_beyond = ExtraBilling::Unknown;
        }
        usage
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::value::message::{ProviderBlock, ProviderPart};

    /// S12.4: pieces that hold next to nothing are bounded too, by what they take, whatever they are.
    #[test]
    fn a_flood_of_small_pieces_is_bounded() {
        const BYTES: usize = 1 << 20;
        let wide = json!(vec![json!({}); 100]);
        let deep = json!(vec![json!({"a": 1}); 100]);
        let by_turns = |at: usize| {
            let word = "x".to_owned();
            if at.is_multiple_of(2) { Delta::Text(word) } else { Delta::Reasoning(word) }
        };
        let seal = |seal: &Value| Delta::ReasoningSeal(seal.clone());
        let none = || ProviderPart::Citations(Vec::new());
        let cited = || Delta::Provider(Box::new(ProviderBlock::new("w", none(), Value::Null)));
        for (what, most, piece) in [
            ("seals of nothing", 512, &(|_| seal(&Value::Null)) as &dyn Fn(usize) -> Delta),
            ("seals of small values", 200, &|_| seal(&wide)),
            ("seals of small objects", 16, &|_| seal(&deep)),
            ("blocks of a provider", 512, &|_| cited()),
            ("text and reasoning by turns", 64 + BYTES / 256, &by_turns),
        ] {
            let limits = Limits { model_output_bytes: BYTES, message_calls: 1, ..Limits::default() };
            let mut draft = Draft::new(&limits, false);
            (0..10_000).for_each(|at| draft.take(piece(at)));
            assert!(draft.is_full(), "{what}");
            assert!(draft.blocks.len() <= most, "{what}: {}", draft.blocks.len());
        }
    }
}

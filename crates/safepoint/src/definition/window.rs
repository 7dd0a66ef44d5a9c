//! How many tokens a model takes, and what happens when a conversation outgrows them (S12.2).

use std::{fmt, sync::Arc};

use crate::contract::model::{Model, ModelSpec};

mod plan;
mod transcript;

pub(crate) use plan::Cut;
use transcript::INSTRUCTIONS;
pub(crate) use transcript::transcript;

/// The most tokens of a request and its answer, and what to do when a conversation has more.
///
/// Before each model call the request is measured: by the provider's own figure for the last one, and by the bytes of
/// what was added since. If it does not leave the room kept for the answer, the policy acts. Set with
/// [`AgentBuilder::window`](crate::AgentBuilder::window); without one nothing is measured.
///
/// ```
/// use safepoint::window::Window;
/// let window = Window::of(200_000).keep_for_answer(16_000).drop_oldest();
/// assert_eq!(window.room(), 184_000);
/// ```
#[derive(Clone, Debug)]
pub struct Window {
    tokens: u64,
    answer: u64,
    on_full: OnFull,
    /// What a summary that was asked for must keep; none: none was asked for.
    compact: Option<Arc<str>>,
}

/// What happens when a conversation outgrows its window. Exhaustive: the three policies.
#[derive(Clone, Debug)]
pub enum OnFull {
    /// The run fails with the code `context_window`, and the request is not sent.
    Refuse,
    /// The oldest whole rounds are not sent any more; a note says so.
    DropOldest,
    /// The oldest whole rounds are not sent any more; a summary of them, written by a model, is.
    Summarise(Summariser),
}

/// Which model writes summaries. Exhaustive: the agent's own, or another.
#[derive(Clone)]
pub enum Summariser {
    /// The agent's own.
    Own,
    /// Another, with a window at least as large.
    Other(Arc<dyn Model>),
}

impl Window {
    /// A window of `tokens` tokens, request and answer together. A quarter of it, at most 8,192 tokens, is
    /// reserved for the answer; a conversation that outgrows the window is [refused](OnFull::Refuse).
    #[must_use]
    pub fn of(tokens: u64) -> Self {
        const PART: u64 = 4;
        const MOST: u64 = 8192;
        Self { tokens, answer: (tokens / PART).min(MOST), on_full: OnFull::Refuse, compact: None }
    }

    /// Reserves `tokens` tokens for the answer, reasoning included.
    #[must_use]
    pub fn keep_for_answer(mut self, tokens: u64) -> Self {
        self.answer = tokens;
        self
    }

    /// Leaves out the oldest whole rounds when it is full.
    #[must_use]
    pub fn drop_oldest(self) -> Self {
        self.on_full(OnFull::DropOldest)
    }

    /// Has the agent's own model summarise the oldest whole rounds when it is full.
    #[must_use]
    pub fn summarise(self) -> Self {
        self.on_full(OnFull::Summarise(Summariser::Own))
    }

    /// Has another model summarise them.
    #[must_use]
    pub fn summarise_with(self, model: impl Model) -> Self {
        self.on_full(OnFull::Summarise(Summariser::Other(Arc::new(model))))
    }

    /// Sets what happens when it is full.
    #[must_use]
    pub fn on_full(mut self, on_full: OnFull) -> Self {
        self.on_full = on_full;
        self
    }

    /// Makes a run compact its conversation and do nothing else (S12.60): a model summarises what was said before the run's own
    /// input, be it full or not, and the run is done. The newest messages, up to an eighth of the conversation, stay as they
    /// are. `keep` is what the summary must keep; empty: nothing in particular. The window's own
    /// [summariser](Self::summarise_with) writes it, else the agent's model.
    ///
    /// A stop before the summary is complete leaves nothing out. Where there is nothing to summarise, nothing is sent.
    ///
    /// ```no_run
    /// # use safepoint::{Agent, History, window::Window};
    /// # async fn compact(agent: Agent, long: History) -> History {
    /// let window = Window::of(200_000).compact("the decisions about the schema");
    /// let outcome = agent.run_on(long, "[compact the conversation]").window(window).await;
    /// outcome.history().clone()
    /// # }
    /// ```
    #[must_use]
    pub fn compact(mut self, keep: impl Into<Arc<str>>) -> Self {
        self.compact = Some(keep.into());
        self
    }

    /// The most tokens of a request: the window less what is kept for the answer.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.tokens.saturating_sub(self.answer)
    }
}

impl fmt::Debug for Summariser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => f.write_str("Own"),
            Self::Other(model) => f.debug_tuple("Other").field(&model.name()).finish(),
        }
    }
}

/// An agent's window, and what each of its requests holds beside the conversation.
#[derive(Clone, Debug)]
pub(crate) struct WindowMeter {
    window: Window,
    /// Bytes of the instructions and tools.
    fixed: u64,
}

impl WindowMeter {
    /// None if the answer takes all of the window.
    pub(crate) fn new(window: Window, spec: &ModelSpec) -> Option<Self> {
        (window.room() > 0).then(|| Self { window, fixed: Self::fixed(spec) })
    }

    fn fixed(spec: &ModelSpec) -> u64 {
        let system = spec.system.as_ref().map_or(0, |text| text.len());
        let tools: usize = spec
            .tools
            .iter()
            .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.to_string().len())
            .sum();
        (system + tools) as u64
    }

    /// The same window with requests of this spec.
    pub(crate) fn of(&self, spec: &ModelSpec) -> Self {
        Self { window: self.window.clone(), fixed: Self::fixed(spec) }
    }

    /// Whether the policy leaves out what does not fit.
    pub(crate) fn may_shorten(&self) -> bool {
        !matches!(self.window.on_full, OnFull::Refuse)
    }

    /// Who writes summaries: none where that is not the policy.
    pub(crate) fn summariser(&self) -> Option<&Summariser> {
        match &self.window.on_full {
            OnFull::Summarise(summariser) => Some(summariser),
            OnFull::Refuse | OnFull::DropOldest => None,
        }
    }

    /// Whether the run compacts its conversation and does nothing else.
    pub(crate) fn is_compacting(&self) -> bool {
        self.window.compact.is_some()
    }

    /// The instructions for a summary.
    pub(crate) fn instructions(&self) -> Arc<str> {
        match self.window.compact.as_deref() {
            None | Some("") => INSTRUCTIONS.into(),
            Some(keep) => {
                format!("{INSTRUCTIONS} The person asks that it keeps this in particular: {keep}").into()
            }
        }
    }
}

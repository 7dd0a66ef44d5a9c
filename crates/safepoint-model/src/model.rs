//! What the engine asks of a model: open a conversation, stream one message at a time, be dropped at any instant.

use std::{sync::Arc, time::Duration};

use futures_core::{future::BoxFuture, stream::BoxStream};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    history::History,
    ids::CallId,
    json,
    message::{ProviderBlock, ToolCall},
    usage::Usage,
};

mod answer;
mod error;
mod parameters;
mod provider_tool;
mod shared;

pub use answer::AnswerFormat;
pub use error::{ModelError, ModelErrorKind};
pub use parameters::{Parameter, Parameters, PromptCache, ReasoningEffort};
pub use provider_tool::{FileSearch, ProviderTool, WebSearch};

/// A model behind some wire. Shared by all runs of an agent; holds no state of any of them.
///
/// A model in a `Box` or an `Arc` is one too, so that it can be chosen while the program runs:
///
/// ```
/// use std::sync::Arc;
/// use safepoint::{Agent, Model};
/// fn agent(is_hard: bool, small: impl Model, large: impl Model) -> Agent {
///     let model: Arc<dyn Model> = if is_hard { Arc::new(large) } else { Arc::new(small) };
///     Agent::builder(model).build()
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a model",
    label = "not a model",
    note = "a crate of wires makes one, as in `safepoint_models::openai::from_env(\"gpt-5.2\")?`",
    note = "or implement `Model` for a type of your own"
)]
pub trait Model: Send + Sync + 'static {
    /// The name for people and spans, such as `openai:gpt-5.2`.
    fn name(&self) -> &str;

    /// Whether it can do all that a spec asks of it. An agent whose model cannot is not built.
    ///
    /// Only [provider tools](ModelSpec::provider_tools) can be beyond a model; the default refuses any.
    ///
    /// # Errors
    /// What it cannot do, and what to do instead.
    fn accepts(&self, spec: &ModelSpec) -> Result<(), ModelError> {
        let Some(tool) = spec.provider_tools.first() else { return Ok(()) };
        Err(ModelError::no_provider_tool(self.name(), tool))
    }

    /// Opens a conversation: what is the same for each of its calls is prepared once.
    fn open(&self, spec: ModelSpec) -> Box<dyn Conversation>;

    /// Whether it can be asked with these parameters, and with those that are its own. It is asked when an agent is
    /// built. A model that says nothing takes none.
    ///
    /// # Errors
    /// The first that it has no form for, and what to do instead.
    fn check(&self, parameters: &Parameters) -> Result<(), ModelError> {
        if parameters.is_empty() {
            return Ok(());
        }
        let message = format!("the model {} takes no parameters", self.name());
        Err(ModelError::new(ModelErrorKind::Refused, message)
            .with_hint("leave them out; a model of your own takes them once its `check` says so"))
    }
}

/// A conversation with a model: a pure cache of encoded history. Losing it loses nothing.
///
/// ```
/// use futures_util::{StreamExt as _, stream};
/// use safepoint::{History, model::{Conversation, Delta, DeltaStream, Finish}};
///
/// struct Parrot;
///
/// impl Conversation for Parrot {
///     fn stream(&mut self, _history: &History) -> DeltaStream {
///         stream::iter([Delta::Sent, Delta::Text("hello".into()), Delta::Ended(Finish::Natural)].map(Ok)).boxed()
///     }
/// }
/// ```
pub trait Conversation: Send {
    /// Encodes what `history` has grown by since the last call, and returns the reply as a lazy stream.
    ///
    /// Nothing is sent before the first poll. The stream ends after [`Delta::Ended`] or an error. Only the closed
    /// part of the history is sent.
    ///
    /// # Cancel safety
    /// Dropping the stream releases the exchange at once: an HTTP/1 connection closes, an HTTP/2 stream is reset.
    /// Every wait inside (connecting, headers, silence, retry back-off) ends with the drop.
    fn stream(&mut self, history: &History) -> DeltaStream;

    /// What the provider must get, beside the drop, when the latest reply is no longer wanted: the
    /// cancellation of a response that outlives its connection. `None` for wires where the drop is enough.
    ///
    /// Called once a reply was cut or failed, after its stream was dropped. The run waits for it, within
    /// `Limits::release_timeout`, before it is quiet; its outcome does not wait.
    fn release(&mut self) -> Option<BoxFuture<'static, ()>> {
        None
    }

    /// Whether no poll of a reply blocks its thread, nor its drop, and neither does more than a little work: the run's own
    /// task then reads the replies and drops them, and a round has one task less. Only wires say so whose every wait is one of the runtime.
    #[doc(hidden)]
    fn never_blocks(&self) -> bool {
        false
    }
}

/// One reply as it arrives.
///
/// An example is at [`Conversation`].
pub type DeltaStream = BoxStream<'static, Result<Delta, ModelError>>;

/// What is the same for each call of a conversation.
///
/// ```
/// use safepoint::model::ModelSpec;
/// /// What a request has in front of its messages.
/// fn head(spec: &ModelSpec) -> String {
///     let tools: Vec<&str> = spec.tools.iter().map(|tool| tool.name.as_str()).collect();
///     format!("{}\ntools: {}", spec.system.as_deref().unwrap_or_default(), tools.join(", "))
/// }
/// ```
#[derive(Clone, Debug)]
pub struct ModelSpec {
    /// The instructions.
    pub system: Option<Arc<str>>,
    /// The tools that the model may ask for.
    pub tools: Arc<[ToolDecl]>,
    /// The tools that the provider runs itself.
    pub provider_tools: Arc<[ProviderTool]>,
    /// Which tool it must use, where the wire can say so and the model's own settings do not.
    pub choice: Option<ToolChoice>,
    /// The form of the final answer, if it is typed and the model may ask for it by its wire's own means.
    pub answer: Option<AnswerFormat>,
    /// The parameters of its calls, over the model's own. A model that is opened with one that it has no form for
    /// refuses each call.
    pub parameters: Option<Arc<Parameters>>,
    /// The most bytes of one reply, in all its fields (`Limits::model_output_bytes`). A
    /// model that decodes counts them as they arrive, and ends the stream with
    /// [`ModelErrorKind::OutputBytes`] when there are more. That limit then stops the run.
    pub output_bytes: usize,
}

impl ModelSpec {
    /// The most bytes of one reply where nothing else is set: 16 MiB.
    pub const OUTPUT_BYTES: usize = 16 << 20;
}

impl Default for ModelSpec {
    fn default() -> Self {
        let output_bytes = Self::OUTPUT_BYTES;
        let (tools, provider_tools) = (Arc::from([]), Arc::from([]));
        Self {
            system: None,
            tools,
            provider_tools,
            choice: None,
            answer: None,
            parameters: None,
            output_bytes,
        }
    }
}

/// Which tool a model must use. Exhaustive: the choices that every wire has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// As it likes.
    Auto,
    /// None.
    None,
    /// At least one.
    Required,
    /// This one.
    Tool(String),
}

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDecl {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
}

/// What becomes of a model call that a stop cuts (S3.9). Exhaustive: it is released, or read on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnModelStop {
    /// The exchange is released at once; what the provider bills beyond is unknown.
    #[default]
    Disconnect,
    /// The exchange is read to its end, within `Limits::drain_timeout`, only to learn the bill: its
    /// content does not change the run, and the run is not quiet before.
    Drain,
}

/// One piece of a reply. The engine builds the message from these, so that whatever arrived before a cut is kept.
/// Exhaustive: what relays a reply, or takes secrets out of it, must place each of them.
///
/// ```
/// use safepoint::{Usage, model::{Delta, Finish}};
/// // A short reply, from the request to its end:
/// let reply = [
///     Delta::Sent,
///     Delta::Opened,
///     Delta::Text("It is ".into()),
///     Delta::Text("noon.".into()),
///     Delta::Usage(Usage::new(12, 4)),
///     Delta::Ended(Finish::Natural),
/// ];
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delta {
    /// An attempt failed before its first byte; another follows after a wait.
    Retrying {
        /// How many attempts have failed.
        failed: u32,
        /// How long it waits.
        after: Duration,
        /// What went wrong, for people.
        error: String,
    },
    /// The call waits for something that it shares with others, such as a rate limit, before it is sent.
    Waiting {
        /// What it waits for, for people: `the rate limit of openai`.
        what: Arc<str>,
    },
    /// A model could not begin to answer, and another one is asked instead.
    FailedOver {
        /// The model that could not.
        from: Arc<str>,
        /// The model that is asked now.
        to: Arc<str>,
        /// What went wrong, for people.
        error: String,
    },
    /// The stream broke, and the provider keeps the reply: after a wait it is read from where it broke.
    /// Nothing is requested again.
    #[serde(rename = "rejoining")]
    Reconnecting {
        /// How often it has broken here.
        failed: u32,
        /// How long it waits.
        after: Duration,
        /// What went wrong, for people.
        error: String,
    },
    /// The request is about to be handed to the transport: from here on it may cost money.
    Sent,
    /// The response's headers are here.
    Opened,
    /// More text.
    Text(String),
    /// More reasoning.
    Reasoning(String),
    /// The provider's seal of the reasoning block before (or of a hidden one).
    #[serde(rename = "sealed")]
    ReasoningSeal(Value),
    /// A call has begun to arrive; its arguments are not complete, so it is only for show.
    #[serde(rename = "call_begun")]
    CallPreview {
        /// The tool's name.
        name: String,
    },
    /// More of the arguments of a call that arrives, as its provider sends them: only for show. What runs is the
    /// [`CallReady`](Self::CallReady) of the same call, which has all of them.
    CallArguments {
        /// The id that the provider gave the call, the same for all of its fragments; empty if it had given none when the first
        /// of them arrived. Fragments of calls without an id come one call after the other.
        id: CallId,
        /// The tool's name.
        name: Arc<str>,
        /// The next fragment.
        text: String,
    },
    /// A call whose arguments are complete.
    CallReady(ToolCall),
    /// What the provider did itself, or where the text before is from.
    Provider(Box<ProviderBlock>),
    /// What was used so far; a later one replaces it.
    Usage(Usage),
    /// The message is complete.
    Ended(Finish),
}

impl Delta {
    /// How many bytes of the model's message the delta brings: what counts against
    /// `Limits::model_output_bytes`. A call's name counts when its beginning is shown, and
    /// when it is complete; its arguments count when they are complete. A seal counts by the memory of its values and around
    /// them.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Reasoning(text) => text.len(),
            Self::ReasoningSeal(seal) => json::weight(seal).saturating_add(SEAL_BYTES),
            Self::Provider(block) => block.weight().saturating_add(SEAL_BYTES),
            Self::CallPreview { name } => name.len(),
            Self::CallReady(call) => call.id.as_str().len() + call.name.len() + call.args.len(),
            Self::Ended(Finish::Other(word)) => word.len(),
            Self::Ended(Finish::Natural | Finish::Length | Finish::Filtered)
            | Self::Retrying { .. }
            | Self::Waiting { .. }
            | Self::FailedOver { .. }
            | Self::Reconnecting { .. }
            | Self::Sent
            | Self::Opened
            | Self::CallArguments { .. }
            | Self::Usage(_) => 0,
        }
    }
}

/// What a seal takes beside its values: a block of the message, and its lines in the journal. So a flood of
/// small seals is bounded too (S12.4).
const SEAL_BYTES: usize = 2 << 10;

/// Why a model ended its message. Exhaustive: a reason that a release does not know is [`Finish::Other`].
///
/// An example is at [`Delta`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// It had said what it wanted, or waits for its calls.
    Natural,
    /// Its output limit was reached.
    Length,
    /// A filter of the provider cut it.
    Filtered,
    /// A reason that this release does not know, as the provider wrote it.
    Other(String),
}

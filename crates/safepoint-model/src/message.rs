//! What people, models and tools say, in no provider's format.

use std::{borrow::Cow, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;

use crate::{
    ids::CallId,
    tagged::{self, Tagged},
};

mod part;
mod provider;

pub use part::{MOST_BYTES, Part, PartKind, PartSource, TooLarge};
pub use provider::{Citation, ProviderBlock, ProviderPart};

/// What a person (or a program on their behalf) said.
///
/// ```
/// use safepoint::message::{Part, UserMessage};
/// let plain: UserMessage = "What is this?".into();
/// let asked = plain.with(Part::image_at("https://example.com/cat.png"));
/// assert!(!asked.is_blank());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserMessage {
    /// The text.
    pub text: String,
    /// What goes with it, behind the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

impl UserMessage {
    /// Whether there is nothing in it that a model could answer.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty() && self.parts.is_empty()
    }

    /// Adds an image, a sound or a file. A wire that does not take it refuses the run's next model call before anything is sent.
    ///
    /// ```
    /// use safepoint::message::{Part, UserMessage};
    /// let photo = Part::image("image/png", &[137, 80, 78, 71])?;
    /// let message = UserMessage::from("what is this?").with(photo).with(Part::image_at("https://example.com/a.png"));
    /// assert_eq!(message.parts.len(), 2);
    /// # Ok::<(), safepoint::message::TooLarge>(())
    /// ```
    #[must_use]
    pub fn with(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }
}

impl<T: Into<String>> From<T> for UserMessage {
    fn from(text: T) -> Self {
        Self { text: text.into(), parts: Vec::new() }
    }
}

/// What a model said: text, reasoning and the calls that it asked for, in the order in which they came.
///
/// ```
/// use safepoint::message::AssistantMessage;
/// let said = AssistantMessage::of_text("It is noon.");
/// assert_eq!((said.text().as_ref(), said.calls().count()), ("It is noon.", 0));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// The pieces, in order.
    pub blocks: Vec<Block>,
}

/// One piece of a model's message. Exhaustive: every wire must place each of them.
///
/// ```
/// use safepoint::message::{AssistantMessage, Block};
/// fn print(said: &AssistantMessage) {
///     for block in &said.blocks {
///         match block {
///             Block::Text { text } => println!("{text}"),
///             Block::Reasoning(reasoning) => println!("({})", reasoning.text),
///             Block::Call(call) => println!("{} {}", call.name, call.args),
///             Block::Provider(block) => println!("the provider: {:?}", block.part),
///         }
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Text for people.
    Text {
        /// The text.
        text: String,
    },
    /// The model's reasoning.
    Reasoning(Reasoning),
    /// A call that the model asks for, its arguments complete.
    Call(ToolCall),
    /// What the provider did itself, such as a search, or where a text is from.
    Provider(Box<ProviderBlock>),
}

impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        tagged::read(from)
    }
}

impl<'de> Tagged<'de> for Block {
    const TAG: &'static str = "type";

    fn read<D: Deserializer<'de>>(name: &str, fields: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Text {
            text: String,
        }
        match name {
            "text" => Text::deserialize(fields).map(|Text { text }| Self::Text { text }),
            "reasoning" => Reasoning::deserialize(fields).map(Self::Reasoning),
            "call" => ToolCall::deserialize(fields).map(Self::Call),
            "provider" => ProviderBlock::deserialize(fields).map(|block| Self::Provider(Box::new(block))),
            _ => Err(D::Error::unknown_variant(name, &["text", "reasoning", "call", "provider"])),
        }
    }
}

/// A stretch of reasoning. Some providers refuse it later unless their seal comes back with it, unchanged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reasoning {
    /// What may be shown.
    pub text: String,
    /// The provider's own sealed form (a signature, an encrypted block), kept byte for byte; none if the stream was
    /// cut before it came, or the wire has none.
    pub seal: Option<Value>,
}

/// A call that a model asks for.
///
/// An example is at [`Block`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique within the history. An adapter passes on what the model said; the engine replaces empty or taken ids.
    pub id: CallId,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments as the model wrote them: usually JSON, but unchecked.
    pub args: String,
}

impl AssistantMessage {
    /// A message of text alone.
    #[must_use]
    pub fn of_text(text: impl Into<String>) -> Self {
        Self { blocks: vec![Block::Text { text: text.into() }] }
    }

    /// The pieces of its text, in order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            Block::Reasoning(_) | Block::Call(_) | Block::Provider(_) => None,
        })
    }

    /// All text, in order, as one string: put together only where it is not one already.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        let mut texts = self.texts();
        match (texts.next(), texts.next()) {
            (None, _) => Cow::Borrowed(""),
            (Some(one), None) => Cow::Borrowed(one),
            (Some(_), Some(_)) => Cow::Owned(self.texts().collect()),
        }
    }

    /// The calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Call(call) => Some(call),
            Block::Text { .. } | Block::Reasoning(_) | Block::Provider(_) => None,
        })
    }

    /// What the provider did itself, and where texts are from, in order.
    pub fn provider_blocks(&self) -> impl Iterator<Item = &ProviderBlock> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Provider(block) => Some(&**block),
            Block::Text { .. } | Block::Reasoning(_) | Block::Call(_) => None,
        })
    }

    /// Where its texts are from, in order: for a list of sources below an answer.
    pub fn citations(&self) -> impl Iterator<Item = &Citation> {
        self.provider_blocks().flat_map(|block| match &block.part {
            ProviderPart::Citations(citations) => citations.as_slice(),
            ProviderPart::Use { .. } | ProviderPart::Result { .. } => &[],
        })
    }

    /// Whether there is nothing in it that a provider would accept as a message.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.blocks.iter().all(|block| match block {
            Block::Text { text } => text.trim().is_empty(),
            Block::Reasoning(_) => true,
            Block::Call(_) => false,
            Block::Provider(block) => matches!(block.part, ProviderPart::Citations(_)),
        })
    }
}

/// The answer to one call, as the model gets it.
///
/// ```
/// use safepoint::message::{CallResult, ResultStatus};
/// let result = CallResult::of_text("call_1", "clock", "noon", ResultStatus::Ok);
/// assert_eq!((result.name.as_str(), result.text.as_str()), ("clock", "noon"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallResult {
    /// The call that it answers.
    pub call_id: CallId,
    /// The tool's name.
    pub name: String,
    /// The text for the model; shared, because it may be a remote agent's whole answer.
    pub text: Arc<String>,
    /// Whether it is marked as an error.
    pub verdict: ResultStatus,
    /// Images and files. If the wire does not take them, the model sees that they are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// The result as a value, for programs that read it. A wire that takes values sends it in place of a text
    /// that is nothing but its JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Box<Value>>,
}

impl CallResult {
    /// A result of text alone.
    #[must_use]
    pub fn of_text(
        call_id: impl Into<CallId>,
        name: impl Into<String>,
        text: impl Into<String>,
        verdict: ResultStatus,
    ) -> Self {
        let (call_id, name, text) = (call_id.into(), name.into(), Arc::new(text.into()));
        Self { call_id, name, text, verdict, parts: Vec::new(), structured: None }
    }
}

/// How a result is marked on wires that mark it. Exhaustive: wires know these two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ResultStatus {
    /// An ordinary result.
    #[serde(rename = "good")]
    Ok,
    /// Something that the model should notice: a failure, a denial, a stop.
    #[serde(rename = "bad")]
    Error,
}

//! Is this request's history valid for its provider? A second implementation on purpose: it shares nothing
//! with the encoders that it judges (S5.1).
//!
//! ```
//! use safepoint_testkit::oracle::{self, HistoryRule};
//! use serde_json::json;
//!
//! let call = json!({"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}});
//! let body = json!({"messages": [
//!     {"role": "user", "content": "hi"},
//!     {"role": "assistant", "content": null, "tool_calls": [call]},
//!     {"role": "user", "content": "and?"},
//! ]});
//! let violation = oracle::openai(&body).unwrap_err();
//! assert_eq!((violation.index, violation.rule), (1, HistoryRule::CallUnanswered));
//! ```

use serde_json::{Value, json};

mod answer_schema;
mod anthropic;
mod gemini;
mod media;
mod openai;
mod responses;
mod tools;

pub use anthropic::judge as anthropic;
pub use gemini::judge as gemini;
pub use openai::judge as openai;
pub use responses::judge as responses;

/// What a provider would refuse, in its own words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{list}[{index}]: {message}")]
#[non_exhaustive]
pub struct Violation {
    /// The list that it stands in: `messages`, `input` or `contents`.
    pub list: &'static str,
    /// The message (or item, or content) that it found wanting.
    pub index: usize,
    /// The rule that it breaks.
    pub rule: HistoryRule,
    /// The provider's words.
    pub message: String,
    /// The parameter that OpenAI would name.
    pub param: String,
}

/// A rule of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HistoryRule {
    /// There are messages.
    SomeMessages,
    /// Roles are known.
    KnownRole,
    /// System messages come before all others.
    SystemFirst,
    /// Roles alternate, the user's first.
    RolesAlternate,
    /// A message has content.
    SomeContent,
    /// A text has more than white space.
    SomeText,
    /// The last assistant text does not end in white space.
    NoTrailingSpace,
    /// A call has a name, and arguments of the right type.
    WellFormedCall,
    /// A call has its own id.
    OwnId,
    /// A call is answered directly after its message, before anything else.
    CallUnanswered,
    /// A result answers a call of the message before, once.
    ResultWithoutCall,
    /// A result holds what may stand in one.
    ResultContent,
    /// Results come before the text of their message.
    ResultsFirst,
    /// Nothing but calls follows a call in its message.
    CallsLast,
    /// Thinking is signed.
    SignedThinking,
    /// With thinking on, the message whose calls are being answered begins with thinking.
    ThinkingFirst,
    /// Reasoning is followed by what it led to.
    ReasoningFollowed,
    /// The number of tokens is bounded.
    MaxTokens,
    /// The schema that the answer must match is one that the provider takes.
    AnswerSchema,
    /// A tool is declared whole, and is one that the provider has.
    ToolDeclaration,
    /// An image, a sound or a document is of a type that the provider takes.
    MediaType,
    /// Marks for the cache are few, and of a known kind.
    CacheMarks,
}

impl Violation {
    fn new(index: usize, rule: HistoryRule, message: impl Into<String>) -> Self {
        Self { list: "messages", index, rule, message: message.into(), param: "messages".into() }
    }

    /// Names the list that it stands in.
    fn in_list(mut self, list: &'static str) -> Self {
        self.list = list;
        self.param = list.into();
        self
    }

    /// Names the part of the message.
    fn at(mut self, part: &str) -> Self {
        self.param = format!("messages.[{}].{part}", self.index);
        self
    }

    /// The body of OpenAI's 400.
    #[must_use]
    pub fn openai_body(&self) -> Value {
        json!({"error": {"message": self.message, "type": "invalid_request_error", "param": self.param, "code": null}})
    }

    /// The body of Gemini's 400.
    #[must_use]
    pub fn gemini_body(&self) -> Value {
        json!({"error": {"code": 400, "message": self.message, "status": "INVALID_ARGUMENT"}})
    }

    /// The body of Anthropic's 400.
    #[must_use]
    pub fn anthropic_body(&self) -> Value {
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": self.message}})
    }
}

/// Fails with these words of the provider unless it holds.
fn must<S: Into<String>>(
    holds: bool,
    index: usize,
    rule: HistoryRule,
    says: impl FnOnce() -> S,
) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation::new(index, rule, says())) }
}

/// A text, which is empty where there is none.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A list, which is empty where there is none.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests;

//! What the scripted server says: a list of replies, chosen in order or by what was asked.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

mod asked;
mod director;
mod practice;

pub(crate) use asked::Asked;
pub(crate) use director::{Chosen, Director};

/// A script: replies with conditions are tried first, the others are given in order, and when they are used
/// up the server [falls back](Script::fallback).
///
/// As JSON it is `{"replies": [{"text": "hello"}, {"calls": [{"name": "shell", "args": {"command":
/// "ls"}}]}]}`.
///
/// ```
/// use safepoint_testkit::script::{Reply, Script};
/// let script = Script::of([Reply::call("clock", serde_json::json!({})), Reply::text("It is noon.")]);
/// let same = Script::from_json(r#"{"replies": [{"calls": [{"name": "clock", "args": {}}]}, {"text": "It is noon."}]}"#);
/// assert_eq!(same.unwrap().replies.len(), script.replies.len());
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// The replies.
    pub replies: Vec<Reply>,
    /// What is said when they are used up.
    pub fallback: Fallback,
    /// Whether the replies begin again when they are used up.
    pub repeat: bool,
}

/// What is said when the replies are used up. Exhaustive: the server must say something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fallback {
    /// The last user text, or how many results came.
    #[default]
    Echo,
    /// As the practice model: it understands `run: CMD`, `read: FILE`, `sleep: N` and explains itself.
    Practice,
}

/// One reply.
///
/// ```
/// use std::time::Duration;
/// use safepoint_testkit::script::Reply;
/// // Four characters at a time, after some reasoning; and only for this question.
/// let slow = Reply::text("once upon a time").paced(4, Duration::from_millis(50)).reasoning("a story").when("tell", 0);
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reply {
    /// Only for requests that fit; such a reply is never used up.
    pub when: Option<When>,
    /// Reasoning before the text.
    pub reasoning: String,
    /// Reasoning that is only sent sealed (Anthropic's `redacted_thinking`); empty = none.
    pub redacted: String,
    /// The text.
    pub text: String,
    /// The text, cut into exactly these chunks; instead of `text`.
    pub pieces: Vec<String>,
    /// The calls.
    pub calls: Vec<Call>,
    /// Characters of text in one chunk; 0 = all in one.
    pub chunk_chars: usize,
    /// Milliseconds before each chunk; before a message that is not streamed, for all of its text together.
    pub delay_ms: u64,
    /// Input and output tokens that are named.
    pub usage: Option<[u64; 2]>,
    /// Why it ended, in the wire's words; none = as the content says.
    pub finish: Option<String>,
    /// What goes wrong.
    pub fault: Option<ReplyFault>,
}

/// Which requests a reply is for: all that is named must fit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// The last user text contains this.
    pub user: Option<String>,
    /// This many results came after the last user text.
    pub results: Option<usize>,
}

/// One call of a reply.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Call {
    /// The tool.
    pub name: String,
    /// Its arguments; a string is sent as it is, JSON or not.
    pub args: Value,
    /// Its id; none = a fresh one, empty = none is sent.
    pub id: Option<String>,
}

/// What goes wrong with a reply.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReplyFault {
    /// The request is read and nothing is said.
    Silence,
    /// The request is read and the connection closes.
    Close,
    /// The request is read and the connection is reset.
    Reset,
    /// This many chunks, then silence.
    StallAfter(usize),
    /// This many chunks, then the connection closes.
    CloseAfter(usize),
    /// This many chunks, then a reset of the connection.
    ResetAfter(usize),
    /// This many bytes of the body, also in mid-event, then the connection closes.
    CutAfter(usize),
    /// This many chunks, then an error in the provider's form, which ends the stream.
    ErrorAfter(usize),
    /// Another status, with a body and headers.
    Status {
        /// The status.
        status: u16,
        /// The body; empty = the provider's own form.
        #[serde(default)]
        body: String,
        /// Headers, such as `["retry-after", "1"]`.
        #[serde(default)]
        headers: Vec<(String, String)>,
    },
    /// A success with this type and body.
    Answer {
        /// The content type.
        content_type: String,
        /// The body.
        body: String,
    },
    /// These bytes as the body of the stream.
    Raw(Vec<u8>),
}

impl Script {
    /// Replies in order.
    #[must_use]
    pub fn of(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self { replies: replies.into_iter().collect(), ..Self::default() }
    }

    /// The built-in practice model.
    #[must_use]
    pub fn practice() -> Self {
        Self { fallback: Fallback::Practice, ..Self::default() }
    }

    /// Reads a script from JSON.
    ///
    /// # Errors
    /// What does not fit, and where.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}

impl When {
    fn fits(&self, asked: &Asked) -> bool {
        self.user.as_ref().is_none_or(|text| asked.user.contains(text.as_str()))
            && self.results.is_none_or(|results| asked.results.len() == results)
    }
}

impl Call {
    /// Its own id, or a fresh one.
    pub(crate) fn id_or_fresh(&self, prefix: &str, index: usize) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Relaxed: each number is given once, and orders nothing.
        self.id
            .clone()
            .unwrap_or_else(|| format!("{prefix}{:06}{index}", NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// Its arguments as text; a string is sent as it is, JSON or not.
    pub(crate) fn arguments(&self) -> String {
        self.args.as_str().map_or_else(|| self.args.to_string(), ToOwned::to_owned)
    }
}

impl Reply {
    /// A reply of text alone.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A reply that asks for one tool.
    #[must_use]
    pub fn call(name: impl Into<String>, args: Value) -> Self {
        Self::default().and_call(name, args)
    }

    /// Adds a call.
    #[must_use]
    pub fn and_call(mut self, name: impl Into<String>, args: Value) -> Self {
        self.calls.push(Call { name: name.into(), args, id: None });
        self
    }

    /// Adds a call with an id.
    #[must_use]
    pub fn and_call_as(mut self, id: impl Into<String>, name: impl Into<String>, args: Value) -> Self {
        self.calls.push(Call { name: name.into(), args, id: Some(id.into()) });
        self
    }

    /// A reply of text in exactly these chunks.
    #[must_use]
    pub fn pieces<P: Into<String>>(pieces: impl IntoIterator<Item = P>) -> Self {
        Self { pieces: pieces.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Adds reasoning that is only sent sealed.
    #[must_use]
    pub fn redacted(mut self, data: impl Into<String>) -> Self {
        self.redacted = data.into();
        self
    }

    /// Adds reasoning.
    #[must_use]
    pub fn reasoning(mut self, text: impl Into<String>) -> Self {
        self.reasoning = text.into();
        self
    }

    /// Cuts the text into chunks of this many characters, each after a pause.
    #[must_use]
    pub fn paced(mut self, chars: usize, pause: Duration) -> Self {
        self.chunk_chars = chars;
        self.delay_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// Names tokens.
    #[must_use]
    pub fn usage(mut self, input: u64, output: u64) -> Self {
        self.usage = Some([input, output]);
        self
    }

    /// Sets why it ended, in the wire's words.
    #[must_use]
    pub fn finish(mut self, reason: impl Into<String>) -> Self {
        self.finish = Some(reason.into());
        self
    }

    /// Has something go wrong.
    #[must_use]
    pub fn fault(mut self, fault: ReplyFault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Only for requests whose last user text contains `text`, with this many results after it.
    #[must_use]
    pub fn when(mut self, user: impl Into<String>, results: usize) -> Self {
        self.when = Some(When { user: Some(user.into()), results: Some(results) });
        self
    }

    /// Whether it is the same bytes each time: nothing in it is fresh, paced or broken.
    pub(crate) fn always_the_same(&self) -> bool {
        self.fault.is_none() && self.delay_ms == 0 && self.calls.iter().all(|call| call.id.is_some())
    }

    /// The text as it is cut.
    pub(crate) fn texts(&self) -> Vec<String> {
        if self.pieces.is_empty() { cut(&self.text, self.chunk_chars) } else { self.pieces.clone() }
    }

    /// The whole text.
    pub(crate) fn whole_text(&self) -> String {
        if self.pieces.is_empty() { self.text.clone() } else { self.pieces.concat() }
    }
}

/// Text in pieces of this many characters; 0 = in one.
pub(crate) fn cut(text: &str, chars: usize) -> Vec<String> {
    if text.is_empty() {
        return Vec::new();
    }
    if chars == 0 {
        return vec![text.to_owned()];
    }
    let all: Vec<char> = text.chars().collect();
    all.chunks(chars).map(|piece| piece.iter().collect()).collect()
}

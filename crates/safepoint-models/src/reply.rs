//! What the replies of several wires have in common: their end, their errors and their usage.

use std::{borrow::Cow, ops::Deref, sync::Arc};

use safepoint::{
    Usage,
    ids::CallId,
    model::{Delta, Finish, ModelError},
    usage::UsageSource,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error;

/// The type of an event, a block or an item. Read by itself: what is not known is not read further, and an enum by its
/// type would collect it first.
#[derive(Deserialize)]
pub(crate) struct Typed<'a> {
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Cow<'a, str>,
}

/// A text of a reply, borrowed from its event where nothing in it is escaped.
#[derive(Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Text<'_> {
    pub(crate) fn into_owned(self) -> String {
        self.0.into_owned()
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self(Cow::Owned(text))
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// An error inside a reply.
#[derive(Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct ErrorWords<'a> {
    pub(crate) message: Option<Text<'a>>,
    /// Which error it is, in most wires.
    pub(crate) r#type: Option<&'a RawValue>,
    /// The same in Gemini's.
    pub(crate) status: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(crate) struct InputDetails {
    cached_tokens: Option<u64>,
    /// Not the provider's own word: that of servers that pass on another provider's figures.
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
pub(crate) struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

/// More of the arguments of a call that arrives, for show: none if there is nothing new to show.
pub(crate) fn arguments(id: &CallId, name: &Arc<str>, more: Text<'_>) -> Option<Delta> {
    let is_new = !more.is_empty();
    let show = || Delta::CallArguments { id: id.clone(), name: Arc::clone(name), text: more.into_owned() };
    is_new.then(show)
}

/// How far a reply is. Its end is reported once.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    /// The provider's reason to finish.
    pub(crate) finish: Option<Finish>,
    /// Whether the provider said that the reply is over.
    pub(crate) is_over: bool,
    is_reported: bool,
}

impl Ending {
    /// Whether the reply is over.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_over || self.is_reported
    }

    /// The end of the reply; none where it was reported before.
    ///
    /// # Errors
    /// Without a reason to finish and without an end the stream broke.
    pub(crate) fn report(&mut self) -> Result<Option<Finish>, ModelError> {
        if self.is_reported {
            return Ok(None);
        }
        let natural = self.is_over.then_some(Finish::Natural);
        let finish = self.finish.take().or(natural).ok_or_else(error::ended_early)?;
        self.is_reported = true;
        Ok(Some(finish))
    }
}

impl ErrorWords<'_> {
    pub(crate) fn into_error(self) -> ModelError {
        let message = self.message.as_deref().unwrap_or("no reason was given");
        let name = self.r#type.or(self.status).map_or("", RawValue::get);
        error::in_stream_as(name.trim_matches('"'), message)
    }
}

/// The usage of a reply: the tokens of each direction, and what of them is of a kind.
pub(crate) fn exact(
    (input, input_details): (u64, Option<&InputDetails>),
    (output, output_details): (u64, Option<&OutputDetails>),
) -> Usage {
    Usage::new(input, output)
        .with_cached_input(input_details.and_then(|details| details.cached_tokens).unwrap_or(0))
        .with_cache_write(input_details.and_then(|details| details.cache_write_tokens).unwrap_or(0))
        .with_reasoning(output_details.and_then(|details| details.reasoning_tokens).unwrap_or(0))
        .with_source(UsageSource::Exact)
}

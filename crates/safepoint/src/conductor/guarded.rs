//! A model's own code, called from the conductor: a panic in it is an error of the provider.

use futures_core::future::BoxFuture;

use crate::{
    callback::{self, Panicked},
    history::History,
    model::{Conversation, DeltaStream, Model, ModelError, ModelErrorKind, ModelSpec},
};

/// A conversation, or one that only says that there is none.
pub(super) fn open(model: &dyn Model, spec: ModelSpec) -> Box<dyn Conversation> {
    callback::call(|| model.open(spec)).unwrap_or_else(|panic| Box::new(Unopened(panic)))
}

/// A reply, or one that only says that there is none.
pub(super) fn stream(of: &mut dyn Conversation, history: &History) -> DeltaStream {
    callback::call(|| of.stream(history)).unwrap_or_else(|panic| failing(&panic))
}

/// The farewell, if there is one. One that panics tells the provider nothing, as one that is overdue does.
pub(super) fn part(of: &mut dyn Conversation) -> Option<BoxFuture<'static, ()>> {
    callback::call(|| of.part()).ok().flatten()
}

fn failing(Panicked(message): &Panicked) -> DeltaStream {
    let error = ModelError::new(ModelErrorKind::Broken, format!("the model panicked: {message}"));
    Box::pin(futures_util::stream::iter([Err(error)]))
}

/// Stands where a conversation would be, had the model not panicked when it was opened.
struct Unopened(Panicked);

impl Conversation for Unopened {
    fn stream(&mut self, _: &History) -> DeltaStream {
        failing(&self.0)
    }
}

/// Stands where the conversation was.
pub(super) struct Nothing;

impl Conversation for Nothing {
    fn stream(&mut self, _: &History) -> DeltaStream {
        Box::pin(futures_util::stream::empty())
    }
}

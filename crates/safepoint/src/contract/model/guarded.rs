//! The one place where the engine calls a model: a panic in the model, its conversations or its replies
//! becomes a provider error (S2.16).

use std::{future::poll_fn, sync::Arc};

use futures_core::future::BoxFuture;

use super::{Conversation, Delta, DeltaStream, Model, ModelError, ModelErrorKind, ModelSpec, Parameters};
use crate::{
    sync::callback::{self, Foreign, Panicked},
    value::history::History,
};

/// The name of a model whose name panicked.
const UNNAMED: &str = "a model that could not name itself";

/// A model, asked for its name once.
#[derive(Clone)]
pub(crate) struct Guarded {
    it: Foreign<dyn Model>,
    name: Result<Arc<str>, Panicked>,
}

impl Guarded {
    pub(crate) fn new(model: Arc<dyn Model>) -> Self {
        let it = Foreign::new(model);
        let name = it.call(|model| Arc::from(model.name()));
        Self { it, name }
    }

    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(UNNAMED)
    }

    /// The name, shared.
    pub(crate) fn shared_name(&self) -> Arc<str> {
        self.name.as_ref().map_or_else(|_unnamed| UNNAMED.into(), Arc::clone)
    }

    /// Whether it takes these parameters.
    ///
    /// # Errors
    /// The first that it does not take, or its panic.
    pub(crate) fn check(&self, parameters: &Parameters) -> Result<(), ModelError> {
        self.it.call(|model| model.check(parameters)).unwrap_or_else(|panic| Err(failure(&panic)))
    }

    /// Whether it can do what a spec asks; one that panics about it cannot.
    pub(crate) fn accepts(&self, spec: &ModelSpec) -> Result<(), ModelError> {
        self.it.call(|model| model.accepts(spec)).unwrap_or_else(|panic| Err(failure(&panic)))
    }

    /// A conversation, or one that only reports the panic.
    pub(crate) fn open(&self, spec: ModelSpec) -> GuardedConversation {
        let opened = match &self.name {
            Ok(_) => self.it.call(|model| model.open(spec)),
            Err(panic) => Err(panic.clone()),
        };
        GuardedConversation(Some(opened))
    }
}

/// A conversation, or the panic that kept it from opening.
pub(crate) struct GuardedConversation(Option<Result<Box<dyn Conversation>, Panicked>>);

impl GuardedConversation {
    /// A reply, or one that only reports the panic.
    pub(crate) fn stream(&mut self, history: &History) -> GuardedReply {
        let stream = match &mut self.0 {
            Some(Ok(open)) => callback::call(|| open.stream(history)),
            Some(Err(panic)) => Err(panic.clone()),
            None => Err(Panicked("its conversation is over".into())),
        };
        GuardedReply(Some(stream.unwrap_or_else(|panic| {
            let failed = Err(failure(&panic));
            Box::pin(futures_util::stream::iter([failed]))
        })))
    }

    /// The release request, if there is one. If it panics, the provider gets nothing, as with one that is
    /// overdue.
    pub(crate) fn release(&mut self) -> Option<BoxFuture<'static, ()>> {
        let Some(Ok(open)) = &mut self.0 else { return None };
        callback::call(|| open.release()).ok().flatten()
    }

    /// Whether no poll of a reply blocks its thread.
    pub(crate) fn never_blocks(&self) -> bool {
        match &self.0 {
            Some(Ok(open)) => callback::call(|| open.never_blocks()).unwrap_or(false),
            Some(Err(_)) | None => false,
        }
    }

    /// Drops the conversation; a panic of that is returned.
    pub(crate) fn end(&mut self) -> Result<(), Panicked> {
        callback::drop_caught(self.0.take())
    }
}

impl Drop for GuardedConversation {
    fn drop(&mut self) {
        if self.end().is_err() {
            // Not used any more.
        }
    }
}

/// A reply as it arrives.
pub(crate) struct GuardedReply(Option<DeltaStream>);

impl GuardedReply {
    pub(crate) async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        poll_fn(|cx| {
            let Some(stream) = self.0.as_mut() else { return std::task::Poll::Ready(None) };
            let polled = callback::call(|| stream.as_mut().poll_next(cx));
            polled.unwrap_or_else(|panic| std::task::Poll::Ready(Some(Err(failure(&panic)))))
        })
        .await
    }

    /// Drops the reply.
    pub(crate) fn end(mut self) -> Result<(), ModelError> {
        callback::drop_caught(self.0.take()).map_err(|panic| failure(&panic))
    }
}

impl Drop for GuardedReply {
    fn drop(&mut self) {
        if callback::drop_caught(self.0.take()).is_err() {
            // It was cut or has failed, and is not used any more.
        }
    }
}

fn failure(Panicked(message): &Panicked) -> ModelError {
    ModelError::new(ModelErrorKind::Panicked, format!("the model panicked: {message}"))
}

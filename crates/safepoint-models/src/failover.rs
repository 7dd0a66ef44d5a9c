//! Several models in a row: the next one is asked when one could not begin to answer.
//!
//! **Invariants**: a model is asked only before the first byte of the one before it, and after that one's own tries; a
//! stop drops the stream, and with it every model that was not asked yet.

use std::{collections::VecDeque, sync::Arc};

use futures_util::{StreamExt as _, future::BoxFuture, stream};
use safepoint::{
    History, Model,
    model::{Conversation, Delta, DeltaStream, ModelError, ModelErrorKind, ModelSpec, Parameters},
};

/// A model that stands for several, on any wires: each call asks the first, and the next only if that one could not be
/// reached, was too busy, failed or stayed silent before its first byte, after its own tries. A refused request or key
/// is no such reason: the next model would only hide it. Each change is an event, and the report of the call names the
/// model that was asked last.
///
/// ```
/// use safepoint_models::{Failover, anthropic, gemini};
/// let model = Failover::new(anthropic::model("claude-sonnet-4-5")).or(gemini::model("gemini-3-pro-preview"));
/// ```
#[derive(Clone)]
#[must_use = "a setting returns the changed value"]
pub struct Failover {
    name: String,
    models: Vec<Arc<dyn Model>>,
}

impl Failover {
    /// A model that stands for itself, until another is [added](Failover::or).
    pub fn new(first: impl Model) -> Self {
        Self { name: first.name().to_owned(), models: vec![Arc::new(first)] }
    }

    /// Adds the model that is asked when all before it could not begin to answer.
    pub fn or(mut self, next: impl Model) -> Self {
        self.name = format!("{} or {}", self.name, next.name());
        self.models.push(Arc::new(next));
        self
    }
}

impl std::fmt::Debug for Failover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Failover").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Model for Failover {
    fn name(&self) -> &str {
        &self.name
    }

    /// Each of its models must: any of them may be asked.
    fn accepts(&self, spec: &ModelSpec) -> Result<(), ModelError> {
        self.models.iter().try_for_each(|model| model.accepts(spec))
    }

    fn open(&self, spec: ModelSpec) -> Box<dyn Conversation> {
        let open = |model: &Arc<dyn Model>| (Arc::from(model.name()), model.open(spec.clone()));
        Box::new(FailoverConversation { conversations: self.models.iter().map(open).collect() })
    }

    /// Each of them must take all: which one answers is not known before.
    fn check(&self, parameters: &Parameters) -> Result<(), ModelError> {
        self.models.iter().try_for_each(|model| model.check(parameters))
    }
}

/// One conversation a model. Each encodes the history as it grows, so that none has to catch up when it is needed.
struct FailoverConversation {
    conversations: Vec<(Arc<str>, Box<dyn Conversation>)>,
}

impl Conversation for FailoverConversation {
    fn stream(&mut self, history: &History) -> DeltaStream {
        // Nothing is sent before a stream is polled: those that are not needed are only dropped.
        let mut streams: VecDeque<(Arc<str>, DeltaStream)> = self
            .conversations
            .iter_mut()
            .map(|(name, conversation)| (Arc::clone(name), conversation.stream(history)))
            .collect();
        let Some((name, current)) = streams.pop_front() else { return stream::empty().boxed() };
        let stream = FailoverStream { name, current, has_begun: false, rest: streams };
        stream::unfold(stream, |mut stream| async move {
            let next = stream.next().await?;
            Some((next, stream))
        })
        .boxed()
    }

    fn release(&mut self) -> Option<BoxFuture<'static, ()>> {
        // Only the model that was asked last can have a reply under way.
        self.conversations.iter_mut().find_map(|(_, conversation)| conversation.release())
    }

    fn never_blocks(&self) -> bool {
        self.conversations.iter().all(|(_, conversation)| conversation.never_blocks())
    }
}

/// A call as it moves from model to model.
struct FailoverStream {
    name: Arc<str>,
    current: DeltaStream,
    /// Whether anything of the reply is here.
    has_begun: bool,
    rest: VecDeque<(Arc<str>, DeltaStream)>,
}

impl FailoverStream {
    async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        let next = self.current.next().await?;
        match &next {
            // Before the reply is opened, usage is a floor of what was sent.
            Ok(Delta::Sent | Delta::Waiting { .. } | Delta::Retrying { .. } | Delta::Usage(_)) => {}
            Ok(_) => self.has_begun = true,
            Err(error) if !self.has_begun && is_no_beginning(error.kind()) => {
                if let Some((name, stream)) = self.rest.pop_front() {
                    let from = std::mem::replace(&mut self.name, Arc::clone(&name));
                    self.current = stream;
                    return Some(Ok(Delta::FailedOver { from, to: name, error: error.to_string() }));
                }
            }
            Err(_) => {}
        }
        Some(next)
    }
}

/// Whether another model may be able to answer where this one did not begin to.
fn is_no_beginning(kind: ModelErrorKind) -> bool {
    matches!(
        kind,
        ModelErrorKind::Unreachable
            | ModelErrorKind::RateLimited
            | ModelErrorKind::Overloaded
            | ModelErrorKind::Provider
            | ModelErrorKind::StreamIdle
    )
}

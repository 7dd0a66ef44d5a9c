//! Models without a wire: each is a function of its history.

use safepoint::{
    History, Model,
    model::{Conversation, DeltaStream, ModelSpec},
};

#[derive(Clone)]
struct FnModel<F>(F);

/// A model that answers each request with what `answer` makes of its history.
pub(crate) fn model(answer: impl Fn(&History) -> DeltaStream + Clone + Send + Sync + 'static) -> impl Model {
    FnModel(answer)
}

impl<F: Fn(&History) -> DeltaStream + Clone + Send + Sync + 'static> Model for FnModel<F> {
    fn name(&self) -> &str {
        "bench"
    }
    fn open(&self, _: ModelSpec) -> Box<dyn Conversation> {
        Box::new(self.clone())
    }
}

impl<F: Fn(&History) -> DeltaStream + Send> Conversation for FnModel<F> {
    fn stream(&mut self, history: &History) -> DeltaStream {
        (self.0)(history)
    }
}

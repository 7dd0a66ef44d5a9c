//! The end of a model call, for its span.

use super::ModelCall;
use crate::{
    run::spans,
    value::{event::Completion, receipt::ModelReport},
};

impl ModelCall {
    /// Ends its span. After its record: what subscribes to spans is not ours, and may panic.
    pub(super) fn end_span(&self, whole: &Completion, report: &ModelReport) {
        if self.span.is_disabled() {
            return;
        }
        let finish = self.draft.lock().draft.finish().cloned();
        spans::end_model_call(&self.span, whole, report, finish.as_ref());
    }
}

//! A model behind a pointer is a model: one that is chosen while the program runs has a type too.

use std::sync::Arc;

use super::{Conversation, Model, ModelError, ModelSpec, Parameters};

/// Shared by several agents.
impl<M: Model + ?Sized> Model for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn accepts(&self, spec: &ModelSpec) -> Result<(), ModelError> {
        (**self).accepts(spec)
    }

    fn open(&self, spec: ModelSpec) -> Box<dyn Conversation> {
        (**self).open(spec)
    }

    fn check(&self, parameters: &Parameters) -> Result<(), ModelError> {
        (**self).check(parameters)
    }
}

impl<M: Model + ?Sized> Model for Box<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn accepts(&self, spec: &ModelSpec) -> Result<(), ModelError> {
        (**self).accepts(spec)
    }

    fn open(&self, spec: ModelSpec) -> Box<dyn Conversation> {
        (**self).open(spec)
    }

    fn check(&self, parameters: &Parameters) -> Result<(), ModelError> {
        (**self).check(parameters)
    }
}

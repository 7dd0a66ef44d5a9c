//! How the engine calls a model. What a model is stands in the crate `safepoint-model`.

mod guarded;

pub(crate) use guarded::{Guarded, GuardedConversation, GuardedReply};
pub(crate) use safepoint_model::model::*;

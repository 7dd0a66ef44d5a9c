//! How the engine calls a model. What a model is stands in the crate `safepoint-model`.

mod guarded;

pub(crate) use guarded::{Guarded, GuardedConversation, GuardedReply};
pub use safepoint_model::model::{
    Conversation, Delta, DeltaStream, Finish, Model, ModelError, ModelErrorKind, ModelSpec, OnModelStop,
    Parameter, Parameters, PromptCache, ReasoningEffort, ToolChoice, ToolDecl,
};

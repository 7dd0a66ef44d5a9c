//! The engine's side of a remote agent: the call in which it does its work, as a tool of a model or as the whole of a run.

mod call;
mod model;
mod reach;
mod stopping;
mod tool;

pub(crate) use model::RemoteModel;
pub use tool::RemoteTool;

//! An agent as data, and what goes into one.

pub(crate) mod answer;
pub mod child;
pub mod observe;
pub mod secret;
pub(crate) mod toolset;
pub mod window;

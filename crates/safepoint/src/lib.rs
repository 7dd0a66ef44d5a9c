//! An agent runtime in which everything can be stopped, steered, approved and resumed, and which always tells the
//! truth about what it stopped.

pub mod ids;
pub mod limits;
pub mod usage;
pub mod message;
pub mod history;
pub mod model;

pub use history::History;
pub use limits::Limits;
pub use model::Model;
pub use usage::{Price, Usage};

//! What the engine measures by, as far as the door needs it.

pub(crate) mod ids;

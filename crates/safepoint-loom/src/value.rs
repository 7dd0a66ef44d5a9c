//! What the engine measures by, as far as the inbox needs it.

pub(crate) mod ids;

//! Tests of what the program writes as a whole, beside those of its modules.

pub(crate) mod golden;
mod guides;

//! Tests of what the crate writes as a whole, beside those of its modules.

mod golden;

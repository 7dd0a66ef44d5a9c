//! ACP agents that behave and that do not, as real processes: what a run says of their work, what a stop does, what is
//! left of them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

mod acp {
    pub(crate) mod support;

    mod asks;
    mod conversations;
    mod ends;
    mod outside;
    mod stops;
    mod suite;
    mod turns;
    mod wrong;
}

//! The tools as a model meets them: called by a real run, stopped by a real stop.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod tools {
    pub(crate) mod support;

    mod files;
    mod golden;
    mod http;
    mod search;
    mod shell;
    mod sleep;
    mod starts;
}

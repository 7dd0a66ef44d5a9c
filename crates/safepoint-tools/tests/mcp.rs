//! Tools of MCP servers that behave badly, over pipes and HTTP: what the model gets, what a stop does, what
//! is left.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod mcp {
    pub(crate) mod support;

    mod calls;
    mod http;
    mod listing;
    mod stdio;
    mod stops;
    mod traces;
}

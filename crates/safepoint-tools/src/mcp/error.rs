//! What can go wrong with a server before a call is sent.

use safepoint::stop::Failure;

/// Why a server cannot be used: it says which server, what was tried, and what was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the MCP server `{server}` {what}")]
pub struct McpError {
    server: String,
    what: String,
    kind: Kind,
}

/// What went wrong. Exhaustive: predicates distinguish these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It could not be started or reached.
    Unreachable,
    /// It did not answer in time.
    Slow,
    /// It answered, but not as the protocol says, or with a refusal.
    Wrong,
    /// It was closed by us.
    Closed,
    /// Its description is not right.
    Description,
}

impl McpError {
    pub(super) fn new(server: &str, kind: Kind, what: impl Into<String>) -> Self {
        Self { server: server.to_owned(), what: what.into(), kind }
    }

    /// The server's name.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Whether it could not be started or reached, now or any more.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self.kind, Kind::Unreachable | Kind::Closed)
    }

    /// Whether it did not answer in time.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.kind == Kind::Slow
    }

    /// Whether the description of the server is at fault, and not the server.
    #[must_use]
    pub fn is_description(&self) -> bool {
        self.kind == Kind::Description
    }

    /// Whether the server answered, but not so that it can be used.
    pub(super) fn is_wrong(&self) -> bool {
        self.kind == Kind::Wrong
    }

    /// What happened, without the server's name.
    pub(super) fn what(&self) -> &str {
        &self.what
    }

    pub(super) fn with_last_words(mut self, words: &str) -> Self {
        self.what.push_str(words);
        self
    }

    /// As the end of a call that was never sent.
    pub(super) fn into_failure(self) -> Failure {
        Failure::new(self.to_string()).unreachable()
    }
}

//! Whatever does the work, the same handle: remote agents as tools and as roots, what their stops came to, and the suite.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not know as such")]

#[path = "backends/remote.rs"]
mod remote;

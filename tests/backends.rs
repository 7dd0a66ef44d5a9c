//! Whatever does the work, the same handle: remote agents as tools and as roots, what their stops came to,
//! and the suite.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not know as such")]

#[path = "backends/graceful.rs"]
mod graceful;
#[path = "backends/questions.rs"]
mod questions;
#[path = "backends/remote.rs"]
mod remote;
#[path = "backends/sessions.rs"]
mod sessions;
#[path = "backends/settable.rs"]
mod settable;
#[path = "backends/subjects.rs"]
mod subjects;
#[path = "backends/suite.rs"]
mod suite;

//! The kit for whole runs: gate tools, the model without a wire, and the closing invariants, which must also
//! be seen to break.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not know as such")]

#[path = "suites/broken.rs"]
mod broken;
#[path = "suites/model.rs"]
mod model;
#[path = "suites/process.rs"]
mod process;
#[path = "suites/tools.rs"]
mod tools;

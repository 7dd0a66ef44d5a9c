//! The `safepoint` binary.
fn main() {}

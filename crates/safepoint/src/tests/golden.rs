//! Golden files of every serialised form of the engine: one value of each variant of each type, as it is written today.
//!
//! Structs are written out in full, and enums through `each!`, so that a field or a variant without a golden line does not
//! compile. `cargo xtask tidy` (rule `golden`) finds a serialised type that is not named in these files.

mod facts;
mod lines;
mod messages;
mod receipts;
mod samples;
mod sessions;
mod states;

use safepoint_golden::Golden;

/// A golden file of this crate.
fn golden(name: &str) -> Golden {
    Golden::file(env!("CARGO_MANIFEST_DIR"), &format!("tests/golden/{name}.txt"))
}

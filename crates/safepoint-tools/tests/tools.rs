//! The tools as a model meets them: called by a real run, stopped by a real stop.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use safepoint_tools::{Root, Toolbox, process::Processes};

/// The tools that are tested here: their commands are free.
fn toolbox(root: Root, processes: Processes) -> Toolbox {
    Toolbox::new(root, processes)
}

mod tools {
    pub(crate) mod support;

    mod files;
    mod golden;
    mod http;
    mod search;
    mod shell;
    mod sleep;
    mod starts;
    mod unseen;
}

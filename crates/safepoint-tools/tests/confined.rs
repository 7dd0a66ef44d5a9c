//! The shell tool with confinement on: what holds of it without one holds here, stops above all, and what the model reads.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use safepoint_tools::{Confinement, Layers, Root, SecretFiles, Toolbox, process::Processes};

/// The tools that are tested here: their commands are confined as far as this system enforces it.
fn toolbox(root: Root, processes: Processes) -> Toolbox {
    let confinement = Confinement::new(root.path(), layers()).unwrap();
    Toolbox::confining(root, processes, SecretFiles::default(), confinement)
}

fn layers() -> Layers {
    let probe =
        std::process::Command::new(env!("CARGO_BIN_EXE_safepoint-guard")).args(Layers::probe()).output();
    Layers::read(&String::from_utf8_lossy(&probe.unwrap().stdout))
}

mod tools {
    #[expect(dead_code, reason = "the tests of other tools use the rest")]
    pub(crate) mod support;

    mod outside;
    mod shell;
    mod starts;
}

//! The fuzz targets: by cargo-fuzz where it and a nightly toolchain are here, else under proptest.

use std::process::{Command, Stdio};

use crate::cargo;

/// How long each target is driven, in seconds.
const SECONDS: &str = "-max_total_time=60";
const TARGETS: [&str; 7] = ["sse", "openai", "anthropic", "gemini", "responses", "history", "arguments"];

/// What was asked for. Exhaustive: the targets proper, or the short run of every toolchain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    Full,
    Smoke,
}

impl Depth {
    pub(crate) fn of(args: &[String]) -> Self {
        if args.iter().any(|arg| arg == "--smoke") { Self::Smoke } else { Self::Full }
    }
}

pub(crate) fn fuzz(depth: Depth) -> anyhow::Result<()> {
    if depth == Depth::Full && has_cargo_fuzz() {
        return TARGETS.iter().try_for_each(|target| {
            cargo::run_nightly(&["fuzz", "run", "--features", "libfuzzer", target, "--", SECONDS])
        });
    }
    if depth == Depth::Full {
        println!("cargo-fuzz or a nightly toolchain is not here: the targets run under proptest");
    }
    cargo::run(&["test", "--manifest-path", "fuzz/Cargo.toml"])
}

fn has_cargo_fuzz() -> bool {
    let asked = Command::new("cargo")
        .args(["+nightly", "fuzz", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok_and(|status| status.success())
}

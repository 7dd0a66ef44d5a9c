//! The fuzz targets: by cargo-fuzz where it and a nightly toolchain are here, else under proptest.

use std::process::{Command, Stdio};

use crate::cargo;

/// How long each target is driven, in seconds.
const SECONDS: &str = "-max_total_time=60";
const TARGETS: [&str; 7] = ["sse", "openai", "anthropic", "gemini", "responses", "history", "arguments"];

/// The targets proper, or with `--smoke` the short run of every toolchain.
pub(crate) fn fuzz(args: &[String]) -> anyhow::Result<()> {
    if args.iter().any(|arg| arg == "--smoke") {
        return smoke();
    }
    if has_cargo_fuzz() {
        return TARGETS.iter().try_for_each(|target| {
            cargo::run_nightly(&["fuzz", "run", "--features", "libfuzzer", target, "--", SECONDS])
        });
    }
    println!("cargo-fuzz or a nightly toolchain is not here: the targets run under proptest");
    smoke()
}

/// Every target under proptest.
pub(crate) fn smoke() -> anyhow::Result<()> {
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

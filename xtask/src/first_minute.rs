//! `first-minute`: what a newcomer waits for, from cold: crates, the demo, the binary, and a build for development.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};

use crate::{cargo, features, rust_version, source};

/// How many crates the binary may be built of, with its default features. To raise it, measure a first build before and
/// after, and say both in the commit.
const CRATES: usize = 220;
/// How many crates the engine may have without schemas, and a program with one wire that needs none.
const ENGINE: usize = 50;
const HELLO: usize = 110;
/// The longest that the first command of the README may take from cold on two cores.
const DEMO: Duration = Duration::from_secs(5 * 60);
/// The longest for a build for development.
const DEV: Duration = Duration::from_secs(3 * 60);
/// The largest binary as it is published (the profile `dist`), in bytes.
const BINARY: u64 = 25 << 20;

/// What is measured. Exhaustive: all of it, by hand, or the one figure that does not depend on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measured {
    All,
    Crates,
}

impl Measured {
    pub(crate) fn of(args: &[String]) -> anyhow::Result<Self> {
        match args {
            [] => Ok(Self::All),
            [only] if only == "--crates" => Ok(Self::Crates),
            _ => bail!("first-minute takes --crates or nothing, not {args:?}"),
        }
    }
}

/// Measures, prints, and fails on what is over its bound.
pub(crate) fn first_minute(measured: Measured) -> anyhow::Result<()> {
    let count = |count: &usize| count.to_string();
    let mut rows = vec![
        row("crates of the binary", crates(BINARY_TREE)?, CRATES, count),
        row("crates of the engine without schemas", crates(ENGINE_TREE)?, ENGINE, count),
        row("crates of one wire without schemas", crates(WIRE_TREE)? + OWN, HELLO, count),
    ];
    println!("{}", rust_version::check(&features::metadata()?)?);
    if measured == Measured::All {
        let place = source::root().join("target/first-minute");
        cargo_at(&["fetch", "--locked"], &place)?;
        let demo = from_cold(&["run", "--release", "--", "demo"], &place)?;
        let dev = from_cold(&["build"], &place)?;
        from_cold(&["build", "--profile", "dist", "-p", "safepoint-cli"], &place)?;
        let binary =
            fs::metadata(place.join("dist/safepoint")).context("the binary is not where it was built")?;
        rows.push(row("cargo run --release -- demo, from cold", demo, DEMO, |time| {
            format!("{} s", time.as_secs())
        }));
        rows.push(row("the binary", binary.len(), BINARY, |bytes| format!("{} MiB", bytes >> 20)));
        rows.push(row("cargo build, from cold", dev, DEV, |time| format!("{} s", time.as_secs())));
        fs::remove_dir_all(&place).context("the build could not be removed")?;
    }
    let within = rows.iter().all(|(_, within)| *within);
    for (reported, _) in rows {
        println!("{reported}");
    }
    if !within {
        bail!("a figure is over its bound");
    }
    Ok(())
}

fn row<T: PartialOrd>(name: &str, found: T, bound: T, show: impl Fn(&T) -> String) -> (String, bool) {
    let within = found <= bound;
    let mark = if within { "" } else { "  OVER" };
    (format!("{name}: {} (at most {}){mark}", show(&found), show(&bound)), within)
}

/// What the binary is built of, its build scripts included.
const BINARY_TREE: &[&str] = &["-p", "safepoint-cli", "-e", "normal,build"];
const ENGINE_TREE: &[&str] = &["-p", "safepoint", "--no-default-features", "-e", "normal"];
const WIRE_TREE: &[&str] =
    &["-p", "safepoint-models", "--no-default-features", "--features", "openai", "-e", "normal"];
/// The program itself.
const OWN: usize = 1;

/// How many crates that is, each version once.
fn crates(of: &[&str]) -> anyhow::Result<usize> {
    let args = ["tree", "--locked", "--prefix", "none", "--no-dedupe"];
    let reported = cargo::command().args(args).args(of).current_dir(source::root()).output();
    let reported = reported.context("cargo tree could not be started")?;
    if !reported.status.success() {
        bail!("cargo tree failed: {}", String::from_utf8_lossy(&reported.stderr).trim());
    }
    let listed = String::from_utf8_lossy(&reported.stdout);
    let named: BTreeSet<String> =
        listed.lines().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
    Ok(named.len())
}

/// How long it takes with nothing built.
fn from_cold(args: &[&str], place: &Path) -> anyhow::Result<Duration> {
    if place.exists() {
        fs::remove_dir_all(place).context("an earlier build could not be removed")?;
    }
    let begun = Instant::now();
    cargo_at(args, place)?;
    Ok(begun.elapsed())
}

fn cargo_at(args: &[&str], place: &Path) -> anyhow::Result<()> {
    println!("== cargo {}", args.join(" "));
    let mut command = cargo::command();
    command.args(args).current_dir(source::root()).env("CARGO_TARGET_DIR", place).stdin(Stdio::null());
    let status = command.status().context("cargo could not be started")?;
    if !status.success() {
        bail!("cargo {} failed", args.join(" "));
    }
    Ok(())
}

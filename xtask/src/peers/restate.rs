//! The durable engine Restate, from npm: it brings sessions to nodes, as a placement.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context as _, ensure};

use super::{Absent, Tally, node, target};
use crate::{source, stores};

/// The version that the scenarios are known to fit.
const PACKAGE: &str = "@restatedev/restate-server@1.7.12";
/// The tests of the placement, each a scenario: what it is called, and its words.
const SCENARIOS: [(&str, &str); 5] = [
    (
        "wakes::a_wake_reaches_a_node_by_the_engine",
        "a wake reaches a node, and one that comes twice makes one owner",
    ),
    (
        "wakes::what_a_node_cannot_take_is_taken_by_another_one",
        "what a node that is full or drains cannot take is taken elsewhere",
    ),
    (
        "wakes::the_engine_turns_to_a_node_that_lives",
        "a node dies, and the engine brings wakes to another one",
    ),
    ("wakes::no_session_waits_for_the_engine", "an engine that is killed delays no session"),
    ("figures::figures_of_restate", "each of many wakes makes an owner"),
];

/// Runs them all against one server each.
pub(super) fn peers(tally: &mut Tally) -> anyhow::Result<()> {
    let cache = target().join("peers").join("restate");
    fs::create_dir_all(&cache).with_context(|| format!("{} cannot be made", cache.display()))?;
    match node::install(PACKAGE, &cache).and_then(|()| program(&cache)) {
        Err(Absent(reason)) => SCENARIOS.iter().for_each(|(_, what)| tally.skip(&title(what), &reason)),
        Ok(program) => {
            for (test, what) in SCENARIOS {
                tally.take(&title(what), || run(&program, test));
            }
        }
    }
    Ok(())
}

fn title(what: &str) -> String {
    format!("restate of npm: {what}")
}

/// The program inside the package for this machine.
fn program(cache: &Path) -> Result<PathBuf, Absent> {
    let folders = fs::read_dir(cache.join("node_modules/@restatedev")).into_iter().flatten().flatten();
    let mut programs = folders.map(|folder| folder.path().join("bin/restate-server"));
    programs
        .find(|program| program.is_file())
        .ok_or_else(|| Absent("it has no program for this machine".into()))
}

fn run(program: &Path, test: &str) -> anyhow::Result<()> {
    let output = stores::restate(&format!("restate::{test}"))
        .env("SAFEPOINT_RESTATE_SERVER", program)
        .current_dir(source::root())
        .stdin(Stdio::null())
        .output()
        .context("cargo could not be started")?;
    let words = String::from_utf8_lossy(&output.stdout);
    words.lines().filter(|line| line.starts_with("wake to owned")).for_each(|line| println!("peers: {line}"));
    ensure!(words.contains("1 passed"), "{words}{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

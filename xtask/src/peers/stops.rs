//! `stop-table`: what the stop of each target does, by `stop-test`, and the table of them all in `docs/stops.md`.
//!
//! A target is a folder of `crates/safepoint-stop-test/targets`, with a recipe and, for a library, its adapter. What is had is installed by
//! name from a registry; nothing is filled in by hand.

mod install;
mod kept;
mod page;
mod recipe;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::{cargo, optional, source};

use self::{
    kept::Kept,
    recipe::{Places, Recipe},
};

use super::{Absent, Tally, target};

/// Where the recipes are, and what came of them.
fn recipes() -> PathBuf {
    source::root().join("crates/safepoint-stop-test/targets")
}

fn results() -> PathBuf {
    source::root().join("docs/stops")
}

/// Runs the targets that are named, all without a name, and writes the table anew. `--table` only writes it.
pub(crate) fn stop_table(args: &[String]) -> anyhow::Result<()> {
    let recipes = Recipe::all(&recipes())?;
    let (flags, names): (Vec<&String>, Vec<&String>) = args.iter().partition(|arg| arg.starts_with("--"));
    if let Some(unknown) = names.iter().find(|name| !recipes.iter().any(|recipe| recipe.id == ***name)) {
        let all: Vec<&str> = recipes.iter().map(|recipe| &*recipe.id).collect();
        bail!("there is no target `{unknown}`; these are: {}", all.join(", "));
    }
    if let Some(unknown) = flags.iter().find(|flag| **flag != "--table") {
        bail!("stop-table [--table] [NAME…]; there is no `{unknown}`");
    }
    fs::create_dir_all(results())?;
    if flags.is_empty() {
        cargo::run(&["build", "--release", "-p", "safepoint-stop-test"])?;
        for recipe in recipes.iter().filter(|recipe| names.is_empty() || names.contains(&&recipe.id)) {
            match measured(recipe) {
                Ok(kept) => kept.write(&results().join(format!("{}.json", recipe.id)))?,
                Err(Absent(why)) => println!("stop-table: {} is skipped: {why}", recipe.id),
            }
        }
    }
    fs::write(source::root().join("docs/stops.md"), page::written(&recipes, &results())?)?;
    Ok(())
}

/// Installs it and tries its stop.
fn measured(recipe: &Recipe) -> Result<Kept, Absent> {
    if let Some(why) = &recipe.skip {
        return Err(Absent(why.clone()));
    }
    let cache = target().join("stops").join(&recipe.id);
    let absent = |error: anyhow::Error| Absent(format!("{error:#}"));
    println!("stop-table: {} {} is installed and tried", recipe.name, recipe.version);
    let here = recipes().join(&recipe.id);
    install::install(recipe, &here, &cache)?;
    let own = if recipe.is_ours() { optional::released().map_err(absent)? } else { PathBuf::new() };
    let places = Places { here: &here, cache: &cache, own: &own };
    let seen = tried((&target().join("release/stop-test"), REPEATED), recipe, &places).map_err(absent)?;
    Kept::of(recipe, &seen).map_err(absent)
}

/// How often each row of the table is repeated, and each of our own in CI.
const REPEATED: &str = "3";
const ONCE: &str = "1";

fn tried((program, times): (&Path, &str), recipe: &Recipe, places: &Places<'_>) -> anyhow::Result<Value> {
    let mut command = Command::new(program);
    command.arg(recipe.target(places)).args(["--json", "-", "--times", times]);
    let home = places.here.join("home");
    if home.is_dir() {
        command.arg("--home").arg(home);
    }
    // A way that is meant to wait for a boundary is no stop of the table.
    for way in recipe.stop.keys().filter(|way| !recipe.graceful.contains(way)) {
        command.args(["--way", way]);
    }
    for variable in recipe.variables(places) {
        command.args(["--env", &variable]);
    }
    let output = command.args(&recipe.args).output().context("stop-test could not be started")?;
    let said = || format!("stop-test says: {}", String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).with_context(said)?;
    if output.status.code() == Some(NOT_DRIVEN) {
        bail!(said());
    }
    Ok(seen)
}

/// How `stop-test` ends where the target could not be driven.
const NOT_DRIVEN: i32 = 3;

/// Our own program by each of its doors: nothing of it may be worse than *ends late*.
pub(super) fn ours(binary: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    cargo::run(&["build", "-p", "safepoint-stop-test"])?;
    for recipe in Recipe::all(&recipes())?.iter().filter(|recipe| recipe.is_ours()) {
        let here = recipes().join(&recipe.id);
        let cache = target().join("stops").join(&recipe.id);
        let places = Places { here: &here, cache: &cache, own: binary };
        tally.take(&format!("the stop test of {}", recipe.name), || {
            let kept = Kept::of(recipe, &tried((&target().join("debug/stop-test"), ONCE), recipe, &places)?)?;
            let bad: Vec<String> = kept.rows.iter().filter_map(kept::KeptRow::bad).collect();
            if !bad.is_empty() {
                bail!("{}", bad.join("; "));
            }
            Ok(())
        });
    }
    Ok(())
}

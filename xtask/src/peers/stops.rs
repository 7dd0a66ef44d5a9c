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

/// What is done with each target. Exhaustive: the flags name these.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StopTask {
    /// It is tried by its own door.
    Itself,
    /// Our own program drives it, and is stopped: what its receipt says is judged.
    ByOurs,
    /// It is installed only, so that trials that come later have the machine for themselves.
    Install,
    /// The table is written anew.
    Table,
}

const FLAGS: [(&str, StopTask); 3] =
    [("--ours", StopTask::ByOurs), ("--install", StopTask::Install), ("--table", StopTask::Table)];

/// Tries the targets that are named, all without a name, and writes the table anew; or does what a flag says.
pub(crate) fn stop_table(args: &[String]) -> anyhow::Result<()> {
    let recipes = Recipe::all(&recipes())?;
    let (flags, names): (Vec<&String>, Vec<&String>) = args.iter().partition(|arg| arg.starts_with("--"));
    if let Some(unknown) = names.iter().find(|name| !recipes.iter().any(|recipe| recipe.id == ***name)) {
        let all: Vec<&str> = recipes.iter().map(|recipe| &*recipe.id).collect();
        bail!("there is no target `{unknown}`; these are: {}", all.join(", "));
    }
    let task = match flags[..] {
        [] => StopTask::Itself,
        [flag] => {
            FLAGS.into_iter().find(|(name, _)| name == flag).map(|(_, task)| task).with_context(|| {
                format!("stop-table [--ours|--install|--table] [NAME…]; there is no `{flag}`")
            })?
        }
        _ => bail!("stop-table takes one flag"),
    };
    fs::create_dir_all(driven())?;
    if matches!(task, StopTask::Itself | StopTask::ByOurs) {
        cargo::run(&["build", "--release", "-p", "safepoint-stop-test"])?;
    }
    for recipe in recipes.iter().filter(|recipe| names.is_empty() || names.contains(&&recipe.id)) {
        let file = format!("{}.json", recipe.id);
        let done = match task {
            StopTask::Itself => measured(recipe).map(|kept| Some((results(), kept))),
            StopTask::ByOurs if recipe.is_driven_by_ours() => {
                measured_by_ours(recipe).map(|kept| Some((driven(), kept)))
            }
            StopTask::Install => installed(recipe).map(|_| None),
            StopTask::ByOurs | StopTask::Table => Ok(None),
        };
        match done {
            Ok(Some((folder, kept))) => kept.write(&folder.join(file))?,
            Ok(None) => {}
            Err(Absent(why)) => println!("stop-table: {} is skipped: {why}", recipe.id),
        }
    }
    let page = page::written(&recipes, &results(), &driven())?;
    Ok(fs::write(source::root().join("docs/stops.md"), page)?)
}

/// What came of those that our own program drove.
fn driven() -> PathBuf {
    results().join("driven")
}

/// Installs it. Where it is then.
fn installed(recipe: &Recipe) -> Result<[PathBuf; 2], Absent> {
    if let Some(why) = &recipe.skip {
        return Err(Absent(why.clone()));
    }
    let (here, cache) = (recipes().join(&recipe.id), target().join("stops").join(&recipe.id));
    println!("stop-table: {} {} is installed", recipe.name, recipe.version);
    install::install(recipe, &here, &cache)?;
    Ok([here, cache])
}

/// Installs it and tries its stop.
fn measured(recipe: &Recipe) -> Result<Kept, Absent> {
    let [here, cache] = installed(recipe)?;
    let own = if recipe.is_ours() { optional::released().map_err(absent)? } else { PathBuf::new() };
    let places = Places { here: &here, cache: &cache, own: &own };
    // A way that is meant to wait for a boundary is no stop of the table.
    let ways: Vec<&str> =
        recipe.stop.keys().filter(|way| !recipe.graceful.contains(way)).map(String::as_str).collect();
    let asked = Asked { target: recipe.target(&places), ways: &ways, times: REPEATED, jobs: BESIDE };
    let seen = tried(&target().join("release/stop-test"), &asked, recipe, &places).map_err(absent)?;
    Kept::of(recipe, &seen).map_err(absent)
}

/// Installs it, has our own program drive it, and tries the stop of that.
fn measured_by_ours(recipe: &Recipe) -> Result<Kept, Absent> {
    /// As a terminal and a supervisor stop a program. After a kill there is no receipt.
    const WAYS: [&str; 4] = ["sigint", "sigint-twice", "sigterm", "sighup"];
    let [here, cache] = installed(recipe)?;
    let own = optional::released().map_err(absent)?;
    let places = Places { here: &here, cache: &cache, own: &own };
    let asked = Asked { target: recipe.by_ours(&places), ways: &WAYS, times: REPEATED, jobs: BESIDE };
    let seen = tried(&target().join("release/stop-test"), &asked, recipe, &places).map_err(absent)?;
    Kept::of(recipe, &seen).map_err(absent)
}

fn absent(error: anyhow::Error) -> Absent {
    Absent(format!("{error:#}"))
}

/// How often each row of the table is repeated, and each of our own in CI.
const REPEATED: &str = "3";
const ONCE: &str = "1";
/// How many trials run beside each other, so that rows of different days can be compared; and in CI, where ours mostly wait.
const BESIDE: &str = "4";
const MANY: &str = "8";

/// What `stop-test` is asked.
struct Asked<'a> {
    target: String,
    ways: &'a [&'a str],
    times: &'a str,
    jobs: &'a str,
}

fn tried(program: &Path, asked: &Asked<'_>, recipe: &Recipe, places: &Places<'_>) -> anyhow::Result<Value> {
    let mut command = Command::new(program);
    command.arg(&asked.target).args(["--json", "-", "--times", asked.times, "--jobs", asked.jobs]);
    let home = places.here.join("home");
    if home.is_dir() {
        command.arg("--home").arg(home);
    }
    for way in asked.ways {
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
            let is_for_ci = |way: &&String| recipe.ci.is_empty() || recipe.ci.contains(way);
            let ways: Vec<&str> = recipe.stop.keys().filter(is_for_ci).map(String::as_str).collect();
            let asked = Asked { target: recipe.target(&places), ways: &ways, times: ONCE, jobs: MANY };
            let seen = tried(&target().join("debug/stop-test"), &asked, recipe, &places)?;
            let kept = Kept::of(recipe, &seen)?;
            let bad: Vec<String> = kept.rows.iter().filter_map(kept::KeptRow::bad).collect();
            if !bad.is_empty() {
                bail!("{}", bad.join("; "));
            }
            Ok(())
        });
    }
    Ok(())
}

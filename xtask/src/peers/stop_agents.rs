//! The agents of the guide to the stop test, one in each language: a user copies them, so the test itself must find nothing in them.
//!
//! A language that is not on this machine is skipped. A program that does not compile there is a failure.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use crate::{cargo, source};

use super::{Absent, Tally, mcp::install::quietly, node, target};

/// An agent in one language.
struct Agent {
    language: &'static str,
    /// Why it cannot be had here, if so.
    look: fn(&Path) -> Result<(), Absent>,
    /// Builds it, and returns the command that starts it.
    build: fn(&Path) -> anyhow::Result<String>,
}

const AGENTS: [Agent; 5] = [
    Agent { language: "Python", look: look_for_python, build: build_python },
    Agent { language: "TypeScript", look: look_for_typescript, build: build_typescript },
    Agent { language: "Go", look: look_for_go, build: build_go },
    Agent { language: "Java", look: |_| runs("javac", &["--release", "17", "-version"]), build: build_java },
    Agent { language: "Rust", look: |_| Ok(()), build: build_rust },
];

/// The scenarios that an agent with a model and a tool can express.
const SCENARIOS: [&str; 12] = [
    "control",
    "at-once",
    "headers-awaited",
    "stream-silent",
    "stream-drips",
    "in-arguments",
    "tool",
    "one-of-three",
    "retry",
    "twice",
    "sixteen",
    "after-end",
];

const TYPESCRIPT: [&str; 2] = ["typescript@7.0.2", "@types/node@26.6.7"];

/// Each agent is judged `ends` in each scenario.
pub(super) fn peers(tally: &mut Tally) -> anyhow::Result<()> {
    cargo::run(&["build", "-p", "safepoint-stop-test", "--bin", "stop-test", "--example", "agent"])?;
    for Agent { language, look, build } in AGENTS {
        let title = format!("the stop test of the guide's agent in {language}");
        let cache = target().join("stop-agents").join(language.to_lowercase());
        fs::create_dir_all(&cache).with_context(|| format!("{} cannot be made", cache.display()))?;
        match look(&cache) {
            Err(Absent(reason)) => tally.skip(&title, &reason),
            Ok(()) => tally.take(&title, || judged(&build(&cache)?)),
        }
    }
    Ok(())
}

/// What ends late on a busy machine is tried once more, with nothing beside it.
fn judged(command: &str) -> anyhow::Result<()> {
    let mut seen = verdicts(&tried(command, &["--jobs", "6"])?);
    let late: Vec<String> =
        seen.iter().filter(|(_, verdict)| *verdict == "ends-late").map(|(name, _)| name.clone()).collect();
    for name in late {
        seen.extend(verdicts(&tried(command, &["--jobs", "1", "--only", &name])?));
    }
    let worse = worse(&seen);
    ensure!(worse.is_empty(), "{}", worse.join("; "));
    Ok(())
}

fn tried(command: &str, args: &[&str]) -> anyhow::Result<Value> {
    let output = Command::new(target().join("debug/stop-test"))
        .arg(format!("adapter:{command}"))
        .args(["--require", "ends", "--times", "1", "--json", "-"])
        .args(args)
        .output()
        .context("stop-test could not be started")?;
    let said = || format!("stop-test says: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).with_context(said)
}

/// The verdict of each scenario, or why there is none.
fn verdicts(seen: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let row = |row: &Value| {
        let trial = &row["trials"][0];
        let judged = &trial["judged"]["judged"];
        let found = [&judged["verdict"], &trial["not-expressed"], &trial["not-reached"]];
        (text(&row["scenario"]["name"]), found.into_iter().map(text).collect())
    };
    seen["rows"].as_array().into_iter().flatten().map(row).collect()
}

/// Each scenario whose verdict is not the best one, in words.
fn worse(seen: &BTreeMap<String, String>) -> Vec<String> {
    let found = |name: &str| seen.get(name).map_or("it was not tried", |verdict| verdict.as_str()).to_owned();
    let all = SCENARIOS.into_iter().map(|name| (name, found(name)));
    all.filter(|(_, found)| found != "ends").map(|(name, found)| format!("{name}: {found}")).collect()
}

/// Where the agents are that are not built by cargo.
fn place() -> PathBuf {
    source::root().join("examples/stop-test")
}

fn runs(program: &str, args: &[&str]) -> Result<(), Absent> {
    quietly(Command::new(program).args(args), program)
}

fn look_for_python(_: &Path) -> Result<(), Absent> {
    let newer = "import sys; assert sys.version_info >= (3, 11), 'it is older than 3.11'";
    runs("python3", &["-c", newer])
}

fn build_python(_: &Path) -> anyhow::Result<String> {
    Ok(format!("python3 {}", place().join("agent.py").display()))
}

fn look_for_typescript(cache: &Path) -> Result<(), Absent> {
    node::install_all(&TYPESCRIPT, cache)
}

fn build_typescript(cache: &Path) -> anyhow::Result<String> {
    // Beside its packages: there the compiler finds the types of node.
    fs::copy(place().join("agent.ts"), cache.join("agent.ts"))?;
    let mut compiler = node::node(cache);
    compiler
        .arg("node_modules/typescript/bin/tsc")
        .args(["--strict", "--target", "es2022", "--module", "nodenext"]);
    compiled(compiler.args(["--types", "node", "--outDir", "out", "agent.ts"]).current_dir(cache))?;
    let program = node::node(cache).get_program().to_string_lossy().into_owned();
    Ok(format!("{program} {}", cache.join("out/agent.js").display()))
}

fn look_for_go(_: &Path) -> Result<(), Absent> {
    let output = Command::new("go").args(["env", "GOVERSION"]).output();
    let output = output.map_err(|error| Absent(format!("go could not be started: {error}")))?;
    let version = String::from_utf8_lossy(&output.stdout);
    if is_new_enough(version.trim()) { Ok(()) } else { Err(Absent(format!("go is {version}, and not 1.22"))) }
}

/// Whether this version of Go has what the agent uses: 1.22, or any later one.
fn is_new_enough(version: &str) -> bool {
    const OLDEST: u32 = 22;
    let minor =
        version.strip_prefix("go1.").and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    minor.and_then(|minor| minor.parse().ok()).is_some_and(|minor: u32| minor >= OLDEST)
}

fn build_go(cache: &Path) -> anyhow::Result<String> {
    let program = cache.join("agent");
    compiled(Command::new("go").args(["build", "-o"]).arg(&program).arg("agent.go").current_dir(place()))?;
    Ok(program.display().to_string())
}

fn build_java(cache: &Path) -> anyhow::Result<String> {
    let mut compiler = Command::new("javac");
    compiler
        .args(["--release", "17", "-Xlint:all", "-Werror", "-d"])
        .arg(cache)
        .args(["Agent.java", "Json.java"]);
    compiled(compiler.current_dir(place()))?;
    // Many short lives: what makes a long one fast only delays them.
    Ok(format!("java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp {} Agent", cache.display()))
}

fn build_rust(_: &Path) -> anyhow::Result<String> {
    Ok(target().join("debug/examples/agent").display().to_string())
}

/// Runs a compiler; all that it says where it refuses.
fn compiled(compiler: &mut Command) -> anyhow::Result<()> {
    let output = compiler.output().context("the compiler could not be started")?;
    if !output.status.success() {
        let said = [output.stdout, output.stderr].concat();
        bail!("it does not compile: {}", String::from_utf8_lossy(&said).trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(name: &str, trial: &Value) -> Value {
        json!({"scenario": {"name": name}, "trials": [trial]})
    }

    #[test]
    fn a_go_that_is_too_old_is_none() {
        assert!(is_new_enough("go1.22") && is_new_enough("go1.26.8") && is_new_enough("go1.23rc1"));
        assert!(!is_new_enough("go1.19.8") && !is_new_enough(""));
    }

    /// S15.18: an agent that is worse than `ends` in one scenario, or cannot be brought to it, fails with its name.
    #[test]
    fn each_scenario_is_expected_to_end() {
        let ends = json!({"judged": {"judged": {"verdict": "ends"}}});
        let all: Vec<Value> = SCENARIOS.into_iter().map(|name| row(name, &ends)).collect();
        assert!(worse(&verdicts(&json!({ "rows": all }))).is_empty());
        let late = json!({"judged": {"judged": {"verdict": "ends-late"}}});
        let mut some = all[2..].to_vec();
        some.extend([row("tool", &late), row("retry", &json!({"not-expressed": "it gives up"}))]);
        let found = worse(&verdicts(&json!({ "rows": some })));
        let expected = [
            "control: it was not tried",
            "at-once: it was not tried",
            "tool: ends-late",
            "retry: it gives up",
        ];
        assert_eq!(found, expected);
    }
}

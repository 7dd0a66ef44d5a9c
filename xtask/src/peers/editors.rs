//! Editors written with others' libraries, which drive `safepoint acp`: what they see of a prompt, and that nothing runs behind a
//! cancel.

mod acpx;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::{Absent, Tally, mcp::install, node, target};

/// The versions that the scenarios are known to fit.
const PYTHON: &str = "agent-client-protocol==0.12.1";
const SDK: &str = "@agentclientprotocol/sdk@2.4.0";

/// What an editor does, and what must be so of what it saw.
type Scenario = (&'static str, &'static str, fn(&Value) -> anyhow::Result<()>);

const SCENARIOS: [Scenario; 6] = [
    ("a prompt, and the session shown again", "plain", plain),
    ("a cancel while a command runs", "cancel-working", cancelled),
    ("a cancel while the agent asks", "cancel-asking", cancelled),
    ("a cancel right behind its prompt", "cancel-at-once", cancelled),
    ("a request that is cancelled", "cancel-request", request_cancelled),
    ("an editor that quits while a command runs", "quit", quit),
];

/// How long the commands would sleep: so much that a process of it is known by it.
const MARK: u32 = 86_400;

/// An editor, by the command that runs its program.
struct Editor {
    name: &'static str,
    folder: &'static str,
    install: fn(&Path) -> Result<(PathBuf, PathBuf), Absent>,
    lacks: &'static [&'static str],
}

const EDITORS: [Editor; 2] = [
    // Its prompts have no way to cancel a request.
    Editor {
        name: "agent-client-protocol of PyPI",
        folder: "python",
        install: python,
        lacks: &["cancel-request"],
    },
    Editor { name: "@agentclientprotocol/sdk", folder: "sdk", install: sdk, lacks: &["quit"] },
];

/// Runs every scenario with every editor.
pub(super) fn peers(binary: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    let mut mark = MARK;
    for editor in &EDITORS {
        let cache = target().join("peers").join(format!("editors-{}", editor.folder));
        fs::create_dir_all(&cache).with_context(|| format!("{} cannot be made", cache.display()))?;
        let installed = (editor.install)(&cache);
        for (what, scenario, check) in SCENARIOS {
            if editor.lacks.contains(&scenario) {
                continue;
            }
            mark += 1;
            let title = format!("{} drives safepoint acp: {what}", editor.name);
            match &installed {
                Err(Absent(reason)) => tally.skip(&title, reason),
                Ok((program, script)) => tally.take(&title, || {
                    let saw = run((program, script), &cache, (scenario, mark), &Agent::of(binary, &cache)?)?;
                    check(&saw).with_context(|| format!("it saw {saw}"))
                }),
            }
        }
    }
    acpx::peers(binary, tally)
}

/// Our program as an agent, with a separate store.
struct Agent {
    words: Vec<String>,
}

impl Agent {
    fn of(binary: &Path, cache: &Path) -> anyhow::Result<Self> {
        let home = cache.join("home");
        if home.exists() {
            fs::remove_dir_all(&home)?;
        }
        fs::create_dir_all(&home)?;
        let store = home.join("store.db");
        let config = home.join("config.toml");
        fs::write(&config, "")?;
        let words = [
            &*binary.to_string_lossy(),
            "acp",
            "--model",
            "practice",
            "--tools",
            "shell",
            "--sandbox",
            "off",
            "--grace",
            "0",
            "--store",
            &*store.to_string_lossy(),
            "--config",
            &*config.to_string_lossy(),
        ];
        Ok(Self { words: words.map(str::to_owned).to_vec() })
    }
}

fn run(
    (program, script): (&Path, &Path),
    cache: &Path,
    (scenario, mark): (&str, u32),
    agent: &Agent,
) -> anyhow::Result<Value> {
    let output = Command::new(program)
        .arg(script)
        .args([scenario, &mark.to_string()])
        .args(&agent.words)
        .current_dir(cache)
        .stdin(Stdio::null())
        .output()
        .context("the editor could not be started")?;
    let reported = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "it ended with {}: {errors}", output.status);
    let last = reported.lines().last().context("it printed nothing")?;
    serde_json::from_str(last).with_context(|| format!("it printed {last}"))
}

fn plain(saw: &Value) -> anyhow::Result<()> {
    ensure!(saw["first"] == "end_turn", "the prompt did not end by itself");
    ensure!(saw["meta"]["safepoint"]["item"] == "item-1", "the answer names no item");
    ensure!(
        saw["loaded"] == json!(["user_message_chunk", "agent_message_chunk"]),
        "the session was not shown again"
    );
    ended(saw)
}

fn cancelled(saw: &Value) -> anyhow::Result<()> {
    ensure!(saw["first"] == "cancelled", "the prompt has another end");
    nothing_behind_it(saw)
}

fn request_cancelled(saw: &Value) -> anyhow::Result<()> {
    ensure!(saw["first"] == "error -32800", "the cancelled request has another end");
    nothing_behind_it(saw)
}

fn nothing_behind_it(saw: &Value) -> anyhow::Result<()> {
    ensure!(saw["alive"] == 0, "the command ran behind the answer");
    ensure!(saw["second"] == "end_turn", "the prompt behind the cancel did not run");
    ensure!(saw["late"] == 0, "updates of the cancelled prompt came behind its answer");
    ended(saw)
}

fn quit(saw: &Value) -> anyhow::Result<()> {
    ensure!(saw["alive_after"] == 0, "the command outlived the editor");
    ensure!(saw["exit"] == 0, "the agent did not end by itself");
    Ok(())
}

fn ended(saw: &Value) -> anyhow::Result<()> {
    ensure!(saw["listed"] == true, "the session is not in the list");
    quit(saw)
}

fn python(cache: &Path) -> Result<(PathBuf, PathBuf), Absent> {
    let python = install::from_pypi(cache, &[PYTHON])?;
    Ok((python, written(cache, "editor.py", include_str!("editors/editor.py"))?))
}

fn sdk(cache: &Path) -> Result<(PathBuf, PathBuf), Absent> {
    node::install(SDK, cache)?;
    let program = PathBuf::from(node::node(cache).get_program());
    Ok((program, written(cache, "editor.mjs", include_str!("editors/editor.mjs"))?))
}

fn written(cache: &Path, name: &str, text: &str) -> Result<PathBuf, Absent> {
    let path = cache.join(name);
    fs::write(&path, text)
        .map_err(|error| Absent(format!("{} cannot be written: {error}", path.display())))?;
    Ok(path)
}

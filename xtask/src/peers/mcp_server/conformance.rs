//! The protocol's own suite for servers: those of its scenarios that ask for no tool, resource or prompt of a server that is made for it.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, bail};

use super::{
    super::{Absent, Tally, mcp::install, serving::Serving, target},
    Setting,
};

/// A scenario, and the agent that is asked.
const SCENARIOS: [(&str, &str); 6] = [
    ("server-initialize", "helper"),
    ("ping", "helper"),
    ("tools-list", "helper"),
    ("tools-call-error", "test_error_handling"),
    ("server-sse-multiple-streams", "helper"),
    ("dns-rebinding-protection", "helper"),
];

/// Those that need what an agent is not, and why.
const LEFT_OUT: [(&str, &str); 8] = [
    (
        "tools-call-*",
        "each wants a tool that is made for it, without arguments and with a fixed answer; ours takes a text",
    ),
    ("json-schema-2020-12", "it wants a tool that is made for it"),
    ("elicitation-*", "it wants a tool that asks for its forms; ours asks for a decision"),
    ("server-sse-polling", "it wants a tool that closes its own stream"),
    ("logging-set-level", "no logging is offered"),
    ("completion-complete", "no completion is offered"),
    ("resources-*", "no resources are offered"),
    ("prompts-*", "no prompts are offered"),
];

/// Adds the token to what the suite sends, which has no way to be given one, and changes nothing else.
const PROXY: &str = include_str!("proxy.mjs");

pub(super) fn run(setting: &Setting, tally: &mut Tally) -> anyhow::Result<()> {
    let cache = target().join("peers").join("mcp-conformance");
    fs::create_dir_all(&cache).with_context(|| format!("{} cannot be made", cache.display()))?;
    let installed = install::conformance(&cache);
    let title = |scenario: &str| format!("the conformance suite of npm against our server: {scenario}");
    for (scenario, agent) in SCENARIOS {
        match &installed {
            Err(Absent(reason)) => tally.skip(&title(scenario), reason),
            Ok((node, suite)) => {
                tally.take(&title(scenario), || asked(setting, (node, suite), (scenario, agent)));
            }
        }
    }
    for (scenario, reason) in LEFT_OUT {
        tally.skip(&title(scenario), reason);
    }
    Ok(())
}

fn asked(
    setting: &Setting,
    (node, suite): (&Path, &Path),
    (scenario, agent): (&str, &str),
) -> anyhow::Result<()> {
    setting.fresh()?;
    let serving = setting.serve()?;
    let script = setting.home.join("proxy.mjs");
    fs::write(&script, PROXY)?;
    let proxy = Serving::start(Command::new(node).arg(&script).args([&serving.at(""), &setting.token()?]))?;
    let output = Command::new(node)
        .arg(suite)
        .args(["server", "--url", &proxy.at(&format!("mcp/{agent}")), "--scenario", scenario])
        .current_dir(&setting.home)
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    const LINES: usize = 12;
    let out = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = out.lines().collect();
    bail!("{}", lines[lines.len().saturating_sub(LINES)..].join("\n"))
}

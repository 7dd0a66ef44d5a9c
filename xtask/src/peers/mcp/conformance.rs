//! The protocol's own suite for clients: each of its scenarios is a server that judges who talks to it.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, bail};

use super::{
    super::{Absent, Tally, target},
    install,
};

/// A scenario, and what our binary does in it.
const SCENARIOS: [(&str, &str); 3] = [
    ("initialize", "mcp ls"),
    ("tools_call", r#"mcp call suite add_numbers --args {"a":5,"b":3}"#),
    ("sse-retry", "mcp call suite test_reconnection"),
];

/// The suite judges by the order in which it sees two connections, which a busy machine may turn round.
const TRIES: usize = 3;

/// Those that need what we do not have, and why.
const LEFT_OUT: [(&str, &str); 2] = [
    ("elicitation-sep1034-client-defaults", "questions of a server to the person are refused"),
    ("auth/*", "there is no OAuth: a server that wants it is given a header"),
];

pub(super) fn run(binary: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    let cache = target().join("peers").join("mcp-conformance");
    fs::create_dir_all(&cache).with_context(|| format!("{} cannot be made", cache.display()))?;
    let installed = install::conformance(&cache);
    let title = |scenario: &str| format!("the conformance suite of npm: {scenario}");
    for (scenario, args) in SCENARIOS {
        match &installed {
            Err(Absent(reason)) => tally.skip(&title(scenario), reason),
            Ok((node, suite)) => tally.take(&title(scenario), || {
                let client = client(binary, &cache, args)?;
                let mut reported = String::new();
                for _ in 0..TRIES {
                    let output = Command::new(node)
                        .arg(suite)
                        .args(["client", "--scenario", scenario, "--command", &client])
                        .current_dir(&cache)
                        .output()?;
                    if output.status.success() {
                        return Ok(());
                    }
                    let out = String::from_utf8_lossy(&output.stdout);
                    let words = String::from_utf8_lossy(&output.stderr);
                    reported = format!("{}{}", tail(&out), tail(&words));
                }
                bail!("{reported}")
            }),
        }
    }
    for (scenario, reason) in LEFT_OUT {
        tally.skip(&title(scenario), reason);
    }
    Ok(())
}

/// A program that the suite starts with an address behind it, and which has our binary talk to that.
fn client(binary: &Path, cache: &Path, args: &str) -> anyhow::Result<String> {
    let path = cache.join("client.sh");
    let quoted: Vec<String> = args.split(' ').map(|word| format!("'{word}'")).collect();
    let text = format!(
        "printf '[mcp.suite]\\nurl = \"%s\"\\n' \"$1\" > suite.toml\nexec '{}' {} --config suite.toml\n",
        binary.display(),
        quoted.join(" ")
    );
    fs::write(&path, text)?;
    Ok(format!("/bin/sh {}", path.display()))
}

fn tail(text: &str) -> String {
    const LINES: usize = 12;
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

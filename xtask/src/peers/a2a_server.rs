//! The client of a2a-sdk, from PyPI, against our server: it reads tasks as the protocol means them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, ensure};

use super::{Absent, Tally, facts::fresh, mcp::install, serving::Serving, target};

/// The version that the scenarios are known to fit.
const SDK: [&str; 1] = ["a2a-sdk[all]==1.3.0"];
const CLIENT: &str = include_str!("a2a_server.py");

/// The bindings, as a card names them.
const BINDINGS: [&str; 2] = ["JSONRPC", "HTTP+JSON"];

/// What is asked, by its name in the client's file.
const SCENARIOS: [(&str, &str); 6] = [
    ("a stream, the task and its list say the same", "send"),
    ("a message without a stream waits for its task", "whole"),
    ("a cancel, and the same one again", "cancel"),
    ("a reader that goes away and comes back", "resubscribe"),
    ("a message to a task that works", "steer"),
    ("a question, and what is a yes to it", "answer"),
];

/// The agent, offered over A2A: it asks before it runs a command.
const CONFIG: &str = r#"
[server]
listen = "127.0.0.1:0"
[agents.helper]
model = "practice"
tools = "shell,sleep"
approve = "ask"
surfaces = ["a2a"]
"#;

/// Runs every scenario over every binding.
pub(super) fn peers(binary: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    let cache = target().join("peers").join("a2a-server");
    fs::create_dir_all(&cache).with_context(|| format!("{} cannot be made", cache.display()))?;
    let installed = install::from_pypi(&cache, &SDK);
    for binding in BINDINGS {
        for (what, scenario) in SCENARIOS {
            let title = format!("a2a-sdk of PyPI over {binding}: {what}");
            match &installed {
                Ok(python) => {
                    let setting = Setting { binary, home: cache.join("home"), python };
                    tally.take(&title, || setting.run(scenario, binding));
                }
                Err(Absent(reason)) => tally.skip(&title, reason),
            }
        }
    }
    Ok(())
}

/// What a scenario runs with.
struct Setting<'a> {
    binary: &'a Path,
    home: PathBuf,
    python: &'a PathBuf,
}

impl Setting<'_> {
    /// Serves the agent to a new token, and runs the client over it.
    fn run(&self, scenario: &str, binding: &str) -> anyhow::Result<()> {
        fresh(&self.home)?;
        fs::create_dir_all(self.home.join("config/safepoint"))?;
        fs::create_dir_all(self.home.join("run"))?;
        fs::write(self.home.join("config/safepoint/config.toml"), CONFIG)?;
        let serving = Serving::practice(self.ours().arg("serve"))?;
        let token = self.token()?;
        let client = self.home.join("client.py");
        fs::write(&client, CLIENT)?;
        let output = Command::new(self.python)
            .arg(&client)
            .args([scenario, binding, &serving.at("a2a/helper"), &token])
            .stdin(Stdio::null())
            .output()
            .context("the client could not be started")?;
        let words = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "the client says: {}", words.lines().last().unwrap_or_default());
        Ok(())
    }

    /// A token that may also answer questions.
    fn token(&self) -> anyhow::Result<String> {
        let args = ["token", "new", "--name", "peer", "--scope", "read,talk,approve,stop"];
        let output = self.ours().args(args).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let token =
            text.split_whitespace().map(|word| word.trim_matches('"')).find(|word| word.starts_with("spt_"));
        token.map(str::to_owned).with_context(|| format!("no token was made: {text}"))
    }

    /// Our binary, with a fresh home.
    fn ours(&self) -> Command {
        let mut command = Command::new(self.binary);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", &self.home);
        for (name, folder) in [
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_RUNTIME_DIR", "run"),
        ] {
            command.env(name, self.home.join(folder));
        }
        command.current_dir(Path::new(&self.home)).stdin(Stdio::null());
        command
    }
}

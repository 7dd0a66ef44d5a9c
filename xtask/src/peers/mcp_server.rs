//! The client of PyPI's mcp and the protocol's own suite, against an agent that we offer as a tool.

mod conformance;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, ensure};

use super::{Absent, Tally, facts::fresh, mcp::install, serving::Serving, target};

const CLIENT: &str = include_str!("mcp_server.py");

/// The versions that the client speaks: the ones with an `initialize`, and the one whose requests stand alone.
const VERSIONS: [&str; 2] = ["legacy", "2026-07-28"];

/// What is asked, by its name in the client's file.
const SCENARIOS: [(&str, &str); 4] = [
    ("two calls in one session, with progress", "plain"),
    ("a cancel while a command runs", "cancel"),
    ("a question: yes, no, and no answer", "decide"),
    ("a client that goes away while a command runs", "leave"),
];

/// How long the commands would sleep: so much that a process of it is known by it.
const MARK: u32 = 87_400;

/// The agents. The second has the name of a tool of the suite.
const CONFIG: &str = r#"
[server]
listen = "127.0.0.1:0"
[agents.helper]
model = "practice"
tools = "shell"
surfaces = ["mcp"]
[agents.test_error_handling]
model = "practice"
surfaces = ["mcp"]
"#;

/// How the client reaches the agent. Exhaustive: both ways.
#[derive(Clone, Copy, Debug)]
enum Over {
    Pipes,
    Http,
}

/// Runs every scenario with every version over both, and then the suite.
pub(super) fn peers(binary: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    let cache = target().join("peers").join("mcp-server");
    fs::create_dir_all(&cache).with_context(|| format!("{} cannot be made", cache.display()))?;
    let installed = install::from_pypi(&cache, &[install::PYTHON]);
    let setting = Setting { binary: binary.to_owned(), home: cache.join("home") };
    let mut mark = MARK;
    for (transport, over) in [("over pipes", Over::Pipes), ("over HTTP", Over::Http)] {
        for version in VERSIONS {
            for (what, scenario) in SCENARIOS {
                mark += 1;
                let title = format!("mcp of PyPI ({version}) {transport}: {what}");
                match &installed {
                    Ok(python) => {
                        tally.take(&title, || setting.run(python, (scenario, version, mark), over));
                    }
                    Err(Absent(reason)) => tally.skip(&title, reason),
                }
            }
        }
    }
    conformance::run(&setting, tally)
}

/// Our binary, with a fresh home.
struct Setting {
    binary: PathBuf,
    home: PathBuf,
}

impl Setting {
    fn run(
        &self,
        python: &Path,
        (scenario, version, mark): (&str, &str, u32),
        over: Over,
    ) -> anyhow::Result<()> {
        self.fresh()?;
        let client = self.home.join("client.py");
        fs::write(&client, CLIENT)?;
        let mut command = Command::new(python);
        command.arg(&client).args([scenario, version, &mark.to_string()]);
        let serving = match over {
            Over::Http => Some(self.serve()?),
            Over::Pipes => None,
        };
        match &serving {
            Some(serving) => command.args(["http", &serving.at("mcp/helper"), &self.token()?]),
            None => command.arg("stdio").args(self.alone()),
        };
        let output = command.stdin(Stdio::null()).output().context("the client could not be started")?;
        let words = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "the client says: {}", words.lines().last().unwrap_or_default());
        Ok(())
    }

    fn fresh(&self) -> anyhow::Result<()> {
        fresh(&self.home)?;
        fs::create_dir_all(self.home.join("config/safepoint"))?;
        fs::create_dir_all(self.home.join("run"))?;
        fs::write(self.config(), CONFIG)?;
        Ok(())
    }

    fn config(&self) -> PathBuf {
        self.home.join("config/safepoint/config.toml")
    }

    /// The words of a server that the client starts itself.
    fn alone(&self) -> Vec<String> {
        let (store, config) = (self.home.join("store.db"), self.config());
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let mut words = vec![path(&self.binary)];
        words.extend(["mcp", "serve", "--agent", "helper", "--sandbox", "off", "--store"].map(str::to_owned));
        words.extend([path(&store), "--config".to_owned(), path(&config)]);
        words
    }

    /// A server of both agents.
    fn serve(&self) -> anyhow::Result<Serving> {
        Serving::practice(self.ours().args(["serve", "--sandbox", "off"]))
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

    fn ours(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", &self.home);
        for (name, folder) in [
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_RUNTIME_DIR", "run"),
        ] {
            command.env(name, self.home.join(folder));
        }
        command.current_dir(&self.home).stdin(Stdio::null());
        command
    }
}

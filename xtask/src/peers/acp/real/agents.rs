//! The agents: their packages, how each is started, and the settings that put a scripted model behind it. `{PORT}` is the
//! model server's, `{HOME}` the agent's own.

use serde_json::{Value, json};

use super::super::super::Reach;

mod by_hand;

/// An agent from npm.
pub(super) struct Agent {
    /// With its version, as the table names it.
    pub(super) name: &'static str,
    pub(super) folder: &'static str,
    pub(super) packages: &'static [&'static str],
    pub(super) node: Node,
    /// Its program below `node_modules/.bin`, and its arguments.
    pub(super) program: &'static str,
    pub(super) args: &'static str,
    /// Files in its home.
    pub(super) files: &'static [(&'static str, &'static str)],
    pub(super) env: &'static [(&'static str, &'static str)],
    /// The variable that holds its key, which is handed on by name.
    pub(super) key: &'static str,
    pub(super) shell: Shell,
    /// Arguments with which it is started before, to leave a daemon that does its work.
    pub(super) daemon: Option<&'static str>,
}

/// Which node runs it. Exhaustive: what the agents ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// None: it is a binary.
    Unneeded,
    /// The one of this machine, 20 or later.
    Any,
    /// A Node of version 22 from npm.
    Own22,
}

/// What it calls its shell, and how that is given a command.
pub(super) struct Shell {
    pub(super) tool: &'static str,
    pub(super) args: fn(&str) -> Value,
}

const QWEN_SETTINGS: &str = r#"{"security": {"auth": {"selectedType": "openai"}}, "privacy": {"usageStatisticsEnabled": false},
 "general": {"disableAutoUpdate": true, "enableAutoUpdate": false}}"#;

const GEMINI_SETTINGS: &str = r#"{"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": false},
 "general": {"disableAutoUpdate": true, "enableAutoUpdate": false}, "telemetry": {"enabled": false}}"#;

/// Codex asks before each command, and runs it outside its sandbox.
const CODEX_UNTRUSTED: &str = r#"model = "mock"
model_provider = "mock"
approval_policy = "untrusted"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.mock]
name = "mock"
base_url = "http://127.0.0.1:{PORT}/v1"
wire_api = "responses"
env_key = "MOCK_KEY"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false
"#;

/// The agents of this reach.
pub(super) fn agents(reach: Reach) -> impl Iterator<Item = &'static Agent> {
    let by_hand = by_hand::AGENTS.iter().filter(move |_| reach == Reach::All);
    AGENTS.iter().chain(by_hand)
}

/// Those for which CI has time.
const AGENTS: [Agent; 3] = [
    Agent {
        name: "Zed's codex-acp 0.16.0",
        folder: "codex-zed",
        packages: &["@zed-industries/codex-acp@0.16.0"],
        node: Node::Any,
        program: "codex-acp",
        args: "",
        files: &[(".codex/config.toml", CODEX_UNTRUSTED)],
        env: &[("NO_BROWSER", "1"), ("CODEX_HOME", "{HOME}/.codex")],
        key: "MOCK_KEY",
        shell: Shell { tool: "shell_command", args: |command| json!({ "command": command }) },
        daemon: None,
    },
    Agent {
        name: "Gemini CLI 0.61.0",
        folder: "gemini",
        packages: &["@google/gemini-cli@0.61.0"],
        node: Node::Any,
        program: "gemini",
        args: "--acp --model gemini-2.5-flash",
        files: &[(".gemini/settings.json", GEMINI_SETTINGS)],
        env: &[("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:{PORT}")],
        key: "GEMINI_API_KEY",
        shell: Shell { tool: "run_shell_command", args: |command| json!({ "command": command }) },
        daemon: None,
    },
    Agent {
        name: "Qwen Code 0.15.10",
        folder: "qwen",
        packages: &["@qwen-code/qwen-code@0.15.10"],
        node: Node::Any,
        program: "qwen",
        args: "--acp",
        files: &[(".qwen/settings.json", QWEN_SETTINGS)],
        env: &[("OPENAI_BASE_URL", "http://127.0.0.1:{PORT}/v1"), ("OPENAI_MODEL", "mock")],
        key: "OPENAI_API_KEY",
        shell: Shell {
            tool: "run_shell_command",
            args: |command| json!({ "command": command, "is_background": false }),
        },
        daemon: None,
    },
];

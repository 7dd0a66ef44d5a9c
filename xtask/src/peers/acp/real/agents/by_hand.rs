//! The agents for which CI has no time: `cargo xtask peers acp --all`.

use serde_json::json;

use super::{Agent, Node, Shell};

/// Its own adapter starts Codex in a mode that asks before what leaves its sandbox.
const CODEX_ON_REQUEST: &str = r#"model = "mock"
model_provider = "mock"
approval_policy = "on-request"
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

const OPENCODE: &str = r#"{"autoupdate": false, "share": "disabled", "model": "mock/mock", "small_model": "mock/mock",
 "permission": {"bash": "ask"},
 "provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "name": "mock",
  "options": {"baseURL": "http://127.0.0.1:{PORT}/v1", "apiKey": "fake"},
  "models": {"mock": {"name": "mock", "tool_call": true, "limit": {"context": 100000, "output": 4096}}}}}}"#;

const PI_MODELS: &str = r#"{"providers": {"mock": {"baseUrl": "http://127.0.0.1:{PORT}/v1", "api": "openai-completions",
 "apiKey": "fake", "models": [{"id": "mock", "name": "mock", "reasoning": false, "input": ["text"], "contextWindow": 100000,
 "maxTokens": 4096, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}]}}}"#;

const PI_SETTINGS: &str = r#"{"defaultProvider": "mock", "defaultModel": "mock", "quietStartup": true}"#;

const CLINE: &str = r#"{"version": 1, "lastUsedProvider": "openai-compatible", "modes": {}, "providers": {"openai-compatible": {
 "settings": {"provider": "openai-compatible", "apiKey": "fake", "model": "mock", "baseUrl": "http://127.0.0.1:{PORT}/v1"},
 "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}}}"#;

const CLINE_ENV: &[(&str, &str)] = &[("CLINE_PROVIDER", "openai-compatible"), ("CLINE_MODEL", "mock")];

/// Cline over ACP, its hub running before it or not.
const fn cline(name: &'static str, daemon: Option<&'static str>) -> Agent {
    Agent {
        name,
        folder: "cline",
        packages: &["cline@3.0.65"],
        node: Node::Unneeded,
        program: "cline",
        args: "--acp",
        files: &[(".cline/data/settings/providers.json", CLINE)],
        env: CLINE_ENV,
        key: "CLINE_API_KEY",
        shell: Shell { tool: "run_commands", args: |command| json!({ "commands": [command] }) },
        daemon,
    }
}

pub(super) const AGENTS: [Agent; 5] = [
    Agent {
        name: "OpenCode 1.18.33",
        folder: "opencode",
        packages: &["opencode-ai@1.18.33"],
        node: Node::Unneeded,
        // Where its script, which is not run, would copy it from.
        program: "../opencode-linux-x64/bin/opencode",
        args: "acp",
        files: &[(".config/opencode/opencode.json", OPENCODE)],
        env: &[("OPENCODE_DISABLE_AUTOUPDATE", "1"), ("OPENCODE_DISABLE_MODELS_FETCH", "1")],
        key: "MOCK_KEY",
        shell: Shell {
            tool: "bash",
            args: |command| json!({ "command": command, "description": "a command" }),
        },
        daemon: None,
    },
    Agent {
        name: "codex-acp 2.6.0",
        folder: "codex",
        packages: &["@agentclientprotocol/codex-acp@2.6.0"],
        node: Node::Any,
        program: "codex-acp",
        args: "",
        files: &[(".codex/config.toml", CODEX_ON_REQUEST)],
        env: &[("NO_BROWSER", "1"), ("CODEX_HOME", "{HOME}/.codex")],
        key: "MOCK_KEY",
        shell: Shell { tool: "exec_command", args: |command| json!({ "cmd": command }) },
        daemon: None,
    },
    Agent {
        name: "pi 0.87.1 with pi-acp 0.0.34",
        folder: "pi",
        packages: &["@earendil-works/pi-coding-agent@0.87.1", "pi-acp@0.0.34"],
        node: Node::Own22,
        program: "pi-acp",
        args: "",
        files: &[(".pi/agent/models.json", PI_MODELS), (".pi/agent/settings.json", PI_SETTINGS)],
        env: &[("PI_OFFLINE", "1")],
        key: "MOCK_KEY",
        shell: Shell { tool: "bash", args: |command| json!({ "command": command }) },
        daemon: None,
    },
    cline("Cline 3.0.65, alone", None),
    cline("Cline 3.0.65, its hub running", Some("hub start")),
];

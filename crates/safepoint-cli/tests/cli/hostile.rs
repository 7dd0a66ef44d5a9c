//! Whatever comes from outside is shown by every command, and obeyed by no terminal; what stdout does not take is no
//! success of any.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use safepoint_testkit::a2a::{A2aManners, A2aServer, A2aWire, Streams, WorkStep};
use serde_json::json;
use tokio::runtime::Runtime;

use super::{
    terminal::Terminal,
    trace::journal::{self, Journal},
};
use crate::{Practice, safepoint};

/// It would write the clipboard, ring, clear the screen, colour it by a one-character code, reverse what is read and end
/// a line by another.
const HOSTILE: &str = "\x1b]52;c;cm0=\x07\x1b[2J\u{9b}31m\u{85}\u{202e}\u{2066}\u{7f}\u{2028}";

/// What of a text a terminal would obey.
fn obeyed(text: &str) -> Vec<char> {
    let reverses = |c: &char| matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().filter(|c| c.is_control() && !matches!(c, '\n' | '\t') || reverses(c)).collect()
}

/// A store with hostile sessions, a config file with a hostile server, a hostile model, and hostile agents over either wire.
struct Outside {
    folder: tempfile::TempDir,
    model: Practice,
    peers: Peers,
}

/// What hostile agents do: they say something, ask something, or refuse all.
const WAYS: [&str; 3] = ["says", "asks", "refuses"];

/// Agents over A2A, one for each way, which live on threads of their own.
struct Peers {
    servers: [A2aServer; WAYS.len()],
    _runtime: Runtime,
}

impl Peers {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let hostile = || HOSTILE.to_owned();
        let start = |way: &str| {
            let manners = A2aManners::honest(A2aWire::V1).word(HOSTILE);
            let manners = match way {
                "says" => manners.plan([
                    WorkStep::Note(hostile()),
                    WorkStep::Say(hostile()),
                    WorkStep::Fail(hostile()),
                ]),
                "asks" => manners.plan([WorkStep::Ask(hostile())]),
                _ => manners.streams(Streams::Refused),
            };
            runtime.block_on(async { A2aServer::start(manners).unwrap() })
        };
        Self { servers: WAYS.map(start), _runtime: runtime }
    }

    /// Where the one is that does this.
    fn url(&self, way: &str) -> &str {
        let place = WAYS.iter().position(|known| *known == way).unwrap();
        self.servers[place].url()
    }
}

/// The session of a journal that was written by hand: no name that the command line would give.
fn named() -> String {
    format!("s{HOSTILE}")
}

impl Outside {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store.db");
        hostile_journal().keep(&store, &named());
        let server = folder.path().join("server.sh");
        let program = |text: &str| text.replace("HOSTILE", json!(HOSTILE).to_string().trim_matches('"'));
        fs::write(&server, program(SERVER)).unwrap();
        fs::write(folder.path().join("agent.sh"), program(AGENT)).unwrap();
        let config = format!("[mcp.s]\ncommand = '/bin/sh'\nargs = ['{}']\n", server.display());
        fs::write(folder.path().join("config.toml"), config).unwrap();
        let call = json!({"calls": [{"name": "shell", "args": {"command": format!("echo '{HOSTILE}'")}}]});
        let unknown = json!({"calls": [{"name": HOSTILE, "args": {HOSTILE: HOSTILE}}]});
        let said = json!({"text": HOSTILE});
        let replies: Vec<_> = (0..8).flat_map(|_| [call.clone(), unknown.clone(), said.clone()]).collect();
        let model = Practice::start(&json!({"replies": replies}).to_string());
        Self { folder, model, peers: Peers::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = safepoint(args);
        command.envs(self.variables());
        command
    }

    fn variables(&self) -> [(&'static str, String); 3] {
        let home = self.folder.path().to_str().unwrap().to_owned();
        [("HOME", home.clone()), ("XDG_RUNTIME_DIR", home), ("USER", format!("eve{HOSTILE}"))]
    }

    /// `%` stands for the model, an agent that does something, the store and the config file, each where it is taken.
    fn args(&self, line: &[&str]) -> Vec<String> {
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        let of = |arg: &&str| match *arg {
            "%model" => {
                vec!["--base-url".into(), self.model.url.clone(), "--model".into(), "openai:x".into()]
            }
            "%store" => vec!["--store".into(), text(self.path("store.db"))],
            "%config" => vec!["--config".into(), text(self.path("config.toml"))],
            arg => match arg.split_once('-') {
                Some(("%a2a", way)) => vec!["--backend".into(), format!("a2a:{}", self.peers.url(way))],
                Some(("%acp", way)) => {
                    let agent = format!("acp:exec sh '{}' {way}", text(self.path("agent.sh")));
                    vec!["--backend".into(), agent]
                }
                _ => vec![arg.replace('%', HOSTILE)],
            },
        };
        line.iter().flat_map(of).collect()
    }

    /// The output of a command. A chat gets one line of input.
    fn output(&self, line: &[&str]) -> Output {
        let args = self.args(line);
        let mut command = self.command(&args.iter().map(String::as_str).collect::<Vec<_>>());
        if line[0] != "chat" {
            return command.output().unwrap();
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut chat = command.spawn().unwrap();
        if chat.stdin.take().unwrap().write_all(b"go\ngo\ngo\n").is_err() {
            // It took one look at its arguments.
        }
        chat.wait_with_output().unwrap()
    }
}

/// A server of tools in a few lines of shell: hostile in its name, its words, its errors, its notices and on stderr.
const SERVER: &str = r#"
echo 'up: HOSTILE' | sed 's/\\u001b/\x1b/g' >&2
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) said='"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"HOSTILE","version":"HOSTILE"}}' ;;
    *'"tools/list"'*) said='"result":{"tools":[{"name":"good","description":"HOSTILE","inputSchema":{"type":"object"}},{"name":"HOSTILE","description":"x","inputSchema":{"type":"object"}},{"name":"bad","inputSchema":"HOSTILE"},{"name":"error","inputSchema":{"type":"object"}},{"name":"dies","inputSchema":{"type":"object"}}]}' ;;
    *'"name":"error"'*) said='"error":{"code":-32000,"message":"HOSTILE"}' ;;
    *'"name":"dies"'*) exit 3 ;;
    *'"tools/call"'*)
      token=$(printf '%s' "$line" | sed -n 's/.*"progressToken":\([0-9]*\).*/\1/p')
      printf '%s\n' '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":'"$token"',"progress":1,"message":"HOSTILE"}}'
      said='"result":{"content":[{"type":"text","text":"HOSTILE"}]}' ;;
    *'"id":'*) said='"error":{"code":-32601,"message":"HOSTILE"}' ;;
    *) continue ;;
  esac
  printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"','"$said"'}'
done
"#;

/// An agent over ACP in a few lines of shell: hostile in its name, in what it says, does, asks and refuses, and on stderr.
const AGENT: &str = r#"
echo 'up: HOSTILE' | sed 's/\\u001b/\x1b/g' >&2
tell() { printf '%s\n' '{"jsonrpc":"2.0",'"$1"'}'; }
update() { tell '"method":"session/update","params":{"sessionId":"s","update":{'"$1"'}}'; }
ends() { tell '"id":'"$prompt"',"result":{"stopReason":"end_turn"}'; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) tell '"id":'"$id"',"result":{"protocolVersion":1,"agentCapabilities":{},"agentInfo":{"name":"HOSTILE","version":"HOSTILE"},"authMethods":[]}' ;;
    *'"session/new"'*) tell '"id":'"$id"',"result":{"sessionId":"s"}' ;;
    *'"session/prompt"'*)
      prompt=$id
      update '"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"HOSTILE"}'
      update '"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"HOSTILE"}'
      update '"sessionUpdate":"tool_call","toolCallId":"t","title":"HOSTILE","kind":"execute","status":"in_progress"'
      update '"sessionUpdate":"tool_call_update","toolCallId":"t","title":"HOSTILE","status":"failed"'
      case $1 in
        says) ends ;;
        refuses) tell '"id":'"$id"',"error":{"code":-32603,"message":"HOSTILE"}' ;;
        asks) tell '"id":"q","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"u","title":"HOSTILE","kind":"execute","rawInput":{"HOSTILE":"HOSTILE"}},"options":[{"optionId":"y","name":"HOSTILE","kind":"allow_once"},{"optionId":"n","name":"HOSTILE","kind":"reject_once"}]}' ;;
      esac ;;
    *'"id":"q"'*) ends ;;
  esac
done
"#;

fn hostile_journal() -> Journal {
    let mut all = journal::eventful();
    all.fact(
        70_000,
        2,
        &[],
        json!({"fact": "steer_taken", "round": 2,
        "steers": [{"id": "steer_1", "message": {"text": HOSTILE}}]}),
    );
    all
}

/// Every command that tells something, with what comes from outside in each of its arguments that takes any.
const COMMANDS: &[&[&str]] = &[
    &["sessions", "ls", "%store"],
    &["sessions", "ls", "%store", "--json"],
    &["sessions", "show", "s%", "%store"],
    &["sessions", "show", "s%", "%store", "--json"],
    &["sessions", "show", "none%", "%store"],
    &["sessions", "rm", "none%", "%store"],
    &["sessions", "rm", "none%", "%store", "--json"],
    &["trace", "s%", "%store"],
    &["trace", "s%", "%store", "--json"],
    &["trace", "none%", "%store"],
    &["store", "check", "%store"],
    &["store", "check", "%store", "--json"],
    &["store", "export", "s%", "%store"],
    &["approvals", "s%", "%store"],
    &["approvals", "s%", "%store", "--json"],
    &["approve", "s%", "%", "%store"],
    &["approve", "s%", "--args", "%", "%store"],
    &["deny", "s%", "%", "--message", "%", "%store"],
    &["respond", "none%", "%", "--message", "%", "%store", "--json"],
    &["push", "s%", "%", "%store"],
    &["push", "s%", "%", "%store", "--json"],
    &["push", "none%", "%", "%store"],
    &["push", "s%", "%", "--policy", "preempt", "--at", "%", "%store"],
    &["steer", "s%", "%", "%store"],
    &["withdraw", "s%", "%", "%store"],
    &["withdraw", "s%", "item-1", "%store"],
    &["stop", "s%", "--because", "%", "%store"],
    &["stop", "none%", "--because", "%", "%store", "--json"],
    &["stop", "s%", "--at", "%", "%store"],
    &["resume", "none%", "%store", "%model"],
    &["resume", "s%", "%store", "%model", "--json"],
    &["mcp", "ls", "%config"],
    &["mcp", "ls", "--json", "%config"],
    &["mcp", "ls", "%", "%config"],
    &["mcp", "call", "s", "good", "%config"],
    &["mcp", "call", "s", "good", "--json", "%config"],
    &["mcp", "call", "s", "error", "%config"],
    &["mcp", "call", "s", "dies", "%config"],
    &["mcp", "call", "s", "dies", "--json", "%config"],
    &["mcp", "call", "s", "%", "%config"],
    &["mcp", "call", "s", "good", "--args", "%", "%config"],
    &["run", "%", "%model", "--json", "--approve", "auto", "--tools", "shell"],
    &["run", "%", "%model", "%config", "--json", "--tools", "mcp"],
    &["run", "%", "--session", "%", "%model"],
    &["run", "%", "--model", "%"],
    &["run", "%", "--base-url", "%"],
    &["run", "%", "--root", "%"],
    &["run", "%", "--config", "%"],
    &["run", "%", "--tools", "%"],
    &["run", "%", "--attach", "%"],
    &["run", "%", "--backend", "%:%"],
    &["run", "%", "--backend", "acp:echo '%' >&2; echo '%'; exit 3"],
    &["run", "%", "--replay", "%"],
    &["run", "--%"],
    &["%"],
    &["chat", "--session", "%"],
    &["practice", "--script", "%"],
];

/// The same for external agents, and for a chat with its input from a pipe.
const OTHERS: &[&[&str]] = &[
    &["run", "go", "--json", "%a2a-says"],
    &["run", "go", "--json", "%a2a-asks"],
    &["run", "go", "--json", "%a2a-refuses"],
    &["run", "go", "--json", "%acp-says"],
    &["run", "go", "--json", "%acp-asks"],
    &["run", "go", "--json", "%acp-refuses"],
    &["run", "go", "%a2a-says"],
    &["run", "go", "%a2a-asks"],
    &["run", "go", "%a2a-refuses"],
    &["run", "go", "%acp-says"],
    &["run", "go", "%acp-asks"],
    &["run", "go", "%acp-refuses"],
    &["chat", "%a2a-says"],
    &["chat", "%acp-says"],
    &["chat", "%acp-asks"],
    &["chat", "%model", "--tools", "shell", "--approve", "auto"],
];

/// S11.5: no command lets a terminal obey what comes from outside.
#[test]
fn what_comes_from_outside_is_shown_and_obeyed_by_no_terminal() {
    let outside = Outside::new();
    for line in COMMANDS {
        let output = outside.output(line);
        for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
            let text = String::from_utf8(bytes.clone()).unwrap();
            assert!(obeyed(&text).is_empty(), "{line:?}, {name}: {text:?}");
        }
        let all = [&output.stdout[..], &output.stderr].concat();
        assert!(!all.is_empty() || line.contains(&"approvals"), "{line:?} says nothing");
        assert!(!String::from_utf8_lossy(&all).contains("panicked"), "{line:?}");
    }
}

/// S11.5: nor what an external agent says, asks, refuses with, or calls itself. Its answer, and a model's,
/// stay unchanged where stdout is neither a terminal nor JSON.
#[test]
fn what_another_agent_says_is_shown_and_obeyed_by_no_terminal() {
    let outside = Outside::new();
    let mut faults = Vec::new();
    for line in OTHERS {
        let output = outside.output(line);
        let [said, printed] =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8(text.clone()).unwrap());
        let is_fine = obeyed(&printed).is_empty() && !printed.contains("panicked");
        let is_json = line.contains(&"--json");
        // A question without a user to answer it is not shown.
        let is_shown = line.contains(&"%a2a-asks") || format!("{said}{printed}").contains("]52;c;cm0=");
        if !is_fine || !is_shown || is_json && !obeyed(&said).is_empty() {
            faults.push(format!("{line:?}: {said:?} {printed:?}"));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// S11.5: on a terminal nothing that a model or a tool says is obeyed either, whatever the terminal can do.
#[test]
fn no_terminal_obeys_what_a_model_or_a_tool_says() {
    let outside = Outside::new();
    let run = ["run", "%", "%model", "--tools", "shell", "--approve", "auto"];
    for (line, term, quits) in [
        (&run[..], "xterm", false),
        (&run, "dumb", false),
        (&["mcp", "call", "s", "good", "%config"], "xterm", false),
        (&["trace", "s%", "%store"], "xterm", false),
        (&["run", "go", "%a2a-says"], "xterm", false),
        (&["run", "go", "%a2a-refuses"], "xterm", false),
        (&["run", "go", "%acp-says"], "xterm", false),
        (&["run", "go", "%acp-refuses"], "dumb", false),
        (&["chat", "%acp-says"], "xterm", true),
        (&["chat", "%model", "--tools", "shell", "--approve", "auto"], "xterm", true),
    ] {
        let (args, more) = (outside.args(line), outside.variables());
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let more = more.iter().map(|(name, value)| (*name, value.as_str()));
        let variables: Vec<(&str, &str)> = more.chain([("TERM", term)]).collect();
        let mut terminal = Terminal::spawn(&args, &variables);
        if quits {
            terminal.until("Enter sends");
            terminal.press("go\r");
            terminal.until("]52;c;cm0=");
            terminal.until("Enter sends");
            terminal.press("\x04");
        }
        let (_, screen) = terminal.end();
        let raw = terminal.raw();
        let shown: String = screen.lines().map(str::trim).collect();
        assert!(shown.contains("\\u{1b}]52;c;cm0=\\u{7}"), "it is shown: {line:?}: {screen}");
        for code in ["\x1b]52", "\x07", "\x1b[2J", "\u{9b}", "\u{85}", "\u{202e}", "\u{2066}", "\u{7f}"] {
            assert!(!raw.contains(code), "{line:?} in {term}: {code:?} in {raw:?}");
        }
    }
}

/// What writes to stdout, and nothing that would take long to do so.
const TELLING: &[&[&str]] = &[
    &["--help"],
    &["--version"],
    &["sessions", "ls", "%store"],
    &["sessions", "ls", "%store", "--json"],
    &["sessions", "show", "s%", "%store"],
    &["sessions", "show", "s%", "%store", "--json"],
    &["trace", "s%", "%store"],
    &["trace", "s%", "%store", "--json"],
    &["store", "check", "%store"],
    &["store", "export", "s%", "%store"],
    &["push", "s%", "hello", "%store"],
    &["mcp", "ls", "%config"],
    &["mcp", "ls", "%config", "--json"],
    &["mcp", "call", "s", "good", "%config"],
    &["demo"],
    &["run", "hello", "%model"],
    &["run", "hello", "%model", "--json"],
];

/// S11.5: a full disk is a failure and says so, and a reader that went away is one that has stopped it: of every command.
#[test]
fn what_stdout_does_not_take_is_no_success() {
    for line in TELLING {
        // A value that was shown is not shown again to the next.
        let outside = Outside::new();
        let args = outside.args(line);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = outside.command(&args).stdout(full).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{line:?}: {printed}");
        assert!(printed.contains("stdout cannot be written: No space left on device"), "{line:?}: {printed}");
        let outside = Outside::new();
        let args = outside.args(line);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = outside.command(&args).stdout(writer).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(10), "{line:?}: {printed}");
        assert!(!printed.contains("panicked"), "{line:?}: {printed}");
    }
}

/// S11.5: a run with the option to continue without a reader does so, and succeeds; on a full disk it fails.
#[test]
fn a_run_that_goes_on_without_a_reader_is_done_unless_the_disk_is_full() {
    let server = Practice::start(r#"{"replies":[{"text":"one"},{"text":"two"}]}"#);
    let args = ["run", "--base-url", &server.url, "--model", "openai:x", "hi", "--on-disconnect", "detach"];
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(safepoint(&args).stdout(writer).status().unwrap().code(), Some(0));
    let full = File::options().write(true).open("/dev/full").unwrap();
    assert_eq!(safepoint(&args).stdout(full).status().unwrap().code(), Some(1));
}

/// S11.5: a chat over pipes ends as a run does when its reader is gone.
#[test]
fn a_chat_without_a_reader_is_no_success() {
    let server = Practice::start(r#"{"replies":[{"text":"one"},{"text":"two"},{"text":"three"}]}"#);
    let args = ["chat", "--base-url", &server.url, "--model", "openai:x", "--tools", "none"];
    for (is_full, code) in [(true, 1), (false, 10)] {
        let stdout = if is_full {
            Stdio::from(File::options().write(true).open("/dev/full").unwrap())
        } else {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            writer.into()
        };
        let mut child =
            safepoint(&args).stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::null()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code));
    }
}

/// A file that the user asks for is like any other file of theirs: who may read it is what their umask says.
#[test]
fn a_page_follows_the_umask() {
    use std::os::unix::fs::PermissionsExt as _;
    let outside = Outside::new();
    for (umask, mode) in [("022", 0o644), ("077", 0o600), ("002", 0o664)] {
        let page = outside.path(&format!("{umask}.html"));
        let args = outside.args(&["trace", "s%", "%store", "--html", page.to_str().unwrap()]);
        let mut command = Command::new("sh");
        command.args(["-c", &format!("umask {umask}; exec \"$@\""), "sh", crate::BIN]).args(args);
        let output = command.envs(outside.variables()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(mode_of(&page), mode, "umask {umask}");
    }
    fn mode_of(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }
}

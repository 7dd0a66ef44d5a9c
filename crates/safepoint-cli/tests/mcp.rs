//! Servers of tools as a user meets them: the config file, `safepoint mcp`, a run with their tools, and what is left of
//! them when the program is killed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use safepoint_testkit::mcp::{self, ASKED, McpManners};
use safepoint_testkit::wait::until;
use serde_json::Value;

/// This very program, started again, is the server: it holds no test then.
#[test]
fn this_program_is_a_server_when_it_is_asked_to_be() {
    mcp::serve_if_asked();
    assert!(std::env::var(ASKED).is_err(), "a server never returns");
}

/// A config file, and the logs of its servers.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new(servers: usize) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        let text: String = (0..servers).map(|number| place.entry(number)).collect();
        fs::write(place.config(), text).unwrap();
        place
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("config.toml")
    }

    fn log(&self, number: usize) -> PathBuf {
        self.folder.path().join(format!("log{number}"))
    }

    /// A server that leaves a process in a separate session beside it.
    fn entry(&self, number: usize) -> String {
        let server = std::env::current_exe().unwrap();
        let manners = McpManners { log: Some(self.log(number)), ..McpManners::default() };
        let shell = "setsid sleep 1000 </dev/null >/dev/null 2>&1 & exec \"$0\" \"$@\"";
        format!(
            "[mcp.s{number}]\ncommand = '/bin/sh'\nargs = ['-c', '{shell}', '{}', '--exact', \
             'this_program_is_a_server_when_it_is_asked_to_be', '--nocapture']\nenv = {{ {ASKED} = '{}' }}\n",
            server.display(),
            manners.to_json(),
        )
    }

    fn safepoint(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_safepoint"));
        command.args(args).arg("--config").arg(self.config());
        command.env_clear().env("PATH", std::env::var("PATH").unwrap_or_default()).stdin(Stdio::null());
        command
    }

    fn output(&self, args: &[&str]) -> Output {
        self.safepoint(args).output().unwrap()
    }

    /// What of its servers is alive: by the folder of their logs, which is in their environment.
    fn alive(&self) -> Vec<i32> {
        let mark = self.folder.path().to_str().unwrap().as_bytes().to_vec();
        let entries = fs::read_dir("/proc").unwrap();
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let is_ours = |pid: &i32| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.windows(mark.len()).any(|part| part == mark)
        };
        pids.filter(is_ours).collect()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn servers_are_listed_with_their_tools_and_nothing_is_left() {
    let place = Place::new(2);
    let shown = place.output(&["mcp", "ls"]);
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    let shown = text(&shown.stdout);
    assert!(shown.contains("s0 (protocol 2025-11-25)\n  s0__echo [unsafe] answers with"), "{shown}");
    assert!(shown.contains("s1__echo"), "{shown}");
    let lines = text(&place.output(&["mcp", "ls", "s1", "--json"]).stdout);
    let line: Value = serde_json::from_str(lines.trim()).unwrap();
    assert_eq!((&line["name"], &line["tools"][0]["name"]), (&Value::from("s1"), &Value::from("s1__echo")));
    assert!(place.alive().is_empty());
}

#[test]
fn a_tool_is_called_by_hand() {
    let place = Place::new(1);
    let said = place.output(&["mcp", "call", "s0", "echo", "--args", r#"{"text":"hello"}"#]);
    assert_eq!((said.status.code(), text(&said.stdout).as_str()), (Some(0), "hello\n"));
    let offered = place.output(&["mcp", "call", "s0", "s0__echo", "--args", r#"{"text":"hello"}"#]);
    assert_eq!(text(&offered.stdout), "hello\n", "by the name that a model is offered too");
    let failed = place.output(&["mcp", "call", "s0", "fail", "--json"]);
    let line: Value = serde_json::from_slice(&failed.stdout).unwrap();
    assert_eq!((failed.status.code(), &line["status"]), (Some(1), &Value::from("failed")));
    let slow = place.output(&["mcp", "call", "s0", "deaf", "--timeout", "200ms"]);
    assert!(slow.status.code() == Some(1) && text(&slow.stderr).contains("timed out"));
    assert!(mcp::read_log(&place.log(0)).iter().any(|(_, got)| got["method"] == "notifications/cancelled"));
}

/// S8.10: a secret of the environment that a server says is shown as its name, as text and as JSON.
#[test]
fn a_secret_that_a_server_says_is_not_shown() {
    let place = Place::new(1);
    for more in [&[][..], &["--json"][..]] {
        let args = ["mcp", "call", "s0", "echo", "--args", r#"{"text":"it is hunter2-0123456789."}"#];
        let mut command = place.safepoint(&[&args[..], more].concat());
        let said = text(&command.env("DB_PASSWORD", "hunter2-0123456789").output().unwrap().stdout);
        assert!(said.contains("it is [secret DB_PASSWORD]."), "{said}");
    }
}

/// S4.11: arguments that do not fit the tool are not sent.
#[test]
fn arguments_that_do_not_fit_are_not_sent() {
    let place = Place::new(1);
    let output = place.output(&["mcp", "call", "s0", "echo", "--args", r#"{"text":7}"#]);
    let words = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{words}");
    assert!(words.contains("do not fit the tool `echo`: at /text"), "{words}");
    assert!(!mcp::read_log(&place.log(0)).iter().any(|(_, got)| got["method"] == "tools/call"));
}

/// A typing error in the choice of tools is an error: in `exclude` it would offer the tool that was to be
/// hidden.
#[test]
fn a_choice_that_fits_no_tool_is_told() {
    let place = Place::new(1);
    let config = fs::read_to_string(place.config()).unwrap();
    let choice =
        "include = ['*o*', 'eco']\nexclude = ['ecoh', 'deaf']\nrename = { eho = 'x', echo = 'say' }\n";
    fs::write(place.config(), format!("{config}{choice}")).unwrap();
    let output = place.output(&["mcp", "ls"]);
    assert!(output.status.success());
    let words = text(&output.stderr);
    for printed in ["`include` has `eco`,", "`exclude` has `ecoh`,", "`rename` has `eho`,"] {
        assert!(words.contains(printed), "{printed}: {words}");
    }
    assert!(!words.contains("`deaf`") && !words.contains("`*o*`") && !words.contains("`echo`"), "{words}");
}

/// S4.10: a signal stops a manual call: the server is notified, the known outcome is shown, and the exit code
/// names the signal. An interrupt that was inherited as ignored, as in a script's background job, works too.
#[test]
fn a_signal_stops_a_call_by_hand_and_the_server_is_told() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let place = Place::new(1);
        let call = place.safepoint(&["mcp", "call", "s0", "deaf", "--json"]);
        let mut ignoring = Command::new("/bin/sh");
        ignoring
            .args(["-c", "trap '' INT; exec \"$0\" \"$@\""])
            .arg(call.get_program())
            .args(call.get_args());
        ignoring.env_clear().env("PATH", std::env::var("PATH").unwrap_or_default()).stdin(Stdio::null());
        let child = ignoring.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let received =
            |method: &str| mcp::read_log(&place.log(0)).iter().any(|(_, got)| got["method"] == method);
        until("the call is under way", || received("tools/call"));
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let words = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words}");
        assert!(words.contains("stopped; what it did is not known"), "{words}");
        let line: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(line["status"], "stopped");
        assert!(received("notifications/cancelled"), "the server was told before the end");
        until("nothing is left", || place.alive().is_empty());
    }
}

#[test]
fn a_wrong_name_or_entry_is_wrong_usage() {
    let place = Place::new(1);
    for (args, words) in [
        (vec!["mcp", "ls", "s7"], "there are s0"),
        (vec!["mcp", "call", "s0", "echo", "--args", "[]"], "not a JSON object"),
        (vec!["mcp", "call", "s0", "nothing"], "there is no tool `nothing` at `s0`; there are echo,"),
        (vec!["run", "go", "--tools", "mcp:s7", "--model", "practice"], "there is no server `s7`"),
    ] {
        let output = place.output(&args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(words), "{args:?}: {}", text(&output.stderr));
    }
    fs::write(place.config(), "").unwrap();
    let none = place.output(&["mcp", "ls"]);
    assert_eq!(none.status.code(), Some(2));
    let words = text(&none.stderr);
    assert!(
        words.contains(place.config().to_str().unwrap()) && words.contains("has no [mcp.NAME]"),
        "{words}"
    );
    fs::write(place.config(), "[mcp.a]\nargs = ['x']\n").unwrap();
    let output = place.output(&["mcp", "ls"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("[mcp.a] needs a `command` or a `url`"));
}

/// A build without the server says which feature has it.
#[cfg(not(feature = "serve"))]
#[test]
fn a_build_without_the_server_is_no_server() {
    let output = Place::new(0).output(&["mcp", "serve"]);
    assert_eq!(output.status.code(), Some(2));
    let words = text(&output.stderr);
    assert!(words.contains("--features serve") && output.stdout.is_empty(), "{words}");
}

/// The scripted model, ended when dropped.
struct Practice(Child, String);

impl Practice {
    fn start(place: &Place, script: &str) -> Self {
        use std::io::BufRead as _;
        let file = place.folder.path().join("script.json");
        fs::write(&file, script).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_safepoint"))
            .args(["practice", "--script", file.to_str().unwrap()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let url = serde_json::from_str::<Value>(&line).unwrap()["listening"].as_str().unwrap().to_owned();
        Self(child, format!("{url}/v1"))
    }
}

impl Drop for Practice {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// S4.10: a run has the tools of the servers, asks for them as for any that changes something, and leaves nothing.
#[test]
fn a_run_has_the_tools_of_the_configured_servers() {
    let place = Place::new(1);
    let practice = Practice::start(
        &place,
        r#"{"replies":[{"calls":[{"name":"s0__echo","args":{"text":"hello"}}]},{"text":"done"}]}"#,
    );
    for (approve, status) in [("auto", "completed"), ("deny", "denied")] {
        let practice = if approve == "auto" {
            &practice
        } else {
            &Practice::start(&place, &fs::read_to_string(place.folder.path().join("script.json")).unwrap())
        };
        let args = [
            "run",
            "go",
            "--json",
            "--tools",
            "mcp",
            "--approve",
            approve,
            "--model",
            "openai:x",
            "--base-url",
        ];
        let output = place.output(&[&args[..], &[practice.1.as_str()]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let lines: Vec<Value> =
            text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let ended = lines.iter().find(|line| line["type"] == "call_ended").unwrap();
        assert_eq!((&ended["name"], &ended["status"]), (&Value::from("s0__echo"), &Value::from(status)));
        assert!(place.alive().is_empty());
    }
}

/// S8.23: in plan mode a tool of a server is neither offered nor called, whatever it says of itself, and one of a server that is
/// trusted is called where it says that it only reads.
#[test]
fn in_plan_mode_a_server_is_called_only_where_it_is_trusted_to_read() {
    let place = Place::new(1);
    let config = fs::read_to_string(place.config()).unwrap();
    for (is_trusted, called) in [(false, vec![]), (true, vec!["look"])] {
        let trusts = format!("{config}trust_annotations = {is_trusted}\n");
        fs::write(place.config(), trusts).unwrap();
        let call = |tool: &str| serde_json::json!({"name": tool, "args": {"text": "hello"}});
        let calls = serde_json::json!([call("s0__echo"), call("s0__look")]);
        let script = serde_json::json!({"replies": [{"calls": calls}, {"text": "done"}]}).to_string();
        let practice = Practice::start(&place, &script);
        let args =
            ["run", "go", "--mode", "plan", "--approve", "auto", "--tools", "mcp", "--model", "openai:x"];
        let output = place.output(&[&args[..], &["--base-url", &practice.1]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let log = mcp::read_log(&place.log(0));
        let was_called = |tool: &&str| log.iter().any(|(_, got)| got["params"]["name"] == *tool);
        let seen: Vec<_> = ["echo", "look"].into_iter().filter(was_called).collect();
        assert_eq!(seen, called, "trusted: {is_trusted}");
    }
}

/// S8.8: a yes for every call of a server's tool holds for the tool as it was, and so does a yes to one call that has not
/// begun: once the server describes it otherwise, it is asked again.
#[test]
fn a_lasting_yes_does_not_hold_for_a_tool_that_has_changed() {
    let place = Place::new(1);
    let reply = r#"{"calls":[{"name":"s0__echo","args":{"text":"hello"}}]},{"text":"done"}"#;
    let practice = Practice::start(&place, &format!(r#"{{"replies":[{reply},{reply},{reply}]}}"#));
    let store = place.folder.path().join("store.db");
    let kept = ["--store", store.to_str().unwrap()];
    let work = |verb: &[&str]| {
        let usual = ["--tools", "mcp", "--model", "openai:x", "--base-url", practice.1.as_str()];
        place.output(&[verb, &kept[..], &usual].concat()).status.code()
    };
    assert_eq!(work(&["run", "go", "--session", "s"]), Some(11));
    let approve = |how: &[&str]| {
        let mut approve = Command::new(env!("CARGO_BIN_EXE_safepoint"));
        approve.args([&["approve", "s"][..], how, &kept].concat()).env("TMPDIR", place.folder.path());
        assert_eq!(approve.output().unwrap().status.code(), Some(0));
    };
    approve(&["--always=tool"]);
    assert_eq!(work(&["resume", "s"]), Some(0));
    assert_eq!(work(&["run", "go", "--session", "s"]), Some(0), "the same tool is not asked about again");
    let config = fs::read_to_string(place.config()).unwrap();
    let other = config.replace(
        r#"exec "$0" "$@""#,
        r#""$0" "$@" | sed -u "s/answers with its argument/answers with any argument/""#,
    );
    assert_ne!(config, other);
    fs::write(place.config(), &other).unwrap();
    assert_eq!(work(&["run", "go", "--session", "s"]), Some(11), "it is another tool now");
    approve(&[]);
    fs::write(place.config(), other.replace("with any", "with every")).unwrap();
    assert_eq!(work(&["resume", "s"]), Some(11), "a yes that was not used was to the tool as it was");
    approve(&[]);
    assert_eq!(work(&["resume", "s"]), Some(0));
}

/// S4.10: in a conversation, a tool that a server has got meanwhile is there in the next turn.
#[test]
fn a_chat_has_the_tools_that_a_server_has_got_meanwhile() {
    use std::io::Write as _;
    let place = Place::new(1);
    let practice = Practice::start(
        &place,
        r#"{"replies":[{"calls":[{"name":"s0__grow","args":{}}]},{"text":"one more"},
            {"calls":[{"name":"s0__grown0","args":{}}]},{"text":"it is there"}]}"#,
    );
    let args = ["chat", "--tools", "mcp", "--approve", "auto", "--model", "openai:x", "--base-url"];
    let mut chat = place.safepoint(&[&args[..], &[practice.1.as_str()]].concat());
    chat.env("XDG_RUNTIME_DIR", place.folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut chat = chat.stderr(Stdio::piped()).spawn().unwrap();
    chat.stdin.take().unwrap().write_all(b"grow\nuse it\n").unwrap();
    let output = chat.wait_with_output().unwrap();
    assert_eq!(text(&output.stdout), "one more\nit is there\n", "{}", text(&output.stderr));
    let log = mcp::read_log(&place.log(0));
    assert!(log.iter().any(|(_, got)| got["params"]["name"] == "grown0"), "it was called");
    until("nothing is left", || place.alive().is_empty());
}

/// S4.9, S4.10. T5, anthropics/claude-code#1935: twenty servers, each with a process that left its session, and a call
/// under way; the program is killed with SIGKILL; a second later nothing of them is there.
#[test]
fn twenty_servers_are_gone_a_second_after_the_runtime_was_killed() {
    // They are gone, however busy the machine is; that nothing waits for a second is seen where it is not.
    until("all is gone within a second", || {
        let took = twenty_servers_are_gone_after();
        if took < Duration::from_secs(1) { Ok(()) } else { Err(took) }
    });
}

fn twenty_servers_are_gone_after() -> Duration {
    let place = Place::new(20);
    let practice = Practice::start(&place, r#"{"replies":[{"calls":[{"name":"s7__deaf","args":{}}]}]}"#);
    let args = ["run", "go", "--tools", "mcp", "--approve", "auto", "--model", "openai:x", "--base-url"];
    let mut run = place.safepoint(&[&args[..], &[practice.1.as_str()]].concat());
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let is_called = || mcp::read_log(&place.log(7)).iter().any(|(_, got)| got["method"] == "tools/call");
    until("the call is under way", is_called);
    until("all are there", || place.alive().len() >= 40);
    kill_process(Pid::from_child(&run), Signal::KILL).unwrap();
    let killed = Instant::now();
    run.wait().unwrap();
    until("nothing is left", || place.alive().is_empty());
    killed.elapsed()
}

/// A server in a few lines of shell: it tells this list, and writes down what is called.
fn in_shell(place: &Place, tools: &Value, more: &str) {
    const SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) said='"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}' ;;
    *'"tools/list"'*) said=$(cat "$0.list") ;;
    *'"tools/call"'*) echo called >> "$0.log"; said='"result":{"content":[{"type":"text","text":"done"}]}' ;;
    *'"id":'*) said='"error":{"code":-32601,"message":"no"}' ;;
    *) continue ;;
  esac
  printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"','"$said"'}'
done
"#;
    let server = place.folder.path().join("server.sh");
    fs::write(&server, SERVER).unwrap();
    fs::write(server.with_extension("sh.list"), format!("\"result\":{{\"tools\":{tools}}}")).unwrap();
    let config = format!("[mcp.x]\ncommand = '/bin/sh'\nargs = ['{}']\n{more}\n", server.display());
    fs::write(place.config(), config).unwrap();
}

/// A tool whose schema is nested too deeply to be read is refused by name, and costs the others nothing.
#[test]
fn a_schema_that_is_nested_too_deeply_costs_its_own_tool_alone() {
    const LEVELS: usize = 400;
    let place = Place::new(0);
    let tool = |name: &str| serde_json::json!({"name": name, "inputSchema": {"type": "object"}});
    let tools = serde_json::json!([tool("one"), tool("deep"), tool("two")]).to_string();
    let deep = "{\"type\":\"object\",\"properties\":{\"a\":".repeat(LEVELS) + "{}" + &"}}".repeat(LEVELS);
    let tools = tools.replacen(
        r#"{"inputSchema":{"type":"object"},"name":"deep"}"#,
        &format!(r#"{{"inputSchema":{deep},"name":"deep"}}"#),
        1,
    );
    assert!(tools.contains("\"a\":"), "{tools}");
    in_shell(&place, &Value::Null, "");
    fs::write(place.folder.path().join("server.sh.list"), format!("\"result\":{{\"tools\":{tools}}}"))
        .unwrap();
    let shown = place.output(&["mcp", "ls"]);
    let (printed, wrong) = (text(&shown.stdout), text(&shown.stderr));
    assert!(shown.status.success(), "{printed}{wrong}");
    assert!(printed.contains("x__one") && printed.contains("x__two"), "{printed}");
    assert!(printed.contains("refused: `deep`: its schema is nested more than 100 levels deep"), "{printed}");
}

/// What the config file leaves out is not called by hand either; what is left in is.
#[test]
fn a_tool_that_is_left_out_is_not_called_by_hand() {
    let place = Place::new(0);
    let tool = |name: &str| serde_json::json!({"name": name, "inputSchema": {"type": "object"}});
    in_shell(
        &place,
        &serde_json::json!([tool("look"), tool("write_all"), tool("write_one")]),
        "exclude = ['write_*']",
    );
    let called = || text(&fs::read(place.folder.path().join("server.sh.log")).unwrap_or_default());
    for name in ["write_all", "x__write_one", "write_one"] {
        let refused = place.output(&["mcp", "call", "x", name]);
        let printed = text(&refused.stderr);
        assert_eq!((refused.status.code(), called().as_str()), (Some(2), ""), "{printed}");
        assert!(printed.contains("leaves the tool") || printed.contains("there are look"), "{printed}");
    }
    assert_eq!(place.output(&["mcp", "call", "x", "look"]).status.code(), Some(0));
    assert_eq!(called(), "called\n");
}

//! The rules of the config file, from outside: what runs, what is asked, what does not run, and what is said of mistakes.

use std::{io::Write as _, process::Output};

use serde_json::{Value, json};

use crate::{Practice, check, lines, safepoint};

fn config(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// The model asks for these commands in one round; each call's status, in order.
fn statuses(rules: &str, mode: &[&str], commands: &[&str]) -> Vec<String> {
    let calls: Vec<Value> =
        commands.iter().map(|command| json!({"name": "shell", "args": {"command": command}})).collect();
    let server = Practice::start(&json!({"replies": [{"calls": calls}, {"text": "ok"}]}).to_string());
    let config = config(rules);
    let args =
        ["run", "--base-url", &server.url, "--model", "openai:x", "--tools", "shell", "--json", "--config"];
    let output =
        safepoint(&[&args[..], &[config.path().to_str().unwrap()], mode, &["go"]].concat()).output().unwrap();
    let seen = lines(&output.stdout);
    check(&seen, 1);
    let outcome = &seen.last().unwrap()["receipt"]["calls"];
    outcome.as_array().unwrap().iter().map(|call| call["status"].as_str().unwrap().to_owned()).collect()
}

const RULES: &str = "
[[rules]]
tool = \"shell\"
args = { command = \"*secret*\" }
then = \"deny\"
message = \"not for you\"

[[rules]]
tool = \"sh*\"
args = { command = [\"echo *\", \"true\"] }
then = \"allow\"
";

/// S8.1, S8.2: the first rule that fits decides, whatever `--approve` says; of the rest, and of what a rule asks, it is
/// `--approve` that decides. What is allowed allows no second command.
#[test]
fn a_rule_decides_before_the_mode_does() {
    let commands = ["echo a", "true", "echo secret", "echo a; echo b", "pwd"];
    for (mode, rest) in [("ask", "denied"), ("deny", "denied"), ("auto", "completed")] {
        let seen = statuses(RULES, &["--approve", mode], &commands);
        assert_eq!(seen, ["completed", "completed", "denied", rest, rest], "{mode}");
    }
    let asks = format!("[[rules]]\ntool = \"*\"\nthen = \"ask\"\n{RULES}");
    assert_eq!(statuses(&asks, &["--approve", "deny"], &["echo a"]), ["denied"], "in the order of the file");
    assert_eq!(statuses(&asks, &["--approve", "auto"], &["echo secret"]), ["completed"], "what asks may run");
    let config = format!("approve = \"auto\"\n{RULES}");
    assert_eq!(statuses(&config, &[], &["false; true", "echo secret"]), ["completed", "denied"]);
}

/// S8.7: each of these got out of `docs/` by a rule for `cat docs/*`: no star reaches another word, and none stands for
/// what a shell expands.
#[test]
fn a_star_that_allows_stays_in_its_word_and_its_directory() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("docs")).unwrap();
    std::fs::write(place.path().join("docs/a"), "inside").unwrap();
    let rules = "[[rules]]\ntool = \"shell\"\nargs = { command = \"cat docs/*\" }\nthen = \"allow\"";
    let root = place.path().to_str().unwrap();
    let climbs = [
        "cat docs/.''./.''./.''./.''./etc/hostname",
        "cat docs/.?/.?/.?/.?/etc/hostname",
        "cat docs/a /etc/hostname",
        "cat docs/a ~/.profile",
        "cat docs/\\.\\./\\.\\./etc/hostname",
        "cat docs/$OLDPWD/a",
    ];
    let commands = [&["cat docs/a"][..], &climbs].concat();
    let seen = statuses(rules, &["--approve", "deny", "--root", root], &commands);
    assert_eq!(seen, [&["completed"][..], &["denied"; 6]].concat());
}

fn printed(rules: &str) -> (Option<i32>, String, String) {
    run_with("all", rules)
}

fn run_with(tools: &str, rules: &str) -> (Option<i32>, String, String) {
    let config = config(rules);
    let path = config.path().to_str().unwrap();
    let Output { status, stderr, .. } =
        safepoint(&["run", "--model", "practice", "--tools", tools, "--config", path, "hi"])
            .output()
            .unwrap();
    (status.code(), String::from_utf8_lossy(&stderr).into_owned(), path.to_owned())
}

/// S1.6: a rule that is wrong, or that could never speak, is a mistake that is named with its file and line.
#[test]
fn a_wrong_rule_names_its_file_and_line_and_what_to_do() {
    for (rules, line, says) in [
        ("tools = \"all\"\n[[rules]]\ntool = \"shel\"\nthen = \"deny\"", "line 2", "there are shell"),
        (
            "[[rules]]\ntool = \"shell\"\nargs.cmd = \"x\"\nthen = \"deny\"",
            "line 1",
            "it has background, command",
        ),
        ("[[rules]]\ntool = \"shell\"\nthen = \"maybe\"", "line 3", "`allow`, `ask`"),
        ("[[rules]]\ntool = \"shell\"", "line 1", "then"),
        ("[[rules]]\ntool = \"shell\"\nthen = \"deny\"\nwhen = 1", "line 4", "unknown field `when`"),
        ("[[rules]]\ntool = \"shell\"\nthen = \"ask\"\nmessage = \"x\"", "line 1", "then = \"deny\""),
        ("approve = \"always\"", "line 1", "`ask`, `edits`, `auto`"),
        (
            "[[rules]]\ntool = \"shell\"\nargs.command = \"cat ~/*\"\nthen = \"allow\"",
            "line 1",
            "write `**` if it may be any text",
        ),
    ] {
        let (code, said, path) = printed(rules);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(&path) && said.contains(line) && said.contains(says), "{rules}\n{said}");
    }
}

/// S1.6: a rule of a tool that there always is is checked whether the tool was chosen or not.
#[test]
fn a_wrong_argument_is_named_also_of_a_tool_that_was_not_chosen() {
    let wrong = "[[rules]]\ntool = \"shell\"\nargs.cmd = \"x\"\nthen = \"deny\"";
    for tools in ["all", "none", "read_file"] {
        let (code, said, _) = run_with(tools, wrong);
        assert!(code == Some(2) && said.contains("shell has no argument `cmd`"), "{tools}: {said}");
    }
    assert_eq!(run_with("none", &wrong.replace("cmd", "command")).0, Some(0));
}

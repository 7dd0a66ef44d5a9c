//! Names of programs and of lines for the shell, and what is in none of them.

use std::ffi::OsString;

use super::name;

fn of(words: &[&str]) -> Option<String> {
    let args: Vec<OsString> = words[1..].iter().map(OsString::from).collect();
    name(words[0].as_ref(), &args)
}

/// The name of a line as `/bin/sh` has it.
fn line(line: &str) -> String {
    of(&["/bin/sh", "-c", line]).expect("a line has the name of its shell at least")
}

/// S10.69
#[test]
fn a_program_is_named_by_its_file() {
    for (words, expected) in [
        (&["my-agent", "--acp"][..], "my-agent"),
        (&["/opt/a b/my-agent", "--key", "sk-1"], "my-agent"),
        (&["/usr/bin/env", "KEY=sk-1", "my-agent"], "my-agent"),
        (&["/usr/bin/node", "/very/long/cli.js", "sk-1"], "node cli.js"),
    ] {
        assert_eq!(of(words).as_deref(), Some(expected), "{words:?}");
    }
    for unsure in [&["a\nb"][..], &["my-agent --key sk-1"], &["env", "-u", "A", "b"]] {
        assert_eq!(of(unsure), None, "{unsure:?}");
    }
}

/// S10.69: what stands before the program is passed over, with its quotes.
#[test]
fn a_line_is_named_by_the_program_that_it_starts() {
    for (given, expected) in [
        ("gemini --acp", "gemini"),
        ("exec '/opt/a b/agent' --acp", "agent"),
        ("exec \"$HOME/bin/agent\" --acp", "agent"),
        ("~/bin/agent", "agent"),
        (r"/opt/a\ b/agent --acp", "agent"),
        ("KEY=sk-1 exec agent", "agent"),
        ("KEY='sk 1' OTHER=\"sk \\\" 3\" agent", "agent"),
        ("/usr/bin/env KEY=sk-1 agent", "agent"),
        ("bash -lc 'KEY=sk-1 exec agent'", "agent"),
    ] {
        assert_eq!(line(given), expected, "{given}");
    }
}

/// S10.69: behind an interpreter the script is named where it is certain which word that is.
#[test]
fn an_interpreter_is_named_with_its_script() {
    for (given, expected) in [
        ("node /very/long/path/cli.js --acp --model x", "node cli.js"),
        ("node --require sk-1 cli.js", "node"),
        ("node", "node"),
        ("node .", "node"),
        ("python3 -u agent.py sk-1", "python3 agent.py"),
        ("python3 -m my_agent.acp", "python3 my_agent.acp"),
        ("python3 -c 'print(1)' sk-1", "python3"),
        ("npx -y @zed-industries/claude-code-acp@latest --key sk-1", "npx claude-code-acp@latest"),
        ("npx https://sk-1@example.org", "npx"),
        ("npx 'https://example.org/a?key=sk-1'", "npx"),
        ("node \"$SCRIPT\"", "node"),
        ("sh '/opt/agent.sh' work", "sh agent.sh"),
        ("timeout 600 agent", "timeout"),
    ] {
        assert_eq!(line(given), expected, "{given}");
    }
}

/// S10.69: a line that is not understood is named by its shell, and no word of it is said.
#[test]
fn a_line_that_is_not_certain_has_the_name_of_its_shell() {
    for given in [
        "",
        "KEY=sk-1",
        "$AGENT sk-1",
        "my-key=sk-1 agent",
        "'agent --key sk-1'",
        "(cd x && agent)",
        "{ agent; }",
        "KEY=$(pass sk-1) agent",
        "KEY=`pass sk-1` agent",
        "cd /srv/a && agent",
        "export KEY=sk-1; agent",
        "export KEY=sk-1\nagent",
        "2>/dev/null agent",
        "KEY=sk-1; agent",
        "if true; then agent; fi",
        "agent() { sk-1; }; agent",
        "KEY=$(pass \"a b\" sk-1) agent",
        "KEY=$(pass $(sk-1)) sk-2",
        "<<EOF\nsk-1\nEOF\nagent",
        "# agent; sk-1",
        "exec -a sk-1 agent",
        "env -u KEY agent",
        "env -S 'KEY=sk-1 agent'",
    ] {
        assert_eq!(line(given), "sh", "{given}");
    }
    assert_eq!(line("KEY='sk-1 agent"), "sh", "quotes without an end");
}

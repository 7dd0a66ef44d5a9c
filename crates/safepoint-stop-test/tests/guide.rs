//! The guide, as a reader of the repository finds it, and the agent that it shows.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use safepoint_stop_test::RequestFile;
use safepoint_testkit::skipped;

const GUIDE: &str = include_str!("../../../docs/guides/stop-test.md");
const AGENT: &str = include_str!("../../../examples/stop-test/agent.py");

/// Where the agents are, from the guide.
const OTHERS: [&str; 4] = [
    "../../examples/stop-test/agent.ts",
    "../../examples/stop-test/agent.go",
    "../../examples/stop-test/Agent.java",
    "../../crates/safepoint-stop-test/examples/agent.rs",
];

/// Flags in the guide that are another program's.
const OF_OTHERS: [&str; 6] = ["--acp", "--git", "--locked", "--path", "--print", "--yes"];

fn stop_test(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stop-test")).args(args).output().expect("the test can be started")
}

/// S15.18: the guide shows one agent whole, as its file has it, and links those in the other languages.
#[test]
fn the_guide_shows_its_agent_as_the_file_has_it() {
    assert!(GUIDE.contains(&format!("\n```python\n{AGENT}```\n")), "the guide's block is not the file");
    let guides = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides");
    for other in OTHERS {
        assert!(GUIDE.contains(&format!("]({other})")), "the guide does not link {other}");
        assert!(guides.join(other).is_file(), "there is no {other}");
    }
}

/// S15.18: the agent of the guide ends, and its next message is accepted with a result of each call.
#[test]
fn the_guide_s_agent_ends_all_that_it_had_begun() {
    let looked =
        Command::new("python3").args(["-c", "import sys; sys.exit(sys.version_info < (3, 11))"]).status();
    if !looked.is_ok_and(|status| status.success()) {
        return skipped("there is no Python 3.11");
    }
    let agent: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/stop-test/agent.py");
    let target = format!("adapter:python3 {}", agent.display());
    // A busy machine may see an end later than it was; CI asks for `ends` with each agent, in `cargo xtask peers`.
    let only =
        ["--only", "one-of-three", "--only", "stream-silent", "--times", "1", "--require", "ends-late"];
    let output = stop_test(&[&[&*target], &only[..]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(
        text.lines().filter(|line| line.contains(" stop ") && line.contains("ends")).count(),
        2,
        "{text}"
    );
}

/// S15.19: the guide, with its workflow for the CI of others, names only flags that the program has.
#[test]
fn the_guide_names_only_flags_that_there_are() {
    let help = stop_test(&["--help"]);
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let known: BTreeSet<&str> = flags(&help).chain(OF_OTHERS).collect();
    let unknown: Vec<&str> = flags(GUIDE).filter(|flag| !known.contains(flag)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    let workflow =
        GUIDE.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap_or_default();
    for word in ["stop-test", "--require ends", "--junit", "upload-artifact"] {
        assert!(workflow.contains(word), "the workflow has no `{word}`:\n{workflow}");
    }
}

/// S15.11: the file that the guide shows for an endpoint that streams is right.
#[test]
fn the_guide_s_request_file_is_right() {
    let after = GUIDE.split_once("\n```toml request\n").expect("the guide shows one").1;
    let file = after.split_once("```").expect("it ends").0;
    RequestFile::parse(file).unwrap_or_else(|wrong| panic!("{wrong}:\n{file}"));
}

/// The flags that a text names.
fn flags(text: &str) -> impl Iterator<Item = &str> {
    let is_of_one = |letter: char| letter.is_ascii_lowercase() || letter == '-';
    let words = text.split(move |letter: char| !is_of_one(letter));
    words.filter(|word| word.starts_with("--") && word.len() > 2 && !word.starts_with("---"))
}

//! The reference agents, whose stops have known verdicts: an instrument that cannot say *lies* proves nothing by saying *ends*.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread,
};

use rustix::process::{Pid, Signal, kill_process};
use safepoint_testkit::wait;
use serde_json::Value;

#[path = "verdicts/left.rs"]
mod left;

#[path = "verdicts/servers.rs"]
mod servers;

#[path = "verdicts/tools.rs"]
mod tools;

/// Runs the test against a reference agent, and returns what it saw as JSON.
fn seen(target: &str, args: &[&str]) -> Value {
    let output = run(target, &[args, &["--json", "-", "--times", "1"]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .unwrap_or_else(|_| panic!("{text}\n{}", String::from_utf8_lossy(&output.stderr)))
}

fn run(target: &str, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stop-test"));
    command.arg(target).args(args).output().expect("the test can be started")
}

fn adapter(manner: &str) -> String {
    format!("adapter:{} adapter {manner}", env!("CARGO_BIN_EXE_stop-test-reference"))
}

fn program(manner: &str) -> String {
    format!("program:{} program {manner}", env!("CARGO_BIN_EXE_stop-test-reference"))
}

/// The verdict of each row, by scenario.
fn verdicts(seen: &Value) -> Vec<(String, String)> {
    let row = |row: &Value| {
        let verdict = row["trials"][0]["judged"]["judged"]["verdict"].as_str().unwrap_or("none");
        (row["scenario"]["name"].as_str().unwrap_or_default().to_owned(), verdict.to_owned())
    };
    seen["rows"].as_array().into_iter().flatten().map(row).collect()
}

/// Does each of these at once: they mostly wait.
fn beside<const N: usize>(each: [impl FnOnce() + Send; N]) {
    thread::scope(|scope| each.into_iter().for_each(|one| drop(scope.spawn(one))));
}

fn assert_each(seen: &Value, but: &[(&str, &str)], verdict: &str) {
    let rows = verdicts(seen);
    assert!(!rows.is_empty(), "{seen:#}");
    for (scenario, found) in rows {
        let wanted = but.iter().find(|(name, _)| *name == scenario).map_or(verdict, |(_, other)| other);
        assert_eq!(found, wanted, "{scenario}: {seen:#}");
    }
}

const NONE: (&str, &str) = ("question", "none");
const OVER: (&str, &str) = ("after-end", "ends");
/// Without a stop they are all good.
const CONTROL: (&str, &str) = ("control", "ends");
/// What a stop of the model's own waiting leaves nothing of.
const RETRY: (&str, &str) = ("retry", "ends");

/// S15.3: each verdict is given to the agent that deserves it, at every moment that it can be brought to.
#[test]
fn each_reference_agent_has_its_verdict() {
    let none_left = ("at-once", "ends");
    let left = || vec![NONE, CONTROL, OVER, RETRY, none_left];
    let each = [
        ("ends", vec![NONE], "ends"),
        ("ends-late", left(), "ends-late"),
        ("says-so", left(), "says-so"),
        ("lets-go", left(), "lets-go"),
        ("lies", left(), "lies"),
    ];
    beside(each.map(|(manner, but, verdict)| {
        move || {
            let seen = seen(&adapter(manner), &[]);
            // Whether it had asked its model when the stop came at once, is luck; what its stop does is not.
            let rows = verdicts(&seen);
            let found = rows.iter().find(|(name, _)| name == "at-once").map(|(_, found)| found.clone());
            let at_once = found.unwrap();
            assert!(at_once == "ends" || at_once == verdict, "{manner}: {at_once}");
            let but = but.into_iter().filter(|(name, _)| *name != "at-once");
            let but: Vec<_> = but.chain([("at-once", &*at_once)]).collect();
            assert_each(&seen, &but, verdict);
        }
    }));
}

/// S15.3: a caller that never has control, an agent that dies, and a history that is refused are each *breaks*.
#[test]
fn an_agent_that_cannot_go_on_breaks() {
    const ONE: [&str; 4] = ["--only", "tool", "--only", "command"];
    beside(
        ["hangs", "crashes", "forgets"]
            .map(|manner| move || assert_each(&seen(&adapter(manner), &ONE), &[], "breaks")),
    );
    assert_each(&seen(&adapter("goes-on"), &["--only", "tool"]), &[], "goes-on");
}

/// S15.3: a program is judged by its processes and its exit, and its commands by theirs.
#[test]
fn a_program_is_judged_by_what_its_signals_end() {
    const ONE: [&str; 6] = ["--only", "command-apart", "--only", "stream-silent", "--way", "sigterm"];
    assert_each(&seen(&program("ends"), &ONE), &[], "ends");
    // Its connection ends with its process, and what it has started does not.
    assert_each(&seen(&program("lies"), &ONE), &[("stream-silent", "ends")], "lies");
    assert_each(&seen(&program("lets-go"), &ONE), &[("stream-silent", "ends")], "lets-go");
    assert_each(&seen(&program("crashes"), &ONE), &[], "breaks");
}

/// S15.16: a program whose last words name what it leaves says so; one whose words name something else does not.
#[test]
fn a_program_that_names_what_it_leaves_says_so() {
    const ONE: [&str; 4] = ["--only", "command-apart", "--way", "sigint"];
    let named = seen(&program("says-so"), &ONE);
    assert_each(&named, &[], "says-so");
    let text = named["rows"][0]["trials"][0]["judged"]["claims"]["named"][0].as_str().unwrap();
    assert!(text.contains("still running: ") && text.contains("process "), "{text}");
    assert_each(&seen(&program("lies"), &ONE), &[], "lies");
}

/// S15.23: one that asks its model for a title once its turn is over does so without a stop, too.
#[test]
fn what_a_target_does_anyway_is_not_held_against_its_stop() {
    let seen = seen(&adapter("titles"), &["--only", "control", "--only", "after-end", "--only", "tool"]);
    assert_each(&seen, &[("control", "goes-on"), ("after-end", "none")], "ends");
    let late = seen["rows"].as_array().unwrap().iter().find(|row| row["scenario"]["name"] == "after-end");
    let why = late.unwrap()["trials"][0]["not-expressed"].as_str().unwrap();
    assert!(why.starts_with("without a stop, too: "), "{why}");
}

/// S15.1: what a target leaves does not outlive its trial, whatever it ignores, and no file of it is left.
#[test]
fn nothing_of_a_target_outlives_its_trial() {
    let place = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_stop-test"));
    command
        .arg(program("lies"))
        .args(["--only", "command-apart", "--way", "sigterm", "--times", "1"])
        .env("TMPDIR", place.path());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "it lied: {}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(lines_with(place.path()), 0);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

/// S15.2: what cannot be expressed is no verdict and no failure; what was not reached is a failure, with what was missing.
#[test]
fn what_was_not_brought_about_says_why() {
    let output = run(&adapter("ends"), &["--only", "question", "--only", "tool", "--times", "1"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("question: cannot be expressed: its door shows no question"), "{text}");
    let output = run("program:true", &["--only", "stream-silent", "--way", "sigint", "--times", "1"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("it asked its model nothing"), "{text}");
    let output = run(
        "program:sh -c 'echo no key >&2; exit 1' sh",
        &["--only", "tool", "--way", "sigint", "--times", "1"],
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("it wrote: no key"), "what it wrote says why");
}

/// S15.5: what is written to a file says the same as the exit.
#[test]
fn the_exit_says_whether_it_is_as_good_as_required() {
    let folder = tempfile::tempdir().unwrap();
    let junit = folder.path().join("junit.xml");
    let page = folder.path().join("page.html");
    let files = ["--junit", junit.to_str().unwrap(), "--html", page.to_str().unwrap()];
    let code = |manner, require| {
        let only = ["--only", "tool", "--times", "1", "--require", require];
        run(&adapter(manner), &[&only[..], &files[..]].concat()).status.code()
    };
    assert_eq!(code("lies", "ends"), Some(1));
    let written = fs::read_to_string(&junit).unwrap();
    assert!(
        written.contains("failures=\"1\"") && written.contains("<failure message=\"lies\">"),
        "{written}"
    );
    let written = fs::read_to_string(&page).unwrap();
    assert!(written.contains("<svg") && written.contains("the tool `work`"), "{written}");
    assert_eq!(code("lies", "lies"), Some(0));
    assert_eq!(code("ends", "ends"), Some(0));
    assert_eq!(run("nothing", &[]).status.code(), Some(2));
    assert_eq!(run("adapter:/nowhere", &["--only", "tool"]).status.code(), Some(3));
}

/// S15.6: a target that floods or speaks no protocol ends in its time, with the reason.
#[test]
fn a_target_that_writes_garbage_or_floods_is_not_waited_for() {
    let output = run(&adapter("floods"), &["--only", "tool", "--times", "1"]);
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    assert_each(&seen(&adapter("garbles"), &["--only", "tool"]), &[], "lies");
}

/// S15.24: what a target wrote is shown, and a terminal obeys none of it.
#[test]
fn a_terminal_obeys_nothing_that_a_target_wrote() {
    let output =
        run(r#"adapter:sh -c 'printf "\033[2Jbang\n" >&2; exit 3'"#, &["--only", "tool", "--times", "1"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(text.contains("(exit status: 3)") && text.contains("\\u{1b}[2Jbang"), "{text:?}");
    assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n'), "{text:?}");
    let named = run(r#"adapter:echo '{"at": "ready", "stops": ["\u001b[2J"]}'"#, &["--only", "tool"]);
    let text = String::from_utf8([named.stdout, named.stderr].concat()).unwrap();
    assert!(text.contains("a way to stop it that is no word"), "{text:?}");
}

/// S15.5: a table that cannot be written is no success.
#[test]
fn an_output_without_room_is_no_success() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stop-test"));
    command.arg(adapter("ends")).args(["--only", "tool", "--times", "1"]);
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = command.stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(words.contains("the output cannot be written: No space left"), "{words}");
}

/// S15.2: a target ignores no signal because who started the test does, as `nohup` and a shell's `&` do.
#[test]
fn signals_that_the_test_was_started_without_reach_a_target() {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "trap '' INT HUP; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_stop-test")]);
    command.arg(program("ends")).args(["--only", "at-once", "--way", "sigint", "--way", "sighup"]);
    let output = command.args(["--json", "-", "--times", "1"]).output().unwrap();
    assert_each(&serde_json::from_slice(&output.stdout).unwrap(), &[], "ends");
}

/// S15.6: the test itself can be stopped, and leaves nothing.
#[test]
fn an_interrupted_test_leaves_no_process_and_no_file() {
    for signal in [Signal::INT, Signal::TERM] {
        let place = tempfile::tempdir().unwrap();
        let test = begun(place.path());
        kill_process(Pid::from_child(&test), signal).unwrap();
        let output = test.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130));
        assert!(String::from_utf8_lossy(&output.stderr).contains("all that was started has been ended"));
        assert_eq!(lines_with(place.path()), 0);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }
}

/// S15.6: killed without a chance to do anything, it leaves nothing either.
#[test]
fn a_killed_test_leaves_no_process_and_no_file() {
    let place = tempfile::tempdir().unwrap();
    let mut test = begun(place.path());
    test.kill().unwrap();
    test.wait().unwrap();
    wait::until("all is ended", || lines_with(place.path()) == 0);
    wait::until("all is removed", || fs::read_dir(place.path()).unwrap().count() == 0);
}

/// A test whose target runs a command that leaves its session, with this folder for all that it makes.
fn begun(place: &Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stop-test"));
    command.arg(adapter("goes-on")).args(["--only", "command-apart"]).env("TMPDIR", place);
    let test =
        command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the test can be started");
    wait::until("the commands run", || commands_in(place) >= 2);
    test
}

/// The shells of a command whose line names this place.
fn commands_in(place: &Path) -> usize {
    lines().filter(|line| line.contains("[ -e ") && line.contains(&place.display().to_string())).count()
}

/// Processes whose command line names this place.
fn lines_with(place: &Path) -> usize {
    lines().filter(|line| line.contains(&place.display().to_string())).count()
}

fn lines() -> impl Iterator<Item = String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        Some(String::from_utf8_lossy(&fs::read(entry.path().join("cmdline")).ok()?).into_owned())
    })
}

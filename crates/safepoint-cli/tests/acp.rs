//! An external agent as a user meets it: `safepoint run --backend`, its stop, its questions, its session, and
//! what is left of it when the program is killed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use safepoint_testkit::acp::{self, ASKED, AcpManners, Door, Hub, Keeps};
use safepoint_testkit::wait::until;
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(30);

/// This very program, started again, is the agent: it holds no test then.
#[test]
fn this_program_is_an_agent_when_it_is_asked_to_be() {
    acp::serve_if_asked();
    assert!(std::env::var(ASKED).is_err(), "an agent never returns");
}

/// A place for an agent's account, and for a store.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn account(&self) -> Vec<Value> {
        acp::read_log(&self.log()).into_iter().map(|(_, got)| got).collect()
    }

    fn received(&self, method: &str) -> usize {
        self.account().iter().filter(|got| got["method"] == method).count()
    }

    /// Our binary, with an agent as its backend where it runs something.
    fn safepoint(&self, args: &[&str]) -> Command {
        self.safepoint_with(args, AcpManners { keeps: Keeps::Load, ..AcpManners::default() })
    }

    /// The same, of an agent with these manners.
    fn safepoint_with(&self, args: &[&str], manners: AcpManners) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_safepoint"));
        command.args(args).env_clear().env("PATH", std::env::var("PATH").unwrap_or_default());
        let manners = AcpManners { log: Some(self.log()), ..manners };
        command.env(ASKED, manners.to_json()).env("HOME", self.folder.path());
        if args[0] == "run" || args[0] == "resume" {
            let agent = std::env::current_exe().unwrap();
            let test = "this_program_is_an_agent_when_it_is_asked_to_be";
            let backend = format!("acp:exec '{}' --exact {test} --nocapture", agent.display());
            command.args(["--backend", &backend, "--root"]).arg(self.folder.path());
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn output(&self, args: &[&str]) -> Output {
        self.safepoint(args).output().unwrap()
    }

    /// A run whose agent has begun its work.
    fn at_work(&self, args: &[&str]) -> Child {
        let mut run = self.safepoint(args);
        let run = run.stderr(Stdio::null()).spawn().unwrap();
        until("its work has begun", || self.account().iter().any(|got| got["begun"].is_number()));
        run
    }

    /// What of its agents is alive: by the folder of their log, which is in their environment.
    fn alive(&self) -> Vec<i32> {
        let mark = self.log().to_str().unwrap().as_bytes().to_vec();
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

fn last_line(output: &Output) -> Value {
    let text = text(&output.stdout);
    serde_json::from_str(text.lines().last().unwrap_or_else(|| panic!("nothing was said: {text}"))).unwrap()
}

/// S10.1: an external agent answers like a model, and an option that does not apply to it is an error.
#[test]
fn a_run_has_somebody_elses_agent() {
    let place = Place::new();
    let output = place.output(&["run", "say it is mended"]);
    assert_eq!((output.status.code(), text(&output.stdout).trim()), (Some(0), "it is mended"), "{output:?}");
    until("nothing is left", || place.alive().is_empty());
    let output = Command::new(env!("CARGO_BIN_EXE_safepoint"))
        .args(["run", "x", "--backend", "acp:false", "--config", "/dev/null"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("ended (exit 1) before it was asked anything"), "{output:?}");
    for backend in ["acp:", "carrier-pigeon:coo", "acp"] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_safepoint")).args(["run", "x", "--backend", backend]).output();
        assert_eq!(output.unwrap().status.code(), Some(2), "{backend}");
    }
}

/// S10.2, S10.3, S10.69 / T3, aaif-goose/goose#10619: Ctrl-C reaches the agent, and the last line says what it said to
/// that, and its program; no line has an argument of its command line.
#[test]
fn a_signal_stops_the_agent_and_the_outcome_says_how() {
    for (word, said) in [("work", "it said `cancelled`"), ("deaf", "it said nothing to that")] {
        let place = Place::new();
        let run = place.at_work(&["run", word, "--json", "--grace", "0"]);
        kill_process(Pid::from_child(&run), Signal::INT).unwrap();
        let output = run.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130));
        let outcome = last_line(&output);
        assert_eq!((&outcome["type"], &outcome["status"]), (&"outcome".into(), &"stopped".into()));
        let call = &outcome["receipt"]["calls"][0];
        assert_eq!(
            (&call["remote"]["stop"], &call["remote"]["grade"]),
            (&"confirmed".into(), &"hard".into())
        );
        assert!(call["remote"]["word"].as_str().unwrap().contains(said), "{call}");
        let program = std::env::current_exe().unwrap();
        let program = program.file_name().unwrap().to_str().unwrap();
        assert_eq!(call["remote"]["peer"], format!("acp:{program}"));
        assert!(!text(&output.stdout).contains("--nocapture"), "{output:?}");
        assert!(outcome["receipt"]["quiet"].is_string(), "{outcome}");
        assert_eq!(place.received("session/cancel"), 1);
        until("nothing is left", || place.alive().is_empty());
    }
}

/// S4.9, S10.2 / T5, anthropics/claude-code#1935: kill -9 of the runtime leaves no agent, and nothing that it started,
/// also not what has left its session.
#[test]
fn nothing_is_left_when_the_runtime_is_killed() {
    let place = Place::new();
    let mut run = place.at_work(&["run", "tree"]);
    until("the grandchild is there", || place.alive().len() >= 2);
    kill_process(Pid::from_child(&run), Signal::KILL).unwrap();
    let killed = Instant::now();
    run.wait().unwrap();
    until("nothing is left", || place.alive().is_empty());
    assert!(killed.elapsed() < PATIENCE);
}

/// S8.2, S10.1: what the agent asks is decided from another terminal.
#[test]
fn a_question_of_the_agent_is_answered_from_another_process() {
    let place = Place::new();
    let store = place.folder.path().join("store.db");
    let store = store.to_str().unwrap();
    let mut run = place.safepoint(&["run", "ask", "--session", "s", "--store", store]);
    let run = run.stderr(Stdio::null()).spawn().unwrap();
    let open = || {
        let listed = place.output(&["approvals", "s", "--store", store, "--json"]);
        let lines: Vec<Value> =
            text(&listed.stdout).lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        lines.into_iter().find(|line| line["tool"] == "acp/execute")
    };
    until("the question is there", || open().is_some());
    assert!(open().unwrap().to_string().contains("Pay the rent"));
    let approved = place.output(&["approve", "s", "--store", store]);
    assert_eq!(approved.status.code(), Some(0), "{approved:?}");
    let output = run.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stdout).trim()), (Some(0), "paid"), "{output:?}");
    assert!(place.account().iter().any(|did| did["paid"] == 900));
}

/// S7.1, S10.1: the next message of a stored session, from another process, continues the agent's own
/// session.
#[test]
fn a_kept_session_goes_on_in_the_agents_own() {
    let place = Place::new();
    let store = place.folder.path().join("store.db");
    let args = ["run", "count", "--session", "s", "--store", store.to_str().unwrap()];
    for answer in ["prompt 1", "prompt 2", "prompt 3"] {
        let output = place.output(&args);
        assert_eq!((output.status.code(), text(&output.stdout).trim()), (Some(0), answer), "{output:?}");
    }
    assert_eq!((place.received("session/new"), place.received("session/load")), (1, 2));
}

/// S7.3, S10.3: a run that was killed while its agent worked does not ask for that work again: what it did is unknown,
/// and the run has no answer: it failed, and says why.
#[test]
fn work_that_a_kill_cut_off_is_not_asked_for_again() {
    let place = Place::new();
    let store = place.folder.path().join("store.db");
    let store = store.to_str().unwrap();
    let mut run = place.at_work(&["run", "deaf", "--session", "s", "--store", store]);
    kill_process(Pid::from_child(&run), Signal::KILL).unwrap();
    run.wait().unwrap();
    let output = place.output(&["resume", "s", "--store", store]);
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout).as_ref()), (Some(1), ""), "{output:?}");
    assert!(said.contains("did not come to its end") && said.contains("effects are unknown"), "{said}");
    // No stop was requested: its process was killed.
    assert!(said.contains("cut off") && !said.contains("stopped while running"), "{said}");
    let shown = place.output(&["sessions", "show", "s", "--store", store]);
    let shown = text(&shown.stdout);
    assert!(shown.contains("cut off, side effects unknown") && !shown.contains("stopped"), "{shown}");
    assert_eq!(place.received("session/prompt"), 1, "nothing is repeated");
    until("nothing is left", || place.alive().is_empty());
}

/// A hub that lives already.
fn hub(place: &Place) -> Hub {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "this_program_is_an_agent_when_it_is_asked_to_be", "--nocapture"]);
    Hub::start(command, place.folder.path())
}

/// S10.60, S10.61, S10.62 / cline hub: a person and a program learn who may continue the work; a service that
/// is named is left out.
#[test]
fn a_daemon_that_goes_on_with_the_work_is_named() {
    let place = Place::new();
    let hub = hub(&place);
    for (args, is_named) in [
        (vec!["run", "hand"], true),
        (vec!["run", "hand", "--json"], true),
        (vec!["run", "hand", "--backend-calls", &hub.path()], false),
    ] {
        let before = place.account().iter().filter(|got| got["begun"].is_number()).count();
        let manners = AcpManners { hub: Some(hub.path()), ..AcpManners::default() };
        let run = place.safepoint_with(&args, manners).spawn().unwrap();
        let begun = || place.account().iter().filter(|got| got["begun"].is_number()).count();
        until("its work has begun", || begun() > before);
        kill_process(Pid::from_child(&run), Signal::INT).unwrap();
        let output = run.wait_with_output().unwrap();
        hub.continues();
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        let said = text(&output.stderr);
        if args.contains(&"--json") {
            let receipt = &last_line(&output)["receipt"];
            assert!(receipt["quiet"].is_null(), "{receipt}");
            let remote = &receipt["calls"][0]["remote"];
            assert_eq!(
                remote["stop"], "acknowledged",
                "an end that may not be so is not confirmed: {remote}"
            );
            let names = remote["outside"]["named"].to_string();
            assert!(names.contains(&format!("(pid {})", hub.pid())), "{names}");
        } else if is_named {
            let who = format!("(pid {}), which is outside this run and may still be running", hub.pid());
            assert!(
                said.contains(&who)
                    && said.contains("warning: still running")
                    && !said.contains("running   nothing"),
                "{said}"
            );
        } else {
            assert!(said.contains("its own processes ended, no connection to other processes"), "{said}");
        }
    }
    let output = place.output(&["run", "x", "--backend-calls", "somewhere"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

/// S10.65, S10.66, S10.67, S10.68: what a person should know stands in text, and in JSON.
#[test]
fn what_a_person_should_know_is_a_line() {
    let place = Place::new();
    let run = |args: &[&str], keeps| {
        place.safepoint_with(args, AcpManners { keeps, ..AcpManners::default() }).output().unwrap()
    };
    let output = run(&["run", "shy"], Keeps::Load);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("asked for acp/execute (Pay the rent): denied because no approver is available"),
        "{said}"
    );
    assert!(said.contains("was refused by the approval rule") && said.contains("--approve auto"), "{said}");
    assert_eq!(said.matches("by a rule, or run it where").count(), 1, "a hint stands once: {said}");
    let output = run(&["run", "ask", "--approve", "auto", "--json"], Keeps::Load);
    let lines = text(&output.stdout);
    assert!(lines.contains("\"type\":\"approval_ruled\"") && lines.contains("\"by\":\"auto\""), "{lines}");

    let said = text(&run(&["run", "serve"], Keeps::Load).stderr);
    assert!(said.contains("ended with the turn: sleep (pid "), "{said}");

    let store = place.folder.path().join("store.db");
    let kept = ["run", "count", "--session", "s", "--store", store.to_str().unwrap()];
    assert!(run(&kept, Keeps::Nothing).status.success());
    let output = run(&kept, Keeps::Nothing);
    assert!(
        text(&output.stderr).contains("cannot resume its sessions: it knows of what was said before only"),
        "{output:?}"
    );
}

/// S10.63: the option that the hint names tells an agent who asks.
#[test]
fn a_hint_names_an_option_that_exists() {
    let place = Place::new();
    let run = |args: &[&str]| {
        place
            .safepoint_with(args, AcpManners { door: Door::Locked, ..AcpManners::default() })
            .output()
            .unwrap()
    };
    let said = text(&run(&["run", "say in"]).stderr);
    assert!(said.contains("pass (--backend-auth WAY names one)"), "{said}");
    let output = run(&["run", "say in", "--backend-auth", "pass"]);
    assert_eq!((output.status.code(), text(&output.stdout).trim()), (Some(0), "in"), "{output:?}");
}

//! What a kept session remembers of how it was worked with: the next command need not say it again.

use std::process::{Command, Output};

use serde_json::Value;

use super::kept::Kept;

const ASKS: &str =
    r#"{"replies":[{"calls":[{"name":"shell","args":{"command":"pwd"}}]},{"text":"all done"}]}"#;

fn printed(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// A store, and two directories.
struct World {
    kept: Kept,
    there: tempfile::TempDir,
    elsewhere: tempfile::TempDir,
}

impl World {
    /// A session that was begun `there` with a shell, and waits for a decision.
    fn suspended() -> Self {
        let (kept, there) = (Kept::start(ASKS), tempfile::tempdir().unwrap());
        let world = Self { kept, there, elsewhere: tempfile::tempdir().unwrap() };
        let begun =
            ["run", "--session", "trip", "--system", "Be brief.", "--tools", "shell", "--model", "openai:x"];
        let begun = [&begun[..], &["--base-url", &world.kept.server.url, "go"]].concat();
        let (code, _, said) = printed(world.command(&begun).current_dir(world.there.path()));
        assert!(
            code == 11 && said.contains("trip waits for a decision: `safepoint approvals trip`"),
            "{said}"
        );
        world
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.kept.command(args, self.kept.store().to_str().unwrap());
        command.current_dir(self.elsewhere.path());
        command
    }

    fn approve(&self) {
        let asked = self.kept.tell(&["approvals", "trip"]).1;
        let asked = asked.split_whitespace().next().unwrap();
        assert_eq!(self.kept.tell(&["approve", "trip", asked]).0, 0);
    }

    /// What its shell said.
    fn result(&self) -> String {
        self.kept.tell(&["store", "export", "trip"]).1
    }

    fn shown(&self) -> Value {
        serde_json::from_str(&self.kept.tell(&["sessions", "show", "trip", "--json"]).1).unwrap()
    }
}

/// S7.10: `resume` alone keeps the model, the instructions, the tools and the directory of before, and names
/// the session's directory.
#[test]
fn resume_alone_goes_on_with_what_the_session_was_worked_with() {
    let world = World::suspended();
    world.approve();
    let (code, said, notes) = printed(&mut world.command(&["resume", "trip"]));
    assert_eq!((code, said.as_str()), (0, "all done\n"), "{notes}");
    let there = world.there.path().canonicalize().unwrap().display().to_string();
    assert!(notes.contains(&format!("works in {there}, as trip did before")), "{notes}");
    assert!(world.result().contains(&format!("{there}\\n")), "{}", world.result());
    let setup = &world.shown()["setup"];
    assert_eq!((&setup["model"], &setup["tools"]), (&"openai:x".into(), &"shell".into()), "{setup}");
    let asked: Vec<Value> = world.kept.server.logged();
    let briefed = asked.iter().filter(|line| line.to_string().contains("Be brief.")).count();
    assert_eq!(briefed, 2, "{asked:?}");
}

/// S7.10: what is said outranks what is remembered, and is remembered in its place; who decides is asked anew.
#[test]
fn what_is_said_outranks_what_is_remembered() {
    let world = World::suspended();
    world.approve();
    let root = world.elsewhere.path().canonicalize().unwrap().display().to_string();
    let (code, _, notes) =
        printed(&mut world.command(&["resume", "trip", "--tools", "shell,sleep", "--approve", "auto"]));
    assert_eq!(code, 0, "{notes}");
    assert!(!notes.contains("works in") && world.result().contains(&format!("{root}\\n")), "{notes}");
    let setup = world.shown()["setup"].to_string();
    assert!(setup.contains("shell,sleep") && setup.contains(&root) && !setup.contains("auto"), "{setup}");
}

/// S7.10: a list of sessions says what each is about.
#[test]
fn a_session_is_called_after_its_first_prompt() {
    let world = World::suspended();
    assert_eq!(world.shown()["title"], "go");
    let listed = world.kept.tell(&["sessions", "ls"]).1;
    assert!(listed.lines().any(|line| line.starts_with("trip") && line.ends_with("go")), "{listed}");
}

/// S7.10: a password in an address is not stored; the resume asks the user to give the address again.
#[test]
fn a_password_in_an_address_is_kept_nowhere() {
    let world = World::suspended();
    let closed_port = "127.0.0.1:9";
    for (flag, with, without) in [
        ("--backend", format!("a2a:http://otter:s3cret@{closed_port}"), format!("a2a:http://{closed_port}")),
        ("--base-url", format!("http://otter:s3cret@{closed_port}/v1"), format!("http://{closed_port}/v1")),
    ] {
        let id = flag.trim_start_matches('-');
        let model = if flag == "--backend" { &[][..] } else { &["--model", "openai:x"] };
        let begun = [&["run", "--session", id, flag, &with, "--timeout", "3s", "go"][..], model].concat();
        assert_ne!(printed(&mut world.command(&begun)).0, 2);
        let (_, shown, _) = printed(&mut world.command(&["sessions", "show", id, "--json"]));
        assert!(shown.contains(&without), "{shown}");
        let files = std::fs::read_dir(world.kept.home()).unwrap().flatten();
        for file in files.filter(|entry| entry.file_name().to_string_lossy().starts_with("s.db")) {
            let bytes = std::fs::read(file.path()).unwrap_or_default();
            let is_kept = bytes.windows(6).any(|part| part == b"s3cret");
            assert!(!is_kept, "{flag}: {}", file.path().display());
        }
        let (code, _, said) = printed(&mut world.command(&["resume", id]));
        assert!(code == 2 && said.contains(&format!("say {flag} again")), "{code}: {said}");
    }
}

/// S12.6, S12.8, S7.10: a limit is the run's. A resume alone begins no further model call and says which
/// limit is spent; one that raises it continues, and the journal names the limit in force.
#[test]
fn a_resume_has_what_is_left_of_a_limit_and_may_raise_it() {
    let asks = r#"{"replies":[{"calls":[{"name":"sleep","args":{"seconds":0}}]}],"repeat":true}"#;
    let kept = Kept::start(asks);
    let store = kept.store();
    let tell = |args: &[&str]| printed(&mut kept.command(args, store.to_str().unwrap()));
    let requests = || kept.server.logged().iter().filter(|line| line["type"] == "request").count();
    let url = kept.server.url.clone();
    let begun = ["run", "--session", "trip", "--tools", "sleep", "--model", "openai:x", "--base-url", &url];
    let (code, _, said) = tell(&[&begun[..], &["--max-rounds", "2", "go"]].concat());
    assert_eq!((code, requests()), (10, 2), "{said}");
    assert!(said.contains("`safepoint resume trip --max-rounds N` resumes it"), "{said}");
    let (code, _, said) = tell(&["resume", "trip"]);
    assert_eq!((code, requests()), (10, 2), "{said}");
    assert!(said.contains("the limit of 2 rounds is reached, over 2 attempts"), "{said}");
    let (code, _, said) = tell(&["resume", "trip", "--max-rounds", "5"]);
    assert_eq!((code, requests()), (10, 5), "{said}");
    let journal = kept.tell(&["store", "export", "trip"]).1;
    assert!(journal.contains(r#""max_rounds":2"#) && journal.contains(r#""max_rounds":5"#), "{journal}");
}

//! Questions of kept sessions, answered from another process: once, today or after a restart.

use std::{
    path::Path,
    process::{Output, Stdio},
    time::Duration,
};

use rustix::process::Signal;
use safepoint::{
    approval::{ApprovalRequest, Decision},
    ids::{ApprovalId, RunId, SessionId},
    raw::{
        self, digest,
        store::{ApprovalClose, Durability, NewApproval, NewSession, Write},
    },
    store::{OwnerProcess, Store as _},
};
use safepoint_stores::SqliteStore;
use safepoint_testkit::store_suite::{acquire, give_back};
use serde_json::{Value, json};

use crate::{Practice, lines, safepoint, signal};

/// A store in a folder, a model, and the session `s` unless another is named.
struct World {
    folder: tempfile::TempDir,
    server: Practice,
}

impl World {
    fn new(replies: &Value) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), server: Practice::start(&replies.to_string()) }
    }

    fn store(&self) -> String {
        self.folder.path().join("store.db").display().to_string()
    }

    fn work(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn command(&self, args: &[&str]) -> std::process::Command {
        let store = self.store();
        let usual = [
            "--base-url",
            &self.server.url,
            "--model",
            "openai:x",
            "--tools",
            "shell",
            "--store",
            &store,
            "--json",
        ];
        let root = ["--root", self.folder.path().to_str().unwrap()];
        let root = if args.contains(&"--root") { &[][..] } else { &root };
        let mut command = safepoint(&[args, &usual, root].concat());
        command.env("TMPDIR", self.folder.path());
        command
    }

    fn ask(&self, args: &[&str]) -> (i32, String, String) {
        let store = self.store();
        let mut command = safepoint(&[args, &["--store", &store]].concat());
        let output = command.env("TMPDIR", self.folder.path()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    }
}

fn shell(command: &str) -> Value {
    json!({"calls": [{"name": "shell", "args": {"command": command}}]})
}

fn answer(output: &Output) -> Value {
    lines(&output.stdout).last().unwrap()["answer"].clone()
}

/// S8.1, S8.2, S8.4: a call asks where no user can answer, and waits. Another process sees exactly what would
/// run and changes it, and a third resumes; a later decision is refused and names the first.
#[test]
fn a_question_waits_for_another_process_and_is_used_once() {
    let world = World::new(&json!({"replies": [shell("echo one > made"), {"text": "all done"}]}));
    let root = world.folder.path().to_str().unwrap();
    assert_eq!(world.work(&["run", "go", "--session", "s", "--root", root]).status.code(), Some(11));
    let (code, listed, hint) = world.ask(&["approvals", "s"]);
    assert!(code == 0 && listed.contains("open until") && listed.contains("$ echo one > made"), "{listed}");
    assert!(hint.contains("safepoint approve s"), "{hint}");

    let changed = r#"{"command": "echo two > made"}"#;
    let (code, _, printed) = world.ask(&["approve", "s", "--args", changed]);
    assert!(code == 0 && printed.contains("shell may run with your arguments"), "{printed}");
    let (code, _, printed) = world.ask(&["approve", "s", "--args", changed]);
    assert!(
        code == 4
            && printed.contains("no question of s is open; the last one")
            && printed.contains("by uid "),
        "{printed}"
    );
    let id = world.ask(&["approvals", "s", "--json"]).1;
    let id = lines(id.as_bytes())[0]["approval_id"].as_str().unwrap().to_owned();
    let (code, _, printed) = world.ask(&["deny", "s", &id]);
    assert!(code == 4 && printed.contains("approved with other arguments by uid "), "{printed}");
    // The user who wrote the arguments has approved them: the engine does not ask about them again (S8.2).
    let done = world.work(&["resume", "s", "--root", root]);
    assert_eq!((done.status.code(), answer(&done)), (Some(0), json!("all done")));
    assert_eq!(std::fs::read_to_string(Path::new(root).join("made")).unwrap(), "two\n");
    let (code, _, printed) = world.ask(&["deny", "s", &id]);
    assert!(code == 4 && printed.contains("and applied"), "{printed}");
}

/// S8.6: `--always` says exactly what it allows, holds in the session, in another process too, and in no other session.
#[test]
fn always_holds_in_its_session_and_in_no_other() {
    let replies = [
        shell("true"),
        json!({"text": "one"}),
        shell("true"),
        json!({"text": "two"}),
        shell("true"),
        json!({"text": "three"}),
    ];
    let world = World::new(&json!({ "replies": replies }));
    assert_eq!(world.work(&["run", "go", "--session", "s"]).status.code(), Some(11));
    let (code, _, printed) = world.ask(&["approve", "s", "--always"]);
    assert!(code == 0 && printed.contains("from now on in this session"), "{printed}");
    assert!(printed.contains("shell with exactly these arguments"), "{printed}");
    assert_eq!(answer(&world.work(&["resume", "s"])), json!("one"));
    assert_eq!(answer(&world.work(&["run", "again", "--session", "s"])), json!("two"), "unasked");
    assert_eq!(world.work(&["run", "go", "--session", "t"]).status.code(), Some(11), "another session asks");
    let (code, _, printed) = world.ask(&["deny", "t", "--always"]);
    assert!(code == 2 && printed.contains("--always belongs to approve"), "{printed}");
}

/// S8.2: arguments that a person wrote are not covered where another rule asks about them than the one that asked before,
/// and do not run where a rule denies them.
#[test]
fn what_a_person_wrote_is_put_to_the_rules() {
    for (command, code) in [("echo special > made", 11), ("echo secret > made", 0)] {
        let world = World::new(&json!({"replies": [shell("echo one > made"), {"text": "all done"}]}));
        let root = world.folder.path().to_str().unwrap();
        let config = world.folder.path().join("config.toml");
        let rule = |like: &str, then: &str| {
            format!("[[rules]]\ntool = \"shell\"\nargs.command = \"*{like}*\"\nthen = \"{then}\"\n")
        };
        std::fs::write(&config, rule("special", "ask") + &rule("secret", "deny")).unwrap();
        let more = ["--root", root, "--config", config.to_str().unwrap()];
        assert_eq!(
            world.work(&[&["run", "go", "--session", "s"], &more[..]].concat()).status.code(),
            Some(11)
        );
        let changed = json!({ "command": command }).to_string();
        assert_eq!(world.ask(&["approve", "s", "--args", &changed]).0, 0);
        let next = world.work(&[&["resume", "s"], &more[..]].concat());
        assert_eq!(next.status.code(), Some(code), "{command}");
        assert!(!world.folder.path().join("made").exists(), "{command}");
    }
}

/// S8.8, S8.6: a yes for every call of a tool holds for that tool on that directory: on another it is asked again.
#[test]
fn a_lasting_yes_holds_for_the_directory_that_it_was_given_for() {
    let reply = || [shell("true"), json!({"text": "ok"})];
    let replies: Vec<Value> = (0..3).flat_map(|_| reply()).collect();
    let world = World::new(&json!({ "replies": replies }));
    let [here, there] = ["here", "there"].map(|name| {
        let place = world.folder.path().join(name);
        std::fs::create_dir(&place).unwrap();
        place.to_str().unwrap().to_owned()
    });
    assert_eq!(world.work(&["run", "go", "--session", "s", "--root", &here]).status.code(), Some(11));
    assert_eq!(world.ask(&["approve", "s", "--always=tool"]).0, 0);
    assert_eq!(world.work(&["resume", "s", "--root", &here]).status.code(), Some(0));
    assert_eq!(world.work(&["run", "go", "--session", "s", "--root", &here]).status.code(), Some(0));
    assert_eq!(world.work(&["run", "go", "--session", "s", "--root", &there]).status.code(), Some(11));
}

/// S8.11: a command that was approved cannot approve what the same run asks: not with another environment, and not after
/// it has left its session and its parent.
#[test]
fn a_run_does_not_approve_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let approve = format!("{} approve s --always=tool --store {}", crate::BIN, path("store.db"));
    let (left, json) = (path("left"), path("json"));
    let command = format!(
        "{approve} --json >{json}; {approve}; echo code $?; env -i {approve}; echo code $?; \
         (setsid env -i sh -c '{approve}; echo code $? >{left}.part; mv {left}.part {left}' &) & \
         while [ ! -e {left} ]; do sleep 0.02; done; cat {left}"
    );
    let calls = [("command", command), ("command", "echo two >made".to_owned())];
    let calls = calls.map(|(name, text)| json!({"name": "shell", "args": {name: text}}));
    let server = Practice::start(&json!({"replies": [{"calls": calls}, {"text": "all done"}]}).to_string());
    let config = path("config.toml");
    let rule = "[[rules]]\ntool = \"shell\"\nargs.command = \"**approve**\"\nthen = \"allow\"\n";
    std::fs::write(&config, rule).unwrap();
    let world = World { folder, server };
    let root = world.folder.path().to_str().unwrap();
    // A confined command does not even find the store.
    let run =
        world.work(&["run", "go", "--session", "s", "--root", root, "--config", &config, "--sandbox", "off"]);
    let seen = lines(&run.stdout);
    let ended = seen.iter().find(|line| line["type"] == "call_ended").unwrap();
    let output = ended["output"].as_str().unwrap();
    assert_eq!((output.matches("code 5").count(), output.matches("code").count()), (3, 3), "{output}");
    assert!(output.contains("a run cannot decide about its own calls"), "{output}");
    let printed = std::fs::read_to_string(json).unwrap();
    assert_eq!(super::kept::check(&printed)[0]["code"], 5, "{printed}");
    assert_eq!((run.status.code(), Path::new(root).join("made").exists()), (Some(11), false));
    let (_, listed, _) = world.ask(&["approvals", "s"]);
    assert!(listed.contains("open until"), "{listed}");
    let (code, _, printed) = world.ask(&["approve", "s"]);
    assert_eq!(code, 0, "{printed}");
    let (_, listed, _) = world.ask(&["approvals", "s"]);
    assert!(listed.contains("approved by uid ") && listed.contains("on no terminal"), "{listed}");
}

/// A program that dies in its command, which has begun.
fn dies_in_the_command(world: &World, more: &[&str]) {
    let begun = world.folder.path().join("begun");
    let mut child = world
        .command(&[&["run", "go", "--session", "s", "--approve", "auto"], more].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    safepoint_testkit::wait::until("the command begins", || begun.exists());
    signal(&child, Signal::KILL);
    child.wait().unwrap();
}

fn slow(world: &Path) -> Value {
    shell(&format!("touch {}; sleep 300", world.join("begun").display()))
}

/// S7.3: a command that was killed is not run again; the person and the model see that its effects are
/// unknown.
#[test]
fn what_may_have_happened_is_said_to_everybody() {
    let folder = tempfile::tempdir().unwrap();
    let server = Practice::start(&json!({"replies": [slow(folder.path()), {"text": "I see"}]}).to_string());
    let world = World { folder, server };
    dies_in_the_command(&world, &[]);
    let store = world.store();
    let args = ["resume", "s", "--base-url", &world.server.url, "--model", "openai:x", "--tools", "shell"];
    let output = safepoint(&[&args[..], &["--store", &store]].concat())
        .env("TMPDIR", world.folder.path())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    assert!(
        printed.contains("shell: side effects unknown") && printed.contains("not run again"),
        "{printed}"
    );
    // S3.7: the receipt is stored, and shown later.
    let (_, shown, _) = world.ask(&["sessions", "show", "s"]);
    assert!(
        shown.contains("turn-1")
            && shown.contains("side effects unknown")
            && shown.contains("running   nothing"),
        "{shown}"
    );
    let (_, traced, _) = world.ask(&["trace", "s"]);
    assert!(traced.contains("side effects unknown"), "{traced}");
}

/// S7.3: with `--unknown ask` a person decides from another process: run it again, take a result, or give it
/// up.
#[test]
fn a_person_says_what_becomes_of_what_may_have_happened() {
    for (verb, more, says, status) in [
        ("approve", &[][..], "shell is run again", "completed"),
        ("respond", &["--message", "it is there"], "shell counts as done, with your result", "completed"),
        ("deny", &[], "given up", "stopped"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        // Run again, it ends: what it made is there.
        let begun = folder.path().join("begun");
        let command = format!("test -e {0} || {{ touch {0}; sleep 300; }}", begun.display());
        let server = Practice::start(&json!({"replies": [shell(&command), {"text": "I see"}]}).to_string());
        let world = World { folder, server };
        dies_in_the_command(&world, &["--unknown", "ask"]);
        assert_eq!(world.work(&["resume", "s", "--unknown", "ask"]).status.code(), Some(11), "{verb}");
        let (_, listed, _) = world.ask(&["approvals", "s"]);
        assert!(listed.contains("side effects unknown"), "{listed}");
        let (code, _, printed) = world.ask(&["approve", "s", "--always"]);
        assert!(code == 2 && printed.contains("may have happened already"), "{printed}");
        let (code, _, printed) = world.ask(&[&[verb, "s"], more].concat());
        assert!(code == 0 && printed.contains(says), "{printed}");
        let done = world.work(&["resume", "s", "--unknown", "ask"]);
        let seen = lines(&done.stdout);
        let ended = seen.iter().find(|line| line["type"] == "call_ended").unwrap();
        assert_eq!((done.status.code(), &ended["status"]), (Some(0), &json!(status)), "{verb}: {ended}");
    }
}

/// Approvals in each state that takes no answer any more, one that another process answered, and an open one
/// that shows another command than was asked about.
fn closed(file: &Path, altered: Option<(&str, &str, &str)>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = SqliteStore::open(file).unwrap();
        let session = SessionId::from("s");
        store.create(NewSession::of(session.clone())).await.unwrap();
        let ttl = Duration::from_secs(60);
        let lease = acquire(&store, &session, OwnerProcess::here(), ttl).await.unwrap();
        let now = jiff::Timestamp::now();
        let later = now + jiff::SignedDuration::from_hours(1);
        for (id, expires) in [
            ("over", now - jiff::SignedDuration::from_secs(1)),
            ("expired", later),
            ("back", later),
            ("used", later),
        ]
        .into_iter()
        .chain(altered.map(|(id, ..)| (id, later)))
        {
            let args = json!({"command": id});
            let bound = digest("shell", "as declared", &args);
            let request = json!({
                "id": id, "call_id": id, "tool": "shell", "definition": "as declared", "args": args,
                "digest": bound, "asked_at": now, "expires_at": expires,
            });
            // In the order in which the engine writes it.
            let request: ApprovalRequest = serde_json::from_value(request).unwrap();
            let mut bytes = serde_json::to_vec(&request).unwrap();
            if let Some((_, from, to)) = altered.filter(|(altered, ..)| *altered == id) {
                bytes = String::from_utf8(bytes).unwrap().replace(from, to).into_bytes();
            }
            let asked = NewApproval {
                id: id.into(),
                run: RunId::from("run_1"),
                call: request.call_id,
                digest: request.digest.clone(),
                expires,
                bytes,
            };
            store.append(&lease, vec![Write::OpenApproval(asked)], Durability::Recorded).await.unwrap();
        }
        let bytes = serde_json::to_vec(&Decision::Approve).unwrap();
        let yes = raw::store::NewDecision {
            id: "used".into(),
            digest: digest("shell", "as declared", &json!({"command": "used"})),
            principal: "bob".into(),
            bytes,
        };
        store.decide(&session, yes).await.unwrap();
        use ApprovalClose::{Expired, Used, Withdrawn};
        for (id, how) in [("expired", Expired), ("back", Withdrawn), ("used", Used)] {
            let close = Write::CloseApproval(ApprovalId::from(id), how);
            store.append(&lease, vec![close], Durability::Recorded).await.unwrap();
        }
        give_back(&store, &lease).await.unwrap();
    });
}

/// S8.2, S8.3, S8.5: an approval that takes no answer any more says why, each state in a separate sentence:
/// 4.
#[test]
fn an_answer_that_comes_too_late_is_told_why() {
    let world = World::new(&json!({"replies": []}));
    closed(Path::new(&world.store()), None);
    for (id, says) in [
        ("over", "expired at"),
        ("expired", "expired at"),
        ("back", "a stop took this question back"),
        ("used", "already approved by bob"),
    ] {
        for verb in ["approve", "deny"] {
            let (code, _, printed) = world.ask(&[verb, "s", id]);
            assert!(code == 4 && printed.contains(says), "{id}: {code} {printed}");
        }
    }
    let (_, listed, hint) = world.ask(&["approvals", "s"]);
    assert!(hint.contains("no question of s is open"), "{hint}");
    for says in ["over  expired", "expired  expired", "back  taken back", "used  approved by bob: shell"] {
        assert!(listed.contains(says), "{listed}");
    }
}

/// S8.2: with no approval named and none open, the command says what became of the last one: 4. Without any
/// approval: 3. A missing store is not created, and arguments that are no object are wrong usage.
#[test]
fn an_answer_without_a_question_is_told_what_became_of_the_last() {
    let world = World::new(&json!({"replies": []}));
    let typo = world.store();
    for args in
        [&["approvals", "s"][..], &["approve", "s"], &["deny", "s"], &["respond", "s", "--message", "x"]]
    {
        let (code, _, printed) = world.ask(args);
        assert!(code == 3 && printed.contains("session s not found"), "{code} {printed}");
        assert!(!Path::new(&typo).exists(), "{args:?}");
    }
    closed(Path::new(&world.store()), None);
    let (code, _, printed) = world.ask(&["deny", "s"]);
    assert!(code == 4 && printed.contains("the last one, used: already approved by bob"), "{code} {printed}");
    for args in ["[]", "1", "\"text\"", "null"] {
        let (code, _, printed) = world.ask(&["approve", "s", "--args", args]);
        assert!(code == 2 && printed.contains("not a JSON object"), "{args}: {code} {printed}");
    }
}

/// S8.2, S8.8: an approval that shows another tool or other arguments than would run is damaged: shown as
/// damaged, never decided, and found by a check of the store.
#[test]
fn a_question_that_was_altered_is_decided_by_nobody() {
    for (from, to) in [
        ("\"altered\"}", "\"true\"}"),
        ("\"tool\":\"shell\"", "\"tool\":\"sleep\""),
        ("\"as declared\"", "\"as it is now\""),
    ] {
        is_decided_by_nobody(("altered", from, to));
    }
}

fn is_decided_by_nobody(altered: (&str, &str, &str)) {
    let world = World::new(&json!({"replies": []}));
    closed(Path::new(&world.store()), Some(altered));
    let (_, listed, _) = world.ask(&["approvals", "s"]);
    assert!(
        listed.contains("altered  open  (damaged: cannot be decided)") && !listed.contains("\"true\""),
        "{listed}"
    );
    for args in [
        &["approve", "s"][..],
        &["approve", "s", "altered"],
        &["deny", "s"],
        &["respond", "s", "--message", "x"],
    ] {
        let (code, _, printed) = world.ask(args);
        assert!(
            code == 5 && printed.contains("altered cannot be decided, it is damaged"),
            "{args:?}: {code} {printed}"
        );
    }
    let (code, checked, _) = world.ask(&["store", "check"]);
    assert!(code == 1 && checked.contains("approval altered: it is damaged"), "{checked}");
}

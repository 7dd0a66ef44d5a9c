//! What may take a secret out: requests by their origin, addresses that are not public, and files that commonly hold
//! secrets.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    path::Path,
    process::{Output, Stdio},
    sync::mpsc,
};

use serde_json::{Value, json};

use crate::{Practice, lines, safepoint};

/// A server of texts, and the first line of each request.
fn listen() -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let (requests, received) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().unwrap().unwrap();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
            stream.write_all(head.as_bytes()).unwrap();
            if requests.send(first).is_err() {
                return;
            }
        }
    });
    (origin, received)
}

fn call(tool: &str, args: Value) -> Value {
    json!({"calls": [{"name": tool, "args": args}]})
}

struct World {
    folder: tempfile::TempDir,
    server: Practice,
}

impl World {
    fn new(replies: Vec<Value>, config: &str) -> Self {
        let world = Self {
            folder: tempfile::tempdir().unwrap(),
            server: Practice::start(&json!({ "replies": replies }).to_string()),
        };
        std::fs::write(world.path("config.toml"), config).unwrap();
        std::fs::write(world.path(".env"), "KEY=hunter2").unwrap();
        world
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn command(&self, args: &[&str]) -> std::process::Command {
        let (config, root) = (self.path("config.toml"), self.path(""));
        let usual = [
            "--base-url",
            &self.server.url,
            "--model",
            "openai:x",
            "--tools",
            "read_file,http_get",
            "--json",
        ];
        let mut command = safepoint(&[args, &usual, &["--config", &config, "--root", &root]].concat());
        command.env("TMPDIR", self.folder.path());
        command
    }
}

fn endings(output: &Output) -> Vec<(String, String)> {
    let seen = lines(&output.stdout);
    let ended = seen.iter().filter(|line| line["type"] == "call_ended");
    let text = |line: &Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
    ended.map(|line| (text(line, "status"), text(line, "output"))).collect()
}

const PRIVATE: &str = "[[rules]]\ntool = \"http_get/private\"\nargs.range = \"loopback\"\nthen = \"allow\"\n";

/// S8.9, S8.10: with read-only tools and no user to approve, no secret is read, and nothing is sent.
#[test]
fn what_only_reads_takes_no_secret_out() {
    for mode in ["deny", "ask"] {
        let (origin, requests) = listen();
        let world = World::new(
            vec![
                call("read_file", json!({"path": ".env"})),
                call("http_get", json!({"url": format!("{origin}/?key=hunter2")})),
                json!({"text": "ok"}),
            ],
            PRIVATE,
        );
        let output = world.command(&["run", "--approve", mode, "go"]).output().unwrap();
        let seen = endings(&output);
        assert_eq!(seen.len(), 2, "{seen:?}");
        for (status, output) in &seen {
            assert!(status == "failed" && !output.contains("KEY=hunter2"), "{mode}: {seen:?}");
        }
        assert!(requests.try_recv().is_err(), "nothing was sent");
    }
}

/// S8.9, S10.67: `--approve auto` reaches no address that is not public: that takes a rule that names it. Where there is none, that
/// is what is said, and which rule would; where one denies it, that.
#[test]
fn an_address_that_is_not_public_takes_a_rule() {
    let denied = PRIVATE.replace("allow", "deny");
    for (config, status, by) in [
        ("[[rules]]\ntool = \"*\"\nthen = \"allow\"\n", "failed", "no_rule"),
        (&denied, "failed", "rule"),
        (PRIVATE, "completed", "rule"),
    ] {
        let (origin, requests) = listen();
        let url = origin.replace("127.0.0.1", "localhost");
        let world = World::new(vec![call("http_get", json!({ "url": url })), json!({"text": "ok"})], config);
        let output = world.command(&["run", "--approve", "auto", "go"]).output().unwrap();
        let seen = endings(&output);
        assert_eq!(seen[0].0, status, "{seen:?}");
        let would =
            "no rule allows that; one of the user's for `http_get/private` with range = \"loopback\" would";
        assert_eq!(seen[0].1.contains(would), by == "no_rule", "{seen:?}");
        let printed = lines(&output.stdout);
        let ruled = printed
            .iter()
            .find(|line| line["type"] == "approval_ruled" && line["name"] == "http_get/private")
            .unwrap();
        assert_eq!(ruled["by"], by, "{ruled}");
        assert_eq!(requests.try_recv().is_ok(), status == "completed");
    }
}

/// The open question of a session, as soon as there is one.
fn question(store: &str, folder: &Path) -> Value {
    safepoint_testkit::wait::until("something is asked", || {
        let output = safepoint(&["approvals", "s", "--json", "--store", store])
            .env("TMPDIR", folder)
            .output()
            .unwrap();
        let open = lines(&output.stdout).into_iter().find(|line| line["open"] == true);
        open.filter(|_| output.status.success())
    })
}

/// S8.9, S8.6: an origin is asked about once: a plain yes holds for the session, and for no other origin.
#[test]
fn an_origin_is_asked_about_once_in_a_session() {
    let ((one, one_received), (other, other_received)) = (listen(), listen());
    let get = |origin: &str, path: &str| call("http_get", json!({"url": format!("{origin}/{path}")}));
    let ok = || json!({"text": "ok"});
    let world = World::new(
        vec![get(&one, "1"), get(&one, "2"), ok(), get(&one, "3"), get(&other, "4"), ok()],
        PRIVATE,
    );
    let store = world.path("store.db");
    for (turn, origin) in [(1, &one), (2, &other)] {
        let mut command = world.command(&["run", "go", "--session", "s", "--store", &store]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let asked = question(&store, world.folder.path());
        assert_eq!(
            (&asked["tool"], &asked["args"]),
            (&json!("http_get/reach"), &json!({ "origin": origin }))
        );
        let yes = safepoint(&["approve", "s", "--store", &store])
            .env("TMPDIR", world.folder.path())
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&yes.stderr).into_owned();
        assert!(yes.status.success() && printed.contains("from now on in this session"), "{printed}");
        let output = child.wait_with_output().unwrap();
        let seen = endings(&output);
        assert!(
            seen.len() == 2 && seen.iter().all(|(status, _)| status == "completed"),
            "turn {turn}: {seen:?}"
        );
    }
    assert_eq!((one_received.try_iter().count(), other_received.try_iter().count()), (3, 1));
}

/// S8.10: which files commonly hold secrets is configured as lines of a `.gitignore`, and a rule speaks of them as of others.
#[test]
fn the_files_that_hold_secrets_are_configured() {
    let script = || vec![call("read_file", json!({"path": ".env"})), json!({"text": "ok"})];
    for config in [
        "secret_files = [\"!.env\"]\n",
        "[[rules]]\ntool = \"read_file\"\nargs.path = \".env\"\nthen = \"allow\"\n",
    ] {
        let world = World::new(script(), config);
        let seen = endings(&world.command(&["run", "--approve", "deny", "go"]).output().unwrap());
        assert_eq!(seen[0], ("completed".into(), "KEY=hunter2".into()));
    }
    let world = World::new(script(), "secret_files = [\"[z-a]\"]\n");
    let wrong = world.command(&["run", "go"]).output().unwrap();
    let printed = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(
        wrong.status.code() == Some(2) && printed.contains("secret_files") && printed.contains("`[z-a]`"),
        "{printed}"
    );
}

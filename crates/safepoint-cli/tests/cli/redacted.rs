//! Secrets that the program knows, in what a tool prints and in what a provider answers.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    path::Path,
    process::Output,
};

use serde_json::json;

use crate::{Practice, lines, safepoint};

const KEY: &str = "sk-hunter2-0123456789";
const PASSWORD: &str = "correct-horse-battery";

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

/// Every file of a folder.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.is_file());
    files.map(|path| (path.display().to_string(), std::fs::read(&path).unwrap())).collect()
}

/// S8.10: a key that a tool prints is in no event, no record, no recording and no later request; its name is.
#[test]
fn a_key_that_a_tool_prints_is_recorded_nowhere() {
    let (kept, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(root.path().join("note"), format!("a {KEY} and {PASSWORD} b\n")).unwrap();
    let call = |command: &str| json!({"calls": [{"name": "shell", "args": {"command": command}}]});
    let repeats = json!({"text": format!("it says {KEY}")});
    // In the name of a call, in its id, and in the name of an argument.
    let named = json!({"calls": [{"name": KEY, "id": PASSWORD, "args": {KEY: 1}}]});
    let failing = call("cat note; exit 3");
    let script = json!({"replies": [call("cat note"), failing, named, repeats]});
    let server = Practice::start(&script.to_string());
    let [store, recording] =
        ["store.db", "recording"].map(|name| kept.path().join(name).display().to_string());
    let args = [
        "run",
        "go",
        "--approve",
        "auto",
        "--tools",
        "shell",
        "--json",
        "--session",
        "s",
        "--model",
        "openai:x",
    ];
    let more = ["--base-url", &server.url, "--store", &store, "--record", &recording, "--root"];
    let output = safepoint(&[&args[..], &more, &[root.path().to_str().unwrap()]].concat())
        .env("OPENAI_API_KEY", KEY)
        .env("DB_PASSWORD", PASSWORD)
        .env("TMPDIR", root.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.contains("a [secret OPENAI_API_KEY] and [secret DB_PASSWORD] b"), "{printed}");
    assert_eq!(lines(&output.stdout).last().unwrap()["answer"], "it says [secret OPENAI_API_KEY]");
    let mut places = files(kept.path());
    assert!(places.iter().any(|(name, _)| name.ends_with("recording")), "{places:?}");
    places.extend([("stdout".into(), output.stdout), ("stderr".into(), output.stderr)]);
    places.push(("the requests".into(), std::fs::read(server.log.path()).unwrap()));
    for (name, bytes) in &places {
        assert!(!holds(bytes, KEY) && !holds(bytes, PASSWORD), "a secret is in {name}");
    }
    assert!(
        places
            .iter()
            .any(|(name, bytes)| name.ends_with("recording") && holds(bytes, "[secret DB_PASSWORD]"))
    );
}

/// A provider that refuses every request, and says with which key.
fn refuses() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut length, mut line) = (0, String::new());
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                if let Some(bytes) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = bytes.trim().parse().unwrap();
                }
                line.clear();
            }
            reader.read_exact(&mut vec![0; length]).unwrap();
            let body =
                json!({"error": {"message": format!("Incorrect API key provided: {KEY}")}}).to_string();
            let head = format!(
                "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        }
    });
    url
}

/// S8.10: a 401 that echoes the key does not put it into the error, the store or the recording.
#[test]
fn a_refusal_that_echoes_the_key_is_told_without_it() {
    let kept = tempfile::tempdir().unwrap();
    let [store, recording] =
        ["store.db", "recording"].map(|name| kept.path().join(name).display().to_string());
    let url = refuses();
    let args = ["run", "go", "--session", "s", "--model", "openai:x", "--base-url", &url];
    let output = |more: &[&str]| -> Output {
        safepoint(&[&args[..], &["--store", &store], more].concat())
            .env("OPENAI_API_KEY", KEY)
            .env("TMPDIR", kept.path())
            .output()
            .unwrap()
    };
    let (plain, recorded) = (output(&[]), output(&["--record", &recording, "--json"]));
    let printed = String::from_utf8_lossy(&plain.stderr).into_owned();
    assert!(printed.contains("Incorrect API key provided: [secret OPENAI_API_KEY]"), "{printed}");
    let mut places = files(kept.path());
    for Output { stdout, stderr, .. } in [plain, recorded] {
        places.extend([("stdout".into(), stdout), ("stderr".into(), stderr)]);
    }
    for (name, bytes) in &places {
        assert!(!holds(bytes, KEY), "the key is in {name}");
    }
    let traced = safepoint(&["trace", "s", "--store", &store]).output().unwrap();
    assert!(!holds(&traced.stdout, KEY) && holds(&traced.stdout, "[secret OPENAI_API_KEY]"));
}

//! What a user practises with: `--attach`, `--record` and `--replay`.

use serde_json::Value;

use super::super::{Practice, lines, run, safepoint, wires};

const KEY: &str = "sk-a-key-that-nobody-may-see";
const TALK: &str = r#"{"replies":[{"calls":[{"id":"c1","name":"read_file","args":{"path":"note.txt"}}]},{"text":"it says milk"}]}"#;

/// A directory with a note in it, and a place for a recording.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.note("milk");
        place
    }

    fn note(&self, text: &str) {
        std::fs::write(self.0.path().join("note.txt"), text).unwrap();
    }

    fn recording(&self) -> String {
        self.0.path().join("talk.jsonl").to_str().unwrap().to_owned()
    }

    fn run(&self, more: &[&str]) -> std::process::Output {
        let args = ["run", "--json", "--tools", "read_file", "what is in the note?"];
        let mut command = safepoint(&[&args[..], more].concat());
        command.current_dir(self.0.path()).env("OPENAI_API_KEY", KEY).output().unwrap()
    }

    fn record(&self, server: &Practice, wire: &str) -> std::process::Output {
        self.run(&["--model", wire, "--base-url", &server.url, "--record", &self.recording()])
    }
}

fn answer(output: &std::process::Output) -> Value {
    lines(&output.stdout).last().unwrap()["answer"].clone()
}

/// S5.1: a conversation with a call is recorded on every wire, and is the same again without a server; the call is
/// made again, and no key is in the file.
#[test]
fn a_recorded_conversation_is_replayed_without_a_server() {
    for wire in wires() {
        let place = Place::new();
        let server = Practice::start(TALK);
        let first = place.record(&server, wire);
        assert_eq!(first.status.code(), Some(0), "{wire}: {}", String::from_utf8_lossy(&first.stderr));
        drop(server);
        let again = place.run(&["--replay", &place.recording()]);
        assert_eq!(again.status.code(), Some(0), "{wire}: {}", String::from_utf8_lossy(&again.stderr));
        assert_eq!(
            (answer(&first), answer(&again)),
            ("it says milk".into(), "it says milk".into()),
            "{wire}"
        );
        let called = lines(&again.stdout).into_iter().find(|line| line["type"] == "call_ended").unwrap();
        assert!(called["output"].as_str().unwrap().contains("milk"), "{called}");
        let file = std::fs::read_to_string(place.recording()).unwrap();
        let is_secret = |word: &str| file.to_lowercase().contains(word);
        assert!(
            file.contains("milk")
                && !is_secret(KEY)
                && !is_secret("authorization")
                && !is_secret("127.0.0.1")
        );
    }
}

/// S3.1: what is not as it was recorded fails, and says where it differs; a recording is not written over.
#[test]
fn a_replay_that_departs_from_its_recording_says_where() {
    let place = Place::new();
    assert_eq!(place.record(&Practice::start(TALK), "openai:x").status.code(), Some(0));
    place.note("bread");
    let departs = place.run(&["--replay", &place.recording()]);
    assert_eq!(departs.status.code(), Some(1));
    let words = String::from_utf8_lossy(&departs.stdout).into_owned();
    assert!(words.contains("request 2 is not as it was recorded: at /history/2/results/0/text"), "{words}");
    let short = place.run(&["--replay", &place.recording(), "--max-rounds", "1"]);
    let words = String::from_utf8_lossy(&short.stderr).into_owned();
    assert!(words.contains("1 more requests that were not made"), "{words}");
    let server = Practice::start(TALK);
    let over = place.record(&server, "openai:x");
    assert_eq!((over.status.code(), server.logged().len()), (Some(2), 0), "and nothing was asked");
    assert!(String::from_utf8_lossy(&over.stderr).contains("--record"));
    let none = run(&["run", "hi", "--replay", place.0.path().join("note.txt").to_str().unwrap()]);
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&none.stderr).contains("it is no recording"));
}

/// A PNG of one dot.
pub(super) const DOT: &[u8] = b"\x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU\x00\x00\x00\x0aIDATx\x9cch\x00\x00\x00\x82\x00\x81w\xcdr\xb6\x00\x00\x00\x00IEND\xaeB`\x82";

/// S5.1: an image that is attached reaches the wire, on each; what is no image or document is wrong usage.
#[test]
fn an_attached_image_reaches_every_wire() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    // One grey dot; its name says something else, which is not asked.
    std::fs::write(path("dot.jpg"), DOT).unwrap();
    for wire in wires() {
        let server = Practice::start(r#"{"replies":[{"text":"a dot"}]}"#);
        let args =
            ["run", "--base-url", &server.url, "--model", wire, "--attach", &path("dot.jpg"), "what is it?"];
        let output = run(&args);
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (String::from_utf8_lossy(&output.stdout).as_ref(), output.status.code()),
            ("a dot\n", Some(0)),
            "{words}"
        );
        let asked = serde_json::to_string(&server.logged()).unwrap();
        assert!(asked.contains("iVBORw0KGgoAAAANSUhEUg") && asked.contains("image/png"), "{wire}: {asked}");
    }
    std::fs::write(path("a.png"), "just words").unwrap();
    std::fs::write(path("empty.png"), "").unwrap();
    for (file, words) in [
        ("a.png", "attach png, jpg, gif, webp or pdf"),
        ("empty.png", "it is empty"),
        ("missing.png", "missing.png"),
    ] {
        let output = run(&["run", "hi", "--model", "practice", "--attach", &path(file)]);
        assert_eq!(output.status.code(), Some(2), "{file}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(words), "{file}");
    }
}

/// S4.7: a call whose output the shell cut itself says so, and where all of it is.
#[test]
fn a_long_output_is_told_as_truncated() {
    let prompt = r#"run: head -c 3000000 /dev/zero | tr "\0" x"#;
    let output =
        run(&["run", "--json", "--tools", "shell", "--approve", "auto", "--model", "practice", prompt]);
    let lines = lines(&output.stdout);
    let ended = lines.iter().find(|line| line["type"] == "call_ended").unwrap();
    assert_eq!(ended["truncated"], true, "{}", ended["file"]);
    let file = ended["file"].as_str().unwrap();
    assert_eq!(std::fs::metadata(file).unwrap().len(), 3_000_000);
    std::fs::remove_file(file).unwrap();
}

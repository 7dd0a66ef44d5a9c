//! Looking back: a fixed journal as text, JSON and a page; one list of sessions.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{lines, safepoint};
use journal::{HOSTILE, Journal, eventful};

pub(super) mod journal;

/// A store with one session of this journal.
struct Kept {
    folder: tempfile::TempDir,
    id: String,
}

impl Kept {
    fn of(journal: Journal, id: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        journal.keep(&folder.path().join("store.db"), id);
        Self { folder, id: id.to_owned() }
    }

    fn ask(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let output = safepoint(args)
            .arg("--store")
            .arg(self.folder.path().join("store.db"))
            .env("XDG_RUNTIME_DIR", self.folder.path())
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    fn page(&self) -> String {
        let file = self.folder.path().join("trace.html");
        let (code, out, printed) = self.ask(&["trace", &self.id, "--html", file.to_str().unwrap()]);
        assert_eq!((code, out.as_str()), (Some(0), ""), "{printed}");
        std::fs::read_to_string(file).unwrap()
    }
}

/// S3.7, S7.7: every step at its time, the stop from its asking to quiet, the damaged record in its place, and nothing
/// that a model or a tool wrote is obeyed by the terminal.
#[test]
fn a_session_is_told_as_text() {
    let (code, text, _) = Kept::of(eventful(), "s").ask(&["trace", "s"]);
    assert_eq!(code, Some(0));
    let printed: Vec<&str> =
        text.lines().filter(|line| line.starts_with(' ') || line.starts_with("turn")).collect();
    assert_eq!(
        printed,
        [
            "turn-1: stopped, 4.5 s, 2026-01-02 03:04:05 UTC",
            "  > look </script><img src=x onerror=alert(1)>\\u{1b}[2J\\u{202e}--><!--&lt;",
            "    +0.001     4.5 s  attempt 1: stopped",
            "    +0.002  898.0 ms    round 1: m, complete, 100 in, 20 out",
            "    +0.050  400.0 ms    waits to try again: HTTP 529",
            "    +0.910     1.0 s    shell {\"command\":\"</scrip…: completed, side effects done",
            "    +0.920     1.1 s    ? may pay run?: approved",
            "    +0.930     3.6 s    researcher {\"task\":\"dig\"}: stopped",
            "    +0.940     3.6 s    [researcher] attempt 1: stopped",
            "    +0.950  500.0 ms      [researcher] round 1: m, complete, 10 in, 5 out",
            "    +2.010     2.5 s    pay {\"amount\":7}: stopped, side effects unknown",
            "    +2.500            ■ stop requested: after-started-calls (tree), now after",
            "                        2.0 s; user (person): ctrl-c",
            "    +4.500            ■ stop escalated: now",
            "    +4.501            ■ stop took effect",
            "    +4.510              [researcher] settled: stopped",
            "    +4.520            settled: stopped",
            "    +4.521            turn-1: stopped",
            "    +4.540            quiet: nothing is running",
            "turn-2: no recorded end, 10.0 ms, 2026-01-02 03:05:05 UTC",
            "  > and now",
            "    +0.001         …  attempt 1: no recorded end",
            "    +0.001            ! unreadable record: record 24 cannot be read: EOF while",
            "                        parsing a value at line 1 column 8",
            "    +0.010         …    round 1: no recorded end",
        ]
    );
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("warning: 1 record cannot be read"), "{text}");
}

/// Every line is as published.
pub(super) fn check(printed: &[Value]) {
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/schema/trace.json")).unwrap();
    let schema = safepoint::raw::schema::Schema::new(&schema).unwrap();
    for line in printed {
        assert_eq!(schema.check(line), Ok(()), "{line}");
    }
}

/// S3.7, S7.7, S11.4: the same for programs: as the schema says, numbered without a gap, nothing cut.
#[test]
fn a_session_is_told_as_json() {
    let (code, text, _) = Kept::of(eventful(), "s").ask(&["trace", "s", "--json"]);
    let printed = lines(text.as_bytes());
    assert_eq!(code, Some(0));
    check(&printed);
    for (index, line) in printed.iter().enumerate() {
        assert_eq!((&line["seq"], &line["v"], &line["session"]), (&json!(index), &json!(1), &json!("s")));
    }
    let one = |kind: &str| printed.iter().find(|line| line["type"] == kind).unwrap();
    let count = |kind: &str| printed.iter().filter(|line| line["type"] == kind).count();
    assert_eq!(
        (count("turn"), count("model"), count("call"), count("child"), count("retry")),
        (2, 3, 2, 1, 1)
    );
    assert_eq!(one("turn")["usage"]["input"], 110);
    assert_eq!((&one("call")["output"], &one("call")["took_us"]), (&json!(HOSTILE), &json!(1_000_000)));
    assert_eq!((&one("approval")["took_us"], &one("approval")["call_id"]), (&json!(1_080_000), &json!("c2")));
    assert_eq!(
        (&one("stop_requested")["within_ms"], &one("quiet")["survivors"]),
        (&json!(2_000), &json!([]))
    );
    assert_eq!(
        (&one("damaged")["position"], &one("settled")["receipt"]["ending"]),
        (&json!(24), &json!("stopped"))
    );
    assert_eq!(printed.last().unwrap()["ended_at"], Value::Null, "cut by the end of its process");
}

/// The tags of a page, in order, those inside scripts and styles left out: each is one of the page's own.
fn tags(page: &str) -> Vec<String> {
    let (mut rest, mut found) = (page, Vec::new());
    while let Some((_, after)) = rest.split_once('<') {
        let (tag, after) = after.split_once('>').unwrap();
        found.push(tag.to_owned());
        let name = tag.split(' ').next().unwrap();
        rest = match name {
            "script" | "style" => &after[after.find(&format!("</{name}>")).unwrap()..],
            _ => after,
        };
    }
    found
}

/// S3.7: the page needs nothing else, and nothing from the journal is markup in it, wherever it stood: in what
/// was asked, in arguments, in output, in what the model said, and in the session's own id.
#[test]
fn the_page_stands_alone_and_holds_text_alone() {
    let kept = Kept::of(eventful(), &format!("s{}", HOSTILE.replace('\u{1b}', "")));
    let page = kept.page();
    let mut open: Vec<String> = Vec::new();
    for tag in tags(&page) {
        let name = tag.split(' ').next().unwrap();
        match name.strip_prefix('/') {
            Some(closed) => assert_eq!(open.pop().as_deref(), Some(closed), "{tag}"),
            None if matches!(name, "!doctype" | "meta" | "input") => {}
            None => open.push(name.to_owned()),
        }
        let own = [
            "!doctype", "html", "head", "meta", "title", "style", "body", "div", "header", "h1", "span",
            "canvas", "button", "input", "i", "aside", "pre", "script",
        ];
        assert!(own.contains(&name.trim_start_matches('/')), "{tag}");
        let loads = |word: &str| {
            ["src=", "href=", "on"].iter().any(|name| word.starts_with(name)) && word.contains('=')
        };
        assert!(!tag.split(' ').any(loads), "{tag}");
    }
    assert!(open.is_empty(), "{open:?}");
    for outside in ["http://", "https://", "url(", "@import", "innerHTML", "eval("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert_eq!(page.matches("</script>").count(), 2);
    let data = page.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
    let data: Value = serde_json::from_str(data).unwrap();
    let call = data["steps"].as_array().unwrap().iter().find(|step| step["k"] == "call").unwrap();
    assert_eq!(call["d"]["output"], "</script><img src=x onerror=alert(1)>\\u{1b}[2J\\u{202e}--><!--&lt;");
    assert_eq!(call["b"].as_i64().unwrap() - call["a"].as_i64().unwrap(), 1_000_000);
    let text = page.split_once("<pre id=\"text\">").unwrap().1.split_once("</pre>").unwrap().0;
    assert!(
        text.contains("stop escalated: now") && text.contains("&lt;img src=x"),
        "it tells without a script"
    );
}

/// A thousand rounds are shown in little time, and in a page of bounded size.
#[test]
fn a_thousand_rounds_fit_in_a_page() {
    const ROUNDS: u32 = 1_000;
    const MOST: usize = 4 << 20;
    let mut all = Journal::new();
    all.begin(0, 1, "work");
    let output = "line of output\n".repeat(100);
    for round in 1..=ROUNDS {
        let from = i64::from(round) * 1_000;
        all.model(1, &[], round, (from, from + 400));
        for place in 0..2_i64 {
            let (call, ms) = (format!("c{round}_{place}"), from + 410 + place);
            all.call(
                1,
                &[],
                &call,
                json!({"ms": ms, "name": "shell", "round": round, "args": {"command": "ls"}}),
            );
            all.called(
                1,
                &[],
                &call,
                json!({"from": ms, "to": ms + 300, "name": "shell", "status": "completed",
                "effect": "done", "output": output}),
            );
        }
    }
    let kept = Kept::of(all, "long");
    let began = Instant::now();
    let page = kept.page();
    assert!(began.elapsed() < Duration::from_secs(20), "{:?} in a debug build", began.elapsed());
    assert!(page.len() < MOST, "{} bytes", page.len());
    assert!(page.contains("round 1000"), "all of it is there");
    assert_eq!(kept.ask(&["trace", "long", "--json"]).1.lines().count(), 1 + 1 + 3 * ROUNDS as usize);
}

/// S7.7: what is readable is exported, and what is not is named in its place.
#[test]
fn what_is_readable_is_exported() {
    let kept = Kept::of(eventful(), "s");
    let (code, text, _) = kept.ask(&["store", "export", "s"]);
    let printed = lines(text.as_bytes());
    assert_eq!((code, printed.len()), (Some(0), 26), "the store itself is sound");
    assert_eq!((&printed[24]["bytes"][0], &printed[0]["record"]["line"]), (&json!(b'{'), &json!("planned")));
    assert_eq!(kept.ask(&["store", "export", "other"]).0, Some(3));
    assert_eq!(kept.ask(&["trace", "other"]).0, Some(3));
}

/// S7.6, S7.7: a check of a missing store says so, and creates none; damage of the file outside its records
/// is reported.
#[test]
fn a_check_tells_what_is_not_there_and_what_is_wrong_with_the_file() {
    let mut whole = Journal::new();
    whole.begin(0, 1, "work");
    let kept = Kept::of(whole, "s");
    let file = kept.folder.path().join("store.db");
    assert_eq!(kept.ask(&["store", "check"]).0, Some(0));
    // What is still in the log is written back.
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    let mut bytes = std::fs::read(&file).unwrap();
    // Where the cells of the second page begin: it is the first table's.
    bytes[4096 + 5] ^= 0xff;
    std::fs::write(&file, bytes).unwrap();
    let (code, out, _) = kept.ask(&["store", "check"]);
    assert!(code == Some(1) && out.starts_with("the file itself: "), "{out}");
    std::fs::remove_file(&file).unwrap();
    let (code, _, printed) = kept.ask(&["store", "check"]);
    assert!(code == Some(1) && printed.contains("not found"), "{printed}");
    assert!(!file.exists());
}

/// S7.7: one list: what is kept says how it stands, is shown by its id or an end of it, and can be removed.
#[test]
fn kept_sessions_are_listed_shown_and_removed() {
    let kept = Kept::of(eventful(), "ses_0123456789");
    let (code, text, _) = kept.ask(&["sessions", "ls", "--json"]);
    let printed = lines(text.as_bytes());
    assert_eq!(
        (code, printed.len(), &printed[0]["state"], &printed[0]["kept"]),
        (Some(0), 1, &json!("stopped"), &json!(true))
    );
    assert!(kept.ask(&["sessions", "ls"]).1.starts_with("ses_0123456789"));
    let (code, text, _) = kept.ask(&["sessions", "show", "6789", "--json"]);
    assert_eq!((code, &lines(text.as_bytes())[0]["records"]), (Some(0), &json!(26)));
    assert_eq!(kept.ask(&["sessions", "show", "none"]).0, Some(3));
    assert_eq!(kept.ask(&["sessions", "rm", "none"]).0, Some(3));
    assert_eq!(kept.ask(&["sessions", "rm", "ses_0123456789"]).0, Some(0));
    assert_eq!(kept.ask(&["sessions", "ls", "--json"]).1, "");
    assert_eq!(kept.ask(&["sessions", "rm", "ses_0123456789"]).0, Some(3));
}

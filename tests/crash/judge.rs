//! What the records, the ledger and the model's server say, and whether that is right.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    sync::Arc,
};

use safepoint::{raw::store::ChainCheck, store::Store};
use safepoint_stores::SqliteStore;
use serde_json::Value;

use super::world::{HELPED, session};

/// A fact, and the run of the tree that it is of: empty for the root.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) path: String,
    pub(crate) fact: Value,
}

/// The facts of the session's journal from a position on, in their order.
pub(crate) async fn lines_since(store: &SqliteStore, from: u64) -> Vec<Line> {
    let Ok(page) = store.read(&session(), from, 100_000).await else { return Vec::new() };
    let read = |entry: &safepoint::raw::store::JournalEntry| {
        let mut line = serde_json::from_slice::<Value>(&entry.record.clone().unwrap().bytes).unwrap();
        let path = line["path"].take();
        let path = if path.is_null() { String::new() } else { path.to_string() };
        Line { path, fact: line["fact"].take() }
    };
    page.entries.iter().map(read).collect()
}

pub(crate) async fn facts(store: &Path) -> Vec<Line> {
    lines_since(&SqliteStore::open(store).unwrap(), 0).await
}

pub(crate) async fn is_sound(store: &Path) -> bool {
    let store = SqliteStore::open(store).unwrap();
    matches!(store.check(&session()).await.unwrap(), ChainCheck::Intact(_))
}

fn of<'a>(facts: &'a [Line], kind: &str) -> impl Iterator<Item = &'a Value> {
    facts.iter().map(|line| &line.fact).filter(move |fact| fact["fact"] == kind)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// What was known when the process died.
#[derive(Default)]
pub(crate) struct Known {
    /// Calls whose end is recorded.
    ended: HashSet<String>,
    /// Calls that began, without a recorded end, and their class, or how they are the run of another agent.
    doubtful: HashMap<String, String>,
    /// Lines of the ledger.
    lines: usize,
    /// How often the model had been asked.
    pub(crate) requests: usize,
    /// What went on in the background, and had not ended.
    lost: HashSet<String>,
    /// Whether a turn was cut, and a stop waits for an owner.
    pub(crate) pending: Pending,
}

/// The request that waits for the next owner. Exhaustive: a stop of the cut turn, a stop of future work, or
/// none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pending {
    #[default]
    Nothing,
    Stop,
    StopOfACutTurn,
}

impl Known {
    /// What is in the store and in the ledger, after this many model requests.
    pub(crate) async fn of(store: &Path, ledger: &Path, requests: usize) -> Self {
        let store = SqliteStore::open(store).unwrap();
        let facts = lines_since(&store, 0).await;
        let is_over = |fact: &&Value| {
            // A stop may leave a call to be resumed.
            !matches!(fact["report"]["status"].as_str(), Some("stopped" | "not_started"))
        };
        let ended: HashSet<String> =
            of(&facts, "call_ended").filter(is_over).map(|fact| text(&fact["report"]["call_id"])).collect();
        let class = |fact: &Value| match fact["work"].as_str() {
            None | Some("body") => text(&fact["effect"]),
            Some(work) => work.to_owned(),
        };
        // A background run is never resumed: its subject is known from its records alone.
        let behind = behind(&facts);
        let began = facts.iter().filter(|line| line.fact["fact"] == "call_started");
        let began = began.filter(|line| !behind.contains(&line.path)).map(|line| &line.fact);
        let began = began.map(|fact| (text(&fact["call_id"]), class(fact)));
        let doubtful = began.filter(|(id, _)| !ended.contains(id)).collect();
        let stops = store.stops(&session(), 0).await.unwrap_or_default();
        let is_cut = facts.iter().rev().find(|line| line.path.is_empty() && !line.fact.is_null());
        let pending = match (stops.iter().any(|stop| !stop.seen), is_cut) {
            (false, _) => Pending::Nothing,
            (true, Some(last)) if last.fact["fact"] != "settled" => Pending::StopOfACutTurn,
            (true, _) => Pending::Stop,
        };
        let lines = lines(ledger).len();
        Self { ended, doubtful, lines, requests, lost: lost(&facts), pending }
    }

    pub(crate) fn doubts(&self) -> usize {
        self.doubtful.values().filter(|class| *class == "unsafe").count()
    }
}

/// The calls that began a background run which has not ended.
fn lost(facts: &[Line]) -> HashSet<String> {
    let says_so = |fact: &&Value| fact["report"]["child"]["work"] == "background";
    let begun = of(facts, "call_ended").filter(says_so).map(|fact| text(&fact["report"]["call_id"]));
    let is_over = |call: &String| {
        facts.iter().any(|line| line.path.contains(call.as_str()) && line.fact["fact"] == "settled")
    };
    begun.filter(|call| !is_over(call)).collect()
}

/// The paths of the runs that began in the background.
fn behind(facts: &[Line]) -> HashSet<String> {
    let is_one = |fact: &&Value| fact["fact"] == "call_started" && fact["work"] == "background";
    let calls: HashSet<String> =
        facts.iter().map(|line| &line.fact).filter(is_one).map(|fact| text(&fact["call_id"])).collect();
    let paths = facts.iter().map(|line| line.path.clone());
    paths.filter(|path| calls.iter().any(|call| path.contains(call.as_str()))).collect()
}

/// One line of the ledger: mark, call, key, tool.
pub(crate) fn lines(ledger: &Path) -> Vec<[String; 4]> {
    let text = std::fs::read_to_string(ledger).unwrap_or_default();
    text.lines()
        .map(|line| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            words.try_into().unwrap()
        })
        .collect()
}

/// What there is after the last process has done all that was left.
pub(crate) struct Found {
    pub(crate) facts: Vec<Line>,
    pub(crate) lines: Vec<[String; 4]>,
    /// What the model was asked, oldest first.
    pub(crate) asked: Vec<Arc<Value>>,
}

/// Holds everything against everything.
pub(crate) fn judge(at: &str, lives: &[Known], found: &Found) {
    once(at, found);
    for known in lives {
        since(at, known, found);
    }
    for wanted in ["go", "also"] {
        let last =
            found.asked.iter().rev().find(|asked| said(asked, "go") + said(asked, "also") > 0).unwrap();
        assert_eq!(said(last, wanted), 1, "{at}: {wanted} in {last}");
    }
}

fn said(request: &Value, text: &str) -> usize {
    let messages = request["messages"].as_array().unwrap();
    messages.iter().filter(|message| message["role"] == "user" && message["content"] == text).count()
}

/// How many notices to the model say that the background run of this call has ended.
fn notices(request: &Value, call: &str) -> usize {
    let messages = request["messages"].as_array().unwrap();
    let is_one = |text: &str| text.starts_with("[ended early") && text.contains(call);
    messages.iter().filter(|message| message["content"].as_str().is_some_and(is_one)).count()
}

/// What no world allows: another key, a second payment, an end that the model learns wrong.
fn once(at: &str, found: &Found) {
    let mut keys: HashMap<&str, &str> = HashMap::new();
    let mut entries: HashMap<&str, usize> = HashMap::new();
    for [mark, call, key, tool] in &found.lines {
        assert_eq!(keys.entry(call).or_insert(key), key, "{at}: {tool} got another key");
        *entries.entry(call).or_default() += usize::from(mark == "enter");
    }
    for fact in of(&found.facts, "call_started").filter(|fact| fact["effect"] == "unsafe") {
        let call = text(&fact["call_id"]);
        let ran = entries.get(call.as_str()).copied().unwrap_or_default();
        assert!(ran <= 1, "{at}: {} ran {ran} times", fact["name"]);
    }
    let open_questions = |fact: &&Value| fact["report"]["status"] == "stopped";
    for fact in of(&found.facts, "call_ended").filter(open_questions) {
        let report = &fact["report"];
        let is_unsafe = of(&found.facts, "call_started").any(|began| {
            began["call_id"] == report["call_id"] && began["effect"] == "unsafe" && began["work"] == "body"
        });
        let result = last_result(&found.asked, &text(&report["call_id"]));
        if is_unsafe && let Some(result) = result {
            assert!(
                result.contains("effects are unknown"),
                "{at}: {} was reported as {result}",
                report["name"]
            );
        }
    }
}

/// What may not happen after what was known.
fn since(at: &str, known: &Known, found: &Found) {
    for [mark, call, _, tool] in found.lines.iter().skip(known.lines) {
        assert!(mark != "enter" || !known.ended.contains(call), "{at}: {tool} had ended and ran again");
    }
    // The model learns of each run that is not resumed, once, before its next request in the root run.
    let mut later = found.asked.iter().skip(known.requests).filter(|asked| said(asked, "half") == 0);
    if let Some(last) = later.next_back() {
        for call in &known.lost {
            assert_eq!(notices(last, call), 1, "{at}: what is said of {call} in {last}");
        }
    }
    for (call, class) in &known.doubtful {
        let result = last_result(&found.asked, call).unwrap_or_default();
        match class.as_str() {
            "unsafe" => {
                assert!(result.contains("effects are unknown"), "{at}: {call} was reported as {result}")
            }
            "child" => assert_eq!(result, HELPED, "{at}: the run of {call} did not continue"),
            "background" => {
                assert!(result.starts_with("[started in the background"), "{at}: reported as {result}")
            }
            _ => assert_eq!(result, "ok", "{at}: {call} ({class}) was not run again"),
        }
    }
}

/// The last result of a call in the model's requests.
fn last_result(asked: &[Arc<Value>], call: &str) -> Option<String> {
    let results = asked.iter().rev().flat_map(|request| request["messages"].as_array().unwrap());
    results
        .into_iter()
        .find(|message| message["tool_call_id"] == call)
        .map(|message| text(&message["content"]))
}

/// One call has one question, unless a stop took a question back.
pub(crate) fn asked_once(at: &str, facts: &[Line]) {
    let mut asked = HashSet::new();
    for fact in of(facts, "approval_asked") {
        assert!(
            asked.insert(text(&fact["call_id"])),
            "{at}: asked again about {}{}",
            fact["tool"],
            in_short(facts)
        );
    }
}

/// The facts, for the reader of a failed test.
fn in_short(facts: &[Line]) -> String {
    let words = |Line { path, fact }: &Line| {
        let call = [&fact["call_id"], &fact["report"]["call_id"]].map(text).concat();
        let what = [&fact["fact"], &fact["name"], &fact["tool"]].map(text).join(" ");
        format!("\n  {path} {what} {call} {} {}", fact["answer"], fact["receipt"]["ending"])
    };
    facts.iter().map(words).collect()
}

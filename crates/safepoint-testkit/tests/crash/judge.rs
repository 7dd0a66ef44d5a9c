//! What the records, the ledger and the model's server say, and whether that is right.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use safepoint::store::{Store as _, Verdict};
use safepoint_stores::SqliteStore;
use serde_json::Value;

use super::world::session;

/// The facts of the session's journal, in their order.
pub(crate) async fn facts(store: &Path) -> Vec<Value> {
    let store = SqliteStore::open(store).unwrap();
    let Ok(page) = store.read(&session(), 0, 100_000).await else { return Vec::new() };
    let lines = page.entries.iter().map(|entry| entry.record.clone().unwrap().bytes);
    lines.map(|bytes| serde_json::from_slice::<Value>(&bytes).unwrap()["fact"].take()).collect()
}

pub(crate) async fn is_sound(store: &Path) -> bool {
    let store = SqliteStore::open(store).unwrap();
    matches!(store.check(&session()).await.unwrap(), Verdict::Sound(_))
}

fn of<'a>(facts: &'a [Value], kind: &str) -> impl Iterator<Item = &'a Value> {
    facts.iter().filter(move |fact| fact["fact"] == kind)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// What was known when the process died.
pub(crate) struct Known {
    /// Calls whose end is recorded.
    ended: HashSet<String>,
    /// Calls that began, without a recorded end, and their class.
    doubtful: HashMap<String, String>,
    /// Lines of the ledger.
    lines: usize,
}

impl Known {
    pub(crate) fn of(facts: &[Value], ledger: &Path) -> Self {
        let ended: HashSet<String> =
            of(facts, "call_ended").map(|fact| text(&fact["report"]["call_id"])).collect();
        let began = of(facts, "call_started").map(|fact| (text(&fact["call_id"]), text(&fact["effect"])));
        let doubtful = began.filter(|(id, _)| !ended.contains(id)).collect();
        Self { ended, doubtful, lines: lines(ledger).len() }
    }

    pub(crate) fn doubts(&self) -> usize {
        self.doubtful.values().filter(|class| *class == "unsafe").count()
    }
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

/// Holds everything against everything after the last process has done all that was left.
pub(crate) fn judge(at: &str, known: &Known, facts: &[Value], ledger: &Path, last_request: &Value) {
    let lines = lines(ledger);
    let mut keys: HashMap<&str, &str> = HashMap::new();
    let mut entries: HashMap<&str, usize> = HashMap::new();
    for (place, [mark, call, key, tool]) in lines.iter().enumerate() {
        assert_eq!(keys.entry(call).or_insert(key), key, "{at}: {tool} got another key");
        if mark == "enter" {
            *entries.entry(call).or_default() += 1;
            let again = place >= known.lines && known.ended.contains(call);
            assert!(!again, "{at}: {tool} had ended and ran again");
        }
    }
    for fact in of(facts, "call_started").filter(|fact| fact["effect"] == "unsafe") {
        let call = text(&fact["call_id"]);
        let ran = entries.get(call.as_str()).copied().unwrap_or_default();
        assert!(ran <= 1, "{at}: {} ran {ran} times", fact["name"]);
    }
    for (call, class) in &known.doubtful {
        let told = told(last_request, call);
        if class == "unsafe" {
            assert!(told.contains("effects are unknown"), "{at}: {call} was told as {told}");
        } else {
            assert_eq!(told, "ok", "{at}: {call} ({class}) was not run again");
        }
    }
    // Nobody is asked twice about one call.
    let mut asked = HashSet::new();
    for fact in of(facts, "approval_asked") {
        assert!(asked.insert(text(&fact["call_id"])), "{at}: asked again about {}", fact["tool"]);
    }
    for wanted in ["go", "also"] {
        let messages = last_request["messages"].as_array().unwrap();
        let said =
            messages.iter().filter(|message| message["role"] == "user" && message["content"] == wanted);
        assert_eq!(said.count(), 1, "{at}: {wanted} in {last_request}");
    }
}

fn told(request: &Value, call: &str) -> String {
    let messages = request["messages"].as_array().unwrap();
    let result = messages.iter().find(|message| message["tool_call_id"] == call);
    result.map(|message| text(&message["content"])).unwrap_or_default()
}

//! The sample agent that the TypeScript library ships: a turn of some seconds, with a question in it.

use anyhow::ensure;
use serde_json::Value;

use super::{Bench, Reported, Scenario, run, start, stopped, until};

pub(in super::super) const ALL: [(&str, Scenario); 3] = [
    ("a turn, its question allowed", answers),
    ("stopped in the middle of its work", ends),
    ("stopped while it asks", asking),
];

fn answers(bench: &Bench) -> anyhow::Result<Option<Reported>> {
    let outcome = run(bench, &["hello", "--approve", "auto"])?;
    let answer = outcome["answer"].as_str().unwrap_or_default();
    ensure!(answer.ends_with("The changes have been applied."), "{outcome}");
    Ok(None)
}

/// Whether it has written a message of this method, and of this kind where one is named.
fn has_written(bench: &Bench, method: &str, kind: Option<&str>) -> bool {
    let is_it = |message: &Value| {
        message["method"] == method
            && kind.is_none_or(|kind| message["params"]["update"]["sessionUpdate"] == kind)
    };
    bench.wrote().iter().any(is_it)
}

/// It looks for the stop once a second, which is all that a stop at once would give it.
fn ends(bench: &Bench) -> anyhow::Result<Option<Reported>> {
    let run = start(bench, &["hello", "--grace", "5s"])?;
    until("it works", || has_written(bench, "session/update", Some("tool_call")))?;
    let ours = stopped(bench, run)?;
    ensure!(bench.ended().as_deref() == Some("cancelled"), "{:?}", bench.wrote());
    ensure!(ours.contains("it said `cancelled`"), "{ours}");
    Ok(Some(Reported { peer: "ended its work within its second, answered `cancelled`".into(), ours }))
}

/// The prompt goes to a stored session, so that the question waits for a person.
fn asking(bench: &Bench) -> anyhow::Result<Option<Reported>> {
    let store = bench.folder.join("store.db").display().to_string();
    let run = start(bench, &["hello", "--session", "s", "--store", &store])?;
    until("it asks", || has_written(bench, "session/request_permission", None))?;
    let ours = stopped(bench, run)?;
    let ended = bench.ended().unwrap_or_default();
    ensure!(ours.contains(&format!("`{ended}`")), "{ours}, and it said {ended}");
    let peer = format!("got `cancelled` to its question, answered `{ended}`");
    Ok(Some(Reported { peer, ours }))
}

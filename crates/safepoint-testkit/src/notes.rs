//! What agents and servers of other processes write down: a file of JSON objects, one a line, `{at_ns, got}`.

use std::{fs::OpenOptions, io::Write as _, path::Path};

use jiff::Timestamp;
use serde_json::{Value, json};

/// Writes down what was received or done, where there is a log.
pub(crate) fn note(log: Option<&Path>, got: &Value) {
    let Some(path) = log else { return };
    let line = json!({"at_ns": now_ns(), "got": got});
    let written = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    if let Err(error) = written {
        eprintln!("the log cannot be written: {error}");
    }
}

/// What is in a log so far: what was received, with the time of the world's clock in nanoseconds.
#[must_use]
pub fn read_log(path: &Path) -> Vec<(u64, Value)> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.map(|mut line| (line["at_ns"].as_u64().unwrap_or_default(), line["got"].take())).collect()
}

/// The time of the world's clock, in nanoseconds, as logs have it.
#[must_use]
pub fn now_ns() -> u64 {
    u64::try_from(Timestamp::now().as_nanosecond()).unwrap_or_default()
}

//! A rule about where time and ids come from: from one place each, which a simulation replaces.

use crate::source::File;

use super::Fault;

/// Where it holds: what runs in a simulation.
const SIMULATED: [&str; 4] = [
    "crates/safepoint-model/src/",
    "crates/safepoint-nodes/src/",
    "crates/safepoint-scope/src/",
    "crates/safepoint/src/",
];

/// The places, and their reasons.
const SOURCES: [(&str, &str); 4] = [
    ("crates/safepoint-scope/src/clock.rs", "it is the one that asks for the time of day"),
    ("crates/safepoint-model/src/ids/unique.rs", "it is the one that makes ids"),
    ("crates/safepoint/src/contract/store/uptime.rs", "it is the one that asks for the time since the start"),
    // Which random number it is shows nowhere but in the name of a stream of this process.
    ("crates/safepoint/src/value/event/feed.rs", "two processes name their streams differently"),
];

/// The ways to a time or a number that no seed repeats, and what takes their place.
const WAYS: [(&str, &str); 8] = [
    ("Timestamp::now", TIME),
    ("SystemTime::now", TIME),
    ("Zoned::now", TIME),
    ("clock_gettime", "ask `store::uptime`, so that a simulation can answer"),
    ("Uuid::now_v7", ID),
    ("Uuid::new_v4", ID),
    ("getrandom", ID),
    ("RandomState::new", ID),
];

const TIME: &str =
    "take the time from `sync::clock` (in the scope: `clock`), so that a simulation can give it";
const ID: &str = "take the number from `unique` of `safepoint-model`, so that a simulation can give it";

/// Nothing that runs in a simulation asks the machine for the time or for a random number.
pub(super) fn asks_for_time_and_ids_in_one_place(file: &File) -> Vec<Fault> {
    let is_source = SOURCES.iter().any(|(path, _)| *path == file.path);
    if !file.lies_in(&SIMULATED) || is_source || file.is_test() {
        return Vec::new();
    }
    let mut faults = Vec::new();
    for (number, line) in file.product_code() {
        let used = WAYS.iter().filter(|(way, _)| line.contains(way));
        faults.extend(used.map(|(_, fix)| Fault::new(number, *fix)));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::broken;

    #[test]
    fn time_and_ids_have_one_place_each() {
        let lines = |path: &str, text| broken(asks_for_time_and_ids_in_one_place, path, text);
        let asks = "//! x\nfn a() {\n    let at = Timestamp::now();\n    let id = uuid::Uuid::new_v4();\n    clock::now();\n}\n";
        assert_eq!(lines("crates/safepoint/src/run/a.rs", asks), [3, 4]);
        let given = "//! x\nconst NOW: fn() -> SystemTime = SystemTime::now;\n";
        assert_eq!(lines("crates/safepoint-scope/src/a.rs", given), [2]);
        assert!(lines("crates/safepoint-scope/src/clock.rs", given).is_empty());
        assert!(lines("crates/safepoint-cli/src/a.rs", asks).is_empty(), "it runs in no simulation");
        let tested = "//! x\n#[cfg(test)]\nmod tests {\n    fn a() { Timestamp::now(); }\n}\n";
        assert!(lines("crates/safepoint/src/run/a.rs", tested).is_empty());
    }
}

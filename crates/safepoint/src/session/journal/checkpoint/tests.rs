//! The golden file of checkpoints: `Checkpoint`, with its `Earlier`, and what it keeps of `AllowState`, `About` and
//! `FoldedBackground`; and how readers of a journal see one, as `JournalFact::Checkpoint`.

use safepoint_golden::Golden;
use serde_json::json;

use super::*;
use crate::session::journal::read::JournalFact;

/// With and without what may be left out.
fn checkpoints() -> Vec<Checkpoint> {
    let tool = json!({"tool": ["pay", "sha256:00"], "digest": "v2:sha256:11", "holds": "session"});
    let full = json!({
        "at": 700,
        "chain": [1, 2, 3],
        "after": {"position": 600, "mark": "00ff"},
        "history": {"base": 3, "entries": [{"role": "user", "text": "hello"}]},
        "always": {"asked": {"apr_1": tool}, "tools": [["pay", "sha256:00"]], "calls": ["v2:sha256:22"]},
        "background": [["call_1"]],
        "runs": {
            "begun": [[1, ["call_1"]]],
            "ended": [[[1, ["call_1"]], "done"], [[2, ["call_2"]], null]],
            "open": [[2, ["call_2"], "call_3", "shell"]],
            "notified": [["steer_1", 2]],
        },
    });
    let plain = json!({"at": 512, "chain": [], "history": {"base": 0, "entries": []}});
    [full, plain].map(|one| serde_json::from_value(one).unwrap()).into()
}

/// S7.17, S7.6: what is written today is what was written before.
#[test]
fn the_checkpoints_of_a_journal() {
    Golden::file(env!("CARGO_MANIFEST_DIR"), "tests/golden/checkpoint.txt")
        .json("checkpoint", checkpoints())
        .check();
    let _as_readers_see_it = JournalFact::Checkpoint;
}

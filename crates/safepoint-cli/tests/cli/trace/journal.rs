//! A journal written by hand, line by line as a store keeps it, at fixed times.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use safepoint::{
    ids::SessionId,
    raw::store::{Durability, NewSession, Record, Write},
    store::{OwnerProcess, Store as _},
};
use safepoint_stores::SqliteStore;
use safepoint_testkit::store_suite::{acquire, give_back};
use serde_json::{Value, json};

/// What an attacker would write wherever text may stand.
pub(crate) const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\u{1b}[2J\u{202e}--><!--&lt;";

pub(crate) struct Journal(Vec<Write>);

/// `ms` milliseconds after the journal's beginning.
pub(crate) fn at(ms: i64) -> Timestamp {
    let zero: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    zero + SignedDuration::from_millis(ms)
}

pub(crate) fn usage(input: u64, output: u64) -> Value {
    json!({"input": input, "cached_input": 0, "output": output, "reasoning": 0, "source": "exact",
        "billed_beyond": "nothing"})
}

impl Journal {
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    fn record(&mut self, kind: &str, bytes: Vec<u8>) {
        let record = Record { path: String::new(), kind: kind.into(), version: 1, bytes };
        self.0.push(Write::Record(record));
    }

    /// A record that cannot be decoded.
    pub(crate) fn garbage(&mut self) {
        self.record("fact", b"{\"line\":".to_vec());
    }

    pub(crate) fn line(&mut self, ms: i64, mut line: Value) {
        line["at"] = json!(at(ms));
        let kind = line["line"].as_str().unwrap().to_owned();
        self.record(&kind, line.to_string().into_bytes());
    }

    pub(crate) fn fact(&mut self, ms: i64, turn: u64, path: &[&str], fact: Value) {
        self.line(ms, json!({"line": "fact", "turn": turn, "path": path, "fact": fact}));
    }

    /// A turn begins, on what was asked.
    pub(crate) fn begin(&mut self, ms: i64, turn: u64, asked: &str) {
        self.line(ms, json!({"line": "planned", "turn": turn, "items": [turn]}));
        let fact = json!({"fact": "attempt_opened", "run": "run_1", "attempt": 1, "history": null, "at": at(ms + 1)});
        let grown = json!({"base": 0, "entries": [{"role": "user", "text": asked}]});
        self.line(ms + 1, json!({"line": "fact", "turn": turn, "fact": fact, "grown": grown}));
    }

    /// A whole round of the model at `from..to`.
    pub(crate) fn model(&mut self, turn: u64, path: &[&str], round: u32, (from, to): (i64, i64)) {
        self.fact(from, turn, path, json!({"fact": "model_started", "round": round}));
        let report = json!({"model": "m", "round": round, "state": "completed", "usage": usage(10, 5),
            "started_at": at(from), "ended_at": at(to)});
        let message = json!({"blocks": [{"type": "text", "text": "let me see"}]});
        self.fact(
            to,
            turn,
            path,
            json!({"fact": "model_ended", "message": message, "whole": "whole", "report": report}),
        );
    }

    pub(crate) fn call(&mut self, turn: u64, path: &[&str], call: &str, more: Value) {
        let ms = more["ms"].as_i64().unwrap();
        let work = more["work"].as_str().unwrap_or("body");
        self.fact(ms, turn, path, json!({"fact": "call_started", "call_id": call, "name": more["name"],
            "round": more["round"], "args": more["args"], "effect": "unsafe", "key": call, "work": work, "at": at(ms)}));
    }

    pub(crate) fn called(&mut self, turn: u64, path: &[&str], call: &str, more: Value) {
        let (from, to) = (more["from"].as_i64().unwrap(), more["to"].as_i64().unwrap());
        let report = json!({"call_id": call, "name": more["name"], "round": 1, "status": more["status"],
            "effect": more["effect"], "started_at": at(from), "ended_at": at(to), "reason": null, "stopped_by": more["stopped_by"],
            "processes": [], "cleanups": []});
        let result =
            json!({"call_id": call, "name": more["name"], "text": more["output"], "verdict": "good"});
        self.fact(
            to,
            turn,
            path,
            json!({"fact": "call_ended", "report": report, "result": result, "extent": "all"}),
        );
    }

    pub(crate) fn settled(&mut self, ms: i64, turn: u64, path: &[&str], ending: &str) {
        let receipt = json!({"run": "run_1", "path": path, "attempt": 1, "ending": ending, "stop": null, "rounds": 1,
            "model": null, "calls": [], "approvals_cancelled": [], "usage": usage(10, 5), "started_at": at(1),
            "settled_at": at(ms), "quiet_at": null, "survivors": [], "late": []});
        self.fact(ms, turn, path, json!({"fact": "settled", "receipt": receipt, "error": null}));
    }

    /// Writes it as the session of this id into the file.
    pub(crate) fn keep(self, file: &Path, id: &str) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = SqliteStore::open(file).unwrap();
            let id = SessionId::from(id);
            store.create(NewSession::of(id.clone())).await.unwrap();
            let ttl = std::time::Duration::from_secs(60);
            let lease = acquire(&store, &id, OwnerProcess::here(), ttl).await.unwrap();
            let mut writes = self.0;
            writes.push(Write::Label("stopped".into()));
            store.append(&lease, writes, Durability::Recorded).await.unwrap();
            give_back(&store, &lease).await.unwrap();
        });
    }
}

/// Two turns: one with a retry, parallel calls, an approval, a child run and a stop that escalates; and one that was cut
/// by the end of its process, with a record that is damaged.
pub(crate) fn eventful() -> Journal {
    let mut all = Journal::new();
    at_work(&mut all);
    stopped(&mut all);
    all.begin(60_000, 2, "and now");
    all.garbage();
    all.fact(60_010, 2, &[], json!({"fact": "model_started", "round": 1}));
    all
}

fn at_work(all: &mut Journal) {
    all.begin(0, 1, &format!("look {HOSTILE}"));
    all.fact(2, 1, &[], json!({"fact": "model_started", "round": 1}));
    let report = json!({"model": "m", "round": 1, "state": "completed", "usage": usage(100, 20), "started_at": at(2),
        "ended_at": at(900), "retries": [{"at": at(50), "error": "HTTP 529", "after_ms": 400}]});
    let call = |id: &str, name: &str| json!({"type": "call", "id": id, "name": name, "args": "{}"});
    let message =
        json!({"blocks": [{"type": "text", "text": HOSTILE}, call("c1", "shell"), call("c2", "pay")]});
    all.fact(
        900,
        1,
        &[],
        json!({"fact": "model_ended", "message": message, "whole": "whole", "report": report}),
    );
    all.call(1, &[], "c1", json!({"ms": 910, "name": "shell", "round": 1, "args": {"command": HOSTILE}}));
    all.fact(
        920,
        1,
        &[],
        json!({"fact": "approval_asked", "id": "apr_1", "call_id": "c2", "tool": "pay",
        "args": {"amount": 7}, "digest": "sha256:0", "asked_at": at(920), "expires_at": at(900_000)}),
    );
    all.call(
        1,
        &[],
        "c3",
        json!({"ms": 930, "name": "researcher", "round": 1, "args": {"task": "dig"}, "work": "child"}),
    );
    all.fact(
        940,
        1,
        &["c3"],
        json!({"fact": "attempt_opened", "run": "run_2", "attempt": 1, "history": null, "at": at(940)}),
    );
    all.model(1, &["c3"], 1, (950, 1_450));
}

fn stopped(all: &mut Journal) {
    all.called(
        1,
        &[],
        "c1",
        json!({"from": 910, "to": 1_910, "name": "shell", "status": "completed", "effect": "done",
        "output": HOSTILE}),
    );
    all.fact(
        2_000,
        1,
        &[],
        json!({"fact": "approval_closed", "id": "apr_1", "call_id": "c2",
        "answer": {"decided": {"decision": "approve"}}}),
    );
    all.call(1, &[], "c2", json!({"ms": 2_010, "name": "pay", "round": 1, "args": {"amount": 7}}));
    all.fact(
        2_500,
        1,
        &[],
        json!({"fact": "stop_asked", "seq": 0, "at": at(2_500), "mode": "after-started-calls",
        "reach": "tree", "within_ms": 2_000, "asked": "first",
        "reason": {"code": "user", "actor": "person", "text": "ctrl-c"}}),
    );
    all.fact(4_500, 1, &[], json!({"fact": "stop_escalated"}));
    all.fact(4_501, 1, &[], json!({"fact": "stop_observed", "at": at(4_501)}));
    all.settled(4_510, 1, &["c3"], "stopped");
    all.called(
        1,
        &[],
        "c3",
        json!({"from": 930, "to": 4_511, "name": "researcher", "status": "stopped", "stopped_by": "run",
        "effect": "none", "output": ""}),
    );
    all.called(
        1,
        &[],
        "c2",
        json!({"from": 2_010, "to": 4_512, "name": "pay", "status": "stopped", "stopped_by": "call",
        "effect": "unknown", "output": ""}),
    );
    all.settled(4_520, 1, &[], "stopped");
    all.line(4_521, json!({"line": "ended", "turn": 1, "fate": {"fate": "interrupted", "turn": 1}}));
    all.line(4_540, json!({"line": "quiet", "turn": 1}));
}

//! The account of agents' work: what they wrote down, and which of their processes live.

use std::path::Path;

use serde_json::Value;

use super::read_log;

/// What agents that share a log have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// How many turns have begun.
    pub begun: usize,
    /// How many of them still run: they did not end, and their process lives.
    pub in_flight: usize,
    /// How often a turn was asked to end, or lost its caller.
    pub stops: usize,
}

/// The account of the agents that write this log.
#[must_use]
pub fn work(log: &Path) -> Work {
    let account: Vec<Value> = read_log(log).into_iter().map(|(_, got)| got).collect();
    let pids = |name: &str| account.iter().filter_map(|got| got[name].as_u64()).collect::<Vec<_>>();
    let (begun, ended) = (pids("begun"), pids("ended"));
    // An agent has one turn at a time.
    let runs = |pid: &&u64| {
        let count = |of: &[u64]| of.iter().filter(|other| other == pid).count();
        count(&begun) > count(&ended) && is_alive(**pid)
    };
    Work { begun: begun.len(), in_flight: begun.iter().filter(runs).count(), stops: pids("asked").len() }
}

/// Whether the process is there and is no zombie.
fn is_alive(pid: u64) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
    state.is_some_and(|state| !matches!(state, "Z" | "X"))
}

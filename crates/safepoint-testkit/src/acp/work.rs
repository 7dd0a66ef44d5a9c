//! The account of agents' work: what they wrote down, and which of their processes live.

use std::path::Path;

use serde_json::Value;

use super::read_log;
use crate::{backend_suite::Account, process_suite::start_of};

/// The account of the agents that write this log: a turn is in flight if it did not end and its process lives.
#[must_use]
pub fn work(log: &Path) -> Account {
    let account: Vec<Value> = read_log(log).into_iter().map(|(_, got)| got).collect();
    let pids = |name: &str| account.iter().filter_map(|got| got[name].as_u64()).collect::<Vec<_>>();
    let (begun, ended) = (pids("begun"), pids("ended"));
    // An agent has one turn at a time.
    let runs = |pid: &&u64| {
        let count = |of: &[u64]| of.iter().filter(|other| other == pid).count();
        count(&begun) > count(&ended) && u32::try_from(**pid).is_ok_and(|pid| start_of(pid).is_some())
    };
    Account { begun: begun.len(), in_flight: begun.iter().filter(runs).count(), stops: pids("asked").len() }
}

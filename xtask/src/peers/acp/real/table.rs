//! What the agents did in each phase beside what our receipts say, over all rounds, as a table of docs/backends.md.

use std::collections::{BTreeMap, BTreeSet};

use super::{super::table::place, Wanted, stop::Seen};

const HEAD: &str = "<!-- seen: ACP agents from npm -->\n";
const COLUMNS: &str =
    "| agent | phase | what it did, by the facts | what our receipt says |\n|---|---|---|---|\n";

/// An agent, and the phase in which it was stopped.
type Row = (&'static str, &'static str);

/// What was seen of the agent, and what our receipts said.
type Cells = (BTreeSet<String>, BTreeSet<String>);

/// The rows, in the order in which they were first seen; a cell holds all that was seen.
#[derive(Default)]
pub(super) struct Table {
    order: Vec<Row>,
    cells: BTreeMap<Row, Cells>,
}

impl Table {
    pub(super) fn note(&mut self, agent: &'static str, phase: &'static str, seen: Seen) {
        let row = (agent, phase);
        if !self.cells.contains_key(&row) {
            self.order.push(row);
        }
        let (peer, ours) = self.cells.entry(row).or_default();
        peer.insert(seen.peer);
        ours.insert(seen.ours);
    }

    /// Prints it, and writes it into the document where that is asked for.
    pub(super) fn keep(&self, wanted: &Wanted) -> anyhow::Result<()> {
        if self.order.is_empty() {
            return Ok(());
        }
        let row = |(agent, phase): &Row| {
            let (peer, ours) = &self.cells[&(*agent, *phase)];
            format!("| {agent} | {phase} | {} | {} |\n", cell(peer), cell(ours))
        };
        let rows: String = self.order.iter().map(row).collect();
        println!("peers: what was seen of ACP agents from npm, {} times each", wanted.times);
        place(HEAD, &format!("{COLUMNS}{rows}"))
    }
}

/// All that was seen of it.
fn cell(seen: &BTreeSet<String>) -> String {
    let all: Vec<String> = seen.iter().map(|one| one.replace('|', "/").replace('\n', " ")).collect();
    all.join(" *or* ")
}

//! What the agents did in each phase beside what our receipts say, over all rounds, as a table of docs/backends.md.

use std::collections::{BTreeMap, BTreeSet};

use crate::peers::acp::place;

use super::scenarios::Seen;

const HEAD: &str = "<!-- seen: JVM agents behind A2A -->\n";
const COLUMNS: &str =
    "| agent | phase | what it did, by the facts | what our receipt says |\n|---|---|---|---|\n";

/// The rows, in the order in which they were first seen; a cell holds all that was seen.
#[derive(Default)]
pub(super) struct Table {
    order: Vec<(&'static str, &'static str)>,
    cells: BTreeMap<(&'static str, &'static str), [BTreeSet<String>; 2]>,
}

impl Table {
    pub(super) fn note(&mut self, agent: &'static str, phase: &'static str, seen: Seen) {
        let row = (agent, phase);
        if !self.order.contains(&row) {
            self.order.push(row);
        }
        let [did, receipt] = self.cells.entry(row).or_default();
        did.insert(seen.did);
        receipt.insert(seen.receipt);
    }

    /// Prints it, and writes it into the document where that is asked for.
    pub(super) fn keep(&self) -> anyhow::Result<()> {
        if self.order.is_empty() {
            return Ok(());
        }
        let row = |(agent, phase): &(&'static str, &'static str)| {
            let [did, receipt] = &self.cells[&(*agent, *phase)];
            format!("| {agent} | {phase} | {} | {} |\n", cell(did), cell(receipt))
        };
        place(HEAD, &format!("{COLUMNS}{}", self.order.iter().map(row).collect::<String>()))
    }
}

/// All that was seen of it.
fn cell(seen: &BTreeSet<String>) -> String {
    let all: Vec<String> = seen.iter().map(|one| one.replace('|', "/").replace('\n', " ")).collect();
    all.join(" *or* ")
}

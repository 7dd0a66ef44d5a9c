//! What agents said to a stop beside what our receipt says, as a table of docs/backends.md.

use std::fs;

use anyhow::Context as _;

use crate::{backends::WRITE, source};

/// What was seen of one stop.
pub(super) struct Reported {
    /// What the agent said and noticed itself.
    pub(super) peer: String,
    /// Our word on it.
    pub(super) ours: String,
}

pub(super) fn row(peer: &str, scenario: &str, reported: &Reported) -> String {
    format!("| {peer} | {scenario} | {} | {} |\n", reported.peer, reported.ours)
}

/// Prints the table, and writes it into the document where that is asked for.
pub(super) fn keep(rows: &[String]) -> anyhow::Result<()> {
    const COLUMNS: &str =
        "| agent | scenario | what the agent did | what our receipt says |\n|---|---|---|---|\n";
    if rows.is_empty() {
        return Ok(());
    }
    place("<!-- seen: real ACP agents -->\n", &format!("{COLUMNS}{}", rows.concat()))
}

/// Prints a table, and writes it behind this line of the document where that is asked for.
pub(in crate::peers) fn place(head: &str, table: &str) -> anyhow::Result<()> {
    const END: &str = "<!-- end -->";
    print!("{table}");
    if std::env::var_os(WRITE).is_none() {
        return Ok(());
    }
    let document = source::root().join("docs/backends.md");
    let text = fs::read_to_string(&document)?;
    let place = || format!("docs/backends.md has no place for {}", head.trim());
    let (before, rest) = text.split_once(head).with_context(place)?;
    let (_, after) = rest.split_once(END).context("its place has no end")?;
    fs::write(document, format!("{before}{head}{table}{END}{after}"))?;
    Ok(())
}

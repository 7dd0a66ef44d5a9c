//! What the agents of others did, beside what our receipt said: a table of docs/backends.md.

use std::fs;

use anyhow::{Context as _, bail};

use crate::{backends::WRITE, source};

/// One agent that was stopped.
pub(super) struct Row {
    pub(super) name: &'static str,
    /// What became of its work, by its own log.
    pub(super) noted: &'static str,
    /// What our receipt says.
    pub(super) row: String,
}

const HEAD: &str = "<!-- seen: real A2A agents -->\n";
const END: &str = "<!-- end -->";

/// Holds the document's table against what was seen, or writes it there.
pub(super) fn check(rows: &[Row]) -> anyhow::Result<()> {
    let path = source::root().join("docs/backends.md");
    let text = fs::read_to_string(&path)?;
    let (before, rest) = text.split_once(HEAD).context("docs/backends.md has no such section")?;
    let (stands, after) = rest.split_once(END).context("the section of docs/backends.md has no end")?;
    let mut seen = String::from("| agent | its work, by its own log | our receipt |\n|---|---|---|\n");
    for Row { name, noted, row } in rows {
        seen.push_str(&format!("| {name} | {noted} | {row} |\n"));
    }
    if stands == seen {
        return Ok(());
    }
    if std::env::var_os(WRITE).is_some() {
        return Ok(fs::write(&path, format!("{before}{HEAD}{seen}{END}{after}"))?);
    }
    bail!("{WRITE}=1 cargo xtask peers writes it: it says\n{stands}seen was\n{seen}")
}

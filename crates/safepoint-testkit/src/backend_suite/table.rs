//! The measured backends as a table of a document, which a test keeps true.

use std::{fs, io, path::Path};

use safepoint::receipt::{CallStatus, RemoteStopState};

use super::Measured;

/// The variable that has the table written instead of compared: `cargo xtask backends` sets it.
pub const WRITE: &str = "SAFEPOINT_WRITE_BACKENDS";

/// A table as Markdown.
#[must_use]
pub fn render(rows: &[Measured]) -> String {
    let mut table = String::from(
        "| backend | a stop there, measured | the call in the receipt | the peer's word | quiet |\n|---|---|---|---|---|\n",
    );
    for row in rows {
        let call = row.row.map_or("no call", CallStatus::as_str).replace('_', " ");
        let word = row.confirmed.map_or("", RemoteStopState::as_str);
        let quiet = if row.is_quiet { "yes" } else { "no: named as a survivor" };
        let (name, grade) = (&row.name, row.grade.as_str());
        table.push_str(&format!("| {name} | {grade} | {call} | {word} | {quiet} |\n"));
    }
    table
}

/// Holds the table of `section` in the document against what was measured, or writes it there where [`WRITE`]
/// is set. It stands between `<!-- measured: SECTION -->` and `<!-- end -->`.
///
/// # Errors
/// Both tables where they differ, or why the document cannot be used.
pub fn check(document: &Path, section: &str, rows: &[Measured]) -> Result<(), String> {
    let failure = |error: io::Error| format!("{}: {error}", document.display());
    let text = fs::read_to_string(document).map_err(failure)?;
    let head = format!("<!-- measured: {section} -->\n");
    let lost = || format!("{} has no section {head}", document.display());
    let (before, rest) = text.split_once(&head).ok_or_else(lost)?;
    let (stands, after) = rest.split_once("<!-- end -->").ok_or_else(lost)?;
    let measured = render(rows);
    if stands == measured {
        return Ok(());
    }
    if std::env::var_os(WRITE).is_some() {
        let whole = format!("{before}{head}{measured}<!-- end -->{after}");
        return fs::write(document, whole).map_err(failure);
    }
    Err(format!(
        "{}: run `cargo xtask backends`\nit says\n{stands}\nmeasured was\n{measured}",
        document.display()
    ))
}

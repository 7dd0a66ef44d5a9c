//! What holds of the config files, key by key, and which of them says it.

use std::path::Path;

use toml::{Table, Value};

use super::{
    config,
    project_files::{config::ProjectConfig, keys::KEYS},
};
use crate::exit::Usage;

/// What holds where nothing is written.
const DEFAULTS: [(&str, &str); 12] = [
    ("tools", "all in a chat, none in a run"),
    ("parallel", "8"),
    ("approve", "ask"),
    ("mode", "ask"),
    ("unknown", "tell"),
    ("on_restart", "wait"),
    ("approval_expiry", "30d"),
    ("max_rounds", "100"),
    ("snapshots", "true"),
    ("project", "true"),
    ("keep", "true"),
    ("notify", "auto"),
];

/// A line for each key: its value, and where it is from. Values that may be secret are not in it.
///
/// # Errors
/// If the file of the user cannot be read.
pub(crate) fn lines(named: Option<&Path>, project: Option<&ProjectConfig>) -> Result<Vec<String>, Usage> {
    let (user, path) = match config::text(named)? {
        Some((path, text)) => (text.parse::<Table>().unwrap_or_default(), path.display().to_string()),
        None => (Table::new(), String::new()),
    };
    let none = Table::new();
    let (theirs, taken, their_path) = match project {
        Some(project) => (project.table(), project.taken(), project.path().display().to_string()),
        None => (&none, Vec::new(), String::new()),
    };
    let of_project = |key: &str| theirs.get(key).filter(|_| taken.iter().any(|taken| taken == key));
    Ok(KEYS
        .iter()
        .flat_map(|(key, _)| {
            let both = [(of_project(key), &their_path), (user.get(*key), &path)];
            let found = both.into_iter().filter_map(|(value, path)| Some((value?, path)));
            let adds = matches!(*key, "mcp" | "rules" | "secret_files" | "commands");
            let lines: Vec<String> =
                found.map(|(value, path)| line(key, value, path)).take(if adds { 2 } else { 1 }).collect();
            match (lines.is_empty(), DEFAULTS.iter().find(|(name, _)| name == key)) {
                (true, Some((_, default))) => vec![format!("# {key}: {default} (default)")],
                _ => lines,
            }
        })
        .collect())
}

fn line(key: &str, value: &Value, path: &str) -> String {
    let shown = match (key, value) {
        // What servers and commands are given may be secret: their names are enough.
        ("mcp", Value::Table(servers)) => servers.keys().cloned().collect::<Vec<_>>().join(", "),
        ("commands", Value::Table(commands)) => commands.keys().cloned().collect::<Vec<_>>().join(", "),
        ("rules", Value::Array(rules)) => format!("{} of them", rules.len()),
        ("base_url", Value::String(address)) => {
            crate::render::text::without_user(address).unwrap_or_else(|| address.clone())
        }
        (_, value) => value.to_string(),
    };
    match key {
        "mcp" | "rules" | "commands" => format!("# {key}: {shown}  ({path})"),
        _ => format!("{key} = {shown}  # {path}"),
    }
}

//! `/status`: what holds in this chat, in short lines.

use std::path::PathBuf;

use super::state::State;
use crate::{args::mode::WorkMode, render::text::one_line};

/// What holds beside what the screen knows itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    /// Where the model is asked, if it is not the usual place.
    pub(crate) at: Option<String>,
    /// Where the tools work.
    pub(crate) root: PathBuf,
    pub(crate) mode: WorkMode,
    /// What confines commands.
    pub(crate) commands: String,
    /// Who decides about calls.
    pub(crate) approvals: String,
    /// The store of the conversation, if it is stored.
    pub(crate) store: Option<String>,
    /// The servers of tools, each with how many it has.
    pub(crate) servers: Vec<(String, usize)>,
    /// The files whose text is sent as instructions.
    pub(crate) files: Vec<String>,
}

impl State {
    /// Shows it.
    pub(crate) fn tell_status(&mut self, status: &Status) {
        let Status { at, root, mode, commands, approvals, store, servers, files } = status;
        let at = at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
        let stored = match (store, &self.kept.returns) {
            (Some(store), Some(returns)) => {
                format!("stored in {store}; `{returns}` comes back to it")
            }
            (Some(store), None) => format!("stored in {store}"),
            (None, _) => "in memory, until the chat ends".to_owned(),
        };
        let servers: Vec<String> =
            servers.iter().map(|(name, tools)| format!("{name} ({tools} tools)")).collect();
        let filled = self.meter.filled().unwrap_or_else(|| "nothing was sent yet".to_owned());
        let filled =
            filled.strip_prefix("context ").map_or(filled.clone(), |count| format!("{count} tokens"));
        let rows = [
            ("safepoint", env!("CARGO_PKG_VERSION").to_owned()),
            ("model", format!("{}{at}", self.model)),
            ("root", root.display().to_string()),
            ("mode", format!("{}: {}", mode.name(), mode.meaning())),
            ("commands", commands.clone()),
            ("approvals", approvals.clone()),
            ("conversation", self.about.session.clone()),
            ("", stored),
            ("context", format!("{filled}; /context has its parts, /cost what was used")),
            ("tools", format!("{}; /tools lists them", self.about.tools.len())),
            ("servers", or_none(&servers, "none (`safepoint mcp add` adds one)")),
            ("instructions", or_none(files, "no AGENTS.md (/init writes one)")),
        ];
        let rows = rows.map(|(name, what)| format!("{name:<13} {}", one_line(&what)));
        self.tell_columns(&rows.join("\n"));
    }
}

fn or_none(all: &[String], none: &str) -> String {
    if all.is_empty() { none.to_owned() } else { all.join(", ") }
}

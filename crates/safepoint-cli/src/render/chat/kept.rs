//! Conversations that are kept: the list to choose from, a new one, a title, a copy, a file, and how to come back.
//!
//! **Invariants**: while the list is open no key reaches the input or a question. A file is overwritten only by a letter
//! that was asked for, and none that was typed before the question could be read.

use std::{path::PathBuf, time::Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::{
    style::{Color, Style},
    text::Line,
};
use safepoint::ids::TurnId;

use super::{
    choosing::Choosing,
    keys::CALM,
    picker::Picked,
    sessions::{Looked, SessionPicker},
    state::{Action, State, Tone},
    surface::Pane,
};
use crate::render::text::one_line;

/// What a person asks for. Exhaustive: the driver does each.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum KeptAsk {
    /// List the conversations to choose from.
    Pick,
    /// Leave this one for that one.
    Open(String),
    /// Leave this one for a new one.
    New,
    /// Give this one a title.
    Rename(String),
    /// Copy it, up to the end of a turn or of the last one, and continue in the copy.
    Fork(Option<TurnId>),
    /// Write it to a file, whose name is chosen where none is given.
    Export(Option<String>),
    /// Write it to this file, in place of what is there.
    Overwrite(PathBuf),
}

/// Where the conversation is, and what is being chosen.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// The command that comes back to it from anywhere, if it is stored.
    pub(crate) returns: Option<String>,
    /// Whether the person gave it its name.
    pub(crate) is_named: bool,
    /// Whether anything was said in it.
    pub(crate) is_begun: bool,
    /// Whether the last turn, which ended before the conversation was opened here, can be resumed.
    pub(crate) is_open: bool,
    /// The model that was chosen since the chat began.
    pub(crate) model: Option<String>,
    /// What the chat is about.
    pub(crate) project: PathBuf,
    pub(super) list: Option<Choosing>,
    /// The file that is there already, and since when that is asked about.
    overwrite: Option<(PathBuf, Instant)>,
}

impl Kept {
    /// What stands in the place of the input, if anything does.
    pub(super) fn pane(&self, rows: usize, columns: usize, is_asked: bool) -> Option<Pane> {
        let list = self.list.as_ref()?;
        let mut pane = list.pane(rows.saturating_sub(usize::from(is_asked)), columns);
        if is_asked {
            let style = Style::new().fg(Color::Yellow);
            pane.lines.push(Line::styled("a question waits for you: Esc closes this list", style));
        }
        Some(pane)
    }

    /// Whether the list is open.
    pub(super) fn has_list(&self) -> bool {
        self.list.is_some()
    }

    /// The question about a file, for the row below the input.
    pub(super) fn hint(&self) -> Option<String> {
        let (path, _) = self.overwrite.as_ref()?;
        let path = one_line(&path.display().to_string());
        Some(format!("{path} is there already: y overwrites it · n leaves it"))
    }

    /// Some of the listed conversations were read.
    pub(crate) fn looked(&mut self, looked: Vec<Looked>) {
        if let Some(Choosing::Session(list)) = &mut self.list {
            list.looked(looked);
        }
    }

    /// Text was pasted: whether it went into the search.
    pub(super) fn paste(&mut self, text: &str) -> bool {
        self.overwrite = None;
        self.list.as_mut().map(|list| list.paste(text)).is_some()
    }
}

impl State {
    /// Opens the list.
    pub(crate) fn pick(&mut self, list: SessionPicker) {
        if list.is_empty() {
            return self.tell(Tone::Plain, "no other stored conversation");
        }
        if self.leaving.is_none() {
            self.kept.list = Some(Choosing::Session(list));
        }
    }

    /// Asks before a file is overwritten.
    pub(crate) fn ask_overwrite(&mut self, path: PathBuf, now: Instant) {
        self.kept.overwrite = Some((path, now));
    }

    /// Takes a key, where the list is open or a file is asked about: whether it did. `before`: when a key was pressed before.
    /// A stop goes past it.
    pub(super) fn kept_key(&mut self, key: KeyEvent, before: Option<Instant>, now: Instant) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_stop = control && key.code == KeyCode::Char('c') && self.is_running();
        let is_shells = control && key.code == KeyCode::Char('z');
        if self.leaving.is_some() || is_stop || is_shells {
            return false;
        }
        if let Some(list) = &mut self.kept.list {
            match list.key(key) {
                Picked::Chosen(row) => {
                    self.actions.extend(list.chosen(row));
                    self.kept.list = None;
                }
                Picked::Closed => self.kept.list = None,
                Picked::Nothing => {}
            }
            return true;
        }
        let Some((path, since)) = self.kept.overwrite.take() else { return false };
        let since = before.map_or(since, |before| before.max(since));
        let is_read = now.saturating_duration_since(since) >= CALM && self.input.is_empty();
        match key.code {
            KeyCode::Char('y' | 'Y') if is_read && !control => {
                self.actions.push(Action::Kept(KeptAsk::Overwrite(path)));
                true
            }
            KeyCode::Esc => self.not_exported(),
            KeyCode::Char('n' | 'N') if is_read && !control => self.not_exported(),
            // It was meant for something else: the question is over, and nothing is overwritten.
            _ => {
                self.not_exported();
                false
            }
        }
    }

    fn not_exported(&mut self) -> bool {
        self.tell(Tone::Aside, "not exported: the file stays as it is");
        true
    }

    /// `/new`, `/clear`, `/rename`, `/fork`, `/export`; false for any other.
    pub(super) fn kept_command(&mut self, name: &str, rest: &str) -> bool {
        let ask = match name {
            "rename" if rest.is_empty() => {
                self.tell(Tone::Plain, "`/rename TITLE` gives this conversation a title");
                return true;
            }
            "rename" => KeptAsk::Rename(rest.to_owned()),
            "export" => KeptAsk::Export((!rest.is_empty()).then(|| unquoted(rest).to_owned())),
            "new" | "clear" => KeptAsk::New,
            "fork" => match rest {
                "" => KeptAsk::Fork(None),
                turn => match turn.strip_prefix("turn-").unwrap_or(turn).parse() {
                    Ok(turn) => KeptAsk::Fork(Some(TurnId::new(turn))),
                    Err(_) => {
                        let said = format!("{turn} is no turn number; /rewind lists them");
                        self.tell(Tone::Bad, &said);
                        return true;
                    }
                },
            },
            _ => return false,
        };
        let leaves = matches!(ask, KeptAsk::New | KeptAsk::Fork(_));
        if leaves && self.work.is_some() {
            self.tell(Tone::Aside, "a turn is running; /stop first");
        } else if !self.kept.is_begun && !matches!(ask, KeptAsk::Rename(_)) {
            self.tell(Tone::Aside, "nothing was said yet: this is a new conversation");
        } else {
            self.actions.push(Action::Kept(ask));
        }
        true
    }

    /// How to come back, for the last line of a chat.
    pub(crate) fn farewell(&self) -> Option<String> {
        let kept = &self.kept;
        match &kept.returns {
            _ if !kept.is_begun => None,
            Some(returns) => Some(format!("Stored; come back with `{returns}`")),
            None => Some("Not stored: this conversation ends with the chat".to_owned()),
        }
    }
}

/// A name without the double quotes around it.
fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}

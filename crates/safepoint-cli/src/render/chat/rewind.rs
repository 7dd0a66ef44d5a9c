//! Going back from the chat: what is asked for, and the keys that decide it.

use std::time::{Duration, Instant};

use ratatui_core::{
    style::{Color, Style},
    text::Span,
};
use safepoint::ids::TurnId;

use super::{
    keys::CALM,
    markdown,
    state::{Action, Edge, Mode, State, Tone},
};
use crate::output;

/// The label of what cannot be undone, and the columns of a label and what is before it.
pub(crate) const NOT_UNDONE: &str = "not undone";
const LABELLED: usize = 16;

/// Within so long two Esc of an idle chat are one wish.
const TWICE: Duration = Duration::from_secs(3);

/// What is gone back with. Exhaustive: both, or one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Both,
    Conversation,
    Files,
}

/// What a person asks for. Exhaustive: the driver does each.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RewindAsk {
    /// List the turns.
    Turns,
    /// Look at what going back to before a turn would do, these files of others included.
    Before(TurnId, Vec<String>),
    /// Do what was looked at.
    Go(Extent),
    /// Take the last one back.
    Undo,
}

/// What there is to choose from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Choices {
    /// The conversation alone: no file differs, or none can be restored.
    #[default]
    Conversation,
    /// The conversation, the files, or both.
    All,
}

impl State {
    /// `/rewind`, `/rewind N` and `/rewind N PATH…`.
    pub(super) fn rewind(&mut self, rest: &str) {
        if self.work.is_some() || !self.questions.is_empty() {
            return self.tell(Tone::Aside, "a turn is running or waits for an answer; /stop first");
        }
        let mut words = words(rest).into_iter();
        let Some(turn) = words.next() else { return self.actions.push(Action::Rewind(RewindAsk::Turns)) };
        match turn.strip_prefix("turn-").unwrap_or(&turn).parse() {
            Ok(turn) => {
                self.actions.push(Action::Rewind(RewindAsk::Before(TurnId::new(turn), words.collect())))
            }
            Err(_) => self.tell(Tone::Bad, &format!("{turn} is no turn number; /rewind lists them")),
        }
    }

    /// Esc in an idle chat, with nothing typed: the second one lists the turns.
    pub(super) fn escape_idle(&mut self, now: Instant) {
        if self.work.is_some() || !self.input.is_empty() {
            return;
        }
        let is_twice = self.is_escaped(now);
        self.escaped = (!is_twice).then_some(now);
        if is_twice {
            self.actions.push(Action::Rewind(RewindAsk::Turns));
        }
    }

    /// Whether another Esc lists the turns.
    pub(super) fn is_escaped(&self, now: Instant) -> bool {
        self.escaped.is_some_and(|before| now.saturating_duration_since(before) < TWICE)
    }

    /// Shows what going back would do, and asks.
    pub(crate) fn ask_rewind(&mut self, rows: &[String], choices: Choices, now: Instant) {
        self.gap();
        rows.iter().for_each(|row| self.tell_row(row));
        (self.mode, self.choices, self.choice_since) = (Mode::Rewinding, choices, Some(now));
    }

    /// A row with a label: what it says hangs together, and what cannot be undone stands out.
    fn tell_row(&mut self, row: &str) {
        let row = output::plain(row).into_owned();
        let labelled = row.strip_prefix("  ").and_then(|_| row.split_at_checked(LABELLED));
        let (label, text, hangs) = labelled.map_or(("", &*row, 0), |(label, text)| (label, text, LABELLED));
        let colour = if label.trim() == NOT_UNDONE { Color::Yellow } else { Color::Blue };
        let spans = vec![Span::styled(label.to_owned(), Style::new().fg(colour)), Span::raw(text.to_owned())];
        self.put_above(markdown::wrap(spans, self.columns, hangs));
        self.edge = Edge::Note;
    }

    /// Whether the next letter decides: it could be read, and the person is not typing.
    pub(super) fn may_choose(&self, now: Instant) -> bool {
        let since = self.choice_since.max(self.pressed);
        let is_calm = since.is_some_and(|since| now.saturating_duration_since(since) >= CALM);
        self.mode == Mode::Rewinding && self.input.is_empty() && is_calm
    }

    /// Which letter decides; any other changes nothing.
    pub(super) fn choose(&mut self, letter: char) {
        let extent = match (letter.to_ascii_lowercase(), self.choices) {
            ('c', _) => Extent::Conversation,
            ('b', Choices::All) => Extent::Both,
            ('f', Choices::All) => Extent::Files,
            _ => return,
        };
        self.end_answer();
        self.actions.push(Action::Rewind(RewindAsk::Go(extent)));
    }

    pub(super) fn rewind_hint(&self, now: Instant) -> String {
        match self.choices {
            _ if !self.input.is_empty() => "empty the input to choose · Esc changes nothing".to_owned(),
            _ if !self.may_choose(now) => {
                "a choice for you, when you pause typing · Esc changes nothing".to_owned()
            }
            Choices::Conversation => "c the conversation goes back · Esc changes nothing".to_owned(),
            Choices::All => "b both go back · c conversation · f files · Esc changes nothing".to_owned(),
        }
    }
}

/// The words of a line; one in double quotes may have blanks.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in text.split('"').enumerate() {
        match index % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn a_path_with_blanks_is_one_word_in_quotes() {
        assert_eq!(words(" 3 a.rs \"b c.rs\" d "), ["3", "a.rs", "b c.rs", "d"]);
    }
}

//! What a person sees: text as it streams, notes in lines of their own, one live line below, and questions.
//!
//! **Invariants**
//! - A live line is drawn only where stderr is a terminal that can clear it, and never while a question stands.
//! - It is cleared before anything else is written to that terminal.
//! - No control character of a model's or a tool's words reaches a terminal.

use std::{
    borrow::Cow,
    io::IsTerminal as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::printer::{Order, Printer};

/// The terminal, or what stands in for it.
pub(crate) struct Screen {
    printer: Printer,
    look: Look,
    state: Mutex<State>,
}

/// How it is drawn. Fixed at the start.
#[derive(Clone, Copy, Debug)]
struct Look {
    live: Live,
    order: Order,
    stdout: Sink,
}

/// Whether there is a live line. Exhaustive: none, plain, or dim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Live {
    No,
    Plain,
    Dim,
}

/// Where stdout goes. Exhaustive: to a person, or elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sink {
    Terminal,
    Other,
}

#[derive(Debug)]
struct State {
    column: Column,
    /// The live line as it stands.
    drawn: Option<String>,
    question: Question,
    /// What waits behind a question.
    later: Vec<String>,
}

/// Where the last text on stdout ended. Exhaustive: at the start of a line or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Start,
    Inside,
}

/// Whether somebody is being asked. Exhaustive: nobody or somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    None,
    Asked,
}

/// How much a live line matters. Exhaustive: it may wait for a free line, or it may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Shown where the cursor is at the start of a line: text that streams shows by itself that it is alive.
    Light,
    /// Shown at once, below the text.
    Heavy,
}

const CLEAR: &str = "\r\x1b[2K";

impl Screen {
    /// The screen of this process; under `--json` it has no live line.
    pub(crate) fn start(json: bool) -> Arc<Self> {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let can_clear = std::env::var("TERM").is_ok_and(|term| !term.is_empty() && term != "dumb");
        let stderr = std::io::stderr().is_terminal();
        let stdout = if std::io::stdout().is_terminal() { Sink::Terminal } else { Sink::Other };
        let live = match (stderr && can_clear && !json, set("NO_COLOR")) {
            (false, _) => Live::No,
            (true, true) => Live::Plain,
            (true, false) => Live::Dim,
        };
        let order = if stderr && stdout == Sink::Terminal { Order::Together } else { Order::Apart };
        Arc::new(Self::new(Printer::start(order), Look { live, order, stdout }))
    }

    fn new(printer: Printer, look: Look) -> Self {
        let state = State { column: Column::Start, drawn: None, question: Question::None, later: Vec::new() };
        Self { printer, look, state: Mutex::new(state) }
    }

    pub(crate) fn is_live(&self) -> bool {
        self.look.live != Live::No
    }

    /// Resolves when nobody reads stdout any more.
    pub(crate) fn closed(&self) -> impl Future<Output = ()> + use<> {
        self.printer.closed()
    }

    /// More of the model's text, to stdout.
    pub(crate) fn text(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        let mut state = self.lock();
        if self.look.order == Order::Together {
            self.clear(&mut state);
        }
        state.column = if text.ends_with('\n') { Column::Start } else { Column::Inside };
        let text = if self.look.stdout == Sink::Terminal { plain(text) } else { Cow::Borrowed(text) };
        self.printer.print(text.into_owned());
    }

    /// Ends the line of the text, if it has begun one.
    pub(crate) fn end_line(&self) {
        let mut state = self.lock();
        if state.column == Column::Inside {
            state.column = Column::Start;
            self.printer.print("\n");
        }
    }

    /// A line for scripts, to stdout.
    pub(crate) fn line(&self, bytes: Vec<u8>) {
        self.printer.print(bytes);
    }

    /// For people, in lines of its own. While a question stands it waits behind it.
    pub(crate) fn note(&self, text: &str) {
        let mut state = self.lock();
        match state.question {
            Question::Asked => state.later.push(text.to_owned()),
            Question::None => self.tell(&mut state, text),
        }
    }

    /// Sets the live line, or clears it.
    pub(crate) fn live(&self, line: Option<(String, Weight)>) {
        let mut state = self.lock();
        if self.look.live == Live::No || state.question == Question::Asked {
            return;
        }
        let inside = state.column == Column::Inside && self.look.order == Order::Together;
        let Some((text, _)) = line.filter(|(_, weight)| !inside || *weight == Weight::Heavy) else {
            self.clear(&mut state);
            return;
        };
        let text = fitting(&text);
        if state.drawn.as_ref() == Some(&text) {
            return;
        }
        if inside && state.drawn.is_none() {
            // The text goes on at the start of the next line.
            self.printer.tell("\n");
            state.column = Column::Start;
        }
        self.printer.tell(match self.look.live {
            Live::Dim => format!("{CLEAR}\x1b[2m{text}\x1b[0m"),
            Live::Plain | Live::No => format!("{CLEAR}{text}"),
        });
        state.drawn = Some(text);
    }

    /// Puts a question; it stands until the guard is dropped, and nothing is written below it meanwhile.
    pub(crate) fn ask(self: &Arc<Self>, question: &str) -> Asking {
        let mut state = self.lock();
        self.tell_part(&mut state, question);
        state.question = Question::Asked;
        Asking { screen: Arc::clone(self), answer: Answer::Open }
    }

    /// Resolves when what is left is written, however slowly it is read, or when nobody reads it any more.
    pub(crate) fn written(&self) -> impl Future<Output = ()> + use<> {
        self.live(None);
        self.printer.written()
    }

    fn tell(&self, state: &mut State, text: &str) {
        self.tell_part(state, text);
        self.printer.tell("\n");
    }

    fn tell_part(&self, state: &mut State, text: &str) {
        self.clear(state);
        if state.column == Column::Inside && self.look.order == Order::Together {
            state.column = Column::Start;
            self.printer.tell("\n");
        }
        self.printer.tell(plain(text).into_owned());
    }

    fn clear(&self, state: &mut State) {
        if state.drawn.take().is_some() {
            self.printer.tell(CLEAR);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question that stands.
#[must_use = "the question is over when this is dropped"]
pub(crate) struct Asking {
    screen: Arc<Screen>,
    answer: Answer,
}

/// Whether it was answered. Exhaustive: not yet, or it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Open,
    Given,
}

impl Asking {
    /// Asks again, in these words.
    pub(crate) fn again(&self, question: &str) {
        self.screen.printer.tell(question);
    }

    /// It was answered.
    pub(crate) fn answered(mut self) {
        self.answer = Answer::Given;
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let mut state = self.screen.lock();
        state.question = Question::None;
        if self.answer == Answer::Open {
            self.screen.printer.tell("\n  (the question is withdrawn)\n");
        }
        for text in std::mem::take(&mut state.later) {
            self.screen.tell(&mut state, &text);
        }
    }
}

/// Text without what would move a cursor, ring a bell or reverse what is read; lines and tabs stay.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    const REVERSING: [char; 12] = [
        '\u{061c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}',
        '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
    ];
    let hides = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || REVERSING.contains(&c);
    if !text.contains(hides) {
        return Cow::Borrowed(text);
    }
    // A carriage return before a line's end only ends the line.
    let text = text.replace("\r\n", "\n");
    let shown = |c: char| if hides(c) { c.escape_unicode().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(shown).collect())
}

/// As much of it as one line of the terminal holds.
fn fitting(text: &str) -> String {
    const USUAL: usize = 80;
    let width = rustix::termios::tcgetwinsize(rustix::stdio::stderr())
        .map_or(USUAL, |size| usize::from(size.ws_col))
        .max(2);
    let text = plain(text).replace(['\n', '\t'], " ");
    if text.chars().count() < width {
        return text;
    }
    text.chars().take(width - 2).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_would_move_the_cursor_are_shown_as_what_they_are() {
        assert_eq!(plain("a\tb\r\nc"), "a\tb\nc");
        assert_eq!(plain("\x1b[2Jrm\u{202e}x\u{7f}"), "\\u{1b}[2Jrm\\u{202e}x\\u{7f}");
        assert!(matches!(plain("as it is\n"), Cow::Borrowed(_)));
    }
}

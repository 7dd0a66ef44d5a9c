//! What a person sees: text as it streams, notes in lines of their own, one live line below, and questions.
//!
//! **Invariants**
//! - A live line is drawn only where stderr is a terminal that can clear it, and never while a question stands.
//! - It is cleared before anything else is written to that terminal.
//! - It writes through `output` alone, where no control character of anybody's words reaches a terminal.

use std::{
    process::ExitCode,
    sync::{Arc, Mutex},
};

use safepoint::message::{AssistantMessage, ProviderBlock};

use crate::{
    args::run::OnDisconnect,
    output::{Drawn, JsonLine, Order, Piece, Printer, Put, Stream, Text, Unwritten},
    render::{provider, text::in_a_row},
    sync::lock,
};

/// The terminal, or what stands in for it.
pub(crate) struct Screen {
    /// Others ask it how stdout stands, and hurry it; what they print, they print through the screen.
    pub(crate) printer: Printer,
    look: Look,
    /// Held to put one thing on the screen, so that its pieces are queued together. The lock of a queue of
    /// the printer is taken under it; nothing is written or awaited under it.
    state: Mutex<ScreenState>,
}

/// How it is drawn. Fixed at the start.
#[derive(Clone, Copy, Debug)]
struct Look {
    live: Live,
    order: Order,
}

/// Whether there is a live line. Exhaustive: none, plain, or dim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Live {
    No,
    Plain,
    Dim,
}

#[derive(Debug, Default)]
struct ScreenState {
    /// Whether the last text on stdout ended inside a line.
    is_inside: bool,
    /// The live line as it stands.
    drawn: Option<String>,
    /// The id of the open approval.
    question: Option<String>,
    /// The questions that were put here and are withdrawn, not answered.
    withdrawn: Vec<String>,
    /// What waits behind a question.
    later: Vec<String>,
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
const DIM: &str = "\x1b[2m";
const RESET: &str = "\x1b[0m";

impl Screen {
    /// The screen of this process; under `--json` it has no live line.
    pub(crate) fn start(json: bool) -> Arc<Self> {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let can_clear = std::env::var("TERM").is_ok_and(|term| !term.is_empty() && term != "dumb");
        let (stdout, stderr) = (Stream::Out.is_terminal(), Stream::Err.is_terminal());
        let live = match (stderr && can_clear && !json, set("NO_COLOR")) {
            (false, _) => Live::No,
            (true, true) => Live::Plain,
            (true, false) => Live::Dim,
        };
        let order = if stderr && stdout { Order::Together } else { Order::Apart };
        Arc::new(Self::new(Printer::start(order), Look { live, order }))
    }

    fn new(printer: Printer, look: Look) -> Self {
        Self { printer, look, state: Mutex::default() }
    }

    pub(crate) fn is_live(&self) -> bool {
        self.look.live != Live::No
    }

    /// More of the model's text, to stdout.
    pub(crate) fn text(&self, text: &Arc<str>) {
        if text.is_empty() {
            return;
        }
        let mut state = lock(&self.state);
        if self.look.order == Order::Together {
            self.clear(&mut state);
        }
        state.is_inside = !text.ends_with('\n');
        self.printer.print(Piece::Said(Text::Shared(Arc::clone(text))));
    }

    /// Ends the line of the text, if it has begun one.
    pub(crate) fn end_line(&self) {
        let mut state = lock(&self.state);
        if std::mem::take(&mut state.is_inside) {
            self.printer.print(Piece::Words("\n".into()));
        }
    }

    /// What the provider did itself, as it is shown while a message arrives.
    pub(crate) fn provider(&self, block: &ProviderBlock) {
        let columns = Stream::Err.columns();
        let gave = provider::gave(block).map(|gave| gave.line(columns));
        for line in provider::begun(block, columns).into_iter().chain(gave) {
            self.note(&line);
        }
    }

    /// Ends the text of a message, and says below it where it is from.
    pub(crate) fn end_message(&self, message: &AssistantMessage) {
        self.end_line();
        if let Some(sources) = provider::sources(message.citations(), Stream::Err.columns()) {
            self.note(&sources);
        }
    }

    /// A line for scripts, to stdout.
    pub(crate) fn line(&self, line: JsonLine) -> Put {
        self.printer.print(Piece::Line(line))
    }

    /// Writes lines for people. They wait while an approval is shown.
    pub(crate) fn note(&self, text: &str) {
        let mut state = lock(&self.state);
        match &state.question {
            Some(_) => state.later.push(text.to_owned()),
            None => self.tell(&mut state, text),
        }
    }

    /// The mark behind which a person types a line.
    pub(crate) fn prompt(&self) {
        self.words("› ");
    }

    /// Sets the live line, or clears it.
    pub(crate) fn live(&self, line: Option<(String, Weight)>) {
        let mut state = lock(&self.state);
        if self.look.live == Live::No || state.question.is_some() {
            return;
        }
        let inside = state.is_inside && self.look.order == Order::Together;
        let Some((text, _)) = line.filter(|(_, weight)| !inside || *weight == Weight::Heavy) else {
            self.clear(&mut state);
            return;
        };
        let text = fitting(&text);
        if state.drawn.as_ref() == Some(&text) {
            return;
        }
        if inside && state.drawn.is_none() {
            // The text continues at the start of the next line.
            self.words("\n");
            state.is_inside = false;
        }
        let (on, off) = if self.look.live == Live::Dim { (DIM, RESET) } else { ("", "") };
        let mut drawn = Drawn::default();
        drawn.mark(CLEAR);
        drawn.mark(on);
        drawn.words(&text);
        drawn.mark(off);
        self.printer.tell(Piece::Drawn(drawn));
        state.drawn = Some(text);
    }

    /// Puts the question of this id; it stands until the guard is dropped, and nothing is written below it meanwhile.
    pub(crate) fn ask(self: &Arc<Self>, id: &str, question: &str) -> Asking {
        let mut state = lock(&self.state);
        self.tell_part(&mut state, question);
        state.question = Some(id.to_owned());
        Asking { screen: Arc::clone(self), id: id.to_owned(), is_answered: false }
    }

    /// Whether this screen showed the approval of this id and got no answer. A caller asks when it receives
    /// the approval's end, which may be before the approval is withdrawn here: one that is shown now counts.
    pub(crate) fn was_put(&self, id: &str) -> bool {
        let state = lock(&self.state);
        state.question.as_deref() == Some(id) || state.withdrawn.iter().any(|gone| gone == id)
    }

    /// Resolves when a slow reader has the rest, or when stdout has no reader any more.
    pub(crate) fn written(&self) -> impl Future<Output = ()> + use<> {
        self.live(None);
        self.printer.written()
    }

    /// The exit code, and a report of what stdout did not take.
    pub(crate) fn judged(&self, code: ExitCode, on_disconnect: OnDisconnect) -> ExitCode {
        let Some(why) = self.printer.refused() else { return code };
        if let Unwritten::Failed(_) = why {
            crate::output::tell(format_args!("safepoint: {why}"));
        }
        why.instead_of(code, on_disconnect)
    }

    fn tell(&self, state: &mut ScreenState, text: &str) {
        self.tell_part(state, text);
        self.words("\n");
    }

    fn words(&self, text: &str) {
        self.printer.tell(Piece::Words(text.to_owned()));
    }

    fn tell_part(&self, state: &mut ScreenState, text: &str) {
        self.clear(state);
        if state.is_inside && self.look.order == Order::Together {
            state.is_inside = false;
            self.words("\n");
        }
        self.words(text);
    }

    fn clear(&self, state: &mut ScreenState) {
        if state.drawn.take().is_some() {
            let mut drawn = Drawn::default();
            drawn.mark(CLEAR);
            self.printer.tell(Piece::Drawn(drawn));
        }
    }
}

/// A question that stands.
#[must_use = "the question is over when this is dropped"]
pub(crate) struct Asking {
    screen: Arc<Screen>,
    id: String,
    is_answered: bool,
}

impl Asking {
    /// Asks again, in these words.
    pub(crate) fn again(&self, question: &str) {
        self.screen.words(question);
    }

    /// It was answered.
    pub(crate) fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let mut state = lock(&self.screen.state);
        state.question = None;
        if !self.is_answered {
            self.screen.words("\n  (the question is withdrawn)\n");
            state.withdrawn.push(std::mem::take(&mut self.id));
        }
        for text in std::mem::take(&mut state.later) {
            self.screen.tell(&mut state, &text);
        }
    }
}

/// As much of it as one line of the terminal holds.
fn fitting(text: &str) -> String {
    const USUAL: usize = 80;
    let width = Stream::Err.columns().unwrap_or(USUAL).max(2);
    let text = in_a_row(text);
    if text.chars().count() < width {
        return text;
    }
    text.chars().take(width - 2).chain(['…']).collect()
}

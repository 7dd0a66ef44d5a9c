//! The screen as a pure model: keys and events in, acts and lines out. No terminal, no clock, no session in it.
//!
//! **Invariants**
//! - What is in `above` goes into the scrollback once, in order, and is never changed after that.
//! - A question is answered by a key only when no key was pressed for a moment since it could be read.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Instant,
};

use jiff::Timestamp;
use ratatui_core::text::{Line, Span};
use safepoint::{
    Receipt,
    approval::{ApprovalRequest, Decision},
    ids::{ApprovalId, CallId, ItemId, Path, TurnId},
};
use unicode_width::UnicodeWidthStr as _;

use super::{
    attention::Attention,
    copying::Copying,
    custom::CustomCommands,
    edits::Edits,
    hasty::Hasty,
    input::{Draft, Input},
    kept::{Kept, KeptAsk},
    live::LiveWork,
    markdown::{self, DIM, Hyperlink, Markdown, Rows},
    meter::Meter,
    modes::Modes,
    queue::{Handed, Items, PushKind},
    rewind::{Choices, RewindAsk},
    tasks::TaskAsk,
    thoughts::Thoughts,
    todo::Todos,
    typing::{Typing, TypingAction},
};
use crate::{
    args::mode::WorkMode,
    output,
    render::activity::{Activity, PendingStop},
    signals::StopLevel,
};

/// What is to be done. Exhaustive: the driver does each.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// Hand the session a message.
    Push { text: String, how: PushKind },
    /// Take waiting ones back into the input, in this order.
    Withdraw(Vec<ItemId>),
    /// Return each message of this chat that no turn has: a stop is requested.
    HandBack,
    /// Stop the running turn.
    Stop(StopLevel),
    /// Stop one call of the running turn, or of a run below it, alone.
    StopCall { run: Path, call: CallId, level: StopLevel },
    /// Let the commands that run continue in the background.
    Background,
    /// Take the last turn up again; list the sessions if there is none.
    Resume,
    /// List the sessions.
    List,
    /// Leave this session for that one.
    GoTo(String),
    /// Answer a question.
    Decide(ApprovalId, Decision),
    /// Look at what the call of this question would change.
    Preview(Box<ApprovalRequest>),
    /// Show a text in the pager.
    Page(String),
    /// See who has answered this question, which was put here.
    WhoAnswered(ApprovalId),
    /// See which of these questions are still open.
    LookAt(Vec<ApprovalId>),
    /// Show what fills the window.
    Context,
    /// Use another model from the next turn on.
    Model(String),
    /// List the models that there are.
    OfferModels,
    /// Do something with commands that run in the background.
    Tasks(TaskAsk),
    /// Show what holds in this chat.
    Status,
    /// See what there is to review: this, or if it is empty what is not committed.
    Review(String),
    /// Let this mode hold from the next call on.
    Mode(WorkMode),
    /// Go back to an earlier turn.
    Rewind(RewindAsk),
    /// What the input asks for beside messages.
    Typing(TypingAction),
    /// Do something with a stored conversation.
    Kept(KeptAsk),
    /// End the session and the program.
    Quit(Leave),
    /// Give the terminal back to the shell until the job continues.
    Suspend,
}

/// How the program ends. Exhaustive: once the turn is stopped and quiet, or within a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    Tidily,
    AtOnce,
}

/// Whether keys answer a question or edit the input, write the message of a denial or the result of a call, say how
/// far a yes reaches, what goes back, what becomes of a plan, other arguments of a call, or which hunks are made. Exhaustive:
/// the driver of keys knows each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    #[default]
    Typing,
    Denying,
    /// The result of a call whose side effects are unknown.
    Telling,
    Allowing,
    Rewinding,
    /// Other arguments for the call that is asked about.
    Changing,
    /// Which hunks of an edit are made.
    Hunks,
    /// Whether to carry out a plan.
    Planning,
    /// The plan itself is in the input.
    EditingPlan,
}

/// What does not change while the program runs.
#[derive(Debug, Default)]
pub(crate) struct About {
    pub(crate) session: String,
    pub(crate) tools: Vec<String>,
    /// Whether a store keeps what waits.
    pub(crate) is_kept: bool,
}

/// Everything the screen shows.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) about: About,
    pub(crate) model: String,
    pub(crate) input: Input,
    pub(crate) draft: Draft,
    pub(crate) typing: Typing,
    pub(crate) mode: Mode,
    /// How much the agent does without a question.
    pub(crate) modes: Modes,
    pub(crate) custom: CustomCommands,
    pub(crate) items: Items,
    pub(crate) handed: Handed,
    /// Which turn was stopped for which item, and which turn was the last.
    pub(crate) instead: BTreeMap<ItemId, TurnId>,
    pub(crate) last_turn: Option<TurnId>,
    pub(crate) work: Option<Activity>,
    pub(crate) questions: VecDeque<Asked>,
    /// The question that was answered here, until the session has taken the answer.
    pub(crate) deciding: Option<ApprovalId>,
    /// The call of the question that was put last, in a few words.
    pub(super) put: String,
    /// An approval of this screen that another process answered, until the store has named the author.
    pub(crate) elsewhere: Option<ApprovalId>,
    pub(crate) last: Option<Arc<Receipt>>,
    pub(crate) last_message: Option<String>,
    pub(crate) trace: Vec<(Timestamp, String)>,
    pub(crate) leaving: Option<Leave>,
    /// The last note about a stop of the session.
    pub(crate) stop_said: Option<String>,
    /// When a key was last pressed, and when that was Ctrl-C.
    pub(crate) pressed: Option<Instant>,
    pub(crate) ctrl_c: Option<Instant>,
    /// When Esc was last pressed in an idle chat, if no other key was since.
    pub(super) escaped: Option<Instant>,
    /// What there is to choose from while it is asked what goes back.
    pub(super) choices: Choices,
    pub(super) choice_since: Option<Instant>,
    pub(crate) kept: Kept,
    pub(crate) meter: Meter,
    pub(super) live: LiveWork,
    pub(super) thoughts: Thoughts,
    pub(super) hasty: Hasty,
    pub(crate) attention: Attention,
    pub(crate) todos: Todos,
    pub(super) copying: Copying,
    /// When the chat showed that another Ctrl-C ends it.
    pub(crate) warned: Option<Instant>,
    /// The diffs of edits, asked about and made.
    pub(crate) edits: Edits,
    pub(crate) settled_at: Option<Instant>,
    /// What is to be done, in this order.
    pub(super) actions: Vec<Action>,
    /// Bytes of text that came while the program ended.
    unshown: usize,
    above: Vec<Line<'static>>,
    links: Vec<Hyperlink>,
    /// A turn began on items from other processes, or resumes: its first fact says which.
    pub(crate) is_unsaid: bool,
    /// What the last row of the scrollback is.
    pub(super) edge: Edge,
    pub(crate) markdown: Markdown,
    pub(crate) columns: usize,
}

/// A question, and since when it can be read.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) question: ApprovalRequest,
    pub(crate) since: Instant,
}

/// What the last row of the scrollback is. Exhaustive: something of a message, something else, or blank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Edge {
    Text,
    Note,
    #[default]
    Blank,
}

/// The tone of a line. Exhaustive: an aside, a good end, a bad one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Aside,
    Plain,
    Bad,
}

impl State {
    pub(crate) fn new(about: About, model: String, columns: usize) -> Self {
        Self { about, model, columns, ..Self::default() }
    }

    /// What goes up into the scrollback now.
    pub(crate) fn take_above(&mut self) -> Vec<Line<'static>> {
        std::mem::take(&mut self.above)
    }

    /// What is to be done that no key and no event has asked for.
    pub(crate) fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Rows for the scrollback.
    pub(super) fn put_above(&mut self, lines: Vec<Line<'static>>) {
        self.above.extend(lines);
    }

    /// The links in what goes up now: to be taken before it.
    pub(crate) fn take_links(&mut self) -> Vec<Hyperlink> {
        std::mem::take(&mut self.links)
    }

    /// Whether more may be put above before that is drawn.
    pub(crate) fn has_room(&self) -> bool {
        const MOST: usize = 1024;
        self.above.len() < MOST
    }

    /// More of the model's text. Whole blocks go up; the one that has begun is shown in the pane, and drawn anew with each frame, so
    /// one that never ends goes up in pieces. Where the program ends at once, what still comes is counted and not laid out.
    pub(crate) fn text(&mut self, text: &str) {
        if self.leaving == Some(Leave::AtOnce) {
            self.unshown += text.len();
            return;
        }
        let mut rows = Rows::default();
        self.markdown.push(text, self.columns, &mut rows);
        self.rows_up(rows);
    }

    fn rows_up(&mut self, rows: Rows) {
        if self.edge == Edge::Note && rows.lines.first().is_some_and(|line| line.width() > 0) {
            self.gap();
        }
        let first = self.above.len();
        self.links.extend(rows.links.into_iter().map(|link| Hyperlink { row: first + link.row, ..link }));
        if !rows.lines.is_empty() {
            self.above.extend(rows.lines);
            self.edge = Edge::Text;
        }
    }

    /// The block of text that has begun, as rows.
    pub(crate) fn partial(&self) -> Vec<Line<'static>> {
        self.markdown.begun(self.columns)
    }

    /// The message is over, however it ended.
    pub(crate) fn end_text(&mut self) {
        let mut rows = Rows::default();
        self.markdown.end(self.columns, &mut rows);
        self.rows_up(rows);
        if self.edge == Edge::Text {
            self.gap();
        }
        match std::mem::take(&mut self.unshown) {
            0 => {}
            bytes => {
                self.tell(
                    Tone::Aside,
                    &format!("({bytes} bytes of text that came before the end are not shown)"),
                );
            }
        }
    }

    /// A blank row, unless there is one.
    pub(crate) fn gap(&mut self) {
        if self.edge != Edge::Blank {
            self.above.push(Line::default());
            self.edge = Edge::Blank;
        }
    }

    /// Text for the screen, on separate rows.
    pub(crate) fn tell(&mut self, tone: Tone, text: &str) {
        // What continues below a mark stands beside it.
        let mark = |line: &str| if line.starts_with(['▸', '▪']) { 2 } else { 0 };
        self.tell_in_rows(tone, text, |line| line.len() - line.trim_start().len() + mark(line));
    }

    /// The same of rows whose last column, which is prose, stays in its place where it is broken.
    pub(crate) fn tell_columns(&mut self, text: &str) {
        let half = self.columns / 2;
        self.tell_in_rows(Tone::Plain, text, |line| {
            let gap = line.get(..half).and_then(|head| head.rfind("  ")).map_or(0, |at| at + 2);
            line.width() - line[gap..].trim_start().width()
        });
    }

    fn tell_in_rows(&mut self, tone: Tone, text: &str, lead: impl Fn(&str) -> usize) {
        for line in output::plain(text).lines() {
            let lead = lead(line);
            let span = match tone {
                Tone::Aside => Span::styled(line.to_owned(), DIM),
                Tone::Plain => Span::raw(line.to_owned()),
                Tone::Bad => Span::styled(line.to_owned(), ratatui_core::style::Color::Red),
            };
            self.above.extend(markdown::wrap(vec![span], self.columns, lead));
            self.edge = Edge::Note;
        }
    }

    /// What a person said, as it enters the conversation.
    pub(crate) fn said(&mut self, text: &str, label: &str) {
        let style = ratatui_core::style::Style::new().fg(ratatui_core::style::Color::Green);
        self.end_text();
        self.gap();
        let label = if label.is_empty() { String::new() } else { format!("  ({label})") };
        let text = format!("{}{label}", output::plain(&self.typing.draft_of(text).shown()));
        for (index, line) in text.lines().enumerate() {
            let lead = if index == 0 { "› " } else { "  " };
            let spans = vec![Span::styled(lead, style), Span::styled(line.to_owned(), style)];
            self.above.extend(markdown::wrap(spans, self.columns, 2));
        }
        self.edge = Edge::Note;
        self.gap();
    }

    /// Whether a turn is running.
    pub(crate) fn is_running(&self) -> bool {
        self.work.as_ref().is_some_and(Activity::is_running)
    }

    /// The stop that was requested of the running turn.
    pub(crate) fn pending_stop(&self) -> Option<PendingStop> {
        self.work.as_ref().filter(|work| work.is_running())?.stop
    }

    /// Puts a withdrawn message into the input, before the typed text.
    pub(crate) fn back(&mut self, text: &str) {
        let draft = self.typing.draft_of(text);
        self.input.put_before(&draft);
    }
}

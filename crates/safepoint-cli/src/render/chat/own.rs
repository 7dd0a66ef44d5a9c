//! A command of the person's own, as `!cmd`: what it writes is shown as it comes, and goes with the next message.
//!
//! **Invariants**: one runs at a time. What it wrote goes to the model once, or is dropped by `!` alone.

use std::{collections::VecDeque, time::Instant};

use ratatui_core::{
    style::{Color, Style},
    text::{Line, Span},
};

use super::{
    input::Draft,
    markdown::DIM,
    state::{Action, State, Tone},
    typing::TypingAction,
};
use crate::render::{activity::elapsed, text::in_a_row};

/// Lines that are shown as they come.
const SHOWN: usize = 40;
/// Outputs that wait for the next message.
const KEPT: usize = 8;
const MARK: Style = Style::new().fg(Color::Blue);

/// What became of a command of the person's own. Exhaustive: it writes, or it is over.
#[derive(Clone, Debug)]
pub(crate) enum OwnNews {
    /// Whole lines.
    Lines(String),
    Ended(Ran),
    /// It did not begin.
    NotStarted(String),
}

/// A command that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) command: String,
    /// How it ended.
    pub(crate) exit: String,
    /// What it wrote, without secrets; in the middle cut where it is long.
    pub(crate) output: String,
    /// Where all of it is, if that is more.
    pub(crate) file: Option<String>,
}

/// The command that runs, and what waits for the next message.
#[derive(Debug, Default)]
pub(crate) struct Own {
    running: Option<OwnRunning>,
    ran: VecDeque<Ran>,
}

#[derive(Debug)]
struct OwnRunning {
    command: String,
    since: Instant,
    /// Lines that have come, and the last one.
    lines: usize,
    last: String,
    is_stopped: bool,
}

impl Own {
    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub(super) fn take_ran(&mut self) -> VecDeque<Ran> {
        std::mem::take(&mut self.ran)
    }

    /// What is drawn above the input.
    pub(crate) fn lines(&self, now: Instant) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        if let Some(running) = &self.running {
            let state = if running.is_stopped { "stopping  " } else { "" };
            let what = format!("{}  {state}{}  ", in_a_row(&running.command), elapsed(running.since, now));
            let last = in_a_row(&running.last);
            lines.push(Line::from(vec![Span::styled("! ", MARK), Span::raw(what), Span::styled(last, DIM)]));
        }
        if !self.ran.is_empty() {
            let all: Vec<String> = self.ran.iter().map(|ran| in_a_row(&ran.command)).collect();
            let all = all.join(", ");
            lines.push(Line::styled(format!("with your next message: the output of {all}"), MARK));
        }
        lines
    }
}

impl Ran {
    /// What the model is given, and the word that stands for it on the screen.
    pub(super) fn for_model(&self) -> (String, String) {
        let Self { command, exit, output, file } = self;
        let more = file.as_ref().map(|file| format!("\nAll of it is in {file}.")).unwrap_or_default();
        let content = format!(
            "\n[I ran this command myself: {command}\n{exit}; it wrote:]\n{}{more}\n[end of its output]",
            output.trim_end()
        );
        (content, format!("[with the output of {}]", in_a_row(command)))
    }
}

impl State {
    /// `!cmd`: runs it; `!` alone drops what waits for the next message.
    pub(super) fn own_command(&mut self, draft: &Draft, command: &str) {
        if command.is_empty() {
            let dropped = self.typing.own.take_ran().len();
            let said = match dropped {
                0 => "! and a command runs it; its output goes with your next message".to_owned(),
                1 => "the output of a command does not go with your next message".to_owned(),
                many => format!("the output of {many} commands does not go with your next message"),
            };
            return self.tell(Tone::Aside, &said);
        }
        if self.typing.own.running.is_some() {
            self.tell(Tone::Aside, "a command of yours runs already; Esc stops it");
            return self.input.restore(draft);
        }
        let (command, since) = (command.to_owned(), self.pressed.unwrap_or_else(Instant::now));
        self.gap();
        self.tell(Tone::Plain, &format!("! {command}"));
        let running =
            OwnRunning { command: command.clone(), since, lines: 0, last: String::new(), is_stopped: false };
        self.typing.own.running = Some(running);
        self.actions.push(Action::Typing(TypingAction::Run(command)));
    }

    /// Stops the command of the person's own; whether one runs.
    pub(super) fn stop_own(&mut self) -> bool {
        let Some(running) = &mut self.typing.own.running else { return false };
        running.is_stopped = true;
        self.actions.push(Action::Typing(TypingAction::StopOwn));
        true
    }

    pub(super) fn own_news(&mut self, news: OwnNews, now: Instant) {
        match news {
            OwnNews::Lines(text) => self.own_lines(&text),
            OwnNews::NotStarted(why) => {
                self.typing.own.running = None;
                self.tell(Tone::Bad, &format!("the command did not start: {why}"));
            }
            OwnNews::Ended(ran) => self.own_ended(ran, now),
        }
    }

    fn own_lines(&mut self, text: &str) {
        for line in text.lines() {
            let Some(running) = &mut self.typing.own.running else { return };
            running.lines += 1;
            line.clone_into(&mut running.last);
            if running.lines <= SHOWN {
                self.tell(Tone::Aside, &format!("  {line}"));
            }
        }
    }

    fn own_ended(&mut self, ran: Ran, now: Instant) {
        let Some(running) = self.typing.own.running.take() else { return };
        let hidden = running.lines.saturating_sub(SHOWN);
        if hidden > 0 || ran.file.is_some() {
            let more = if hidden > 0 { format!("{hidden} more lines") } else { "more".to_owned() };
            let file = ran.file.as_ref().map(|file| format!(": all of it is in {file}")).unwrap_or_default();
            self.tell(Tone::Aside, &format!("  … {more}{file}"));
        }
        let said = format!("! {}: {}, after {}", ran.command, ran.exit, elapsed(running.since, now));
        self.tell(Tone::Aside, &said);
        self.gap();
        let own = &mut self.typing.own;
        own.ran.push_back(ran);
        let over = own.ran.len().saturating_sub(KEPT);
        own.ran.drain(..over);
    }
}

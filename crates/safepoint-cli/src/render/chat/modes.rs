//! The mode of the work on the screen, and the question with which a plan ends.
//!
//! **Invariants**: a change of mode answers no question and touches no typed text; a plan is carried out only after a key that
//! was pressed while the question could be read.

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::{
    style::{Color, Style},
    text::{Line, Span},
};
use safepoint::{event::Fact, ids::CallId, receipt::CallStatus, session::ItemOutcome};
use unicode_width::UnicodeWidthStr as _;

use super::{
    keys::CALM,
    markdown::DIM,
    queue::PushKind,
    state::{Action, Mode, State, Tone},
};
use crate::args::mode::WorkMode;

/// The tool with which a model presents its plan.
pub(crate) const PRESENT_PLAN: &str = "present_plan";

/// What stands between two keys.
const SEPARATOR: &str = " · ";

/// What is sent with a yes.
const CARRY_OUT: &str = "The plan is approved. Carry it out.";
const CARRY_OUT_CHANGED: &str = "I changed the plan. Carry out this one:";

/// The mode that holds, and the plan that was presented last.
#[derive(Debug, Default)]
pub(crate) struct Modes {
    now: WorkMode,
    /// What follows a plan, where no other mode is chosen.
    base: WorkMode,
    /// Whether an external agent decides, with its own modes.
    is_fixed: bool,
    /// The call that presents a plan, while it runs.
    presenting: Option<(CallId, String)>,
    /// Whether the running turn has presented the plan below.
    is_presented: bool,
    plan: Option<Plan>,
    /// Since when the question about it can be read.
    since: Option<Instant>,
}

#[derive(Debug)]
struct Plan {
    text: String,
    is_edited: bool,
}

impl Modes {
    pub(crate) fn new(now: WorkMode, base: WorkMode) -> Self {
        Self { now, base, ..Self::default() }
    }

    /// The mode of an external agent, which this program does not change.
    pub(crate) fn fixed(now: WorkMode) -> Self {
        Self { is_fixed: true, ..Self::new(now, now) }
    }

    /// The rows below the input: the mode, and what can be done now. Where they are narrow, the keys continue in another row: the one
    /// that is cut off might be the one that is looked for.
    pub(super) fn footer(&self, hint: &str, columns: usize) -> Vec<Line<'static>> {
        const MOST: usize = 3;
        let mut rows = vec![Vec::new()];
        let mut used = 0;
        let mode = (!self.is_fixed).then(|| Span::styled(self.now.name(), self.style()));
        let keys = hint.split(SEPARATOR).map(|key| Span::styled(key.to_owned(), DIM));
        for part in mode.into_iter().chain(keys) {
            let is_begun = used > 0;
            let wide = part.width() + if is_begun { SEPARATOR.width() } else { 0 };
            if is_begun && used + wide > columns && rows.len() < MOST {
                used = part.width();
                rows.push(vec![part]);
                continue;
            }
            used += wide;
            if let Some(row) = rows.last_mut() {
                row.extend(is_begun.then(|| Span::styled(SEPARATOR, DIM)));
                row.push(part);
            }
        }
        rows.into_iter().map(Line::from).collect()
    }

    fn style(&self) -> Style {
        match self.now {
            WorkMode::Ask | WorkMode::Deny => DIM,
            WorkMode::Edits => Style::new().fg(Color::Magenta),
            WorkMode::Plan => Style::new().fg(Color::Cyan),
            WorkMode::Auto => Style::new().fg(Color::Red),
        }
    }

    /// Takes in what the turn recorded.
    /// Notes a plan that is presented; whether the fact is about nothing else, so that there is nothing more to show of it.
    pub(super) fn see(&mut self, fact: &Fact) -> bool {
        match fact {
            Fact::CallStarted { call_id, name, args, .. } if name == PRESENT_PLAN => {
                let plan = args.get("plan").and_then(serde_json::Value::as_str).unwrap_or_default();
                self.presenting = Some((call_id.clone(), plan.to_owned()));
                true
            }
            Fact::CallEnded { report, .. } if report.name == PRESENT_PLAN => {
                let ended = self.presenting.take().filter(|(id, _)| *id == report.call_id);
                let whole = ended.filter(|(_, plan)| !plan.trim().is_empty());
                if let (Some((_, text)), CallStatus::Completed) = (whole, report.status) {
                    (self.plan, self.is_presented) = (Some(Plan { text, is_edited: false }), true);
                    return true;
                }
                false
            }
            _ => false,
        }
    }
}

impl State {
    /// Shift-Tab: the next mode, from the next call on.
    pub(super) fn next_mode(&mut self) {
        self.set_mode(self.modes.now.next(self.modes.base));
    }

    /// `/mode` and `/mode NAME`.
    pub(super) fn mode_command(&mut self, named: &str) {
        let now = self.modes.now;
        if named.is_empty() {
            let said = format!("the mode is {}: {}; Shift-Tab changes it", now.name(), now.meaning());
            return self.tell(Tone::Plain, &said);
        }
        match WorkMode::named(named).filter(|mode| mode.fits(self.modes.base)) {
            Some(mode) => {
                self.set_mode(mode);
                if self.modes.now == mode {
                    self.tell(Tone::Plain, &format!("{}: {}", mode.name(), mode.meaning()));
                }
            }
            None => {
                let mut names = vec![self.modes.base.name()];
                names.extend((self.modes.base == WorkMode::Ask).then_some(WorkMode::Edits.name()));
                names.push(WorkMode::Plan.name());
                self.tell(
                    Tone::Bad,
                    &format!("{named} is no mode of this chat; there are {}", names.join(", ")),
                );
            }
        }
    }

    fn set_mode(&mut self, mode: WorkMode) {
        if self.modes.is_fixed {
            let why = "an external agent has its own modes; this program does not change them";
            return self.tell(Tone::Aside, why);
        }
        self.modes.now = mode;
        self.actions.push(Action::Mode(mode));
    }

    /// A turn that has presented a plan is over: the person decides, if it was not stopped.
    pub(super) fn end_plan(&mut self, fate: &ItemOutcome, now: Instant) {
        if std::mem::take(&mut self.modes.is_presented) && matches!(fate, ItemOutcome::Completed(_)) {
            self.ask_plan(Some(now));
        }
    }

    /// `/plan`: the last plan again.
    pub(super) fn plan_command(&mut self) {
        if self.work.is_some() || !self.questions.is_empty() {
            self.tell(Tone::Aside, "a turn is running or waits for an answer; /stop first");
        } else if self.modes.plan.is_none() {
            self.tell(
                Tone::Aside,
                "no plan yet: in plan mode the model presents one (Shift-Tab, or /mode plan)",
            );
        } else {
            self.ask_plan(self.pressed);
        }
    }

    fn ask_plan(&mut self, now: Option<Instant>) {
        let Some(text) = self.modes.plan.as_ref().map(|plan| plan.text.clone()) else { return };
        self.end_text();
        self.gap();
        self.tell(Tone::Aside, "The plan:");
        self.text(&text);
        self.end_text();
        self.gap();
        // What is being answered comes first; the plan waits for /plan.
        if self.mode != Mode::Typing || !self.questions.is_empty() {
            return self.tell(Tone::Aside, "/plan decides about it");
        }
        self.tell(Tone::Plain, "Carry out this plan?");
        (self.mode, self.modes.since) = (Mode::Planning, now);
    }

    /// Whether the next letter decides about the plan: it could be read, and the person is not typing.
    pub(super) fn may_decide_plan(&self, now: Instant) -> bool {
        let since = self.modes.since.max(self.pressed);
        let is_calm = since.is_some_and(|since| now.saturating_duration_since(since) >= CALM);
        self.mode == Mode::Planning && self.input.is_empty() && is_calm
    }

    /// Which letter decides; any other changes nothing.
    pub(super) fn decide_plan(&mut self, letter: char) {
        match letter.to_ascii_lowercase() {
            'y' => self.carry_out(self.modes.base),
            'a' if WorkMode::Edits.fits(self.modes.base) => self.carry_out(WorkMode::Edits),
            'e' => {
                self.draft = self.input.draft();
                self.input.set(self.modes.plan.as_ref().map(|plan| plan.text.clone()).unwrap_or_default());
                self.mode = Mode::EditingPlan;
            }
            'n' => {
                self.end_answer();
                self.tell(
                    Tone::Aside,
                    "the plan is not carried out; say what to change, or /plan asks again",
                );
            }
            _ => {}
        }
    }

    /// A key while the plan is in the input: Enter carries out what stands there.
    pub(super) fn edit_plan(&mut self, key: KeyEvent) {
        if key.code != KeyCode::Enter || key.modifiers.contains(KeyModifiers::ALT) {
            return self.edit_text(key);
        }
        if self.input.text().trim().is_empty() {
            return;
        }
        self.end_answer();
        self.carry_out(self.modes.base);
    }

    /// What is typed is the plan no more: it is kept as it was edited, and the question stands again.
    pub(super) fn end_plan_edit(&mut self) {
        let edited = self.input.draft().whole();
        if let Some(plan) =
            self.modes.plan.as_mut().filter(|plan| plan.text != edited && !edited.trim().is_empty())
        {
            *plan = Plan { text: edited, is_edited: true };
        }
        let draft = std::mem::take(&mut self.draft);
        self.input.restore(&draft);
        self.mode = Mode::Planning;
    }

    fn carry_out(&mut self, mode: WorkMode) {
        let Some(plan) = self.modes.plan.take() else { return };
        self.mode = Mode::Typing;
        self.set_mode(mode);
        let text = match plan.is_edited {
            true => format!("{CARRY_OUT_CHANGED}\n\n{}", plan.text),
            false => CARRY_OUT.to_owned(),
        };
        self.actions.push(Action::Push { text, how: PushKind::Queue });
    }

    /// A turn has begun: its plan, if any, is a newer one.
    pub(super) fn withdraw_plan(&mut self) {
        if self.mode == Mode::EditingPlan {
            self.end_answer();
        }
        if self.mode == Mode::Planning {
            self.mode = Mode::Typing;
        }
        self.modes.is_presented = false;
    }

    pub(super) fn plan_hint(&self, now: Instant) -> String {
        if !self.input.is_empty() {
            return "Enter sends this instead · empty the input to decide · Esc decides nothing".to_owned();
        }
        if !self.may_decide_plan(now) {
            return "a plan for you, when you pause typing · Esc decides nothing".to_owned();
        }
        let edits = if WorkMode::Edits.fits(self.modes.base) { " · a yes, edits allowed" } else { "" };
        format!("y yes{edits} · e edit it · n no · Esc decides nothing")
    }
}

//! What works in a turn beside its model: sub-agents as a tree, the output of running commands, and a number for each call that stops
//! it alone.
//!
//! **Invariants**: a fold of events; it reads no clock. A number that was given goes to no other call before the nine others
//! were given, so that a key pressed a moment too late stops nothing else.

use std::time::Instant;

use ratatui_core::text::{Line, Span};
use safepoint::{
    event::{EventKind, Fact},
    ids::{CallId, Path, TurnId},
    receipt::CallKind,
};

use super::{
    markdown::DIM,
    state::{Action, State, Tone},
    tasks::Tasks,
};
use crate::{
    render::{
        activity::{Activity, Call, CallState, elapsed},
        call::is_command,
        text::in_a_row,
    },
    signals::StopLevel,
};

/// Rows of the output of one command, and of all of them, where they are unfolded.
const FOLDED: usize = 3;
const UNFOLDED: usize = 16;
/// Rows of a tree.
const TREE: usize = 8;
/// The numbers are keys.
const NUMBERS: u8 = 9;

/// What works beside the model.
#[derive(Debug, Default)]
pub(crate) struct LiveWork {
    branches: Vec<Branch>,
    numbered: Vec<Numbered>,
    last_number: u8,
    is_unfolded: bool,
    /// The output of the last call whose lines were not all shown.
    whole: Option<String>,
    pub(super) tasks: Tasks,
}

/// A sub-agent.
#[derive(Debug)]
struct Branch {
    path: Path,
    name: String,
    since: Instant,
    work: Activity,
}

/// A call that can be stopped alone.
#[derive(Debug)]
struct Numbered {
    number: u8,
    run: Path,
    call: CallId,
    name: String,
    /// Whether it is a sub-agent, which first comes to a safe point.
    is_agent: bool,
    is_asked: bool,
}

impl LiveWork {
    /// A turn begins: what is left of the one before are sub-agents in the background.
    pub(super) fn begin(&mut self) {
        self.numbered.clear();
        let background = |branch: &Branch| branch.work.is_running();
        self.branches.retain(background);
    }

    /// An event of the turn's run, or of a run below it.
    pub(super) fn see(&mut self, kind: &EventKind, now: Instant) {
        let (mut kind, mut run) = (kind, Path::default());
        while let EventKind::Child { path, event } = kind {
            (kind, run) = (event, path.clone());
        }
        if let EventKind::Fact(fact) = kind {
            self.fact(&run, fact, now);
            self.task_fact(fact, now);
        }
        if let Some(branch) = self.branches.iter_mut().find(|branch| branch.path == run) {
            branch.work.on(kind, now);
        }
        self.branches.retain(|branch| branch.work.is_running());
    }

    fn fact(&mut self, run: &Path, fact: &Fact, now: Instant) {
        match fact {
            Fact::CallStarted { call_id, name, work, .. } => {
                if *work != CallKind::Tool {
                    let (path, name) = (run.of(call_id), name.clone());
                    self.branches.retain(|branch| branch.path != path);
                    self.branches.push(Branch { path, name, since: now, work: Activity::default() });
                }
                if *work != CallKind::Background {
                    self.give_number(run, call_id, (name, *work != CallKind::Tool));
                }
            }
            Fact::CallEnded { report, .. } => {
                self.numbered.retain(|one| one.call != report.call_id || one.run != *run);
                let path = run.of(&report.call_id);
                let goes_on = report.child.as_ref().is_some_and(|child| child.work == CallKind::Background);
                self.branches.retain(|branch| goes_on || !branch.path.is_within(&path));
            }
            Fact::Settled { .. } => self.numbered.retain(|one| !one.run.is_within(run)),
            _ => {}
        }
    }

    fn give_number(&mut self, run: &Path, call: &CallId, (name, is_agent): (&str, bool)) {
        let free = |number: &u8| self.numbered.iter().all(|one| one.number != *number);
        let next = (1..=NUMBERS).map(|step| (self.last_number + step - 1) % NUMBERS + 1).find(free);
        let Some(number) = next else { return };
        self.last_number = number;
        let (run, call, name) = (run.clone(), call.clone(), name.to_owned());
        self.numbered.push(Numbered { number, run, call, name, is_agent, is_asked: false });
    }

    /// What the key of this call says, where it is of use: if something else works too.
    fn mark(&self, run: &Path, call: &CallId) -> Option<String> {
        let one = self.numbered.iter().find(|one| one.call == *call && one.run == *run)?;
        let is_alone = self.numbered.len() == 1 && self.branches.is_empty();
        match (one.is_asked, is_alone) {
            (true, _) if one.is_agent => Some(format!("stopping, [Alt-{}] now  ", one.number)),
            (true, _) => Some("stopping  ".to_owned()),
            (false, true) => None,
            (false, false) => Some(format!("[Alt-{}] ", one.number)),
        }
    }

    /// The rows of a call of the turn itself: its own, what works below it, and its output.
    pub(super) fn rows(
        &self,
        call: &Call,
        (calls, columns): (usize, usize),
        now: Instant,
    ) -> Vec<Line<'static>> {
        let root = Path::default();
        let mut rows = vec![self.row("● ", &root, call, now)];
        let path = root.of(&call.id);
        self.below(&path, 1, now, &mut rows);
        rows.truncate(TREE);
        rows.extend(output(&call.progress, self.most_rows() / calls.max(1), columns));
        rows
    }

    pub(super) fn most_rows(&self) -> usize {
        if self.is_unfolded { UNFOLDED } else { FOLDED }
    }

    /// Sub-agents that continue though the call that began them has ended.
    pub(super) fn background(&self, calls: &[Call], now: Instant) -> Vec<Line<'static>> {
        let mut rows = Vec::new();
        for branch in &self.branches {
            let is_shown = |call: &Call| branch.path.is_within(&Path::default().of(&call.id));
            let is_below = self
                .branches
                .iter()
                .any(|other| other.path != branch.path && branch.path.is_within(&other.path));
            if !is_below && !calls.iter().any(is_shown) {
                let what = format!("{}  in the background  {}", branch.name, elapsed(branch.since, now));
                rows.push(Line::from(vec![Span::styled("◌ ", DIM), Span::raw(in_a_row(&what))]));
                self.below(&branch.path, 1, now, &mut rows);
            }
        }
        rows.truncate(TREE);
        rows
    }

    fn below(&self, path: &Path, depth: usize, now: Instant, rows: &mut Vec<Line<'static>>) {
        let Some(branch) = self.branches.iter().find(|branch| branch.path == *path) else { return };
        let lead = format!("{}└ ", "  ".repeat(depth));
        if let Some((what, since)) = branch.work.model {
            rows.push(Line::styled(format!("{lead}{what}  {}", elapsed(since, now)), DIM));
        }
        for call in &branch.work.calls {
            rows.push(self.row(&lead, path, call, now));
            self.below(&path.of(&call.id), depth + 1, now, rows);
        }
    }

    fn row(&self, lead: &str, run: &Path, call: &Call, now: Instant) -> Line<'static> {
        let what = match call.state {
            CallState::Asked => "waits for your answer  ",
            CallState::Allowed => "waits its turn  ",
            CallState::Runs => "",
        };
        let lead = if run.is_root() {
            Span::styled(lead.to_owned(), super::pane::LABEL)
        } else {
            Span::styled(lead.to_owned(), DIM)
        };
        let mark = self.mark(run, &call.id).unwrap_or_default();
        let what = format!("{}  {what}{}  ", in_a_row(&call.name), elapsed(call.since, now));
        Line::from(vec![lead, Span::raw(what), Span::raw(mark), Span::styled(in_a_row(&call.args), DIM)])
    }
}

/// The last lines of an output, as a terminal would show them that obeys nothing of it but a return to the line's beginning.
pub(super) fn output(text: &str, most: usize, columns: usize) -> Vec<Line<'static>> {
    const LEAD: &str = "  │ ";
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines.iter().skip(lines.len().saturating_sub(most.max(1)));
    last.map(|line| {
        let shown = line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
        let shown = crate::render::text::cut(&in_a_row(shown), columns.saturating_sub(LEAD.len()));
        Line::styled(format!("{LEAD}{shown}"), DIM)
    })
    .collect()
}

impl State {
    /// An event of a turn's run, or of a run below it.
    pub(super) fn works(&mut self, turn: TurnId, kind: &EventKind, now: Instant) {
        self.meter.event(turn, kind, now);
        self.live.see(kind, now);
    }

    /// Ctrl-O: folds and unfolds what runs; where nothing runs, it shows all of the last output.
    pub(super) fn fold_key(&mut self) {
        let has_output = self.work.iter().flat_map(|work| &work.calls).any(|call| !call.progress.is_empty());
        if has_output || self.thoughts.is_coming() {
            self.live.is_unfolded = !self.live.is_unfolded;
            return;
        }
        match self.live.whole.clone() {
            Some(whole) => self.actions.push(Action::Page(whole)),
            None => self.tell(Tone::Aside, "no output is folded"),
        }
    }

    /// Whether a command runs that can be moved to the background.
    pub(super) fn has_command(&self) -> bool {
        let below = self.live.branches.iter().map(|branch| &branch.work);
        let mut calls = self.work.iter().chain(below).flat_map(|work| &work.calls);
        calls.any(|call| call.state == CallState::Runs && is_command(&call.name))
    }

    /// Ctrl-B: what runs continues in the background.
    pub(super) fn move_to_background(&mut self) {
        self.actions.push(Action::Background);
        self.tasks_moved();
        self.tell(
            Tone::Aside,
            "moved to the background: the model continues, and a stop of the turn ends it too; /tasks lists it",
        );
    }

    /// An output of which not all lines were shown.
    pub(super) fn folded(&mut self, whole: &str) {
        self.live.whole = Some(whole.to_owned());
    }

    /// Alt-1 to Alt-9, and `/stop N`: stops the call of this number alone: a command at once, a sub-agent at its next safe point and a
    /// second time at once.
    pub(super) fn stop_numbered(&mut self, number: u8) {
        let Some(one) = self.live.numbered.iter_mut().find(|one| one.number == number) else {
            return self.tell(Tone::Aside, &format!("nothing that runs has the number {number}"));
        };
        let is_patient = one.is_agent && !one.is_asked;
        let level = if is_patient { StopLevel::AtSafePoint } else { StopLevel::Now };
        one.is_asked = true;
        let (run, call, name) = (one.run.clone(), one.call.clone(), one.name.clone());
        self.actions.push(Action::StopCall { run, call, level });
        self.tell(Tone::Aside, &format!("stopping {name} alone; the turn continues"));
    }

    /// The number in `/stop N`.
    pub(super) fn stop_command(&mut self, named: &str) -> bool {
        let number = named.parse().ok().filter(|number| (1..=NUMBERS).contains(number));
        number.map(|number| self.stop_numbered(number)).is_some()
    }
}

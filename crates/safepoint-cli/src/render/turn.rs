//! One turn as it is shown: lines of JSON, or text, notes and the live line.

use std::{sync::Arc, time::Instant};

use safepoint::{
    Outcome, Receipt, RunHandle,
    approval::{ApprovalKind, ApprovalRequest},
    event::{Event, EventKind, Fact, Resolution},
    ids::{ApprovalId, RunId, SessionId},
    raw::{OmissionKind, StreamEvent as _, lasting},
    store::Store,
};

use crate::{
    args::run::RunArgs,
    output::Put,
    render::{
        activity::Activity,
        approval, diff, hints,
        keyboard::Keyboard,
        lines::Lines,
        screen::Screen,
        text::{brief, hook_action},
    },
    signals::StopLevel,
};

/// Rows of the diff of an edit.
const EDITED: usize = 40;

/// What the user sees.
pub(crate) struct View {
    pub(crate) screen: Arc<Screen>,
    lines: Option<Lines>,
    status: Activity,
    /// Whether text of the turn was shown.
    has_shown: bool,
    /// The session and its store, if it is stored: other processes can answer its approvals.
    kept: Option<(Arc<dyn Store>, SessionId)>,
}

impl View {
    pub(crate) fn new(
        args: &RunArgs,
        screen: Arc<Screen>,
        session: &SessionId,
        kept: Option<(u64, Arc<dyn Store>)>,
    ) -> Self {
        let lines = args.json.then(|| Lines::new(session, kept.as_ref().map(|(epoch, _)| *epoch)));
        let kept = kept.map(|(_, store)| (store, session.clone()));
        Self { screen, lines, status: Activity::default(), has_shown: false, kept }
    }

    pub(crate) fn begin(&mut self, number: u64, run: &RunId) {
        self.status = Activity::default();
        self.has_shown = false;
        if let Some(lines) = &mut self.lines {
            lines.turn(number, run);
        }
    }

    pub(crate) fn event(&mut self, event: &Event, handle: &RunHandle) {
        self.status.on(&event.kind, Instant::now());
        if self.lines.is_some() {
            return self.lines_of(event);
        }
        match &event.kind {
            EventKind::Text(text) => {
                self.has_shown = true;
                self.screen.text(text);
            }
            EventKind::Retrying { failed, after, error } => {
                self.screen.note(&format!("try {failed} failed ({error}); again in {}", lasting(*after)));
            }
            EventKind::Waiting { what } => self.screen.note(&format!("waiting for {what}")),
            EventKind::FailedOver { from, to, error } => {
                self.screen.note(&format!("{from} could not answer ({error}); asking {to}"));
            }
            EventKind::Provider(block) => self.screen.provider(block),
            EventKind::Lagged { count } => self.screen.note(&missed(*count)),
            EventKind::Progress { call_id, text } if self.status.edits(call_id) => {
                self.screen.note(&diff::plain(&diff::rows(text), EDITED));
            }
            EventKind::Notice { text, .. } => self.screen.note(&format!("  {text}")),
            EventKind::Ruled { ruled, .. } => self.screen.note(&format!("  {ruled}")),
            EventKind::Fact(fact) => self.fact(fact),
            _ => {}
        }
        self.live(handle);
    }

    /// Its line; for a reader that is far behind none of what its end tells again.
    fn lines_of(&mut self, event: &Event) {
        let Some(lines) = &mut self.lines else { return };
        if event.kind.is_provisional() && self.screen.printer.is_behind() {
            return lines.pass_over();
        }
        if let Some(line) = lines.missed() {
            self.screen.line(line);
        }
        if let Some(line) = lines.event(event)
            && self.screen.line(line) == Put::Joined
        {
            lines.joined();
        }
    }

    fn fact(&self, fact: &Fact) {
        match fact {
            Fact::CallStarted { name, args, .. } => {
                let args = if args["conversation"].is_string() { brief(args) } else { args.to_string() };
                self.screen.note(&format!("▸ {name} {}", short(&args)));
            }
            Fact::CallEnded { report, .. } => self.screen.note(&format!("▪ {}", approval::ended(report))),
            Fact::ModelTooLong { error, .. } => {
                self.screen.note(&format!(
                    "the request was too long for the model ({}); sending less",
                    error.message
                ));
            }
            Fact::HookActed(acted) => {
                self.screen.note(&format!("  hook {} {}", acted.hook, hook_action(&acted.action)));
            }
            Fact::HistoryShortened(shortened) | Fact::SummaryEnded { shortened: Some(shortened), .. } => {
                let place = match shortened.omitted.by {
                    OmissionKind::Note => "are not sent any more",
                    OmissionKind::Summary => "are sent as a summary from now on",
                };
                self.screen.note(&format!(
                    "the model's window is full: its first {} messages {place} (about {} tokens instead of {})",
                    shortened.omitted.rounds, shortened.tokens_after, shortened.tokens_before
                ));
            }
            Fact::ApprovalRequested(asked) if asked.question == ApprovalKind::DuringCall => {
                self.waits_for_decision(asked)
            }
            Fact::ApprovalResolved { id, answer: Resolution::Decided(_), .. } => self.tell_who(id),
            Fact::StopEscalated => self.screen.note("Grace period ended: stopping now"),
            Fact::ModelEnded { message, .. } => self.screen.end_message(message),
            _ => {}
        }
    }

    /// Shows who answered an approval of this screen in another process, once the store has the answer.
    fn tell_who(&self, id: &ApprovalId) {
        let Some((store, session)) = self.kept.clone().filter(|_| self.screen.was_put(id.as_str())) else {
            return;
        };
        let (screen, id) = (Arc::clone(&self.screen), id.clone());
        tokio::spawn(async move {
            if let Ok(Some(row)) = store.approval(&session, &id).await
                && let Some(said) = approval::decided(&row)
            {
                screen.note(&format!("  answered elsewhere: {said}"));
            }
        });
    }

    /// A running call needs an approval, and no approver is available.
    fn waits_for_decision(&self, asked: &ApprovalRequest) {
        let Some((_, session)) = self.kept.as_ref().filter(|_| !Keyboard::is_there()) else { return };
        let (question, id) = (approval::put(asked), &asked.id);
        self.screen.note(&format!(
            "{question}\n  it waits: safepoint approve {session} {id} lets it, deny or respond do not"
        ));
    }

    /// Shows the background work that ended with the turn: it does not outlive the turn.
    fn ended_with(&self, receipt: &Receipt) {
        for process in receipt.calls.iter().flat_map(|call| &call.processes) {
            let by_us = process.left_behind.iter().filter(|left| !process.ended_with.contains(left));
            let ended: Vec<&str> = process.ended_with.iter().chain(by_us).map(String::as_str).collect();
            if !ended.is_empty() {
                self.screen.note(&format!("  ended with the turn: {}", ended.join(", ")));
            }
        }
    }

    /// Says again what is running: seconds have passed.
    pub(crate) fn live(&self, handle: &RunHandle) {
        if self.screen.is_live() {
            let line = self.status.line(&handle.alive(), Instant::now());
            self.screen.live(line.map(|(text, weight)| (format!("· {text}"), weight)));
        }
    }

    /// Reports a stop request and what it waits for. A live line shows this itself.
    pub(crate) fn asked(&self, level: StopLevel) {
        if level == StopLevel::Now {
            self.screen.printer.hurry();
        }
        if self.screen.is_live() {
            return;
        }
        let waits = self.status.waits(Instant::now());
        self.screen.note(&match level {
            StopLevel::Now => format!("Stopping now{waits}"),
            StopLevel::AtSafePoint => format!("Stopping{waits} (Ctrl-C again: now)"),
        });
    }

    /// Says what a turn that has ended still waits for.
    pub(crate) fn waits(&self, alive: &[String]) {
        if !self.screen.is_live() && !alive.is_empty() {
            self.screen
                .note(&format!("the turn has ended; waiting for {} (Ctrl-C to leave)", alive.join(", ")));
        }
    }

    pub(crate) fn end(&mut self, outcome: &Outcome, receipt: &Receipt) {
        self.screen.live(None);
        if let Some(lines) = &mut self.lines {
            let at = receipt.quiet_at.unwrap_or(receipt.settled_at);
            for late in &receipt.late {
                self.screen.line(lines.late(late, at));
            }
            self.screen.line(lines.quiet(receipt, at));
            self.screen.line(lines.outcome(outcome, receipt));
            return;
        }
        if let Outcome::Done(answer) = outcome
            && !self.has_shown
        {
            // It was recorded before its process died.
            self.screen.text(&answer.text().into());
        }
        self.screen.end_line();
        match outcome {
            Outcome::Done(_) => self.ended_with(receipt),
            Outcome::Stopped(_) => self.screen.note(&receipt.to_string()),
            Outcome::Suspended(waiting) => {
                self.screen.note(&approval::in_receipt(&receipt.to_string(), waiting.approvals()));
            }
            Outcome::Failed(error) => {
                self.screen.note(&format!("safepoint: {error}"));
                if let Some(hint) = error.hint() {
                    self.screen.note(&format!("  hint: {}", hints::here(error.code(), hint)));
                }
                // A failed run without a stop also reports what still runs.
                if !receipt.survivors.is_empty() {
                    self.screen.note(&receipt.to_string());
                }
            }
        }
    }
}

/// The note about text that arrived too fast to be shown; the stored message has all of it.
pub(crate) fn missed(count: u64) -> String {
    format!("safepoint: {count} pieces of text not shown: they arrived too fast")
}

/// Enough of a call's arguments to know it again; a question shows all of them.
fn short(args: &str) -> String {
    const MOST: usize = 240;
    match args.char_indices().nth(MOST) {
        None => args.to_owned(),
        Some((end, _)) => format!("{}… ({} bytes)", &args[..end], args.len()),
    }
}

//! The receipt as people read it: one row a fact, `label  subject  state  detail`; the last row says what is running, and
//! risky facts repeat below it as warnings.
//!
//! **Invariant.** Text of a model, a tool or a remote agent never breaks a row: [`line`] replaces its control characters.

use std::{
    borrow::Cow,
    fmt::{self, Display, Formatter},
    time::Duration,
};

use jiff::Timestamp;

use super::{
    CallKind, CallReport, ChildReport, CleanupEnd, Ending, Escalation, ModelReport, ModelState, Outside,
    ProcessReport, ReasonReport, Receipt, SideEffect, StopReport,
};
use crate::value::usage::{ExtraBilling, UsageSource};

mod remote;
mod rows;

use rows::Rows;

impl Display for Receipt {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut warnings = Vec::new();
        f.write_str(&self.text(&mut warnings))?;
        warnings.iter().try_for_each(|warning| write!(f, "\nwarning: {warning}"))
    }
}

impl Receipt {
    /// The headline and the rows; adds the warnings of this run and of its child runs.
    fn text(&self, warnings: &mut Vec<String>) -> String {
        let mut rows = Rows::new(self.headline(), warnings);
        if let Some(stop) = &self.stop {
            self.also_by(stop, &mut rows);
            rows.row("stop", "", &stop.state(), "");
        }
        self.model_rows(&mut rows);
        for call in &self.calls {
            call.rows(&mut rows);
        }
        for child in &self.waiting {
            child.rows(&mut rows);
        }
        for asked in &self.approvals_open {
            rows.row("waits", &asked.tool, &asked.args, asked.id.as_str());
        }
        for approval in &self.approvals_cancelled {
            rows.row("approval", approval.as_str(), "withdrawn, call not run", "");
        }
        self.usage_rows(&mut rows);
        self.last_rows(&mut rows);
        rows.finish()
    }

    fn headline(&self) -> String {
        match (self.ending, &self.stop) {
            (Ending::Done, None) => "Done".into(),
            (Ending::Done, Some(_)) => "Done before the stop took effect".into(),
            (Ending::Stopped, Some(stop)) => format!("Stopped by {}", who(&stop.reason)),
            (Ending::Stopped, None) => "Stopped".into(),
            (Ending::Failed, _) => "Failed".into(),
            (Ending::Suspended, _) => "Suspended: waiting for a decision".into(),
        }
    }

    fn also_by(&self, stop: &StopReport, rows: &mut Rows<'_>) {
        if self.ending != Ending::Stopped {
            return;
        }
        let mut named = vec![(&stop.reason.code, &stop.reason.actor)];
        for request in stop.requests.iter().filter(|request| request.asked != "too_late") {
            let requester = (&request.reason.code, &request.reason.actor);
            if !named.contains(&requester) {
                named.push(requester);
                rows.row("also by", "", &who(&request.reason), "");
            }
        }
    }

    fn model_rows(&self, rows: &mut Rows<'_>) {
        for summary in &self.summaries {
            let state = format!("{}, before round {}", state_of(summary), summary.round);
            rows.row("summary", &summary.model, &state, "");
        }
        let Some(model) = &self.model else { return rows.row("model", "", "not called", "") };
        rows.row("model", &model.model, &format!("{}, round {}", state_of(model), model.round), "");
        if model.calls_left_out > 0 {
            rows.note(4, &format!("{} calls left out: over the limit of one message", model.calls_left_out));
        }
        for tool in &self.provider_tools {
            let uses = if tool.uses == 1 { "used once" } else { &format!("used {} times", tool.uses) };
            let unfinished = format!("{} without a known end", tool.unfinished);
            let detail = if tool.unfinished == 0 { "" } else { &unfinished };
            rows.row("provider", &tool.tool, &format!("{uses} by the provider of {}", tool.wire), detail);
            if tool.unfinished > 0 {
                let tool = &tool.tool;
                rows.warn(&format!(
                    "the provider's {tool} was cut off; check what it did before you run it again"
                ));
            }
        }
    }

    fn usage_rows(&self, rows: &mut Rows<'_>) {
        if self.model.is_none() && self.summaries.is_empty() {
            return;
        }
        let source = match self.usage.source {
            UsageSource::Exact => "exact",
            UsageSource::Estimated => "estimated, at least",
        };
        let beyond = match self.usage.billed_beyond {
            ExtraBilling::Nothing => "",
            ExtraBilling::Unknown => "; more may be billed",
        };
        let (own, total) = (&self.usage, &self.usage_total);
        rows.row("tokens", "", &format!("{} in, {} out ({source}{beyond})", own.input, own.output), "");
        let has_child = self.calls.iter().any(|call| call.child.is_some()) || !self.waiting.is_empty();
        let with = match (self.attempt > 1, has_child) {
            (true, false) => "with earlier attempts",
            (true, true) => "in total",
            (false, _) => "with child runs",
        };
        if total != own {
            rows.row("", "", &format!("{} in, {} out {with}", total.input, total.output), "");
        }
        if let Some(cost) = self.cost {
            rows.row("cost", "", &amount(cost), "");
        }
        if let Some(total) = self.cost_total.filter(|_| self.cost_total != self.cost) {
            let label = if self.cost.is_none() { "cost" } else { "" };
            rows.row(label, "", &format!("{} {with}", amount(total)), "");
        }
    }

    fn last_rows(&self, rows: &mut Rows<'_>) {
        if let Some(why) = &self.unrecorded {
            rows.row("record", "", &format!("not confirmed: {why}"), "");
            rows.warn(&format!("the end of this run may not be recorded: {why}"));
        }
        for late in &self.late {
            rows.row("late", "", late, "ignored");
        }
        match (self.quiet_at, self.survivors.as_slice()) {
            (Some(quiet), _) => {
                let after = format!("{} after the run settled", span(self.settled_at, quiet));
                let remotes = || self.calls.iter().filter_map(|call| call.remote.as_deref());
                let is_any = |outside: Outside| remotes().any(|remote| remote.outside == outside);
                let state = match (is_any(Outside::Unseen), is_any(Outside::None)) {
                    (true, _) => {
                        format!("no process of the run, {after}; other processes could not be checked")
                    }
                    (false, true) => {
                        format!("no process of the run, {after}; no connection to other processes")
                    }
                    (false, false) => format!("nothing, {after}"),
                };
                rows.row("running", "", &state, "");
            }
            // What is alive is known a moment after the outcome: `RunHandle::quiet` has that receipt.
            (None, []) => rows.row("running", "", "not known yet", ""),
            (None, survivors) => {
                let names = survivors.join(", ");
                rows.row("running", "", &names, "");
                rows.warn(&format!("still running: {names}"));
            }
        }
    }
}

impl StopReport {
    fn state(&self) -> String {
        const ANY: &str = "after-model,after-started-calls,after-all-calls";
        let asked = if self.asked == ANY { "any safe point".into() } else { self.asked.replace(',', ", ") };
        let then = match self.escalated {
            Escalation::No => "",
            Escalation::ByRequest => ", then now: later request",
            Escalation::ByDeadline => ", then now: grace period ended",
        };
        let effective =
            self.observed_at.map(|at| format!("; effective after {}", span(self.requested_at, at)));
        format!("{asked}{then}{}; requested while {}", effective.unwrap_or_default(), self.phase)
    }
}

impl CallReport {
    fn rows(&self, rows: &mut Rows<'_>) {
        let status =
            if self.is_cut_off() { "cut off".into() } else { self.status.as_str().replace('_', " ") };
        let after = match (self.started_at, self.ended_at) {
            (Some(start), Some(end)) => format!(" after {}", span(start, end)),
            _ => String::new(),
        };
        let effect = match self.effect {
            SideEffect::None => "no side effects",
            SideEffect::Done => "side effects done",
            SideEffect::Unknown => "side effects unknown",
        };
        rows.row("call", &self.name, &format!("{status}{after}, {effect}"), self.call_id.as_str());
        if self.effect == SideEffect::Unknown {
            rows.warn(&format!("{} may have had side effects; check before you run it again", self.name));
        }
        for process in &self.processes {
            process.rows(rows);
        }
        for ruled in &self.ruled {
            rows.note(4, &ruled.to_string());
        }
        if let Some(remote) = &self.remote {
            remote::rows(remote, rows, !self.processes.is_empty());
        }
        for cleanup in &self.cleanups {
            let end = match cleanup.end {
                CleanupEnd::Ran => "completed",
                CleanupEnd::Failed => "failed",
                CleanupEnd::TimedOut => "timed out",
            };
            rows.note(4, &format!("clean-up {}  {end}", cleanup.label));
        }
        if let Some(child) = &self.child {
            child.rows(rows);
        }
    }
}

impl ProcessReport {
    fn rows(&self, rows: &mut Rows<'_>) {
        let ended = match (self.ended.strip_prefix("signal "), self.ended.strip_prefix("exit ")) {
            (Some(signal), _) => format!("exited on signal {signal}"),
            (_, Some(code)) => format!("exited with code {code}"),
            (None, None) => self.ended.clone(),
        };
        let after = match self.signals.as_slice() {
            [] => String::new(),
            signals => format!(" after {}", signals.join(" → ")),
        };
        rows.note(4, &format!("process {} {}  {ended}{after}  {}", self.pid, self.label, self.containment));
        for ended in self.ended_with.iter().filter(|ended| !self.left_behind.contains(ended)) {
            rows.note(6, &format!("ended with it: {ended}"));
        }
        for left in &self.left_behind {
            rows.note(6, &format!("left behind, killed: {left}"));
        }
        for survivor in &self.survivors {
            rows.note(6, &format!("may still be running: {survivor}"));
            rows.warn(&format!("may still be running: {survivor}"));
        }
    }
}

impl ChildReport {
    /// The child's own receipt, indented below its call.
    fn rows(&self, rows: &mut Rows<'_>) {
        let label = match self.work {
            CallKind::Tool | CallKind::Child => "child",
            CallKind::Background => "background",
        };
        let Some(receipt) = &self.receipt else {
            return rows.note(4, &format!("{label}  {}  still running", self.path));
        };
        let text = receipt.text(rows.warnings());
        let mut lines = text.lines();
        rows.note(4, &format!("{label}  {}  {}", self.path, lines.next().unwrap_or_default()));
        for line in lines {
            rows.note(4, line);
        }
    }
}

/// An amount of money for people, in the currency of the prices: cents and their hundredths, and more digits of what is less.
fn amount(cost: f64) -> String {
    const CENT: f64 = 0.01;
    if cost == 0.0 || cost >= CENT { format!("{cost:.4}") } else { format!("{cost:.6}") }
}

/// `text` without line breaks and other control characters.
fn line(text: &str) -> Cow<'_, str> {
    let is_bad = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    if text.contains(is_bad) { text.replace(is_bad, " ").into() } else { text.into() }
}

fn span(from: Timestamp, to: Timestamp) -> String {
    lasting(Duration::try_from(to.duration_since(from)).unwrap_or_default())
}

/// A duration for people: `47 µs`, `20.0 ms`, `6.4 s`, `1m 05s`, `2h 05m`, `3d 4h`.
#[must_use]
pub fn lasting(time: Duration) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    match time.as_secs() {
        0 if time < Duration::from_millis(1) => format!("{} µs", time.as_micros()),
        0 => format!("{:.1} ms", time.as_secs_f64() * 1e3),
        1..MINUTE => format!("{:.1} s", time.as_secs_f64()),
        seconds @ MINUTE..HOUR => format!("{}m {:02}s", seconds / MINUTE, seconds % MINUTE),
        seconds @ HOUR..DAY => format!("{}h {:02}m", seconds / HOUR, seconds % HOUR / MINUTE),
        seconds => format!("{}d {}h", seconds / DAY, seconds % DAY / HOUR),
    }
}

fn state_of(model: &ModelReport) -> &'static str {
    match model.state {
        ModelState::NeverSent if model.retries.is_empty() => "never sent",
        ModelState::NeverSent => "failed, not tried again",
        ModelState::Closed => "stopped, connection closed (further billing unknown)",
        ModelState::Draining => "being read to its end for the bill",
        ModelState::Completed => "completed",
    }
}

/// Who asked for a stop, and why.
fn who(reason: &ReasonReport) -> String {
    let ReasonReport { code, actor, text, caused_by, .. } = reason;
    let text = if text.is_empty() { String::new() } else { format!(": {text}") };
    let root = caused_by.as_ref().map_or(String::new(), |_| format!("; caused by {}", who(reason.root())));
    line(&format!("{code} ({actor}){text}{root}")).into_owned()
}

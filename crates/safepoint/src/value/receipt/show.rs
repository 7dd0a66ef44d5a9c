//! The receipt for people: what happened, in the order in which a tired operator asks.

use std::fmt::{self, Display, Formatter};

use jiff::Timestamp;

use super::{
    CallKind, CallReport, ChildReport, Ending, Escalation, ModelReport, ModelState, Outside, ReasonReport,
    Receipt, RemoteReport, RemoteStopState, SideEffect, StopReport, StopSupport,
};
use crate::value::usage::{ExtraBilling, UsageSource};

impl Display for Receipt {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.headline(f)?;
        if let Some(stop) = &self.stop {
            stop.lines(f)?;
        }
        self.model_line(f)?;
        for call in &self.calls {
            call.line(f)?;
        }
        for child in &self.waiting {
            child.lines(f)?;
        }
        for approval in &self.approvals_cancelled {
            writeln!(f, "  approval {approval}: withdrawn, nothing ran")?;
        }
        self.usage_line(f)?;
        self.last_line(f)
    }
}

impl Receipt {
    fn headline(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (self.ending, &self.stop) {
            (Ending::Done, None) => writeln!(f, "done"),
            (Ending::Done, Some(_)) => writeln!(f, "done (the end came before the stop)"),
            (Ending::Stopped, Some(stop)) => {
                writeln!(f, "stopped: {}", who(&stop.reason))?;
                let mut told = vec![(&stop.reason.code, &stop.reason.actor)];
                for request in stop.requests.iter().filter(|request| request.asked != "too_late") {
                    let asker = (&request.reason.code, &request.reason.actor);
                    if !told.contains(&asker) {
                        told.push(asker);
                        writeln!(f, "  and by: {}", who(&request.reason))?;
                    }
                }
                Ok(())
            }
            (Ending::Stopped, None) => writeln!(f, "stopped"),
            (Ending::Failed, _) => writeln!(f, "failed"),
            (Ending::Suspended, _) => writeln!(f, "suspended: waits for a decision"),
        }
    }

    fn model_line(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for summary in &self.summaries {
            let (model, state) = (&summary.model, state_of(summary));
            writeln!(f, "  summary by {model}, before round {}: {state}", summary.round)?;
        }
        let Some(model) = &self.model else { return writeln!(f, "  model: not called") };
        writeln!(f, "  model {}, round {}: {}", model.model, model.round, state_of(model))?;
        match model.calls_left_out {
            0 => Ok(()),
            more => writeln!(f, "    {more} more calls than one message may have were left out"),
        }
    }

    fn usage_line(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.model.is_none() && self.summaries.is_empty() {
            return Ok(());
        }
        let source = match self.usage.source {
            UsageSource::Exact => "exact",
            UsageSource::Estimated => "at least; estimated",
        };
        let beyond = match self.usage.billed_beyond {
            ExtraBilling::Nothing => "",
            ExtraBilling::Unknown => ", more may be billed",
        };
        writeln!(f, "  tokens: {} in, {} out ({source}{beyond})", self.usage.input, self.usage.output)?;
        if self.usage_total == self.usage {
            return Ok(());
        }
        writeln!(f, "  with its child runs: {} in, {} out", self.usage_total.input, self.usage_total.output)
    }

    fn last_line(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(why) = &self.unrecorded {
            writeln!(f, "  NOT CONFIRMED as recorded: {why}")?;
        }
        for late in &self.late {
            writeln!(f, "  late, ignored: {late}")?;
        }
        match (self.quiet_at, self.survivors.as_slice()) {
            (Some(quiet), _) => {
                let peers = || self.calls.iter().filter_map(|call| call.remote.as_deref());
                let is_any = |outside: Outside| peers().any(|peer| peer.outside == outside);
                let what = match (is_any(Outside::Unseen), is_any(Outside::Nobody)) {
                    (true, _) => "its own processes have ended; what else they worked with could not be seen",
                    (false, true) => "its own processes have ended, and held a connection to nobody else",
                    (false, false) => "nothing of it is running",
                };
                write!(f, "  quiet: {what} ({} after it settled)", span(self.settled_at, quiet))
            }
            (None, []) => write!(f, "  settled; not yet known to be quiet"),
            (None, survivors) => write!(f, "  NOT QUIET, still alive: {}", survivors.join(", ")),
        }
    }
}

impl StopReport {
    fn lines(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "  asked: {} while {}", self.asked, self.phase)?;
        match self.escalated {
            Escalation::No => {}
            Escalation::ByRequest => write!(f, "; then now, by a later request")?,
            Escalation::ByDeadline => write!(f, "; then now, its grace was over")?,
        }
        match self.observed_at {
            Some(at) => writeln!(f, "; took effect after {}", span(self.requested_at, at)),
            None => writeln!(f),
        }
    }
}

impl CallReport {
    fn line(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let effect = match self.effect {
            SideEffect::None => "no effect",
            SideEffect::Done => "effect done",
            SideEffect::Unknown => "EFFECT UNKNOWN",
        };
        write!(f, "  {} {}: {}, {effect}", self.name, self.call_id, what_became_of(self))?;
        if let (Some(start), Some(end)) = (self.started_at, self.ended_at) {
            write!(f, " ({})", span(start, end))?;
        }
        writeln!(f)?;
        for process in &self.processes {
            write!(f, "    pid {} {}: {}", process.pid, process.label, process.ended)?;
            if !process.signals.is_empty() {
                write!(f, ", sent {}", process.signals.join(" → "))?;
            }
            writeln!(f, " [{}]", process.containment)?;
            for ended in process.ended_with.iter().filter(|ended| !process.left_behind.contains(ended)) {
                writeln!(f, "      ended with it: {ended}")?;
            }
            for left in &process.left_behind {
                writeln!(f, "      left behind, killed: {left}")?;
            }
            for survivor in &process.survivors {
                writeln!(f, "      MAY STILL RUN: {survivor}")?;
            }
        }
        for ruled in &self.ruled {
            writeln!(f, "    {ruled}")?;
        }
        if let Some(remote) = &self.remote {
            remote.line(f, !self.processes.is_empty())?;
        }
        for cleanup in &self.cleanups {
            writeln!(f, "    clean-up {}: {:?}", cleanup.label, cleanup.end)?;
        }
        self.child.as_ref().map_or(Ok(()), |child| child.lines(f))
    }
}

impl RemoteReport {
    /// `is_ours_over`: processes of ours that do the peer's work are known to have ended.
    fn line(&self, f: &mut Formatter<'_>, is_ours_over: bool) -> fmt::Result {
        write!(f, "    {}", self.label())?;
        let Some(stop) = self.stop else {
            let known = match (self.lost_at, &self.outside) {
                (Some(_), _) => ": the line to it broke, IT MAY STILL WORK",
                (None, Outside::Unseen) => ": its own processes have ended",
                (None, _) => "",
            };
            writeln!(f, "{known}")?;
            return self.said_line(f);
        };
        let asked =
            if stop == RemoteStopState::Unreachable { ", to be stopped: " } else { ", asked to stop: " };
        f.write_str(asked)?;
        match (stop, self.grade) {
            (RemoteStopState::Refused, _) if self.ended_at.is_some() => self.ended_anyway(f)?,
            (RemoteStopState::Acknowledged, StopSupport::CallerSide | StopSupport::None)
                if self.ended_at.is_some() =>
            {
                write!(f, "it says that its work was over")?;
            }
            _ if self.ended_at.is_some() => write!(f, "its work was over")?,
            (RemoteStopState::Confirmed, StopSupport::Hard) => self.contained(f)?,
            (RemoteStopState::Acknowledged | RemoteStopState::Requested, StopSupport::Hard)
                if !self.outside.names().is_empty() =>
            {
                if is_ours_over {
                    self.contained(f)?;
                } else {
                    write!(f, "it took note, and its own processes are being ended; ")?;
                    self.named(f)?;
                }
            }
            (RemoteStopState::Confirmed, grade) => {
                let grade = grade.as_str();
                write!(f, "it says that the work has ended, but its stops are {grade}: IT MAY STILL WORK")?;
            }
            (RemoteStopState::Requested, _) => write!(f, "no answer{}: IT MAY STILL WORK", self.in_time())?,
            (RemoteStopState::Acknowledged, _) => {
                write!(f, "it took note, and has not said that the work ended: IT MAY STILL WORK")?;
            }
            (RemoteStopState::Refused, _) => write!(f, "it does not: IT GOES ON")?,
            (RemoteStopState::Unreachable, _) => write!(f, "it could not be told: IT MAY STILL WORK")?,
        }
        // A refusal has its own time where its end has one too.
        let is_timed = stop == RemoteStopState::Refused && self.ended_at.is_some();
        if let (Some(asked), Some(heard), false) = (self.asked_at, self.heard_at, is_timed) {
            let known = self.ended_at.map_or(heard, |ended| ended.max(heard));
            write!(f, " ({})", span(asked, known))?;
        }
        if !self.word.is_empty() {
            write!(f, " [\"{}\"]", self.word)?;
        }
        writeln!(f)?;
        self.said_line(f)
    }

    /// It refused, and its work came to its own end: each has its own time.
    fn ended_anyway(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "it did not")?;
        if let (Some(asked), Some(heard)) = (self.asked_at, self.heard_at) {
            write!(f, " ({})", span(asked, heard))?;
        }
        write!(f, "; its work has ended by itself")?;
        if let (Some(asked), Some(ended)) = (self.asked_at, self.ended_at) {
            write!(f, ", {} after it was asked", span(asked, ended))?;
        }
        Ok(())
    }

    /// What came of an answer that has no end.
    fn said_line(&self, f: &mut Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 60;
        if self.said_bytes == 0 || self.ended_at.is_some() {
            return Ok(());
        }
        let shown: String = self.said.chars().take(SHOWN).map(|c| if c == '\n' { ' ' } else { c }).collect();
        let more = if (shown.len() as u64) < self.said_bytes { "…" } else { "" };
        writeln!(f, "      of its answer {} bytes had come, and are kept: \"{shown}{more}\"", self.said_bytes)
    }

    /// The work of processes of ours has ended as far as these have all of it.
    fn contained(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.outside {
            Outside::Unasked => write!(f, "the work has ended"),
            Outside::Nobody => {
                write!(f, "its own processes have ended, and held a connection to nobody else")
            }
            Outside::Unseen => write!(f, "its own processes have ended"),
            Outside::Named(_) => {
                write!(f, "its own processes have ended; ")?;
                self.named(f)
            }
        }
    }

    /// Whom it worked with.
    fn named(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let names = self.outside.names();
        let are = if names.len() == 1 { "is" } else { "are" };
        write!(f, "worked with {}, which {are} not ours and MAY GO ON", names.join(", "))
    }

    fn in_time(&self) -> String {
        let within = self.within_ms.map(std::time::Duration::from_millis);
        within.map(|within| format!(" within {within:?}")).unwrap_or_default()
    }
}

impl ChildReport {
    /// The child's own account, indented below its call.
    fn lines(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let how = match self.work {
            CallKind::Tool | CallKind::Child => "child run",
            CallKind::Background => "background run",
        };
        let Some(receipt) = &self.receipt else {
            return writeln!(f, "    {how} {}: still running", self.path);
        };
        let account = receipt.to_string();
        let mut lines = account.lines();
        writeln!(f, "    {how} {}: {}", self.path, lines.next().unwrap_or_default())?;
        lines.try_for_each(|line| writeln!(f, "    {line}"))
    }
}

fn span(from: Timestamp, to: Timestamp) -> String {
    let micros = to.duration_since(from).as_micros().max(0);
    const MILLI: i128 = 1_000;
    const SECOND: i128 = 1_000_000;
    match micros {
        m if m < MILLI => format!("{m} µs"),
        #[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
        m if m < SECOND => format!("{:.1} ms", m as f64 / MILLI as f64),
        #[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
        m => format!("{:.1} s", m as f64 / SECOND as f64),
    }
}

/// What became of a call.
fn what_became_of(call: &CallReport) -> String {
    if call.is_cut_off() { "cut off".into() } else { call.status.as_str().replace('_', " ") }
}

fn state_of(model: &ModelReport) -> &'static str {
    match model.state {
        ModelState::NeverSent => "never sent",
        ModelState::Closed => "cut; released at our end (what the provider bills beyond is unknown)",
        ModelState::Draining => "being read to its end for the bill",
        ModelState::Completed => "complete",
    }
}

/// Who asked, and why.
fn who(reason: &ReasonReport) -> String {
    let ReasonReport { code, actor, text, caused_by, .. } = reason;
    let text = if text.is_empty() { String::new() } else { format!(": {text}") };
    let root =
        caused_by.as_ref().map_or(String::new(), |_| format!("; it began with {}", who(reason.root())));
    format!("{code} ({actor}){text}{root}")
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    /// S10.3: work that came to its own end after a refusal is not told as over when the peer was asked.
    #[test]
    fn a_refusal_is_told_also_where_the_work_has_ended_since() {
        struct Shown(RemoteReport);
        impl fmt::Display for Shown {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                self.0.line(f, true)
            }
        }
        let ended = |stop| RemoteReport {
            stop: Some(stop),
            ended_at: Some(Timestamp::UNIX_EPOCH),
            ..RemoteReport::of("a2a:x", StopSupport::CallerSide)
        };
        let shown = |stop| Shown(ended(stop)).to_string();
        assert!(shown(RemoteStopState::Refused).contains("it did not; its work has ended by itself"));
        assert!(shown(RemoteStopState::Requested).contains("its work was over"));
        let at = |millis| Timestamp::from_millisecond(millis).ok();
        let timed = |stop| {
            let word = "no; its task was working".to_owned();
            let (asked_at, heard_at, ended_at) = (at(1_000), at(1_010), at(3_800));
            Shown(RemoteReport { word, asked_at, heard_at, ended_at, ..ended(stop) }).to_string()
        };
        let refused = "it did not (10.0 ms); its work has ended by itself, 2.8 s after it was asked [\"no; its task was working\"]";
        assert!(timed(RemoteStopState::Refused).contains(refused), "{}", timed(RemoteStopState::Refused));
        let over = timed(RemoteStopState::Acknowledged);
        assert!(over.contains("its work was over (2.8 s)"), "the time is that of the end: {over}");
    }
}

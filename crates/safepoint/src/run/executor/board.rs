//! What a running call leaves for its end: its progress, its rows, and its clean-ups. And who ends it.
//!
//! **Invariants**: what arrives after the end has taken its share is returned to the caller, never lost silently; the right
//! to end the call is given once.

use std::time::Duration;

use futures_core::future::BoxFuture;

use super::ApprovalClock;
use crate::{
    contract::tool::Output,
    sync::Mutex,
    value::{
        receipt::{Permission, ProcessReport, RemoteReport, RuledReport},
        text::head,
    },
};

/// What a running call leaves for its end.
#[derive(Default)]
pub(crate) struct CallBoard {
    /// Held for one entry or one taking. The body of the call and what ends it take it, and no other lock
    /// is taken under it. Clean-ups are only moved under it; they run after it. Whether an entry comes before
    /// the taking or after it is decided here, so it is in the share or goes back to its caller.
    posted: Mutex<Posted>,
    pub(super) waits: ApprovalClock,
}

#[derive(Default)]
struct Posted {
    progress: String,
    said: AnswerText,
    kept: Option<Output>,
    cleanups: Vec<Cleanup>,
    /// Whether the clean-ups are already running and no more are collected.
    is_cleaning: bool,
    processes: Vec<ProcessReport>,
    remote: Option<RemoteReport>,
    ruled: Vec<RuledReport>,
    /// Whether rows are sent as messages, because the call is over.
    is_by_mail: bool,
    /// Whether a stop of the call alone is the run's, which is at a safe point while the call waits.
    is_stopped_by_run: bool,
    end: Ending,
}

/// How far the end of a call is. Exhaustive: nothing ends it yet; its time limit has passed, and nothing ends it yet; or
/// something does, and the limit had passed by then or not.
#[derive(Clone, Copy, Default)]
enum Ending {
    #[default]
    Open,
    Due(Duration),
    Claimed(Option<Duration>),
}

/// The text of the call's answer so far: the only copy while the call runs (S12.4). Exhaustive: more may
/// follow; the call has ended, and what arrives now is late; or the call took the text as its result.
enum AnswerText {
    Open(String),
    Over(String),
    IsResult,
}

impl Default for AnswerText {
    fn default() -> Self {
        Self::Open(String::new())
    }
}

/// A clean-up of a call, and its name.
pub(crate) type Cleanup = (String, BoxFuture<'static, ()>);

impl CallBoard {
    /// Takes the right to end the call; true the first time. The lock decides between the call's task and its watch.
    pub(super) fn claim(&self) -> bool {
        let end = &mut self.posted.lock().end;
        let limit = match *end {
            Ending::Open => None,
            Ending::Due(limit) => Some(limit),
            Ending::Claimed(_) => return false,
        };
        *end = Ending::Claimed(limit);
        true
    }
    /// The time limit has passed; nothing changes if the call is over.
    pub(super) fn pass_time(&self, limit: Duration) {
        let end = &mut self.posted.lock().end;
        if let Ending::Open = end {
            *end = Ending::Due(limit);
        }
    }
    /// The time limit, if it passed before anything ended the call.
    pub(super) fn time_passed(&self) -> Option<Duration> {
        match self.posted.lock().end {
            Ending::Open => None,
            Ending::Due(limit) => Some(limit),
            Ending::Claimed(limit) => limit,
        }
    }
    pub(crate) fn progress(&self, text: &str, budget: usize) {
        let mut posted = self.posted.lock();
        let room = budget.saturating_sub(posted.progress.len());
        posted.progress.push_str(head(text, room));
    }
    /// Registers a clean-up, or returns it if those of the call are running already: the caller then runs it
    /// at once.
    pub(crate) fn cleanup(&self, cleanup: Cleanup) -> Option<Cleanup> {
        let mut posted = self.posted.lock();
        if posted.is_cleaning {
            return Some(cleanup);
        }
        posted.cleanups.push(cleanup);
        None
    }
    /// Adds a process's row, or returns it if the call has ended.
    pub(crate) fn process(&self, process: ProcessReport) -> Option<ProcessReport> {
        let mut posted = self.posted.lock();
        if posted.is_by_mail {
            return Some(process);
        }
        posted.processes.push(process);
        None
    }
    /// Sets what is known of the remote agent, or returns it if the call has ended.
    pub(crate) fn remote(&self, remote: RemoteReport) -> Option<RemoteReport> {
        let mut posted = self.posted.lock();
        if posted.is_by_mail {
            return Some(remote);
        }
        posted.remote = Some(remote);
        None
    }
    /// Notes what policy decided about a question of the call. Equal decisions are counted, and so are those
    /// beyond the limit.
    pub(crate) fn rule(&self, ruled: RuledReport) {
        const MOST: usize = 64;
        let mut posted = self.posted.lock();
        let is_full = posted.ruled.len() >= MOST;
        let alike = |row: &&mut RuledReport| {
            row.is_like(&ruled) || is_full && (row.permission, row.by) == (ruled.permission, ruled.by)
        };
        match posted.ruled.iter_mut().find(alike) {
            Some(row) => row.times = row.times.saturating_add(1),
            None => posted.ruled.push(ruled),
        }
    }
    /// The names of what policy has denied so far.
    pub(crate) fn denied(&self) -> Vec<String> {
        let posted = self.posted.lock();
        let denied = posted.ruled.iter().filter(|row| row.permission == Permission::Denied);
        let name = |row: &RuledReport| match row.what.as_str() {
            "" => row.tool.clone(),
            what => format!("{} ({what})", row.tool),
        };
        denied.map(name).collect()
    }
    pub(super) fn take_ruled(&self) -> Vec<RuledReport> {
        std::mem::take(&mut self.posted.lock().ruled)
    }
    /// From now on the call's stop is the run's.
    pub(crate) fn end_with_the_run(&self) {
        self.posted.lock().is_stopped_by_run = true;
    }
    pub(crate) fn ends_with_the_run(&self) -> bool {
        self.posted.lock().is_stopped_by_run
    }
    pub(super) fn see_remote(&self) -> Option<RemoteReport> {
        self.posted.lock().remote.clone()
    }
    /// Appends to the answer; false if the call has ended, and the text is not kept.
    #[must_use = "what is not kept is not shown"]
    pub(crate) fn add_text(&self, text: &str) -> bool {
        match &mut self.posted.lock().said {
            AnswerText::Open(said) => said.push_str(text),
            AnswerText::Over(_) => return false,
            AnswerText::IsResult => {}
        }
        true
    }
    /// The whole answer was shown: it is not shown again, in whatever order the call returns it.
    pub(crate) fn answer_is_shown(&self) {
        self.posted.lock().said = AnswerText::IsResult;
    }
    /// The answer that the call returns: the text said so far is not kept beside an equal one.
    pub(crate) fn answer(&self, whole: Option<String>) -> String {
        let mut posted = self.posted.lock();
        match (whole, &mut posted.said) {
            (Some(whole), AnswerText::Open(said) | AnswerText::Over(said)) if whole != *said => whole,
            (Some(whole), AnswerText::IsResult) => whole,
            (_, said) => match std::mem::replace(said, AnswerText::IsResult) {
                AnswerText::Open(said) | AnswerText::Over(said) => said,
                AnswerText::IsResult => String::new(),
            },
        }
    }
    /// Takes the text said so far. `None` if the call took it as its answer.
    pub(crate) fn take_said(&self) -> Option<String> {
        match &mut self.posted.lock().said {
            AnswerText::Open(said) | AnswerText::Over(said) => Some(std::mem::take(said)),
            AnswerText::IsResult => None,
        }
    }
    /// Sets what is kept instead of the progress, if the body ends without a result.
    pub(crate) fn keep(&self, output: Output) {
        self.posted.lock().kept = Some(output);
    }
    /// Takes the output: from now on the call has ended, and text for its answer is late.
    pub(super) fn take_emitted(&self) -> Output {
        let mut posted = self.posted.lock();
        if let AnswerText::Open(said) = &mut posted.said {
            posted.said = AnswerText::Over(std::mem::take(said));
        }
        let progress = std::mem::take(&mut posted.progress);
        posted.kept.take().unwrap_or_else(|| progress.into())
    }
    /// Takes the registered clean-ups; any further one is returned to its caller.
    pub(super) fn take_cleanups(&self) -> Vec<Cleanup> {
        let mut posted = self.posted.lock();
        posted.is_cleaning = true;
        std::mem::take(&mut posted.cleanups)
    }
    /// Takes the rows; any later one is returned to its caller.
    pub(super) fn take_rows(&self) -> (Vec<ProcessReport>, Option<RemoteReport>) {
        let mut posted = self.posted.lock();
        posted.is_by_mail = true;
        (std::mem::take(&mut posted.processes), posted.remote.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S12.4: an answer that is what was said of it is taken and not copied; another one stands beside it.
    #[test]
    fn an_answer_that_was_said_is_there_once() {
        for whole in [None, Some("one two".to_owned())] {
            let board = CallBoard::default();
            assert!(board.add_text("one") && board.add_text(" two"));
            assert_eq!(board.answer(whole), "one two");
            assert_eq!(board.take_said(), None);
        }
        let board = CallBoard::default();
        assert!(board.add_text("one"));
        assert_eq!(board.answer(Some("other".into())), "other");
        assert_eq!(board.take_said().as_deref(), Some("one"));
    }

    /// S3.5, S10.45: what is said of an answer when its call has ended is not kept, whatever is taken first.
    #[test]
    fn what_is_said_after_the_end_is_not_kept() {
        let board = CallBoard::default();
        assert!(board.add_text("one"));
        drop(board.take_emitted());
        assert!(!board.add_text(" two"));
        assert_eq!(board.take_said().as_deref(), Some("one"));
        assert!(!board.add_text(" three"));
    }
}

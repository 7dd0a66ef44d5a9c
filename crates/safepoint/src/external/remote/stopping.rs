//! A peer is told to stop, has its time to say that it did, and is listened to a little longer.

use std::{future::Future, pin::pin, time::Duration};

use futures_util::future::{Either, FutureExt as _, select};
use jiff::Timestamp;
use safepoint_scope::Failure;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep_until, timeout_at},
};

use crate::contract::remote::{
    AfterWord, LAST_LOOK, LAST_PROCESSES, LAST_WORDS, Lives, RemoteCall, RemoteEvent, RemoteSpec,
    RemoteStopReply, Term,
};
use crate::{
    contract::tool::ToolContext,
    sync,
    value::{
        limits::{after, millis},
        receipt::{RemoteReport, RemoteStopState, StopSupport},
    },
};

/// How many times longer our end listens for the name of work that could not be told to stop without one.
const UNTOLD: u32 = 5;

/// What the peer's work came to under the stop.
pub(super) enum StopResult {
    /// It had finished, with this or with what it had said: that is kept (S4.5).
    Done(Option<String>),
    /// It had failed, or the line broke.
    Failed(Failure),
    /// It was told; the row says what is known.
    Stopped,
}

/// A line whose work must end.
pub(super) struct Stopping {
    pub(super) line: Box<dyn RemoteCall>,
    pub(super) cx: ToolContext,
    pub(super) spec: RemoteSpec,
    pub(super) row: RemoteReport,
    /// How many bytes more of what the peer says are kept.
    pub(super) left: usize,
    pub(super) ears: Listening,
    pub(super) term: Term,
    /// When it said what it said last, where it is heard only briefly after that.
    pub(super) noted: Option<Instant>,
}

/// What listening came to. Exhaustive: an end, a word about the stop, or nothing in its time.
enum Heard {
    Came(StopResult),
    Word,
    Nothing,
}

/// What becomes of what a peer goes on to say. Exhaustive: it is the call's, or it is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listening {
    InTime,
    /// The call has ended: so many bytes are told as late, and go nowhere else (S3.5).
    Late(usize),
}

impl Stopping {
    /// The row, from before the peer is told.
    pub(super) fn ask(&mut self) {
        self.row.asked_at = Some(Timestamp::now());
        self.row.within_ms = self.term.in_all().map(millis);
        self.row.stop = Some(RemoteStopState::Requested);
        self.report();
    }

    /// Tells the peer; `tell` hears what came of it in the peer's time. Our end then listens on, for the audit.
    pub(super) async fn part(mut self, tell: oneshot::Sender<StopResult>) {
        let term = self.term.clone();
        // The word that is there comes first. A peer whose time is over is not waited for any more.
        let told = match select(self.line.stop(), pin!(term.over())).await {
            Either::Left((told, _)) => Some(told),
            Either::Right(((), _)) => None,
        };
        if let Some(told) = told {
            self.hear(told);
        }
        let came = self.in_time().await;
        // As long as it came to be: what was asked later may have made it shorter. Where no answer can come none was waited for.
        self.row.within_ms =
            if self.is_unanswered() { None } else { term.in_all().map(millis).or(self.row.within_ms) };
        self.report();
        let is_over = came.is_some() || self.row.stop == Some(RemoteStopState::Confirmed);
        let listens_on = !is_over && !self.leaves();
        if !tell.is_closed() {
            sync::reply(tell, came.unwrap_or(StopResult::Stopped));
        } else if !listens_on {
            // The call did not wait for it.
            self.report_late(came);
        }
        if listens_on {
            self.listen_on().await;
        }
    }

    /// What comes while it may still be an end, in time for the caller.
    async fn in_time(&mut self) -> Option<StopResult> {
        loop {
            let term = self.term.clone();
            let heard = match self.row.stop {
                Some(RemoteStopState::Confirmed) => return None,
                // It may yet name its work, and is told then.
                Some(RemoteStopState::Unreachable) if self.is_untold() => self.listen(term.over()).await,
                Some(RemoteStopState::Refused | RemoteStopState::Unreachable) => {
                    self.listen_out(LAST_LOOK).await
                }
                _ if self.is_unanswered() => self.listen_out(LAST_WORDS).await,
                // Nothing more would be believed, but for an answer that was on its way.
                Some(RemoteStopState::Acknowledged) if self.spec.grade != StopSupport::Hard => {
                    self.listen_briefly(LAST_WORDS).await
                }
                // Nothing more can be confirmed.
                Some(RemoteStopState::Acknowledged) if !self.row.outside.names().is_empty() => {
                    self.listen_briefly(LAST_PROCESSES).await
                }
                Some(RemoteStopState::Acknowledged | RemoteStopState::Requested) | None => {
                    self.listen(term.over()).await
                }
            };
            match heard {
                Heard::Came(came) => return Some(came),
                Heard::Nothing => return None,
                // How long it is listened to is another matter now.
                Heard::Word => {}
            }
        }
    }

    /// What comes of work that was not stopped, as far as is known. Of `Now` nothing more is to be waited for, save within this of
    /// its word, where more may be said of it; a grace is the work's to come to its own end.
    async fn listen_out(&mut self, time: Duration) -> Heard {
        let (cx, term) = (self.cx.clone(), self.term.clone());
        let last = self.noted.map(|noted| after(noted, time));
        self.listen(async move {
            drop(cx.stopped().await);
            if let Some(last) = last {
                drop(timeout_at(last, term.over()).await);
            }
        })
        .await
    }

    /// What comes within this of its word.
    async fn listen_briefly(&mut self, time: Duration) -> Heard {
        let (term, last) = (self.term.clone(), after(self.noted.unwrap_or_else(Instant::now), time));
        self.listen(async move { drop(timeout_at(last, term.over()).await) }).await
    }

    /// Whether it could not be told because its work has no name.
    fn is_untold(&self) -> bool {
        self.row.stop == Some(RemoteStopState::Unreachable) && self.row.task.is_none()
    }

    /// Whether it was told, and no answer will come.
    fn is_unanswered(&self) -> bool {
        self.row.stop == Some(RemoteStopState::Requested) && self.noted.is_some()
    }

    /// Whether the peer has answered, or will not, and nothing more is to be heard of it.
    fn leaves(&self) -> bool {
        let is_all = self.row.heard_at.is_some() || self.noted.is_some();
        self.spec.after_word == AfterWord::Leaves && is_all
    }

    /// What comes until `over`, if it is an end or a word about the stop.
    async fn listen(&mut self, over: impl Future<Output = ()>) -> Heard {
        let mut over = pin!(over);
        // What is there already is heard also where there is no time at all.
        let mut there = self.line.next().now_or_never();
        loop {
            tokio::task::coop::consume_budget().await;
            // A peer that always says one thing more has no more time than another.
            let said = match there.take() {
                Some(said) => said,
                None => match select(over.as_mut(), self.line.next()).await {
                    Either::Left(((), _)) => return Heard::Nothing,
                    Either::Right((said, _)) => said,
                },
            };
            match said {
                RemoteEvent::Done(answer) => {
                    self.ended();
                    return Heard::Came(StopResult::Done(answer));
                }
                RemoteEvent::Reordered(answer) => {
                    self.cx.said_all();
                    self.ended();
                    return Heard::Came(StopResult::Done(Some(answer)));
                }
                RemoteEvent::Ended { word } => {
                    self.hear(RemoteStopReply::confirmed(word));
                    return Heard::Came(StopResult::Stopped);
                }
                RemoteEvent::Failed(failure) => {
                    self.ended();
                    return Heard::Came(StopResult::Failed(failure));
                }
                RemoteEvent::Lost(failure) => {
                    self.row.lost_at = Some(Timestamp::now());
                    self.row.word = failure.to_string();
                    self.report();
                    return Heard::Came(StopResult::Failed(failure));
                }
                RemoteEvent::Parted(told) => {
                    self.hear(told);
                    return Heard::Came(StopResult::Stopped);
                }
                RemoteEvent::Text(text) => self.more(&text),
                RemoteEvent::Begun { task } => {
                    self.named(task);
                    return Heard::Word;
                }
                RemoteEvent::Told(told) => {
                    self.told(told);
                    return Heard::Word;
                }
                RemoteEvent::Progress(_)
                | RemoteEvent::Thought(_)
                | RemoteEvent::Notice(_)
                | RemoteEvent::Question(_)
                | RemoteEvent::Withdrawn { .. } => {}
            }
        }
    }

    /// The work has a name: by the contract of the line the peer is told now, if it could not be before.
    fn named(&mut self, task: String) {
        if self.is_untold() {
            self.row.asked_at = Some(Timestamp::now());
            self.row.stop = Some(RemoteStopState::Requested);
            self.row.word = String::new();
        }
        self.row.task = Some(task);
        self.report();
    }

    fn more(&mut self, text: &str) {
        if let Listening::Late(bytes) = &mut self.ears {
            *bytes += text.len();
            return;
        }
        // What is too much is not kept: the work ends in any case.
        let Some(left) = self.left.checked_sub(text.len()) else { return };
        if self.cx.say(text) {
            self.left = left;
            self.row.says(text);
        } else {
            // The call did not wait for it.
            self.ears = Listening::Late(text.len());
        }
    }

    /// After the peer's time: what becomes of the work there changes the row, and nothing else.
    async fn listen_on(&mut self) {
        if self.ears == Listening::InTime {
            self.ears = Listening::Late(0);
        }
        let over = match self.spec.after_word {
            _ if self.is_untold() => after(Instant::now(), self.spec.listen.saturating_mul(UNTOLD)),
            AfterWord::Listens => after(self.until_ended(), self.spec.listen),
            // Whoever ends with the run waits once: a peer has its own time, and no other one after that.
            AfterWord::Leaves => after(self.term.asked(), self.spec.stop_within),
        };
        let came = loop {
            match self.listen(sleep_until(over)).await {
                Heard::Came(came) => break Some(came),
                Heard::Word if self.row.stop != Some(RemoteStopState::Confirmed) && !self.leaves() => {}
                Heard::Nothing | Heard::Word => break None,
            }
        };
        self.report_late(came);
    }

    /// What came when the call had ended.
    fn report_late(&self, came: Option<StopResult>) {
        let peer = &self.row.peer;
        let late = if let Listening::Late(bytes) = self.ears { bytes } else { 0 };
        if let bytes @ 1.. = late {
            self.cx.report_late(format!("went on at {peer}, which said {bytes} bytes more"));
        }
        let Some(came) = came else { return };
        self.cx.report_late(match came {
            StopResult::Done(answer) => {
                let bytes = answer.map_or(self.row.told().saturating_add(late), |answer| answer.len());
                format!("was finished by {peer} with {bytes} bytes")
            }
            StopResult::Failed(failure) => format!("failed at {peer}: {failure}"),
            StopResult::Stopped if self.row.stop == Some(RemoteStopState::Confirmed) => {
                format!("has ended, says {peer}")
            }
            StopResult::Stopped if !self.row.outside.names().is_empty() => {
                format!("has ended at {peer} as far as its own processes go: {}", self.row.word)
            }
            StopResult::Stopped => format!("did not end at {peer}: {}", self.row.word),
        });
    }

    /// When its time is over, where its end is ours to bring about; what has ended for its caller before that is heard of then.
    fn until_ended(&self) -> Instant {
        let now = Instant::now();
        let until = self.term.until().filter(|_| self.spec.lives == Lives::InOurProcesses);
        until.map_or(now, |until| until.max(now))
    }

    /// A word of its own, later than what it said as it was told. A refusal may be told once more, with what became of the work.
    fn told(&mut self, told: RemoteStopReply) {
        let is_again = told.stop == RemoteStopState::Refused && self.row.stop == Some(told.stop);
        if is_again {
            // It said so when it said so first.
            (self.row.word, self.noted) = (told.word, None);
            return self.report();
        }
        if matches!(told.stop, RemoteStopState::Refused | RemoteStopState::Requested) {
            self.noted = Some(Instant::now());
        }
        self.hear(told);
    }

    fn hear(&mut self, told: RemoteStopReply) {
        if told.stop == RemoteStopState::Unreachable {
            // It was not asked, as far as anybody knows.
            self.row.asked_at = None;
        } else if told.stop != RemoteStopState::Requested {
            self.row.heard_at = Some(Timestamp::now());
        }
        if told.stop == RemoteStopState::Acknowledged {
            self.noted.get_or_insert_with(Instant::now);
        }
        self.row.stop = Some(told.stop);
        self.row.word = told.word;
        self.row.outside = told.outside;
        self.report();
    }

    fn ended(&mut self) {
        self.row.ended_at = Some(Timestamp::now());
        self.report();
    }

    fn report(&self) {
        self.cx.report_remote(self.row.clone());
    }
}

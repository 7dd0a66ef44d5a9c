//! Stops the work of a remote agent: sends the stop, gives the agent its time to confirm, and listens a
//! little longer.

use std::{future::Future, ops::ControlFlow, pin::pin, time::Duration};

use futures_util::future::{Either, FutureExt as _, select};
use safepoint_scope::Failure;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep_until, timeout_at},
};

use crate::contract::remote::{
    AfterWord, LAST_LOOK, LAST_PROCESSES, LAST_WORDS, Lives, RemoteCall, RemoteEnd, RemoteEvent, RemoteSpec,
    RemoteStopReply, Term,
};
use crate::{
    contract::tool::ToolContext,
    sync,
    sync::clock,
    value::{
        limits::{after, millis},
        receipt::{RemoteReport, RemoteStopState, StopSupport},
    },
};

/// How many times longer this side listens for the name of work that cannot be stopped without one.
const UNNAMED_FACTOR: u32 = 5;

/// What became of the work under the stop.
pub(super) enum StopResult {
    /// It had completed, with this answer or the text sent so far: that is kept (S4.5).
    Done(Option<String>),
    /// It had failed, or the connection broke.
    Failed(Failure),
    /// The stop was sent; the row has what is known.
    Stopped,
}

/// A call whose work must end.
pub(super) struct Stopping {
    pub(super) line: Box<dyn RemoteCall>,
    pub(super) cx: ToolContext,
    pub(super) spec: RemoteSpec,
    pub(super) row: RemoteReport,
    /// How many more bytes of the agent's text are kept.
    pub(super) left: usize,
    /// How many bytes of text the agent has sent since the call ended: reported as late, and dropped (S3.5).
    pub(super) late: Option<usize>,
    pub(super) term: Term,
    /// When the last reply arrived, if the agent is read only briefly after it.
    pub(super) noted: Option<Instant>,
}

/// What listening returned: `Break` with an end, or with `None` if nothing came in its time; `Continue` after a reply
/// to the stop.
type Listened = ControlFlow<Option<StopResult>>;

impl Stopping {
    /// Fills the row before the stop is sent.
    pub(super) fn ask(&mut self) {
        self.row.asked_at = Some(clock::now());
        self.row.within_ms = self.term.in_all().map(millis);
        self.row.stop = Some(RemoteStopState::Requested);
        self.report();
    }

    /// Sends the stop; `call` gets what came of it within the agent's time. This side then keeps listening,
    /// for the audit.
    pub(super) async fn run(mut self, call: oneshot::Sender<StopResult>) {
        let term = self.term.clone();
        // A reply that is ready comes first. An agent whose time is over is no longer waited for.
        let reply = match select(self.line.stop(), pin!(term.over())).await {
            Either::Left((reply, _)) => Some(reply),
            Either::Right(((), _)) => None,
        };
        if let Some(reply) = reply {
            self.on_reply(reply);
        }
        let result = self.in_time().await;
        // The final length: a later request may have shortened it. Where no reply can come, there was no
        // wait.
        self.row.within_ms =
            if self.is_unanswered() { None } else { term.in_all().map(millis).or(self.row.within_ms) };
        self.report();
        let is_over = result.is_some() || self.row.stop == Some(RemoteStopState::Confirmed);
        let keeps_listening = !is_over && !self.leaves();
        if !call.is_closed() {
            sync::reply(call, result.unwrap_or(StopResult::Stopped));
        } else if !keeps_listening {
            // The call did not wait for it.
            self.report_late(result);
        }
        if keeps_listening {
            self.keep_listening().await;
        }
    }

    /// Waits for an end in time for the caller.
    async fn in_time(&mut self) -> Option<StopResult> {
        loop {
            let term = self.term.clone();
            let received = match self.row.stop {
                Some(RemoteStopState::Confirmed) => return None,
                // The agent may still name the work, and gets the stop then.
                Some(RemoteStopState::Unreachable) if self.is_unreached() => self.listen(term.over()).await,
                Some(RemoteStopState::Refused | RemoteStopState::Unreachable) => {
                    self.listen_out(LAST_LOOK).await
                }
                _ if self.is_unanswered() => self.listen_out(LAST_WORDS).await,
                // No further reply would be believed, except an answer that was on its way.
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
            match received {
                ControlFlow::Break(result) => return result,
                // The time to listen depends on the new reply.
                ControlFlow::Continue(()) => {}
            }
        }
    }

    /// Listens to work that, as far as known, was not stopped. Under `Now` nothing more is waited for, except
    /// `time` after its reply, which may bring more. Under a grace the work may complete.
    async fn listen_out(&mut self, time: Duration) -> Listened {
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

    /// Listens for `time` after the agent's reply.
    async fn listen_briefly(&mut self, time: Duration) -> Listened {
        let (term, last) = (self.term.clone(), after(self.noted.unwrap_or_else(Instant::now), time));
        self.listen(async move { drop(timeout_at(last, term.over()).await) }).await
    }

    /// Whether the stop could not be sent because the work has no name.
    fn is_unreached(&self) -> bool {
        self.row.stop == Some(RemoteStopState::Unreachable) && self.row.task.is_none()
    }

    /// Whether the stop was sent, and no reply will come.
    fn is_unanswered(&self) -> bool {
        self.row.stop == Some(RemoteStopState::Requested) && self.noted.is_some()
    }

    /// Whether the agent has replied, or will not, and listening ends with that.
    fn leaves(&self) -> bool {
        let is_all = self.row.replied_at.is_some() || self.noted.is_some();
        self.spec.after_word == AfterWord::Leaves && is_all
    }

    /// Listens until `over` for an end or a reply to the stop.
    async fn listen(&mut self, over: impl Future<Output = ()>) -> Listened {
        let mut over = pin!(over);
        // An event that is ready is received even without any time.
        let mut there = self.line.next().now_or_never();
        loop {
            tokio::task::coop::consume_budget().await;
            // An agent that always has another event gets no extra time.
            let said = match there.take() {
                Some(said) => said,
                None => match select(over.as_mut(), self.line.next()).await {
                    Either::Left(((), _)) => return ControlFlow::Break(None),
                    Either::Right((said, _)) => said,
                },
            };
            match said {
                RemoteEvent::Done(answer, end) => {
                    self.ended(end);
                    return ControlFlow::Break(Some(StopResult::Done(answer)));
                }
                RemoteEvent::Reordered(answer, end) => {
                    self.cx.host().answer_is_shown();
                    self.ended(end);
                    return ControlFlow::Break(Some(StopResult::Done(Some(answer))));
                }
                RemoteEvent::Ended { word } => {
                    self.on_reply(RemoteStopReply::confirmed(word));
                    return ControlFlow::Break(Some(StopResult::Stopped));
                }
                RemoteEvent::Failed(failure) => {
                    self.ended(RemoteEnd::Reported);
                    return ControlFlow::Break(Some(StopResult::Failed(failure)));
                }
                RemoteEvent::Lost(failure) => {
                    self.row.lost_at = Some(clock::now());
                    self.row.word = failure.to_string();
                    self.report();
                    return ControlFlow::Break(Some(StopResult::Failed(failure)));
                }
                RemoteEvent::Parted(reply) => {
                    // A reply that is sent once more keeps the time of the first.
                    if self.row.stop != Some(reply.stop) || self.row.word != reply.word {
                        self.on_reply(reply);
                    }
                    return ControlFlow::Break(Some(StopResult::Stopped));
                }
                RemoteEvent::Text(text) => self.more(&text),
                RemoteEvent::Begun { task } => {
                    self.named(task);
                    return ControlFlow::Continue(());
                }
                RemoteEvent::StopReply(reply) => {
                    self.on_later_reply(reply);
                    return ControlFlow::Continue(());
                }
                RemoteEvent::Progress(_)
                | RemoteEvent::Thought(_)
                | RemoteEvent::Notice(_)
                | RemoteEvent::Question(_)
                | RemoteEvent::Withdrawn { .. } => {}
            }
        }
    }

    /// The work has a name: by the contract of the call the adapter sends the stop now, if it could not
    /// before.
    fn named(&mut self, task: String) {
        if self.is_unreached() {
            self.row.asked_at = Some(clock::now());
            self.row.stop = Some(RemoteStopState::Requested);
            self.row.word = String::new();
        }
        self.row.task = Some(task);
        self.report();
    }

    fn more(&mut self, text: &str) {
        if let Some(bytes) = &mut self.late {
            *bytes += text.len();
            return;
        }
        // Excess is not kept: the work ends in any case.
        let Some(left) = self.left.checked_sub(text.len()) else { return };
        if self.cx.host().add_text(text) {
            self.left = left;
            self.row.says(text);
        } else {
            // The call did not wait for it.
            self.late = Some(text.len());
        }
    }

    /// After the agent's time: what becomes of the work changes the row, and nothing else.
    async fn keep_listening(&mut self) {
        self.late.get_or_insert_default();
        let over = match self.spec.after_word {
            _ if self.is_unreached() => {
                after(Instant::now(), self.spec.listen.saturating_mul(UNNAMED_FACTOR))
            }
            AfterWord::Listens => after(self.until_ended(), self.spec.listen),
            // An agent that ends with the run gets its own time, and no other after that.
            AfterWord::Leaves => after(self.term.asked(), self.spec.stop_within),
        };
        let result = loop {
            match self.listen(sleep_until(over)).await {
                ControlFlow::Break(result) => break result,
                ControlFlow::Continue(())
                    if self.row.stop == Some(RemoteStopState::Confirmed) || self.leaves() =>
                {
                    break None;
                }
                ControlFlow::Continue(()) => {}
            }
        };
        self.report_late(result);
    }

    /// Reports what arrived after the call had ended.
    fn report_late(&self, result: Option<StopResult>) {
        let peer = &self.row.peer;
        let late = self.late.unwrap_or_default();
        if let bytes @ 1.. = late {
            self.cx.report_late(format!("went on at {peer}, which said {bytes} bytes more"));
        }
        let Some(result) = result else { return };
        self.cx.report_late(match result {
            StopResult::Done(answer) => {
                let bytes = answer.map_or(self.row.text_len().saturating_add(late), |answer| answer.len());
                let says = if self.row.claimed_at.is_some() { ", it says," } else { "" };
                format!("was finished{says} by {peer} with {bytes} bytes")
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

    /// When its time is over, if this side brings about its end. An end for the caller before that is noticed
    /// then.
    fn until_ended(&self) -> Instant {
        let now = Instant::now();
        let until = self.term.until().filter(|_| self.spec.lives == Lives::InOurProcesses);
        until.map_or(now, |until| until.max(now))
    }

    /// A reply that arrives after the one to the stop itself. A refusal may be repeated, with what became of
    /// the work.
    fn on_later_reply(&mut self, reply: RemoteStopReply) {
        let is_again = reply.stop == RemoteStopState::Refused && self.row.stop == Some(reply.stop);
        if is_again {
            // The agent's first refusal has set the time.
            (self.row.word, self.noted) = (reply.word, None);
            return self.report();
        }
        if matches!(reply.stop, RemoteStopState::Refused | RemoteStopState::Requested) {
            self.noted = Some(Instant::now());
        }
        self.on_reply(reply);
    }

    fn on_reply(&mut self, reply: RemoteStopReply) {
        if reply.stop == RemoteStopState::Unreachable {
            // As far as known, the stop did not arrive.
            self.row.asked_at = None;
        } else if reply.stop != RemoteStopState::Requested {
            self.row.replied_at = Some(clock::now());
        }
        let is_new = self.row.stop != Some(reply.stop);
        if reply.stop == RemoteStopState::Refused && is_new && self.cx.scope().fired().is_none() {
            // Its work has the grace to come to its own end, and the caller waits for that.
            let peer = &self.row.peer;
            self.cx
                .host()
                .notice(format!("{peer} refused to stop ({}): its work has the grace to end", reply.word));
        }
        if reply.stop == RemoteStopState::Acknowledged {
            self.noted.get_or_insert_with(Instant::now);
        }
        self.row.stop = Some(reply.stop);
        self.row.word = reply.word;
        self.row.outside = reply.outside;
        self.report();
    }

    fn ended(&mut self, end: RemoteEnd) {
        end.write_into(&mut self.row);
        self.report();
    }

    fn report(&self) {
        self.cx.report_remote(self.row.clone());
    }
}

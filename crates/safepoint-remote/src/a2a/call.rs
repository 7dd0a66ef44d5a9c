//! The exchange with a remote agent about one task: sent once, and read to its end. Where a stream breaks, `events.rs`
//! decides how it is read on.
//!
//! **Invariants**: a message is never sent twice. Every wait is kept here, so dropping [`TaskCall::next`] loses
//! nothing. After a stop whose answer does not count, only a completed task is an end.

use std::{collections::VecDeque, future::pending, pin::pin};

use futures_core::future::BoxFuture;
use futures_util::future::{Either, select};
use safepoint::{
    approval::Decision,
    raw::remote::{RemoteCall, RemoteEnd, RemoteEvent, RemoteStopReply},
    stop::Failure,
};
use serde_json::Value;

use super::{
    events::Source,
    http::{Broke, Opened},
    look::Watched,
    questions::{or, words},
    state::{Feed, Purpose, TaskCall, Telling},
    stopping::{self, Answer},
    wire::{Event, Of, State, Status},
};
use crate::cancel::Phase;

/// The first event to arrive.
enum Came {
    StopReply(Answer),
    Opened(Result<Opened, Broke>),
    Read(Result<Option<Value>, Broke>),
    Watched(Watched),
}

impl TaskCall {
    /// Makes one step; `events` then has its events.
    ///
    /// Dropping this loses nothing: each wait is kept in its place, and polled again.
    pub(super) async fn step(&mut self) {
        if matches!(self.feed, Feed::Unsent) {
            return self.begin();
        }
        let came = {
            let telling = pin!(answered(&mut self.telling));
            let has_room = has_room(&self.events);
            let feed = &mut self.feed;
            let stream = pin!(async { if has_room { from_feed(feed).await } else { pending().await } });
            let look = pin!(async { Came::Watched(self.watch.next().await) });
            // The answer to a cancel first: an event that comes with it is read next, and its end of the work
            // is then one after the cancel.
            match select(telling, select(stream, look)).await {
                Either::Left((reply, _)) => reply,
                Either::Right((Either::Left((came, _)) | Either::Right((came, _)), _)) => came,
            }
        };
        match came {
            Came::StopReply(answer) => {
                let reply = self.answered(answer);
                self.events.extend(reply.map(RemoteEvent::StopReply));
            }
            Came::Opened(opened) => self.opened(opened),
            Came::Read(read) => self.read(read),
            Came::Watched(Watched::Due) => self.look(),
            Came::Watched(Watched::Looked(looked)) => self.looked_at(looked),
        }
    }

    fn begin(&mut self) {
        if self.task.is_some() {
            // The adapter does not know the earlier events.
            self.text.torn();
            self.feed = Feed::Closed;
            return self.look();
        }
        let text = self.brief.text.clone();
        self.feed = Feed::Opening(self.message(text, self.brief.key.clone()), Purpose::Send);
    }

    /// Handles an event of the remote agent.
    pub(super) fn take(&mut self, event: Event, source: Source) {
        match event {
            Event::Task { of, status, artifacts } => {
                if self.is_ours(&of) {
                    let shows = if artifacts.is_empty() { source } else { Source::Look };
                    let news = match source {
                        _ if self.is_last(status.state) => self.text.ended(artifacts),
                        // The answer to a question continues from here.
                        Source::Stream if self.asking.asked > 0 => self.text.streamed(artifacts),
                        Source::Stream => self.text.passed(artifacts),
                        Source::Look => self.text.looked(artifacts),
                    };
                    self.say(news);
                    self.state(status, shows);
                }
            }
            Event::Status { of, status } => {
                if self.is_ours(&of) {
                    self.state(status, source);
                }
            }
            Event::Part { of, artifact, text, joins } => {
                if self.is_ours(&of) {
                    self.part(&artifact, &text, joins);
                }
            }
            Event::Message { is_echo: true, .. } => {}
            Event::Message { text, .. } if self.task.is_none() => {
                self.over(RemoteEvent::Done(Some(text), RemoteEnd::Reported));
            }
            Event::Message { text, .. } => self.note(text),
        }
    }

    /// Whether nothing more comes of a task in this state. After a stop whose answer does not count, only a
    /// completed task is an end: of another one the stream may send more.
    pub(super) fn is_last(&self, state: State) -> bool {
        state == State::Completed || state.is_terminal() && self.phase != Phase::Doubted
    }

    /// Whether an event is about our task. The event may also name the task.
    pub(super) fn is_ours(&mut self, of: &Of) -> bool {
        if let Some(task) = &self.task {
            let is_ours = of.task == *task;
            // Whatever the event says of the work, the remote agent answers and has the task.
            self.watch.tried = if is_ours { 0 } else { self.watch.tried };
            return is_ours;
        }
        if of.task.is_empty() {
            return false;
        }
        if !of.context.is_empty() && self.brief.conversation != self.brief.key {
            self.peer.calls(&self.brief.conversation, &of.context);
        }
        self.task = Some(of.task.clone());
        self.events.push_back(RemoteEvent::Begun { task: of.task.clone() });
        if self.phase != Phase::Working {
            // Before this, no cancel was possible.
            self.tell();
        }
        true
    }

    pub(super) fn say(&mut self, news: String) {
        if !news.is_empty() {
            self.text.says(&news);
            self.events.push_back(RemoteEvent::Text(news));
        }
    }

    fn note(&mut self, text: String) {
        if !text.is_empty() {
            self.text.note(&text);
            self.events.push_back(RemoteEvent::Progress(text));
        }
    }

    /// Handles a state; a read also brings all of the answer.
    fn state(&mut self, status: Status, source: Source) {
        // A read that is too early still shows the answered question.
        if self.asking.answered.as_ref() == Some(&status) {
            return;
        }
        self.asking.answered = None;
        // A reported end is final: an older read does not revoke it.
        if self.is_completed() && status.state != State::Completed {
            return;
        }
        let is_new = self.stands.as_ref() != Some(&status);
        self.stands = Some(status.clone());
        let Status { state, word, .. } = status.clone();
        match (state, self.phase) {
            (State::Working, _) => {
                self.withdraw();
                if is_new {
                    self.note(word);
                }
            }
            (State::InputRequired | State::AuthRequired, Phase::Working) => self.asks(status),
            // The adapter asks no question of a task that is to end.
            (State::InputRequired | State::AuthRequired, Phase::Stopping | Phase::Doubted) => {}
            (State::Completed, _) => self.completed(word, source),
            // The end of the task is not the end of the work, which may yet complete.
            (State::Canceled | State::Failed | State::Rejected, Phase::Doubted) => {
                self.watch.want(self.peer.http.bounds.look_every);
            }
            (State::Canceled, _) => self.over(RemoteEvent::Ended { word }),
            (State::Failed, _) => {
                self.over(RemoteEvent::Failed(Failure::new(or(word, "the peer's task failed"))))
            }
            (State::Rejected, _) => {
                let failure = Failure::new(or(word, "the peer rejected the task")).without_effect();
                self.over(RemoteEvent::Failed(failure));
            }
        }
    }

    pub(super) fn over(&mut self, mut said: RemoteEvent) {
        if matches!(said, RemoteEvent::Ended { .. } | RemoteEvent::Failed(_) | RemoteEvent::Lost(_)) {
            let rest = self.text.settle();
            self.say(rest);
        }
        self.withdraw();
        self.feed = Feed::Over;
        self.watch.off();
        match std::mem::take(&mut self.telling) {
            // The end came first; the answer to the cancel stands beside it.
            Telling::Asked(answer) if matches!(said, RemoteEvent::Done(..) | RemoteEvent::Reordered(..)) => {
                self.telling = Telling::Ending(stopping::briefly(answer), said);
                return;
            }
            Telling::WasOver(reply, end) => {
                self.events.push_back(RemoteEvent::StopReply(reply));
                said = stopping::known_by(said, end);
            }
            Telling::Done | Telling::Asked(_) | Telling::Stands(_) => {}
            Telling::Refused(..) | Telling::Ending(..) => {}
        }
        self.events.push_back(said);
    }
}

/// Whether there is room for more events. A remote agent that sends more than the adapter reads must wait,
/// also while its answer to a stop is pending (S12.4).
fn has_room(events: &VecDeque<RemoteEvent>) -> bool {
    const BACKLOG: usize = 64;
    const BACKLOG_BYTES: usize = 1 << 20;
    events.len() < BACKLOG && events.iter().map(RemoteEvent::bytes).sum::<usize>() < BACKLOG_BYTES
}

/// The next event of the feed; never completes where none is expected.
async fn from_feed(feed: &mut Feed) -> Came {
    match feed {
        Feed::Opening(answer, _) => Came::Opened(answer.await),
        Feed::Reading(events, _) => Came::Read(events.next().await),
        Feed::Unsent | Feed::Closed | Feed::Over => pending().await,
    }
}

/// The answer to a cancel, and a read after a refusal; never completes where none was sent.
async fn answered(telling: &mut Telling) -> Came {
    match telling {
        Telling::Asked(answer) => Came::StopReply(Answer::Reply(answer.await)),
        Telling::Refused(_, look) => Came::StopReply(Answer::Shown(look.await)),
        Telling::Ending(answer, _) => Came::StopReply(Answer::Last(answer.await)),
        Telling::Done | Telling::WasOver(..) | Telling::Stands(_) => pending().await,
    }
}

impl RemoteCall for TaskCall {
    fn next(&mut self) -> BoxFuture<'_, RemoteEvent> {
        Box::pin(async move {
            loop {
                if let Some(said) = self.events.pop_front() {
                    return said;
                }
                self.step().await;
            }
        })
    }

    fn answer(&mut self, question: String, decision: Decision) -> BoxFuture<'_, ()> {
        if self.asking.answers(&question) {
            let id = format!("{}-{question}", self.brief.key);
            self.feed = Feed::Opening(self.message(words(decision), id), Purpose::Send);
            self.watch.silence(&self.peer.http.bounds);
        }
        Box::pin(async {})
    }

    fn stop(&mut self) -> BoxFuture<'_, RemoteStopReply> {
        let reply = self.part_with();
        Box::pin(async { reply })
    }
}

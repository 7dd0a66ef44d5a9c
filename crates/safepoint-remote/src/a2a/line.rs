//! The exchange with a remote agent about one task: sent once, read to its end, resumed where the connection
//! breaks.
//!
//! **Invariants**: a message is never sent twice. Every wait is kept here, so dropping [`Talk::next`] loses
//! nothing. After a stop whose answer does not count, only a completed task is an end.

use std::{
    collections::VecDeque,
    future::pending,
    pin::pin,
    sync::{Arc, atomic::AtomicBool},
};

use futures_core::future::BoxFuture;
use futures_util::future::{Either, select};
use safepoint::{
    approval::Decision,
    raw::remote::{RemoteCall, RemoteEnd, RemoteEvent, RemoteStopReply, RemoteTask},
    receipt::StopSupport,
    stop::Failure,
};
use serde_json::Value;

use super::{
    Peer,
    hearing::Source,
    http::{Broke, Events, Opened},
    look::{Watch, Watched},
    questions::{Asking, or, words},
    stopping::{self, Answer},
    text::Text,
    wire::{Event, From, Of, State, Status},
};

/// The exchange about one task.
pub(super) struct Talk {
    pub(super) peer: Arc<Peer>,
    pub(super) brief: RemoteTask,
    pub(super) grade: StopSupport,
    pub(super) task: Option<String>,
    pub(super) feed: Feed,
    pub(super) watch: Watch,
    pub(super) telling: Telling,
    pub(super) heard: VecDeque<RemoteEvent>,
    pub(super) text: Text,
    /// Set before the first byte of a message is sent.
    pub(super) sent: Arc<AtomicBool>,
    pub(super) phase: Phase,
    pub(super) asking: Asking,
    /// The last reported status of the task.
    pub(super) stands: Option<Status>,
}

/// What is known of the answer to a cancel. No cancel was sent or its answer was reported; the answer is
/// pending; or it was a refusal, reported, and the adapter reads the task. Or it says that the work was over,
/// and waits for that end with what it is worth. Or the end is known, and waits briefly for the answer; or it
/// was a refusal, with the task's state after it.
#[derive(Default)]
pub(super) enum Telling {
    #[default]
    Done,
    Asked(BoxFuture<'static, Result<Value, Broke>>),
    Refused(Broke, BoxFuture<'static, Option<Value>>),
    WasOver(RemoteStopReply, RemoteEnd),
    Ending(BoxFuture<'static, Result<Value, Broke>>, RemoteEvent),
    Stands(RemoteStopReply),
}

/// The source of the next event, beside reads of the task.
pub(super) enum Feed {
    /// No request was sent.
    Unsent,
    /// The answer to a message or a subscription is pending.
    Opening(BoxFuture<'static, Result<Opened, Broke>>, Purpose),
    Reading(Box<Events>, Purpose),
    /// Only reads, or no source while a person is to answer.
    Closed,
    Over,
}

/// What the adapter opens: a message, or a subscription to a known task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Send,
    Rejoin(Words),
}

/// Whether a stream sent any event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Words {
    None,
    Some,
}

/// Whether the work is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Working,
    /// A stop was requested, and the remote agent's report of the work's end counts.
    Stopping,
    /// A stop was requested, and the remote agent's report of the work's end does not count, unless the task
    /// completed.
    Doubted,
}

/// The first event to arrive.
enum Came {
    Told(Answer),
    Opened(Result<Opened, Broke>),
    Read(Result<Option<Value>, Broke>),
    Watched(Watched),
}

impl Feed {
    async fn next(&mut self) -> Came {
        match self {
            Self::Opening(answer, _) => Came::Opened(answer.await),
            Self::Reading(events, _) => Came::Read(events.next().await),
            Self::Unsent | Self::Closed | Self::Over => pending().await,
        }
    }
}

impl Talk {
    pub(super) fn new(peer: Arc<Peer>, brief: RemoteTask, grade: StopSupport) -> Self {
        let (task, text) = (brief.task.clone(), Text::within(brief.most_bytes));
        Self {
            peer,
            brief,
            grade,
            task,
            feed: Feed::Unsent,
            watch: Watch::default(),
            telling: Telling::Done,
            heard: VecDeque::new(),
            text,
            sent: Arc::default(),
            phase: Phase::Working,
            asking: Asking::default(),
            stands: None,
        }
    }

    /// Makes one step; `heard` then has its events.
    ///
    /// Dropping this loses nothing: each wait is kept in its place, and polled again.
    pub(super) async fn step(&mut self) {
        if matches!(self.feed, Feed::Unsent) {
            return self.begin();
        }
        let came = {
            let telling = pin!(answered(&mut self.telling));
            let has_room = has_room(&self.heard);
            let feed = &mut self.feed;
            let stream = pin!(async { if has_room { feed.next().await } else { pending().await } });
            let look = pin!(async { Came::Watched(self.watch.next().await) });
            match select(telling, select(stream, look)).await {
                Either::Left((told, _)) => told,
                Either::Right((Either::Left((came, _)) | Either::Right((came, _)), _)) => came,
            }
        };
        match came {
            Came::Told(answer) => {
                let told = self.answered(answer);
                self.heard.extend(told.map(RemoteEvent::StopReply));
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
                        _ if status.state.is_terminal() => self.text.ended(artifacts),
                        // The answer to a question continues from here; a new task starts from its beginning.
                        Source::Stream if self.asking.has_asked() => self.text.streamed(artifacts),
                        Source::Stream | Source::Look => self.text.looked(artifacts),
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
            // Some servers send our own message back.
            Event::Message { from: From::User, .. } => {}
            Event::Message { from: From::Agent, text } if self.task.is_none() => {
                self.over(RemoteEvent::Done(Some(text), RemoteEnd::Reported));
            }
            Event::Message { from: From::Agent, text } => self.note(text),
        }
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
        self.heard.push_back(RemoteEvent::Begun { task: of.task.clone() });
        if self.phase != Phase::Working {
            // Before this, no cancel was possible.
            self.tell();
        }
        true
    }

    pub(super) fn say(&mut self, news: String) {
        if !news.is_empty() {
            self.text.says(&news);
            self.heard.push_back(RemoteEvent::Text(news));
        }
    }

    fn note(&mut self, text: String) {
        if !text.is_empty() {
            self.text.note(&text);
            self.heard.push_back(RemoteEvent::Progress(text));
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
            Telling::WasOver(told, end) => {
                self.heard.push_back(RemoteEvent::StopReply(told));
                said = stopping::known_by(said, end);
            }
            Telling::Done | Telling::Asked(_) | Telling::Stands(_) => {}
            Telling::Refused(..) | Telling::Ending(..) => {}
        }
        self.heard.push_back(said);
    }
}

/// Whether there is room for more events. A remote agent that sends more than the adapter reads must wait,
/// also while its answer to a stop is pending (S12.4).
fn has_room(heard: &VecDeque<RemoteEvent>) -> bool {
    const BACKLOG: usize = 64;
    const BACKLOG_BYTES: usize = 1 << 20;
    heard.len() < BACKLOG && heard.iter().map(RemoteEvent::bytes).sum::<usize>() < BACKLOG_BYTES
}

/// The answer to a cancel, and a read after a refusal; never completes where none was sent.
async fn answered(telling: &mut Telling) -> Came {
    match telling {
        Telling::Asked(answer) => Came::Told(Answer::Told(answer.await)),
        Telling::Refused(_, look) => Came::Told(Answer::Shown(look.await)),
        Telling::Ending(answer, _) => Came::Told(Answer::Last(answer.await)),
        Telling::Done | Telling::WasOver(..) | Telling::Stands(_) => pending().await,
    }
}

impl RemoteCall for Talk {
    fn next(&mut self) -> BoxFuture<'_, RemoteEvent> {
        Box::pin(async move {
            loop {
                if let Some(said) = self.heard.pop_front() {
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
        let told = self.part_with();
        Box::pin(async { told })
    }
}

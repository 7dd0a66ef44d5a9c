//! What is said with a peer about one task: sent once, heard to its end, taken up again where the line breaks.
//!
//! **Invariants**: a message is never sent twice; every wait is kept here, so that dropping [`Talk::next`] loses nothing;
//! after a stop that the peer is not believed about, only a completed task is an end.

use std::{
    collections::VecDeque,
    future::pending,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use futures_core::future::BoxFuture;
use safepoint::{
    Failure,
    approval::Decision,
    receipt::Grade,
    remote::{Brief, Line, Said, Told},
};
use serde_json::Value;

use super::{
    Peer,
    http::{Broke, Events, Opened},
    questions::{or, words},
    text::Text,
    wire::{self, Event, From, Of, State, Status},
};

/// A talk about one task.
pub(super) struct Talk {
    pub(super) peer: Arc<Peer>,
    pub(super) brief: Brief,
    pub(super) grade: Grade,
    pub(super) task: Option<String>,
    pub(super) feed: Feed,
    pub(super) heard: VecDeque<Said>,
    text: Text,
    /// Set before a byte of a message leaves.
    pub(super) sent: Arc<AtomicBool>,
    pub(super) phase: Phase,
    /// The question that stands open: its id, and what it is.
    pub(super) open: Option<(String, Status)>,
    /// What was answered last, until the task moves on.
    answered: Option<Status>,
    pub(super) asked: u32,
    /// How often in a row the line broke without a word of the work.
    tried: u32,
}

/// Where the next word comes from.
pub(super) enum Feed {
    /// Nothing was sent.
    Unsent,
    /// An answer to a message, or to a subscription, is on its way.
    Opening(BoxFuture<'static, Result<Opened, Broke>>, Purpose),
    Reading(Box<Events>, Purpose),
    /// The task is looked at.
    Looking(BoxFuture<'static, Result<Value, Broke>>),
    /// It waits for a person.
    Parked,
    Over,
}

/// What is being opened. Exhaustive: a message, or a task that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Send,
    Rejoin,
}

/// Whether the work is to end. Exhaustive: the three that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Working,
    /// A stop was asked.
    Stopping,
    /// A stop was asked, and what the peer says of the work's end is not believed, save that it was completed.
    Doubted,
}

impl Talk {
    pub(super) fn new(peer: Arc<Peer>, brief: Brief, grade: Grade) -> Self {
        let task = brief.task.clone();
        let feed = Feed::Unsent;
        Self {
            peer,
            brief,
            grade,
            task,
            feed,
            heard: VecDeque::new(),
            text: Text::default(),
            sent: Arc::default(),
            phase: Phase::Working,
            open: None,
            answered: None,
            asked: 0,
            tried: 0,
        }
    }

    /// Goes one step on; what is heard by it is in `heard`.
    pub(super) async fn step(&mut self) {
        match &mut self.feed {
            Feed::Unsent if self.task.is_some() => self.rejoin(Duration::ZERO),
            Feed::Unsent => {
                let text = self.brief.text.clone();
                self.feed = Feed::Opening(self.message(text, self.brief.key.clone()), Purpose::Send);
            }
            Feed::Opening(answer, purpose) => {
                let purpose = *purpose;
                let answer = answer.await;
                self.opened(answer, purpose);
            }
            Feed::Reading(events, _) => {
                let read = events.next().await;
                self.read(read);
            }
            Feed::Looking(look) => {
                let looked = look.await;
                self.looked(looked);
            }
            Feed::Parked | Feed::Over => pending().await,
        }
    }

    fn opened(&mut self, opened: Result<Opened, Broke>, purpose: Purpose) {
        match (opened, purpose) {
            (Ok(Opened::Stream(events)), _) => self.feed = Feed::Reading(events, purpose),
            (Ok(Opened::Answer(value)), _) => self.looked(Ok(value)),
            // The peer does not stream this task (any more): it is looked at.
            (Err(Broke::Error { .. } | Broke::Foreign(_)), Purpose::Rejoin) => self.look(Duration::ZERO),
            (Err(Broke::Status { status, .. }), Purpose::Rejoin) if status.is_client_error() => {
                self.look(Duration::ZERO);
            }
            (Err(broke), Purpose::Rejoin) => self.broke(&broke),
            (Err(broke), Purpose::Send) if self.task.is_some() => self.broke(&broke),
            (Err(broke), Purpose::Send) => self.over(match broke {
                Broke::Unreachable(why) => Said::Failed(Failure::new(why).unreachable()),
                broke if broke.began_nothing() => {
                    let failure = Failure::new(format!("the peer did not take the message: {broke}"));
                    Said::Failed(failure.without_effect())
                }
                broke => Said::Lost(Failure::new(format!("the message may have arrived: {broke}"))),
            }),
        }
    }

    fn read(&mut self, read: Result<Option<Value>, Broke>) {
        match read {
            Ok(Some(value)) => match wire::event(&value) {
                Some(event) => self.take(event),
                None => self.broke(&Broke::Foreign("an event is not of the protocol".into())),
            },
            // It is over for now, and a person is asked.
            Ok(None) if self.open.is_some() => self.wait(),
            Ok(None) => self.broke(&Broke::Lost("the stream ended, and the task did not".into())),
            Err(broke) => self.broke(&broke),
        }
    }

    fn looked(&mut self, looked: Result<Value, Broke>) {
        let event = match &looked {
            Ok(value) => wire::event(value).or_else(|| wire::task(value)),
            Err(_) => None,
        };
        // Its name is learned before the next look is made of it.
        let is_about = event.as_ref().and_then(Event::of).map(|of| self.is_ours(of));
        match (event, looked) {
            (Some(_), _) if is_about == Some(false) => {
                self.broke(&Broke::Foreign("it tells of another task".into()));
            }
            (Some(event), _) => {
                if self.task.is_some() {
                    self.look(self.peer.http.bounds.look_every);
                }
                self.take(event);
                if self.task.is_none() && !matches!(self.feed, Feed::Over) {
                    self.broke(&Broke::Foreign("the answer names no task".into()));
                }
            }
            (None, Ok(_)) => self.broke(&Broke::Foreign("the answer is no task".into())),
            (None, Err(broke)) => self.broke(&broke),
        }
    }

    /// The line broke: it is taken up again by the task's name, some times.
    fn broke(&mut self, broke: &Broke) {
        self.tried += 1;
        let bounds = &self.peer.http.bounds;
        // An error of the protocol is the peer's own word about the work: it does not pass as an outage does.
        let tries = if matches!(broke, Broke::Error { .. }) { bounds.tries / 2 } else { bounds.tries };
        let is_lost = self.task.is_none() || self.tried > tries;
        if is_lost {
            return self
                .over(Said::Lost(Failure::new(format!("nobody knows what became of the work: {broke}"))));
        }
        let after = broke.wait(bounds.wait(self.tried));
        match (broke, &self.feed) {
            // One that was taken up again ended again: it is no oftener taken up than a task is looked at.
            (Broke::Unreachable(_) | Broke::Lost(_), Feed::Reading(_, Purpose::Rejoin)) => {
                let after = after.max(bounds.look_every);
                self.rejoin(after);
            }
            (Broke::Unreachable(_) | Broke::Lost(_), _) => self.rejoin(after),
            (Broke::Foreign(_) | Broke::Error { .. } | Broke::Status { .. }, _) => self.look(after),
        }
    }

    /// Takes what the peer tells.
    pub(super) fn take(&mut self, event: Event) {
        match event {
            Event::Task { of, status, artifacts } => {
                if self.is_ours(&of) {
                    let news = self.text.all(artifacts);
                    self.say(news);
                    self.state(status);
                }
            }
            Event::Status { of, status } => {
                if self.is_ours(&of) {
                    self.state(status);
                }
            }
            Event::Part { of, artifact, text, joins } => {
                if self.is_ours(&of) {
                    let news = self.text.part(&artifact, &text, joins);
                    self.say(news);
                }
            }
            // Some servers tell us what we said.
            Event::Message { from: From::User, .. } => {}
            Event::Message { from: From::Agent, text } if self.task.is_none() => {
                self.over(Said::Done(Some(text)));
            }
            Event::Message { from: From::Agent, text } => self.note(text),
        }
    }

    /// Whether it is about our task, which may get its name by it.
    fn is_ours(&mut self, of: &Of) -> bool {
        if let Some(task) = &self.task {
            let is_ours = of.task == *task;
            // Whatever it says of the work: the peer is there, and has it.
            self.tried = if is_ours { 0 } else { self.tried };
            return is_ours;
        }
        if of.task.is_empty() {
            return false;
        }
        if !of.context.is_empty() && self.brief.conversation != self.brief.key {
            self.peer.calls(&self.brief.conversation, &of.context);
        }
        self.task = Some(of.task.clone());
        self.heard.push_back(Said::Begun { task: of.task.clone() });
        true
    }

    fn say(&mut self, news: String) {
        if !news.is_empty() {
            self.heard.push_back(Said::Text(news));
        }
    }

    fn note(&mut self, text: String) {
        if !text.is_empty() {
            self.text.note(&text);
            self.heard.push_back(Said::Progress(text));
        }
    }

    fn state(&mut self, status: Status) {
        // What was answered is still there when a task is looked at too early.
        if self.answered.as_ref() == Some(&status) {
            return;
        }
        self.answered = None;
        let Status { state, word, .. } = status.clone();
        match (state, self.phase) {
            (State::Working, _) => {
                self.withdraw();
                self.note(word);
            }
            (State::InputRequired | State::AuthRequired, Phase::Working) => self.asks(status),
            // What a task that is to end would ask is not asked.
            (State::InputRequired | State::AuthRequired, Phase::Stopping | Phase::Doubted) => {}
            (State::Completed, _) => {
                let answer = self.text.whole().or_else(|| (!word.is_empty()).then_some(word));
                self.over(Said::Done(answer));
            }
            // The end of the task is no end of the work: it may yet be completed.
            (State::Canceled | State::Failed | State::Rejected, Phase::Doubted) => {
                self.look(self.peer.http.bounds.look_every);
            }
            (State::Canceled, _) => self.over(Said::Ended { word }),
            (State::Failed, _) => self.over(Said::Failed(Failure::new(or(word, "the peer's task failed")))),
            (State::Rejected, _) => {
                let failure = Failure::new(or(word, "the peer rejected the task")).without_effect();
                self.over(Said::Failed(failure));
            }
        }
    }

    pub(super) fn over(&mut self, said: Said) {
        self.withdraw();
        self.feed = Feed::Over;
        self.heard.push_back(said);
    }
}

impl Line for Talk {
    fn next(&mut self) -> BoxFuture<'_, Said> {
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
        if let Some((_, asked)) = self.open.take_if(|(id, _)| *id == question) {
            self.answered = Some(asked);
            let id = format!("{}-{question}", self.brief.key);
            self.feed = Feed::Opening(self.message(words(decision), id), Purpose::Send);
        }
        Box::pin(async {})
    }

    fn stop(&mut self) -> BoxFuture<'_, Told> {
        Box::pin(self.part())
    }
}

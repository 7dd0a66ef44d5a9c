//! Events of a task, from its stream and from reads of the task. Where a stream breaks, the adapter reads the
//! task and subscribes again while that is useful.
//!
//! **Invariants**: an answer counts as whole only where the stream sent all of it or the task has it.
//! Otherwise the answer says that a part may be missing.

use std::{sync::Arc, time::Duration};

use safepoint::{
    raw::remote::{RemoteEnd, RemoteEvent},
    stop::Failure,
};
use serde_json::Value;

use super::{
    card::Place,
    http::{Broke, Opened},
    look::Sight,
    state::{Feed, Purpose, TaskCall, Telling},
    text::Answer,
    wire::{self, Joins, State, Wire},
};
use crate::cancel::Phase;

/// The source of an event: a stream, or a read of the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Stream,
    Look,
}

/// The note on an answer of which a part may be missing.
const NOT_WHOLE: &str = "[a part of this answer may be missing: the line to the agent broke, and it does not show what it said meanwhile]";

/// How many bytes of an answer wait behind a gap.
const MOST_HELD: usize = 1 << 16;

impl TaskCall {
    pub(super) fn opened(&mut self, opened: Result<Opened, Broke>) {
        let Feed::Opening(_, purpose) = std::mem::replace(&mut self.feed, Feed::Closed) else { return };
        match (opened, purpose) {
            (Ok(Opened::Stream(events)), purpose) => {
                self.feed = Feed::Reading(events, purpose);
                if matches!(purpose, Purpose::Rejoin { .. }) {
                    // The stream may send only what happens from now on.
                    self.look();
                }
            }
            (Ok(Opened::Answer(value)), purpose) => {
                if matches!(purpose, Purpose::Rejoin { .. }) {
                    // Only a read shows the answer.
                    self.watch.is_stream_given_up = true;
                }
                self.looked(Ok(value));
            }
            // The remote agent does not stream this task, or no longer: the adapter reads it.
            (Err(Broke::Error { .. } | Broke::Foreign(_)), Purpose::Rejoin { .. }) => self.given_up(),
            (Err(Broke::Status { status, .. }), Purpose::Rejoin { .. }) if status.is_client_error() => {
                self.given_up();
            }
            (Err(broke), Purpose::Rejoin { .. }) => {
                self.watch.was_mute(false);
                self.broke(&broke);
            }
            (Err(broke), Purpose::Send) if self.task.is_some() => self.broke(&broke),
            (Err(broke), Purpose::Send) => {
                self.over(broke.at_first_request("the peer did not take the message", "the message"));
            }
        }
    }

    fn given_up(&mut self) {
        self.watch.is_stream_given_up = true;
        self.look();
    }

    pub(super) fn read(&mut self, read: Result<Option<Value>, Broke>) {
        let broke = match read {
            Ok(Some(value)) => match wire::event(&value) {
                Some(event) => {
                    if let Feed::Reading(_, Purpose::Rejoin { has_word }) = &mut self.feed {
                        *has_word = true;
                    }
                    self.take(event, Source::Stream);
                    if self.task.is_some() && matches!(self.feed, Feed::Reading(..)) {
                        self.watch.word(&self.peer.http.bounds);
                    }
                    return;
                }
                None => Broke::Foreign("an event is not of the protocol".into()),
            },
            // The stream is over for now, and a person must answer.
            Ok(None) if self.asking.open.is_some() => return self.wait(),
            Ok(None) => Broke::Lost("the stream ended, and the task did not".into()),
            Err(broke) => broke,
        };
        if let Feed::Reading(events, Purpose::Rejoin { has_word }) = &self.feed
            && (events.is_silent() || !has_word)
        {
            self.watch.was_mute(events.is_silent());
        }
        self.broke(&broke);
    }

    /// The stream broke. The adapter missed all later events, so it reads the task.
    fn broke(&mut self, broke: &Broke) {
        let was_rejoined = matches!(self.feed, Feed::Reading(_, Purpose::Rejoin { .. }));
        self.feed = Feed::Closed;
        self.text.torn();
        let Some(mut after) = self.failed(broke) else { return };
        if was_rejoined {
            // A new subscription ended again: the adapter subscribes no more often than it reads a task.
            after = after.max(self.peer.http.bounds.look_every);
        }
        self.watch.want(after);
    }

    /// Counts one more failure and returns the wait before the next try. None if that was the last: the work
    /// is lost.
    fn failed(&mut self, broke: &Broke) -> Option<Duration> {
        self.watch.tried += 1;
        let (tried, bounds) = (self.watch.tried, &self.peer.http.bounds);
        // A protocol error is the remote agent's answer about the work; it does not pass as an outage does.
        let tries = if matches!(broke, Broke::Error { .. }) { bounds.tries / 2 } else { bounds.tries };
        if self.task.is_some() && tried <= tries {
            return Some(broke.wait(bounds.wait(tried)));
        }
        self.lost(broke);
        None
    }

    fn lost(&mut self, broke: &Broke) {
        let why = format!("it is unknown what became of the work: {broke}");
        self.over(RemoteEvent::Lost(Failure::new(why)));
    }

    pub(super) fn looked(&mut self, looked: Result<Value, Broke>) {
        self.watch.off();
        let value = match looked {
            Ok(value) => value,
            Err(broke) => return self.unseen(&broke),
        };
        let Some(event) = wire::event(&value).or_else(|| wire::task(&value)) else {
            return self.unseen(&Broke::Foreign("the answer is no task".into()));
        };
        // The adapter learns the task's name before the next read.
        if event.of().is_some_and(|of| !self.is_ours(of)) {
            return self.unseen(&Broke::Foreign("it tells of another task".into()));
        }
        let before = self.text.bytes();
        self.watch.sight = Sight::Clear;
        self.take(event, Source::Look);
        self.watch.saw(self.text.bytes() != before);
        if matches!(self.feed, Feed::Over) {
            return;
        }
        if self.task.is_none() {
            return self.lost(&Broke::Foreign("the answer names no task".into()));
        }
        self.go_to_next_source();
        self.holds();
    }

    /// A read showed a task that continues: selects the source of its next event.
    fn go_to_next_source(&mut self) {
        let peer = Arc::clone(&self.peer);
        let bounds = &peer.http.bounds;
        let is_ended = self.stands.as_ref().is_some_and(|stands| stands.state.is_terminal());
        if self.says_no_more() && self.asking.open.is_none() && matches!(self.telling, Telling::Stands(_)) {
            return self.parts();
        }
        match &self.feed {
            _ if self.asking.open.is_some() || is_ended && self.phase == Phase::Doubted => {}
            Feed::Unsent | Feed::Over => {}
            Feed::Opening(..) | Feed::Reading(..) => self.watch.silence(bounds),
            // The read is older than the stream, which sent the end.
            Feed::Closed if self.is_completed() => self.last_look(),
            Feed::Closed if self.is_worth_a_stream() => self.rejoin(),
            Feed::Closed => self.watch.want(self.pause()),
        }
    }

    /// The read of the task failed.
    fn unseen(&mut self, broke: &Broke) {
        self.watch.sight = if broke.may_pass() { Sight::Blind } else { Sight::Shut };
        match &self.feed {
            Feed::Unsent | Feed::Over => {}
            // Its stream still exists.
            Feed::Opening(..) | Feed::Reading(..) => {
                if broke.may_pass() {
                    self.watch.missed();
                    self.watch.silence(&self.peer.http.bounds);
                }
                self.holds();
            }
            Feed::Closed if self.is_completed() => {
                if broke.may_pass() && !self.text.is_whole() {
                    self.last_look();
                } else {
                    self.done_as_reported();
                }
            }
            // The server answers but does not show the task; its stream may.
            Feed::Closed if broke.is_an_answer() && self.is_worth_a_stream() => self.rejoin(),
            Feed::Closed if !broke.may_pass() => self.lost(broke),
            Feed::Closed => {
                if let Some(after) = self.failed(broke) {
                    self.watch.want(after);
                }
            }
        }
    }

    /// A piece of the answer, from the stream.
    pub(super) fn part(&mut self, artifact: &str, text: &str, joins: Joins) {
        match self.text.part(artifact, text, joins) {
            Some(news) => {
                self.say(news);
                self.holds();
            }
            None if self.watch.sight != Sight::Clear => {
                let news = self.text.place(artifact);
                self.say(news);
                self.holds();
            }
            // The task has the piece.
            None => self.watch.want(self.peer.http.bounds.look_every),
        }
    }

    /// Reports what waits behind a gap when it is too much or has waited too long. Until then the adapter
    /// reads the task for the missing part.
    fn holds(&mut self) {
        let held = self.text.held();
        let (is_held, bounds) =
            (self.watch.holds(held > 0, self.peer.http.bounds.quiet), &self.peer.http.bounds);
        // The adapter does not wait where reads never show the task, or where its work is to end.
        let is_worth = self.watch.sight != Sight::Shut && self.phase == Phase::Working;
        if is_held && is_worth && held <= MOST_HELD {
            return self.watch.want(bounds.look_every);
        }
        if held > 0 {
            let news = self.text.release();
            self.say(news);
        }
    }

    /// The task is completed: reports its answer once it is known to be whole.
    pub(super) fn completed(&mut self, word: String, source: Source) {
        match source {
            // The task ended, and shows nothing of what it had sent.
            Source::Look if !self.text.is_whole() && !self.text.is_empty() => return self.done_as_known(),
            Source::Stream if !self.text.is_whole() => {}
            // The stream may have sent an event twice. Where the task cannot be read, the reported text is
            // the answer.
            Source::Stream if self.text.has_doubles() && self.watch.sight == Sight::Clear => {}
            Source::Look | Source::Stream => return self.done(word),
        }
        self.feed = Feed::Closed;
        self.last_look();
    }

    /// All of the answer is known; without one, the remote agent's last message is the answer.
    fn done(&mut self, word: String) {
        if self.text.is_empty() {
            return self
                .over(RemoteEvent::Done(Some(word).filter(|word| !word.is_empty()), RemoteEnd::Reported));
        }
        self.over(match self.text.answer() {
            Answer::AsSaid => RemoteEvent::Done(None, RemoteEnd::Reported),
            Answer::Reordered(whole) => RemoteEvent::Reordered(whole, RemoteEnd::Reported),
            Answer::Another(whole) => RemoteEvent::Done(Some(whole), RemoteEnd::Reported),
        });
    }

    pub(super) fn is_completed(&self) -> bool {
        self.stands.as_ref().is_some_and(|stands| stands.state == State::Completed)
    }

    /// Reads the answer of a task that its stream called completed. After enough reads the task is over all
    /// the same.
    fn last_look(&mut self) {
        let is_all = self.text.is_whole() && !self.text.has_doubles();
        if is_all || !self.watch.last_look(&self.peer.http.bounds) {
            self.done_as_reported();
        }
    }

    /// The stream reported the task as completed, and no source shows more of its answer.
    fn done_as_reported(&mut self) {
        if self.text.is_whole() {
            let word = self.stands.as_ref().map(|stands| stands.word.clone());
            self.done(word.unwrap_or_default());
        } else {
            self.done_as_known();
        }
    }

    /// No source shows the rest of the answer.
    fn done_as_known(&mut self) {
        let known = self.text.settle();
        self.say(known);
        let between = if self.text.is_empty() { "" } else { "\n" };
        let note = format!("{between}{NOT_WHOLE}");
        let done = match self.text.answer() {
            Answer::AsSaid => RemoteEvent::Done(Some(self.text.whole() + &note), RemoteEnd::Reported),
            Answer::Another(whole) => RemoteEvent::Done(Some(whole + &note), RemoteEnd::Reported),
            Answer::Reordered(whole) => {
                self.say(note.clone());
                RemoteEvent::Reordered(whole + &note, RemoteEnd::Reported)
            }
        };
        self.over(done);
    }

    /// Whether the adapter should subscribe again. Before 1.0 it does so only where the task cannot be read.
    /// In a2a-java a second listener is a second writer of the task, which then has a piece twice.
    fn is_worth_a_stream(&self) -> bool {
        let place = self.peer.place.get().filter(|place| place.is_streaming);
        let is_harmless = |place: &Place| place.wire == Wire::V1 || self.watch.sight != Sight::Clear;
        place.is_some_and(is_harmless) && !self.watch.is_stream_given_up
    }

    /// How long to wait before the next read of a task without a stream.
    fn pause(&self) -> Duration {
        let bounds = &self.peer.http.bounds;
        match self.peer.place.get() {
            Some(place) if !place.is_streaming => bounds.look_every,
            Some(place) if place.wire < Wire::V1 => self.watch.pause(bounds).min(bounds.quiet),
            Some(_) | None => self.watch.pause(bounds),
        }
    }
}

//! Asks the remote agent to end the work, and reports its answer to that (S10.3).
//!
//! What an answer is worth: `canceled` is *confirmed* for an agent declared to end its work before it says
//! so. For any other agent it is *acknowledged*, because the wire does not distinguish the two. `completed`
//! is an end where a stream or a read reports the work. In the answer to the cancel it is a claim, unless the
//! agent's stops are hard. The cancel may have caused such an answer, and a task that had ended is refused
//! with an error. Later reports of that end repeat the claim. An error is *refused*, whatever state the task
//! is left in. No cancel is possible for a task without a name. The receipt reports that, and the adapter
//! sends the cancel as soon as the task has a name (S10.44).

use std::sync::{Arc, atomic::Ordering};

use futures_core::future::BoxFuture;
use safepoint::{
    raw::remote::{LAST_WORDS, RemoteEnd, RemoteEvent, RemoteStopReply},
    receipt::StopSupport,
};
use serde_json::Value;
use tokio::time::timeout;

use super::{
    events::Source,
    http::Broke,
    look::Sight,
    requests,
    state::{Feed, TaskCall, Telling},
    wire::{self, Event, Method, State, Status},
};
use crate::cancel::{self, Phase};

/// The text for work without a name that a cancel could use.
const NO_NAME: &str = "it has not named its work yet";
/// The text for an answer that names no task.
const NO_TASK: &str = "its answer is no task";

/// The result of a cancel: the remote agent's answer; after a refusal, also the task as it stood then, if it
/// could be read; or the answer to a cancel whose work ended meanwhile.
pub(super) enum Answer {
    Reply(Result<Value, Broke>),
    Shown(Option<Value>),
    /// The answer about work whose end was reported meanwhile.
    Last(Result<Value, Broke>),
}

impl TaskCall {
    /// Asks the remote agent to end the work.
    pub(super) fn part_with(&mut self) -> RemoteStopReply {
        // Until the remote agent has answered, an end that it publishes is not an end of the work.
        self.phase = Phase::Doubted;
        let held = self.text.release();
        self.say(held);
        // Relaxed: the request is polled by the task that runs this, so program order suffices. The flag is
        // set before the request is sent: `false` means that nothing was sent.
        if self.task.is_none() && !self.sent.load(Ordering::Relaxed) {
            // Work that was never requested needs no answer of the remote agent.
            self.over(cancel::never_begun(cancel::NOTHING_SENT));
            return RemoteStopReply::unreachable(cancel::NOTHING_SENT);
        }
        if self.has_ended() {
            return RemoteStopReply::requested();
        }
        if self.task.is_none() {
            return RemoteStopReply::unreachable(NO_NAME);
        }
        self.tell();
        // The answer arrives among the remote agent's other events.
        RemoteStopReply::requested()
    }

    /// Whether the work has ended by itself, or its connection is gone.
    fn has_ended(&self) -> bool {
        self.events.iter().any(|said| {
            matches!(
                said,
                RemoteEvent::Done(..)
                    | RemoteEvent::Reordered(..)
                    | RemoteEvent::Ended { .. }
                    | RemoteEvent::Failed(_)
                    | RemoteEvent::Lost(_)
            )
        })
    }

    /// Sends the cancel, by the task's name.
    pub(super) fn tell(&mut self) {
        let (peer, params) = (Arc::clone(&self.peer), self.named());
        let reply =
            async move { cancel::send(|| requests::about(&peer, Method::Cancel, params.clone())).await };
        self.telling = Telling::Asked(Box::pin(reply));
    }

    /// What the answer is worth; none while the adapter looks for the end that it names.
    pub(super) fn answered(&mut self, answer: Answer) -> Option<RemoteStopReply> {
        match (answer, std::mem::take(&mut self.telling)) {
            (Answer::Reply(Ok(value)), _) => self.nodded(&value),
            (Answer::Reply(Err(Broke::Unreachable(why))), _) => Some(RemoteStopReply::unreachable(why)),
            // The cancel may have arrived: no answer that counts will come.
            (Answer::Reply(Err(Broke::Lost(why) | Broke::Foreign(why))), _) => Some(cancel::unanswered(why)),
            (Answer::Reply(Err(refusal)), _) => {
                // The remote agent's reports count from now on; the state of the task stands beside its
                // answer.
                let reply = RemoteStopReply::refused(refusal.to_string());
                let look = self.ask(Method::Get);
                self.telling = Telling::Refused(refusal, Box::pin(async { look.await.ok() }));
                Some(reply)
            }
            (Answer::Shown(task), Telling::Refused(refusal, _)) => self.refused(&refusal, task),
            (Answer::Last(reply), Telling::Ending(_, said)) => {
                let (reply, end) = self.last_word(reply);
                self.events.extend(reply.map(RemoteEvent::StopReply));
                self.events.push_back(known_by(said, end));
                None
            }
            (Answer::Shown(_) | Answer::Last(_), _) => None,
        }
    }

    /// A read was answered; it may also bear on the answer to the cancel.
    pub(super) fn looked_at(&mut self, looked: Result<Value, Broke>) {
        self.looked(looked);
        self.was_not_over();
    }

    /// A read shows that the work continues, although the answer to the cancel called it over: the answer
    /// stands alone.
    fn was_not_over(&mut self) {
        let is_seen = self.watch.sight == Sight::Clear && !self.is_completed();
        if is_seen && matches!(self.telling, Telling::WasOver(..)) && !matches!(self.feed, Feed::Over) {
            let Telling::WasOver(reply, _) = std::mem::take(&mut self.telling) else { return };
            self.events.push_back(RemoteEvent::StopReply(reply));
        }
    }

    fn nodded(&mut self, value: &Value) -> Option<RemoteStopReply> {
        let Some(Event::Task { status, of, artifacts }) = wire::event(value).or_else(|| wire::task(value))
        else {
            return Some(cancel::unanswered(NO_TASK));
        };
        if self.task.as_deref() != Some(&of.task) {
            // The answer says nothing about our task.
            return Some(cancel::unanswered("its answer is about another task"));
        }
        let has_answer = !artifacts.is_empty();
        // The answer may overtake what is on its way on the stream.
        let news = match self.is_last(status.state) {
            true => self.text.ended(artifacts),
            false => self.text.looked(artifacts),
        };
        self.say(news);
        let word = words(&status);
        Some(match (&status.state, self.grade) {
            (State::Canceled, StopSupport::Hard) => {
                self.feed = Feed::Over;
                self.watch.off();
                RemoteStopReply::confirmed(word)
            }
            (State::Completed, grade) => {
                let end = RemoteEnd::in_answer_to_a_stop(grade);
                self.telling = Telling::WasOver(RemoteStopReply::acknowledged(word), end);
                if has_answer {
                    self.take(Event::Task { status, of, artifacts: Vec::new() }, Source::Look);
                } else {
                    // The task shows how it ended.
                    self.look();
                }
                return None;
            }
            (_, StopSupport::Hard) => {
                // The remote agent's report of an end counts, and it may have sent one meanwhile.
                self.phase = Phase::Stopping;
                self.look();
                RemoteStopReply::acknowledged(word)
            }
            _ => RemoteStopReply::acknowledged(word),
        })
    }

    /// The remote agent refuses: the adapter reports its answer in any case, and beside it the state of the
    /// task. From then on the end reported by an agent with hard stops does not count either, because it said
    /// that it does not stop.
    fn refused(&mut self, refusal: &Broke, task: Option<Value>) -> Option<RemoteStopReply> {
        let event = task.as_ref().and_then(|value| wire::event(value).or_else(|| wire::task(value)));
        let event = event.filter(|task| task.of().is_some_and(|of| self.task.as_deref() == Some(&of.task)));
        let Some(Event::Task { status: Status { state, .. }, .. }) = event else {
            return Some(RemoteStopReply::refused(refusal.to_string()));
        };
        let reply = RemoteStopReply::refused(format!("{refusal}; its task was {}", name(state)));
        match task.filter(|_| state == State::Completed) {
            Some(task) => {
                // By the remote agent's own answer the cancel changed nothing: the state of the task is that
                // of its work.
                self.telling = Telling::WasOver(reply, RemoteEnd::Reported);
                self.looked(Ok(task));
                None
            }
            None => {
                if self.says_no_more() {
                    // A last read comes after the answer, and reports the end.
                    self.watch.want(self.peer.http.bounds.look_every);
                }
                self.telling = Telling::Stands(reply.clone());
                Some(reply)
            }
        }
    }

    /// Whether no more events of the task will come: its end does not count, and no stream reports more of
    /// it.
    pub(super) fn says_no_more(&self) -> bool {
        let is_ended = self.stands.as_ref().is_some_and(|stands| stands.state.is_terminal());
        is_ended && self.phase == Phase::Doubted && matches!(self.feed, Feed::Closed)
    }

    /// A refusal without later events is the last answer.
    pub(super) fn parts(&mut self) {
        if let Telling::Stands(reply) = std::mem::take(&mut self.telling) {
            self.over(RemoteEvent::Parted(reply));
        }
    }

    /// What the answer to a cancel is worth beside the end of the work; none, if no answer counts. The order
    /// of the two is unknown: an answer that names the end itself makes it a claim in either order.
    fn last_word(&self, reply: Result<Value, Broke>) -> (Option<RemoteStopReply>, RemoteEnd) {
        match reply.map(|value| wire::event(&value).or_else(|| wire::task(&value))) {
            Ok(Some(Event::Task { status, of, .. })) if self.task.as_deref() == Some(&of.task) => {
                let end = match status.state {
                    State::Completed => RemoteEnd::in_answer_to_a_stop(self.grade),
                    _ => RemoteEnd::Reported,
                };
                (Some(RemoteStopReply::acknowledged(words(&status))), end)
            }
            Ok(_) | Err(Broke::Unreachable(_) | Broke::Lost(_) | Broke::Foreign(_)) => {
                (None, RemoteEnd::Reported)
            }
            Err(refusal) => {
                let word = format!("{refusal}; its task was {}", name(State::Completed));
                (Some(RemoteStopReply::refused(word)), RemoteEnd::Reported)
            }
        }
    }
}

/// The same end, with this source.
pub(super) fn known_by(said: RemoteEvent, end: RemoteEnd) -> RemoteEvent {
    match said {
        RemoteEvent::Done(answer, _) => RemoteEvent::Done(answer, end),
        RemoteEvent::Reordered(answer, _) => RemoteEvent::Reordered(answer, end),
        other => other,
    }
}

/// The answer to a cancel, for as long as an end waits for it.
pub(super) fn briefly(
    answer: BoxFuture<'static, Result<Value, Broke>>,
) -> BoxFuture<'static, Result<Value, Broke>> {
    let answer = timeout(LAST_WORDS, answer);
    Box::pin(async { answer.await.unwrap_or_else(|_elapsed| Err(Broke::Lost(String::new()))) })
}

/// A task's state and its message.
fn words(Status { state, word, .. }: &Status) -> String {
    if word.is_empty() { name(*state).to_owned() } else { format!("{}: {word}", name(*state)) }
}

/// The state's name on the wire.
fn name(state: State) -> &'static str {
    match state {
        State::Working => "working",
        State::InputRequired => "input-required",
        State::AuthRequired => "auth-required",
        State::Completed => "completed",
        State::Failed => "failed",
        State::Rejected => "rejected",
        State::Canceled => "canceled",
    }
}

//! The peer is asked to end the work, and what it says to that is told as its word (S10.3).
//!
//! What a word is worth: `canceled` is *confirmed* of a peer that was declared to end its work before it says so, and
//! *acknowledged* of any other, because the wire does not tell the two apart. A task that was completed had ended by
//! itself. An error is *refused*, whatever state the task is left in. A task that has no name yet cannot be told anything:
//! that is said, and it is told as soon as it has one (S10.44).

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_core::future::BoxFuture;
use safepoint::{
    Failure,
    receipt::StopSupport,
    remote::{LAST_WORDS, RemoteEvent, RemoteStopReply},
};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::{
    Peer, asking,
    http::Broke,
    line::{Feed, Phase, Talk, Telling},
    wire::{self, Event, Method, State, Status},
};

/// How often a peer that nobody could be reached at is told: nothing was sent to it.
const TELLS: u32 = 3;
/// The wait before that.
const PAUSE: Duration = Duration::from_millis(100);
/// What is said of work that was never asked for.
const NOTHING_SENT: &str = "nothing was sent";
/// What is said of work that has no name by which it could be told.
const NO_NAME: &str = "it has not named its work yet";
/// What is said of a cancel that was sent, and of which nobody knows what came of it.
const SENT: &str = "it was told once";

/// What came of a cancel. Exhaustive: the peer's answer; or, once that was a refusal, the task as it stood after it, if it could
/// be looked at; or its answer in the last moment.
pub(super) enum Answer {
    Told(Result<Value, Broke>),
    Shown(Option<Value>),
    /// To work whose end was told meanwhile.
    Last(Result<Value, Broke>),
}

impl Talk {
    /// Asks the peer to end the work.
    pub(super) fn part_with(&mut self) -> RemoteStopReply {
        // Until it has answered, an end that it publishes is none of the work.
        self.phase = Phase::Doubted;
        let held = self.text.release();
        self.say(held);
        if self.task.is_none() && !self.sent.load(Ordering::Relaxed) {
            // No word of the peer is needed for what it was never asked.
            self.over(RemoteEvent::Failed(Failure::new(NOTHING_SENT).unreachable().without_effect()));
            return RemoteStopReply { word: NOTHING_SENT.into(), ..RemoteStopReply::requested() };
        }
        if self.has_ended() {
            return RemoteStopReply::requested();
        }
        if self.task.is_none() {
            return RemoteStopReply::unreachable(NO_NAME);
        }
        self.tell();
        // Its answer is heard among all else that it says meanwhile.
        RemoteStopReply::requested()
    }

    /// Whether the work has ended by itself, or the line to it is gone.
    fn has_ended(&self) -> bool {
        self.heard.iter().any(|said| {
            matches!(
                said,
                RemoteEvent::Done(_)
                    | RemoteEvent::Reordered(_)
                    | RemoteEvent::Ended { .. }
                    | RemoteEvent::Failed(_)
                    | RemoteEvent::Lost(_)
            )
        })
    }

    /// Has the peer told, by the task's name.
    pub(super) fn tell(&mut self) {
        let (peer, params) = (Arc::clone(&self.peer), self.named());
        self.telling = Telling::Asked(Box::pin(tell(peer, params)));
    }

    /// What its answer is worth; none as long as the end that it names is looked for.
    pub(super) fn answered(&mut self, answer: Answer) -> Option<RemoteStopReply> {
        match (answer, std::mem::take(&mut self.telling)) {
            (Answer::Told(Ok(value)), _) => self.nodded(&value),
            (Answer::Told(Err(Broke::Unreachable(why))), _) => Some(RemoteStopReply::unreachable(why)),
            // It may have heard: that is not asked a second time, and no answer will come.
            (Answer::Told(Err(Broke::Lost(why))), _) => {
                Some(RemoteStopReply { word: format!("{SENT}: {why}"), ..RemoteStopReply::requested() })
            }
            (Answer::Told(Err(refusal)), _) => {
                // Its word counts from now on; what became of the task is told beside it.
                let told = RemoteStopReply::refused(refusal.to_string());
                let look = self.ask(Method::Get);
                self.telling = Telling::Refused(refusal, Box::pin(async { look.await.ok() }));
                Some(told)
            }
            (Answer::Shown(task), Telling::Refused(refusal, _)) => self.refused(&refusal, task),
            (Answer::Last(told), Telling::Ending(_, end)) => {
                self.heard.extend(last_word(told).map(RemoteEvent::Told));
                self.heard.push_back(end);
                None
            }
            (Answer::Shown(_) | Answer::Last(_), _) => None,
        }
    }

    /// The work had come to its end before: with what, the task says.
    fn was_over(&mut self, told: RemoteStopReply) -> Option<RemoteStopReply> {
        self.telling = Telling::WasOver(told);
        self.look();
        None
    }

    fn nodded(&mut self, value: &Value) -> Option<RemoteStopReply> {
        let Some(Event::Task { status, of, .. }) = wire::event(value).or_else(|| wire::task(value)) else {
            return Some(RemoteStopReply::acknowledged("its answer is no task"));
        };
        if self.task.as_deref() != Some(&of.task) {
            // Nothing was said of ours.
            return Some(RemoteStopReply::acknowledged("its answer is about another task"));
        }
        let word = words(&status);
        Some(match (&status.state, self.grade) {
            (State::Canceled, StopSupport::Hard) => {
                self.feed = Feed::Over;
                self.watch.off();
                RemoteStopReply::confirmed(word)
            }
            (State::Completed, _) => return self.was_over(RemoteStopReply::acknowledged(word)),
            (_, StopSupport::Hard) => {
                // It is believed when it says that it has ended, which it may have said meanwhile.
                self.phase = Phase::Stopping;
                self.look();
                RemoteStopReply::acknowledged(word)
            }
            _ => RemoteStopReply::acknowledged(word),
        })
    }

    /// It will not: what became of the task is told beside its word, which is told once more in any case. Also a peer that is
    /// believed when it says that it stopped is not believed any more: it has said that it does not.
    fn refused(&mut self, refusal: &Broke, task: Option<Value>) -> Option<RemoteStopReply> {
        let event = task.as_ref().and_then(|value| wire::event(value).or_else(|| wire::task(value)));
        let event = event.filter(|task| task.of().is_some_and(|of| self.task.as_deref() == Some(&of.task)));
        let Some(Event::Task { status: Status { state, .. }, .. }) = event else {
            return Some(RemoteStopReply::refused(refusal.to_string()));
        };
        let told = RemoteStopReply::refused(format!("{refusal}; its task was {}", name(state)));
        match task.filter(|_| state == State::Completed) {
            Some(task) => {
                self.telling = Telling::WasOver(told);
                self.looked(Ok(task));
                None
            }
            None => Some(told),
        }
    }
}

/// Tells it, once: only where nobody was reached, so that nothing was sent, it is tried again.
async fn tell(peer: Arc<Peer>, params: Value) -> Result<Value, Broke> {
    let mut tells = 0;
    loop {
        sleep(if tells == 0 { Duration::ZERO } else { PAUSE }).await;
        let answer = asking::about(&peer, Method::Cancel, params.clone()).await;
        tells += 1;
        match answer {
            Err(Broke::Unreachable(_)) if tells < TELLS => {}
            answer => return answer,
        }
    }
}

/// An answer to a cancel, for as long as an end waits for it.
pub(super) fn briefly(
    answer: BoxFuture<'static, Result<Value, Broke>>,
) -> BoxFuture<'static, Result<Value, Broke>> {
    let answer = timeout(LAST_WORDS, answer);
    Box::pin(async { answer.await.unwrap_or_else(|_elapsed| Err(Broke::Lost(String::new()))) })
}

/// What the answer to a cancel is worth beside the end that the work had come to; none, where there is none that counts.
fn last_word(told: Result<Value, Broke>) -> Option<RemoteStopReply> {
    match told.map(|value| wire::event(&value).or_else(|| wire::task(&value))) {
        Ok(Some(Event::Task { status, .. })) => Some(RemoteStopReply::acknowledged(words(&status))),
        Ok(_) => Some(RemoteStopReply::acknowledged("its answer is no task")),
        Err(Broke::Unreachable(_) | Broke::Lost(_)) => None,
        Err(refusal) => {
            Some(RemoteStopReply::refused(format!("{refusal}; its task was {}", name(State::Completed))))
        }
    }
}

/// A task's state, and what the peer says of it.
fn words(Status { state, word, .. }: &Status) -> String {
    if word.is_empty() { name(*state).to_owned() } else { format!("{}: {word}", name(*state)) }
}

/// The state's name, as peers write it.
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

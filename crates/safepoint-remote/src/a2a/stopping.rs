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

use safepoint::{
    Failure,
    receipt::StopSupport,
    remote::{RemoteEvent, RemoteStopReply},
};
use serde_json::Value;
use tokio::time::sleep;

use super::{
    Peer, asking,
    http::Broke,
    line::{Feed, Phase, Talk, Telling},
    wire::{self, Event, Method, State, Status},
};

/// How often a peer that hangs up on being told is told again.
const TELLS: u32 = 3;
/// The wait before that.
const PAUSE: Duration = Duration::from_millis(100);
/// What is said of work that was never asked for.
const NOTHING_SENT: &str = "nothing was sent";
/// What is said of work that has no name by which it could be told.
const NO_NAME: &str = "it has not named its work yet";

/// What a peer answered to a cancel; to a refusal belongs the task as it stood after it.
pub(super) struct Answer {
    told: Result<Value, Broke>,
    task: Option<Value>,
}

impl Talk {
    /// Asks the peer to end the work.
    pub(super) fn part_with(&mut self) -> RemoteStopReply {
        // Until it has answered, an end that it publishes is none of the work.
        self.phase = Phase::Doubted;
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
        match answer.told {
            Ok(value) => self.nodded(&value),
            Err(Broke::Unreachable(why) | Broke::Lost(why)) => Some(RemoteStopReply::unreachable(why)),
            Err(refusal @ (Broke::Error { .. } | Broke::Foreign(_) | Broke::Status { .. })) => {
                self.refused(&refusal, answer.task.as_ref())
            }
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
        let Status { state, word, .. } = &status;
        let word =
            if word.is_empty() { name(*state).to_owned() } else { format!("{}: {word}", name(*state)) };
        Some(match (state, self.grade) {
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

    /// It will not: what became of the task is told beside its word. Also a peer that is believed when it says that it
    /// stopped is not believed any more: it has said that it does not.
    fn refused(&mut self, refusal: &Broke, task: Option<&Value>) -> Option<RemoteStopReply> {
        let task = task.and_then(|value| wire::event(value).or_else(|| wire::task(value)));
        let task = task.filter(|task| task.of().is_some_and(|of| self.task.as_deref() == Some(&of.task)));
        match task {
            Some(Event::Task { status: Status { state, .. }, .. }) => {
                let told = RemoteStopReply::refused(format!("{refusal}; its task was {}", name(state)));
                if state == State::Completed { self.was_over(told) } else { Some(told) }
            }
            _ => Some(RemoteStopReply::refused(refusal.to_string())),
        }
    }
}

/// Tells it; asking for the same end again changes nothing, so a broken line is tried again.
async fn tell(peer: Arc<Peer>, params: Value) -> Answer {
    let mut tells = 0;
    let told = loop {
        sleep(if tells == 0 { Duration::ZERO } else { PAUSE }).await;
        let answer = asking::about(&peer, Method::Cancel, params.clone()).await;
        tells += 1;
        match answer {
            Err(Broke::Lost(_)) if tells < TELLS => {}
            answer => break answer,
        }
    };
    let task = match &told {
        Err(Broke::Error { .. } | Broke::Foreign(_) | Broke::Status { .. }) => {
            asking::about(&peer, Method::Get, params).await.ok()
        }
        Ok(_) | Err(Broke::Unreachable(_) | Broke::Lost(_)) => None,
    };
    Answer { told, task }
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

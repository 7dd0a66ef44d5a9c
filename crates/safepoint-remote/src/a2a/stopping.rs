//! The peer is asked to end the work, and what it says to that is told as its word (S10.3).
//!
//! What a word is worth: `canceled` is *confirmed* of a peer that was declared to end its work before it says so, and
//! *acknowledged* of any other, because the wire does not tell the two apart. A task that was completed had ended by
//! itself. An error is *refused*, whatever state the task is left in.

use std::{sync::atomic::Ordering, time::Duration};

use safepoint::{
    Failure,
    receipt::Grade,
    remote::{Said, Told},
};
use serde_json::Value;

use super::{
    http::Broke,
    line::{Feed, Phase, Talk},
    wire::{self, Event, Method, State, Status},
};

/// How often a peer that hangs up on being told is told again.
const TELLS: u32 = 3;
/// The wait before that.
const PAUSE: Duration = Duration::from_millis(100);
/// What is said of work that was never asked for.
const NOTHING_SENT: &str = "nothing was sent";

impl Talk {
    /// Asks the peer to end the work.
    pub(super) async fn part(&mut self) -> Told {
        self.phase = if self.grade == Grade::Hard { Phase::Stopping } else { Phase::Doubted };
        if self.task.is_none() && !self.sent.load(Ordering::Relaxed) {
            // No word of the peer is needed for what it was never asked.
            self.over(Said::Failed(Failure::new(NOTHING_SENT).unreachable().without_effect()));
            return Told { word: NOTHING_SENT.into(), ..Told::requested() };
        }
        // Without its name the task cannot be spoken of: the peer gets the time to name it.
        while self.task.is_none() && !matches!(self.feed, Feed::Over) {
            self.step().await;
        }
        if self.has_ended() {
            return Told::requested();
        }
        let answer = self.tell().await;
        match answer {
            Ok(value) => self.answered(&value),
            Err(Broke::Unreachable(why) | Broke::Lost(why)) => Told::unreachable(why),
            Err(refusal @ (Broke::Error { .. } | Broke::Foreign(_) | Broke::Status { .. })) => {
                self.refused(&refusal).await
            }
        }
    }

    /// Whether the work has ended by itself, or the line to it is gone.
    fn has_ended(&self) -> bool {
        self.heard
            .iter()
            .any(|said| matches!(said, Said::Done(_) | Said::Ended { .. } | Said::Failed(_) | Said::Lost(_)))
    }

    /// Tells it; asking for the same end again changes nothing, so a broken line is tried again.
    async fn tell(&mut self) -> Result<Value, Broke> {
        let mut told = 0;
        loop {
            let after = if told == 0 { Duration::ZERO } else { PAUSE };
            let answer = self.ask(Method::Cancel, after).await;
            told += 1;
            match answer {
                Err(Broke::Lost(_)) if told < TELLS => {}
                answer => return answer,
            }
        }
    }

    fn answered(&mut self, value: &Value) -> Told {
        let Some(Event::Task { status, of, .. }) = wire::event(value).or_else(|| wire::task(value)) else {
            return Told::acknowledged("its answer is no task");
        };
        if self.task.as_deref() != Some(&of.task) {
            // Nothing was said of ours.
            return Told::acknowledged("its answer is about another task");
        }
        let Status { state, word, .. } = &status;
        let word =
            if word.is_empty() { name(*state).to_owned() } else { format!("{}: {word}", name(*state)) };
        match state {
            State::Canceled if self.grade == Grade::Hard => {
                self.feed = Feed::Over;
                Told::confirmed(word)
            }
            // It had ended by itself before: the task says with what.
            State::Completed => {
                self.look(Duration::ZERO);
                Told::requested()
            }
            _ => Told::acknowledged(word),
        }
    }

    /// It will not: what became of the task is asked, and told beside its word.
    async fn refused(&mut self, refusal: &Broke) -> Told {
        // Also of a peer that is believed when it says that it stopped: it has said that it does not.
        self.phase = Phase::Doubted;
        let looked = self.ask(Method::Get, Duration::ZERO).await;
        let task = looked.ok().and_then(|value| wire::event(&value).or_else(|| wire::task(&value)));
        let task = task.filter(|task| task.of().is_some_and(|of| self.task.as_deref() == Some(&of.task)));
        match task {
            Some(Event::Task { status: Status { state: State::Completed, .. }, .. }) => {
                self.look(Duration::ZERO);
                Told::requested()
            }
            Some(Event::Task { status: Status { state, .. }, .. }) => {
                Told::refused(format!("{refusal}; its task is {}", name(state)))
            }
            _ => Told::refused(refusal.to_string()),
        }
    }
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

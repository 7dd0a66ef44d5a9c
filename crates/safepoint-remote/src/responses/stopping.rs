//! The provider is asked to cancel the response, and what it says to that is told as its word (S10.3).

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
    Provider, limits,
    line::{Feed, Phase, Talk},
    reading::{Standing, State},
};
use crate::exchange::Broke;

/// What is said of work that was never asked for.
const NOTHING_SENT: &str = "nothing was sent";

/// What is said of work that has no id by which it could be spoken of.
const NO_NAME: &str = "it has not named its response yet";

/// What is said of work that had come to its end before.
const WAS_OVER: &str = "its response was over";

/// What a provider answered to a cancel; to a refusal belongs the response as it stood after it.
pub(super) struct Answer {
    told: Result<Value, Broke>,
    response: Option<Value>,
}

impl Talk {
    /// Asks the provider to end the work.
    pub(super) async fn part(&mut self) -> RemoteStopReply {
        self.phase = if self.grade == StopSupport::Hard { Phase::Stopping } else { Phase::Doubted };
        if self.id.is_none() && !self.sent.load(Ordering::Relaxed) {
            // No word of the provider is needed for what it was never asked.
            self.over(RemoteEvent::Failed(Failure::new(NOTHING_SENT).unreachable().without_effect()));
            return RemoteStopReply { word: NOTHING_SENT.into(), ..RemoteStopReply::requested() };
        }
        if matches!(self.feed, Feed::Over) {
            return RemoteStopReply::requested();
        }
        if self.id.is_none() {
            return RemoteStopReply::unreachable(NO_NAME);
        }
        self.tell();
        loop {
            self.step().await;
            let place = self.heard.iter().position(|said| matches!(said, RemoteEvent::Told(_)));
            if let Some(RemoteEvent::Told(told)) = place.and_then(|place| self.heard.remove(place)) {
                return told;
            }
            if matches!(self.feed, Feed::Over) {
                return RemoteStopReply::requested();
            }
        }
    }

    /// Has the provider told, by the response's id.
    pub(super) fn tell(&mut self) {
        let (provider, id) = (Arc::clone(&self.provider), self.id.clone().unwrap_or_default());
        self.telling = Some(Box::pin(tell(provider, id)));
    }

    /// What its answer is worth.
    pub(super) fn answered(&mut self, answer: Answer) -> RemoteStopReply {
        match answer.told.map(|value| Standing::read(&value)) {
            Ok(Some(standing)) if self.is_ours(&standing) => self.nodded(standing),
            Ok(Some(_)) => RemoteStopReply::acknowledged("its answer is another response"),
            Ok(None) => RemoteStopReply::acknowledged("its answer is no response"),
            Err(Broke::Unreachable(why) | Broke::Lost(why)) => RemoteStopReply::unreachable(why),
            Err(refusal @ (Broke::Error { .. } | Broke::Foreign(_) | Broke::Status { .. })) => {
                self.refused(&refusal, answer.response.as_ref())
            }
        }
    }

    fn nodded(&mut self, standing: Standing) -> RemoteStopReply {
        match &standing.state {
            State::Cancelled if self.grade == StopSupport::Hard => {
                self.feed = Feed::Over;
                RemoteStopReply::confirmed("cancelled")
            }
            State::Cancelled => RemoteStopReply::acknowledged("cancelled"),
            State::Working(word) => RemoteStopReply::acknowledged(word.clone()),
            // It had ended by itself before.
            State::Completed | State::Incomplete(_) | State::Failed(_) => {
                self.phase = Phase::Stopping;
                self.take(standing);
                RemoteStopReply::acknowledged(WAS_OVER)
            }
        }
    }

    /// It will not: what became of the response is told beside its word. Also a provider that is believed when it says that
    /// it stopped is not believed any more: it has said that it does not.
    fn refused(&mut self, refusal: &Broke, response: Option<&Value>) -> RemoteStopReply {
        self.phase = Phase::Doubted;
        let standing = response.and_then(Standing::read).filter(|standing| self.is_ours(standing));
        match standing {
            Some(standing) if standing.state == State::Completed => {
                self.take(standing);
                RemoteStopReply::refused(format!("{refusal}; its response was over"))
            }
            _ => RemoteStopReply::refused(refusal.to_string()),
        }
    }

    fn is_ours(&self, standing: &Standing) -> bool {
        self.id.as_deref() == Some(&standing.id)
    }
}

/// Tells it; a second cancel changes nothing, so a broken line is tried again.
async fn tell(provider: Arc<Provider>, id: String) -> Answer {
    let mut tells = 0;
    let told = loop {
        sleep(if tells == 0 { Duration::ZERO } else { limits::PAUSE }).await;
        let answer = provider.http.cancel(&id).await;
        tells += 1;
        match answer {
            Err(Broke::Lost(_)) if tells < limits::TELLS => {}
            answer => break answer,
        }
    };
    let response = match &told {
        Err(Broke::Error { .. } | Broke::Foreign(_) | Broke::Status { .. }) => {
            provider.http.look(&id).await.ok()
        }
        Ok(_) | Err(Broke::Unreachable(_) | Broke::Lost(_)) => None,
    };
    Answer { told, response }
}

//! The provider is asked to cancel the response, and what it says to that is told as its word (S10.3).

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use safepoint::{
    Failure,
    receipt::Grade,
    remote::{Said, Told},
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
    pub(super) async fn part(&mut self) -> Told {
        self.phase = if self.grade == Grade::Hard { Phase::Stopping } else { Phase::Doubted };
        if self.id.is_none() && !self.sent.load(Ordering::Relaxed) {
            // No word of the provider is needed for what it was never asked.
            self.over(Said::Failed(Failure::new(NOTHING_SENT).unreachable().without_effect()));
            return Told { word: NOTHING_SENT.into(), ..Told::requested() };
        }
        if matches!(self.feed, Feed::Over) {
            return Told::requested();
        }
        if self.id.is_none() {
            return Told::unreachable(NO_NAME);
        }
        self.tell();
        loop {
            self.step().await;
            let place = self.heard.iter().position(|said| matches!(said, Said::Told(_)));
            if let Some(Said::Told(told)) = place.and_then(|place| self.heard.remove(place)) {
                return told;
            }
            if matches!(self.feed, Feed::Over) {
                return Told::requested();
            }
        }
    }

    /// Has the provider told, by the response's id.
    pub(super) fn tell(&mut self) {
        let (provider, id) = (Arc::clone(&self.provider), self.id.clone().unwrap_or_default());
        self.telling = Some(Box::pin(tell(provider, id)));
    }

    /// What its answer is worth.
    pub(super) fn answered(&mut self, answer: Answer) -> Told {
        match answer.told.map(|value| Standing::read(&value)) {
            Ok(Some(standing)) if self.is_ours(&standing) => self.nodded(standing),
            Ok(Some(_)) => Told::acknowledged("its answer is another response"),
            Ok(None) => Told::acknowledged("its answer is no response"),
            Err(Broke::Unreachable(why) | Broke::Lost(why)) => Told::unreachable(why),
            Err(refusal @ (Broke::Error { .. } | Broke::Foreign(_) | Broke::Status { .. })) => {
                self.refused(&refusal, answer.response.as_ref())
            }
        }
    }

    fn nodded(&mut self, standing: Standing) -> Told {
        match &standing.state {
            State::Cancelled if self.grade == Grade::Hard => {
                self.feed = Feed::Over;
                Told::confirmed("cancelled")
            }
            State::Cancelled => Told::acknowledged("cancelled"),
            State::Working(word) => Told::acknowledged(word.clone()),
            // It had ended by itself before.
            State::Completed | State::Incomplete(_) | State::Failed(_) => {
                self.phase = Phase::Stopping;
                self.take(standing);
                Told::acknowledged(WAS_OVER)
            }
        }
    }

    /// It will not: what became of the response is told beside its word. Also a provider that is believed when it says that
    /// it stopped is not believed any more: it has said that it does not.
    fn refused(&mut self, refusal: &Broke, response: Option<&Value>) -> Told {
        self.phase = Phase::Doubted;
        let standing = response.and_then(Standing::read).filter(|standing| self.is_ours(standing));
        match standing {
            Some(standing) if standing.state == State::Completed => {
                self.take(standing);
                Told::refused(format!("{refusal}; its response was over"))
            }
            _ => Told::refused(refusal.to_string()),
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

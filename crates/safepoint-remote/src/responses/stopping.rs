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

impl Talk {
    /// Asks the provider to end the work.
    pub(super) async fn part(&mut self) -> Told {
        self.phase = if self.grade == Grade::Hard { Phase::Stopping } else { Phase::Doubted };
        if self.id.is_none() && !self.sent.load(Ordering::Relaxed) {
            // No word of the provider is needed for what it was never asked.
            self.over(Said::Failed(Failure::new(NOTHING_SENT).unreachable().without_effect()));
            return Told { word: NOTHING_SENT.into(), ..Told::requested() };
        }
        // Without its id the response cannot be spoken of: the provider gets the time to name it.
        while self.id.is_none() && !matches!(self.feed, Feed::Over) {
            self.step().await;
        }
        let Some(id) = self.id.clone().filter(|_| !matches!(self.feed, Feed::Over)) else {
            return Told::requested();
        };
        let told = tell(Arc::clone(&self.provider), id.clone()).await;
        match told.map(|value| Standing::read(&value)) {
            Ok(Some(standing)) if standing.id == id => self.answered(standing),
            Ok(Some(_)) => Told::acknowledged("its answer is another response"),
            Ok(None) => Told::acknowledged("its answer is no response"),
            Err(Broke::Unreachable(why) | Broke::Lost(why)) => Told::unreachable(why),
            Err(refusal @ (Broke::Error { .. } | Broke::Foreign(_) | Broke::Status { .. })) => {
                self.refused(&id, &refusal).await
            }
        }
    }

    fn answered(&mut self, standing: Standing) -> Told {
        match &standing.state {
            State::Cancelled if self.grade == Grade::Hard => {
                self.feed = Feed::Over;
                Told::confirmed("cancelled")
            }
            State::Cancelled => {
                self.look(self.provider.look_every);
                Told::acknowledged("cancelled")
            }
            State::Working(word) => {
                let word = word.clone();
                self.look(self.provider.look_every);
                Told::acknowledged(word)
            }
            // It had ended by itself before.
            State::Completed | State::Incomplete(_) | State::Failed(_) => {
                self.phase = Phase::Stopping;
                self.take(standing);
                Told::requested()
            }
        }
    }

    /// It will not: what became of the response is asked, and told beside its word.
    async fn refused(&mut self, id: &str, refusal: &Broke) -> Told {
        // Also of a provider that is believed when it says that it stopped: it has said that it does not.
        self.phase = Phase::Doubted;
        let provider = Arc::clone(&self.provider);
        let looked = provider.http.look(id).await.ok().and_then(|value| Standing::read(&value));
        match looked {
            Some(standing) if standing.id == id && standing.state == State::Completed => {
                self.take(standing);
                Told::requested()
            }
            _ => Told::refused(refusal.to_string()),
        }
    }
}

/// Tells it; a second cancel changes nothing, so a broken line is tried again.
async fn tell(provider: Arc<Provider>, id: String) -> Result<Value, Broke> {
    let mut told = 0;
    loop {
        sleep(if told == 0 { Duration::ZERO } else { limits::PAUSE }).await;
        let answer = provider.http.cancel(&id).await;
        told += 1;
        match answer {
            Err(Broke::Lost(_)) if told < limits::TELLS => {}
            answer => return answer,
        }
    }
}

//! Asks the provider to cancel the response, and reports its answer to that (S10.3).

use std::sync::{Arc, atomic::Ordering};

use safepoint::{
    raw::remote::{LAST_WORDS, RemoteEnd, RemoteEvent, RemoteStopReply},
    receipt::{RemoteStopState, StopSupport},
};
use serde_json::Value;
use tokio::time::timeout;

use super::{
    Provider,
    call::{Answer, Feed, ResponseCall},
    reading::{ResponseState, Standing},
};
use crate::{
    cancel::{self, Phase},
    exchange::Broke,
};

/// The text for work without an id that a cancel could name.
const NO_NAME: &str = "it has not named its response yet";

/// The text for work that had ended before.
const WAS_OVER: &str = "its response was over";

impl ResponseCall {
    /// Asks the provider to end the work.
    pub(super) async fn part(&mut self) -> RemoteStopReply {
        self.phase = if self.grade == StopSupport::Hard { Phase::Stopping } else { Phase::Doubted };
        // Relaxed: the request is polled by the task that runs this, so program order suffices. The flag is
        // set before the request is sent: `false` means that nothing was sent.
        if self.id.is_none() && !self.sent.load(Ordering::Relaxed) {
            // Work that was never requested needs no answer of the provider.
            self.over(cancel::never_begun(cancel::NOTHING_SENT));
            return RemoteStopReply::unreachable(cancel::NOTHING_SENT);
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
            let place = self.events.iter().position(|said| matches!(said, RemoteEvent::StopReply(_)));
            if let Some(RemoteEvent::StopReply(reply)) = place.and_then(|place| self.events.remove(place)) {
                if reply.stop == RemoteStopState::Requested {
                    // No answer will come; an event reports that.
                    self.events.push_front(RemoteEvent::StopReply(reply));
                    return RemoteStopReply::requested();
                }
                return reply;
            }
            if matches!(self.feed, Feed::Over) {
                return self.last_word().await;
            }
        }
    }

    /// The answer to the cancel beside the end that a read showed meanwhile. The order of the two is unknown:
    /// an answer that names the end itself makes it a claim in either order.
    async fn last_word(&mut self) -> RemoteStopReply {
        let answer = match &mut self.telling {
            Some(answer) => timeout(LAST_WORDS, answer).await.ok(),
            None => None,
        };
        self.telling = None;
        let standing = answer.and_then(|answer| answer.reply.ok()).and_then(|value| Standing::read(&value));
        if standing.is_none_or(|it| !self.is_ours(&it) || it.state != ResponseState::Completed) {
            return RemoteStopReply::requested();
        }
        if let Some(RemoteEvent::Done(_, end)) = self.events.back_mut() {
            *end = RemoteEnd::in_answer_to_a_stop(self.grade);
        }
        RemoteStopReply::acknowledged(WAS_OVER)
    }

    /// Sends the cancel, by the response's id.
    pub(super) fn tell(&mut self) {
        let (provider, id) = (Arc::clone(&self.provider), self.id.clone().unwrap_or_default());
        self.telling = Some(Box::pin(tell(provider, id)));
    }

    /// What the provider's answer is worth.
    pub(super) fn answered(&mut self, answer: Answer) -> RemoteStopReply {
        match answer.reply.map(|value| Standing::read(&value)) {
            Ok(Some(standing)) if self.is_ours(&standing) => self.nodded(standing),
            Ok(Some(_)) => cancel::unanswered("its answer is another response"),
            Ok(None) => cancel::unanswered("its answer is no response"),
            Err(Broke::Unreachable(why)) => RemoteStopReply::unreachable(why),
            Err(Broke::Lost(why) | Broke::Foreign(why)) => cancel::unanswered(why),
            Err(refusal @ (Broke::Error { .. } | Broke::Status { .. })) => {
                self.refused(&refusal, answer.response.as_ref())
            }
        }
    }

    fn nodded(&mut self, standing: Standing) -> RemoteStopReply {
        match &standing.state {
            ResponseState::Cancelled if self.grade == StopSupport::Hard => {
                self.feed = Feed::Over;
                RemoteStopReply::confirmed("cancelled")
            }
            ResponseState::Cancelled => RemoteStopReply::acknowledged("cancelled"),
            ResponseState::Working(word) => RemoteStopReply::acknowledged(word.clone()),
            // The provider says that the response had ended before.
            ResponseState::Completed | ResponseState::Incomplete(_) | ResponseState::Failed(_) => {
                self.take(standing, RemoteEnd::in_answer_to_a_stop(self.grade));
                RemoteStopReply::acknowledged(WAS_OVER)
            }
        }
    }

    /// The provider refuses: the adapter reports the refusal and what became of the response. From then on
    /// the end reported by a provider with hard stops does not count either, because it said that it does not
    /// stop.
    fn refused(&mut self, refusal: &Broke, response: Option<&Value>) -> RemoteStopReply {
        self.phase = Phase::Doubted;
        let standing = response.and_then(Standing::read).filter(|standing| self.is_ours(standing));
        match standing {
            Some(standing) if standing.state == ResponseState::Completed => {
                self.take(standing, RemoteEnd::Reported);
                RemoteStopReply::refused(format!("{refusal}; its response was over"))
            }
            _ => RemoteStopReply::refused(refusal.to_string()),
        }
    }

    fn is_ours(&self, standing: &Standing) -> bool {
        self.id.as_deref() == Some(&standing.id)
    }
}

/// Sends the cancel, and reads the response if the provider refuses.
async fn tell(provider: Arc<Provider>, id: String) -> Answer {
    let reply = cancel::send(|| provider.http.cancel(&id)).await;
    let response = match &reply {
        Err(Broke::Error { .. } | Broke::Status { .. }) => provider.http.look(&id).await.ok(),
        Ok(_) | Err(Broke::Unreachable(_) | Broke::Lost(_) | Broke::Foreign(_)) => None,
    };
    Answer { reply, response }
}

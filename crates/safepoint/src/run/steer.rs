//! Steering: a new message for a running run, without stopping it (S6.5).
//!
//! **Invariants**: a steer is either recorded as taken, once, or returned to its sender.

use std::fmt;

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::value::{
    event::{NOTICE, RecordedSteer, SteerSource},
    ids::{ItemId, SteerId},
    message::UserMessage,
};

/// A message for a running run. It is delivered with the run's next model request, after all results of the
/// round.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "hand it to `RunHandle::steer`"]
pub struct Steer {
    pub(crate) id: SteerId,
    pub(crate) message: UserMessage,
    pub(crate) when: SteerTiming,
    pub(crate) source: SteerSource,
}

/// When a steer takes effect. Exhaustive: with the next request anyway, or by cutting the streaming message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SteerTiming {
    /// With the next model request, whenever that is made.
    NextRequest,
    /// The streaming message is cut, what was shown of it is kept, and the next request is made at once.
    /// Running calls are not touched.
    AtOnce,
}

impl Steer {
    /// A steer that waits for the next model request.
    ///
    /// # Errors
    /// [`SteerError::Blank`] if there is nothing in it.
    pub fn new(message: impl Into<UserMessage>) -> Result<Self, SteerError> {
        let message = message.into();
        if message.is_blank() {
            return Err(SteerError::Blank);
        }
        Ok(Self {
            id: SteerId::fresh(),
            message,
            when: SteerTiming::NextRequest,
            source: SteerSource::Handle,
        })
    }

    /// A notice of the session about `of`, for the next request that is made anyway.
    pub(crate) fn notice(of: impl fmt::Display, message: UserMessage) -> Self {
        let id = Self::notice_id(of);
        Self { id, message, when: SteerTiming::NextRequest, source: SteerSource::Session }
    }

    pub(crate) fn notice_id(of: impl fmt::Display) -> SteerId {
        format!("{NOTICE}{of}").into()
    }

    pub(crate) fn of_item(item: ItemId, message: UserMessage, when: SteerTiming) -> Self {
        Self { id: item.to_string().into(), message, when, source: SteerSource::Item }
    }

    /// Whether this is the session's item of this id, and not a steer whose sender chose the same id.
    pub(crate) fn is_item(&self, id: &SteerId) -> bool {
        self.source == SteerSource::Item && self.id == *id
    }

    pub(crate) fn taken(self) -> RecordedSteer {
        RecordedSteer { id: self.id, message: self.message, source: self.source }
    }

    /// Makes the steer cut the streaming message.
    pub fn at_once(mut self) -> Self {
        self.when = SteerTiming::AtOnce;
        self
    }

    /// Sets an id of the sender's own.
    pub fn id(mut self, id: impl Into<SteerId>) -> Self {
        self.id = id.into();
        self
    }
}

/// A steer that is on its way.
#[derive(Debug)]
#[must_use = "it says whether the steer was delivered"]
pub struct SteerTicket {
    message: UserMessage,
    landed: Option<oneshot::Receiver<u32>>,
}

/// What became of a steer. Exhaustive: it was delivered, or returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SteerOutcome {
    /// It is part of the run's history, before the model call of this round.
    Delivered {
        /// The round, from 1.
        round: u32,
    },
    /// The run made no further model request.
    Returned(UserMessage),
}

impl SteerTicket {
    pub(crate) fn new(message: UserMessage, landed: Option<oneshot::Receiver<u32>>) -> Self {
        Self { message, landed }
    }

    /// Waits until the steer was delivered, or the run made its last model request without it.
    ///
    /// # Cancel safety
    /// The steer continues on its way; its outcome is not reported.
    pub async fn outcome(self) -> SteerOutcome {
        let Some(landed) = self.landed else { return SteerOutcome::Returned(self.message) };
        landed.await.map_or(SteerOutcome::Returned(self.message), |round| SteerOutcome::Delivered { round })
    }
}

/// What came of withdrawing a steer. Exhaustive: it was returned, it was delivered, or the run is over and
/// returns what it did not use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SteerWithdrawal {
    Returned,
    Delivered,
    RunEnded,
}

/// Why a steer cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SteerError {
    /// The message is blank.
    #[error("a steer must say something; this one is blank")]
    Blank,
}

//! The handler that the engine calls on a node.

use std::{sync::Arc, time::Duration};

use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::{here::Here, taker::Wake};

/// How long a wake waits on a node that is full. After that it is lost, and the session is named again.
const PATIENCE: Duration = Duration::from_millis(500);

/// What the engine brings of a wake, beside the session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct WakeMessage {
    #[serde(default)]
    pub(super) pool: String,
    #[serde(default)]
    pub(super) priority: i16,
    #[serde(default)]
    pub(super) tries: u16,
}

/// What became of a wake: all that the engine keeps of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OwnResult {
    InHand,
    Full,
    OtherPool,
}

/// A session, as an object of the engine.
pub(super) struct SafepointSession {
    here: Arc<Here>,
    pools: Vec<String>,
}

impl SafepointSession {
    pub(super) fn new(here: Arc<Here>, pools: Vec<String>) -> Self {
        Self { here, pools }
    }

    async fn hand_over(&self, session: &str, message: WakeMessage) -> OwnResult {
        if !message.pool.is_empty() && !self.pools.contains(&message.pool) {
            return OwnResult::OtherPool;
        }
        let mut wake = Wake::of(session);
        (wake.pool, wake.priority, wake.tries) = (message.pool, message.priority, message.tries);
        match timeout(PATIENCE, self.here.give(wake)).await {
            Ok(()) => OwnResult::InHand,
            Err(_full) => OwnResult::Full,
        }
    }
}

#[object(journal_retention = "0s", idempotency_retention = "0s", lazy_state = true)]
impl SafepointSession {
    /// Hands the session to this node. Nothing of it runs here.
    #[handler]
    async fn own(
        &self,
        ctx: ObjectContext<'_>,
        message: Json<WakeMessage>,
    ) -> Result<Json<OwnResult>, HandlerError> {
        let session = ctx.key().to_owned();
        Ok(Json(self.hand_over(&session, message.into_inner()).await))
    }
}

#[cfg(test)]
mod tests;

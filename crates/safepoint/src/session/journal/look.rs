//! How long the store may take for what an opening, or a turn that is resumed, waits for.

use std::time::Duration;

use tokio::time::timeout;

use crate::contract::store::{Cause, Error};

/// For one look. It is more than a write has: a look may stand behind a walk through another journal.
const LOOK: Duration = Duration::from_secs(45);

/// For what makes or takes a session. It is more than a store lets one process wait for the others (S7.15).
pub(super) const OPENING: Duration = Duration::from_secs(120);

/// Waits for a look at the store, within a bound.
pub(in crate::session) async fn looked<T>(asked: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    timeout(LOOK, asked)
        .await
        .unwrap_or_else(|_elapsed| Err(Error::Failed(Cause::new("the store did not answer in time"))))
}

/// Waits for a change by which a session is made or taken, within a bound.
pub(in crate::session) async fn opened<T>(asked: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    timeout(OPENING, asked).await.unwrap_or_else(|_elapsed| Err(super::silent()))
}

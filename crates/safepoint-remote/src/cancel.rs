//! Sends a cancel to a remote agent over HTTP, and reports what is known where no answer counts (S10.3).

use std::{fmt::Display, future::Future, time::Duration};

use safepoint::raw::remote::RemoteStopReply;
use tokio::time::sleep;

use crate::exchange::Broke;

/// How often the adapter tries a cancel while no connection can be made, so that nothing was sent.
const TRIES: u32 = 3;
/// The wait before each further try.
const PAUSE: Duration = Duration::from_millis(100);

/// Sends a cancel once. It tries again only where no connection could be made: a connection that broke may
/// have delivered it.
pub(crate) async fn send<T, F>(mut cancel: impl FnMut() -> F) -> Result<T, Broke>
where
    F: Future<Output = Result<T, Broke>>,
{
    for _ in 1..TRIES {
        match cancel().await {
            Err(Broke::Unreachable(_)) => sleep(PAUSE).await,
            answer => return answer,
        }
    }
    cancel().await
}

/// A cancel that was sent without an answer that counts: the connection broke, or the answer is not about
/// this work.
pub(crate) fn unanswered(why: impl Display) -> RemoteStopReply {
    let mut reply = RemoteStopReply::requested();
    reply.word = format!("sent once: {why}");
    reply
}

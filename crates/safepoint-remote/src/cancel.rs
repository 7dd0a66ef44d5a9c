//! Sends a cancel to a remote agent over HTTP, and reports what is known where no answer counts (S10.3).

use std::{fmt::Display, future::Future, time::Duration};

use safepoint::{
    raw::remote::{RemoteEvent, RemoteStopReply},
    stop::Failure,
};
use tokio::time::sleep;

use crate::exchange::Broke;

/// Whether the work is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Working,
    /// A stop was requested, and the remote agent's report of the work's end counts.
    Stopping,
    /// A stop was requested, and the remote agent's report of the work's end does not count, unless the work
    /// completed.
    Doubted,
}

/// The text for work that was never requested over HTTP.
pub(crate) const NOTHING_SENT: &str = "nothing was sent";

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

/// The end of work that was never requested, for this reason.
pub(crate) fn never_begun(why: &str) -> RemoteEvent {
    RemoteEvent::Failed(Failure::new(why).unreachable().without_effect())
}

/// A cancel that was sent without an answer that counts: the connection broke, or the answer is not about
/// this work.
pub(crate) fn unanswered(why: impl Display) -> RemoteStopReply {
    let mut reply = RemoteStopReply::requested();
    reply.word = format!("sent once: {why}");
    reply
}

//! A stream is no longer than the access of who reads it.

use std::time::Duration;

use axum::{body::Body, http::request::Parts, response::Response};
use futures_util::StreamExt as _;
use tokio::time::sleep;

use crate::access::{Access, Principal};

/// How often it is looked what a reader may: for so long at most one reads whose token is revoked, over, or changed.
const LOOK: Duration = Duration::from_secs(5);

/// The stream, until who asked for it with this head is refused, or may something else than then (S13.45): it comes back, and is checked
/// again.
pub(super) fn while_allowed(response: Response, access: Access, head: Parts, who: Principal) -> Response {
    let over = async move {
        while access.principal(&head).await.is_ok_and(|now| now == who) {
            sleep(LOOK).await;
        }
    };
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(Box::pin(over))))
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    };

    use axum::http::Request;
    use bytes::Bytes;
    use futures_util::stream;
    use tokio::time::timeout;

    use super::*;
    use crate::{access::AccessScope, sse};

    /// S13.45: it ends soon after that, and not before.
    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_with_the_access_of_who_reads_it() {
        const SAME: u8 = 0;
        const FEWER_SCOPES: u8 = 1;
        const REFUSED: u8 = 2;
        let anna = Principal::new("anna", [AccessScope::Read, AccessScope::Talk]);
        for becomes in [FEWER_SCOPES, REFUSED] {
            let is = Arc::new(AtomicU8::new(SAME));
            let (looked, known) = (Arc::clone(&is), anna.clone());
            // Relaxed: there is one thread.
            let access = Access::by(move |_| match looked.load(Ordering::Relaxed) {
                SAME => Some(known.clone()),
                FEWER_SCOPES => Some(Principal::new("anna", [AccessScope::Talk])),
                _ => None,
            });
            let pieces = stream::iter([Bytes::from_static(b"data: 1\n\n")]).chain(stream::pending());
            let (head, ()) = Request::new(()).into_parts();
            let read = while_allowed(sse::streamed(pieces), access, head, anna.clone());
            let mut read = read.into_body().into_data_stream();
            assert_eq!(read.next().await.unwrap().unwrap(), "data: 1\n\n");
            assert!(timeout(LOOK * 10, read.next()).await.is_err(), "it continues while nothing changes");
            // Relaxed: there is one thread.
            is.store(becomes, Ordering::Relaxed);
            assert!(timeout(LOOK, read.next()).await.unwrap().is_none());
        }
    }
}

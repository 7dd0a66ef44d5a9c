//! A stream is no longer than the access of who reads it.

use std::time::Duration;

use axum::{body::Body, http::request::Parts, response::Response};
use futures_util::StreamExt as _;
use tokio::time::sleep;

use crate::access::Access;

/// How often it is looked whether a reader still may read: for so long at most one reads whose token is revoked or over.
const LOOK: Duration = Duration::from_secs(5);

/// The stream, until who asked for it with this head is refused (S13.45).
pub(super) fn while_allowed(response: Response, access: Access, head: Parts) -> Response {
    let over = async move {
        while access.principal(&head).await.is_ok() {
            sleep(LOOK).await;
        }
    };
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(Box::pin(over))))
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };

    use axum::http::Request;
    use bytes::Bytes;
    use futures_util::stream;
    use tokio::time::timeout;

    use super::*;
    use crate::{access::Principal, sse};

    /// S13.45: it ends soon after that, and not before.
    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_with_the_access_of_who_reads_it() {
        let is_valid = Arc::new(AtomicBool::new(true));
        let looked = Arc::clone(&is_valid);
        // Relaxed: there is one thread.
        let access = Access::by(move |_| looked.load(Ordering::Relaxed).then(|| Principal::new("anna", [])));
        let pieces = stream::iter([Bytes::from_static(b"data: 1\n\n")]).chain(stream::pending());
        let (head, ()) = Request::new(()).into_parts();
        let mut read = while_allowed(sse::streamed(pieces), access, head).into_body().into_data_stream();
        assert_eq!(read.next().await.unwrap().unwrap(), "data: 1\n\n");
        assert!(timeout(LOOK * 10, read.next()).await.is_err(), "it continues while the reader may read");
        // Relaxed: there is one thread.
        is_valid.store(false, Ordering::Relaxed);
        assert!(timeout(LOOK, read.next()).await.unwrap().is_none());
    }
}

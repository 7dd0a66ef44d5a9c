//! A stream, and a request that waits, are no longer than the access of who asked for them.

use std::{pin::pin, time::Duration};

use axum::{
    body::Body,
    http::{StatusCode, request::Parts},
    response::Response,
};
use futures_util::{
    StreamExt as _,
    future::{Either, select},
};
use tokio::time::sleep;

use crate::{
    access::{Access, Principal},
    problem::{Answered, Problem},
};

/// How often it is looked what a reader may: for so long at most one reads, or waits, whose token is revoked, over, or changed.
const LOOK: Duration = Duration::from_secs(5);

/// Who asks, as the checks before the body found it.
#[derive(Clone, Copy)]
pub(super) struct Asker<'a> {
    pub(super) access: &'a Access,
    /// What says who it is; none: the route needs no token.
    pub(super) head: Option<&'a Parts>,
    pub(super) who: &'a Principal,
}

impl Asker<'_> {
    /// What this answers, or 401 once the asker is refused, or may something else than then (S13.51). What it has begun goes on as if its
    /// client had gone.
    ///
    /// # Cancel safety
    /// As for the work.
    pub(super) async fn waits<T>(self, work: impl Future<Output = Answered<T>>) -> Answered<T> {
        // The answer first: where both are there, the asker was allowed when it was made.
        match select(pin!(work), pin!(self.refused())).await {
            Either::Left((answered, _)) => answered,
            Either::Right((refused, _)) => Err(refused),
        }
    }

    /// Why it waits no more, once that is so.
    async fn refused(self) -> Problem {
        let Some(head) = self.head else { return std::future::pending().await };
        loop {
            sleep(LOOK).await;
            match self.access.principal(head).await {
                Ok(now) if now == *self.who => {}
                Ok(_) => {
                    let detail = "what this token may do has changed: ask again";
                    return Problem::new(StatusCode::UNAUTHORIZED, "access_changed", detail);
                }
                Err(refused) => return refused,
            }
        }
    }
}

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

    const SAME: u8 = 0;
    const FEWER_SCOPES: u8 = 1;
    const REFUSED: u8 = 2;

    fn anna() -> Principal {
        Principal::new("anna", [AccessScope::Read, AccessScope::Talk])
    }

    /// An access whose word about anna is this.
    fn access() -> (Access, Arc<AtomicU8>) {
        let is = Arc::new(AtomicU8::new(SAME));
        let looked = Arc::clone(&is);
        // Relaxed: there is one thread.
        let access = Access::by(move |_| match looked.load(Ordering::Relaxed) {
            SAME => Some(anna()),
            FEWER_SCOPES => Some(Principal::new("anna", [AccessScope::Talk])),
            _ => None,
        });
        (access, is)
    }

    /// S13.51: a request waits no longer than its access, and as long as it takes while that is the same.
    #[tokio::test(start_paused = true)]
    async fn a_request_waits_no_longer_than_its_access() {
        for (becomes, code) in [(FEWER_SCOPES, "access_changed"), (REFUSED, "no_token")] {
            let (access, is) = access();
            let (head, ()) = Request::new(()).into_parts();
            let asker = Asker { access: &access, head: Some(&head), who: &anna() };
            let long = async {
                sleep(LOOK * 10).await;
                Ok("answered")
            };
            assert_eq!(asker.waits(long).await.unwrap(), "answered");
            let mut waits = pin!(asker.waits(std::future::pending::<Answered<()>>()));
            assert!(timeout(LOOK * 10, &mut waits).await.is_err(), "it waits while nothing changes");
            // Relaxed: there is one thread.
            is.store(becomes, Ordering::Relaxed);
            let refused = timeout(LOOK, &mut waits).await.unwrap().unwrap_err();
            assert_eq!((refused.status(), refused.code()), (StatusCode::UNAUTHORIZED, code));
            let open = Asker { head: None, ..asker };
            assert!(timeout(LOOK * 10, open.waits(std::future::pending::<Answered<()>>())).await.is_err());
        }
    }

    /// S13.45: it ends soon after that, and not before.
    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_with_the_access_of_who_reads_it() {
        for becomes in [FEWER_SCOPES, REFUSED] {
            let (access, is) = access();
            let pieces = stream::iter([Bytes::from_static(b"data: 1\n\n")]).chain(stream::pending());
            let (head, ()) = Request::new(()).into_parts();
            let read = while_allowed(sse::streamed(pieces), access, head, anna());
            let mut read = read.into_body().into_data_stream();
            assert_eq!(read.next().await.unwrap().unwrap(), "data: 1\n\n");
            assert!(timeout(LOOK * 10, read.next()).await.is_err(), "it continues while nothing changes");
            // Relaxed: there is one thread.
            is.store(becomes, Ordering::Relaxed);
            assert!(timeout(LOOK, read.next()).await.unwrap().is_none());
        }
    }
}

//! The head of a response to a call that stands alone: it does not wait for the first message of the call, so that no proxy and no client
//! takes a long call for a dead one.

use std::time::Duration;

use axum::{
    body::{Body, BodyDataStream, to_bytes},
    response::Response,
};
use bytes::Bytes;
use futures_core::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use tokio::time::timeout;

use crate::sse::{self, KEEP_ALIVE, KEPT_ALIVE, streamed};

/// How long the head waits for the first message, whose kind it tells.
const HEAD_WITHIN: Duration = Duration::from_secs(1);

type Answering = BoxFuture<'static, Response>;

/// What a late response streams. Exhaustive: it waits for its first message, has more, or nothing.
enum LateStage {
    Waiting(Answering),
    Reading(BodyDataStream),
    Over,
}

/// The response; if its first message is not soon there, a stream that waits for it.
///
/// # Cancel safety
/// The call is lost.
pub(super) async fn soon(mut answering: Answering) -> Response {
    match timeout(HEAD_WITHIN, &mut answering).await {
        Ok(response) => response,
        Err(_elapsed) => {
            let first = stream::iter([Bytes::from_static(KEPT_ALIVE)]);
            streamed(first.chain(stream::unfold(LateStage::Waiting(answering), next)))
        }
    }
}

async fn next(stage: LateStage) -> Option<(Bytes, LateStage)> {
    let mut body = match stage {
        LateStage::Over => return None,
        LateStage::Reading(body) => body,
        LateStage::Waiting(mut answering) => match timeout(KEEP_ALIVE, &mut answering).await {
            Err(_elapsed) => return Some((Bytes::from_static(KEPT_ALIVE), LateStage::Waiting(answering))),
            Ok(response) if sse::is_stream(&response) => response.into_body().into_data_stream(),
            Ok(response) => return Some((message(response.into_body()).await?, LateStage::Over)),
        },
    };
    let piece = body.next().await?.ok()?;
    Some((piece, LateStage::Reading(body)))
}

/// A message that is the whole of its response.
async fn message(body: Body) -> Option<Bytes> {
    let body = to_bytes(body, usize::MAX).await.ok()?;
    Some([b"data: ", &*body, b"\n\n"].concat().into())
}

#[cfg(test)]
mod tests {
    use axum::http::{StatusCode, header};
    use tokio::time::{Instant, sleep};

    use super::*;

    fn json() -> Response {
        let mut response = Response::new(Body::from("{}"));
        *response.status_mut() = StatusCode::BAD_REQUEST;
        response.headers_mut().insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
        response
    }

    /// S13.18: what is there soon is the response as it is; what is late is streamed, and shows meanwhile that it is there.
    #[tokio::test(start_paused = true)]
    async fn a_late_response_is_streamed() {
        let at_once = soon(Box::pin(async { json() })).await;
        assert_eq!(at_once.status(), StatusCode::BAD_REQUEST);
        let began = Instant::now();
        let late = soon(Box::pin(async {
            sleep(HEAD_WITHIN + KEEP_ALIVE * 2 + HEAD_WITHIN).await;
            json()
        }))
        .await;
        assert_eq!((late.status(), began.elapsed()), (StatusCode::OK, HEAD_WITHIN));
        let body = to_bytes(late.into_body(), usize::MAX).await.unwrap();
        let alive = std::str::from_utf8(KEPT_ALIVE).unwrap();
        assert_eq!(std::str::from_utf8(&body).unwrap(), format!("{}data: {{}}\n\n", alive.repeat(3)));
    }
}

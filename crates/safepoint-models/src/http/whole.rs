//! One exchange whose answer is JSON and no stream of events: sent, tried again before its first byte, read in chunks.
//!
//! **Invariants**: those of the exchange of a reply: nothing is asked for again after the first byte, and every wait ends
//! with the drop of its future.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header::LOCATION};
use safepoint::model::ModelError;
use safepoint_http::{HttpError, Response};
use tokio::time::{sleep, timeout};

use super::{
    Miss, kind,
    outgoing::{Outgoing, read_some},
    refused,
};
use crate::error;

/// The header of requests that want such an answer.
pub(crate) fn accepts_json() -> HeaderMap {
    HeaderMap::from_iter([(http::header::ACCEPT, HeaderValue::from_static("application/json"))])
}

/// An answer while it is read.
pub(crate) struct WholeAnswer {
    response: Response,
    idle: Duration,
}

impl WholeAnswer {
    /// The next part of the answer; none at its end.
    ///
    /// # Cancel safety
    /// What was read is lost.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, ModelError> {
        match timeout(self.idle, self.response.chunk()).await {
            Ok(chunk) => chunk.map_err(error::broken),
            Err(_elapsed) => Err(error::idle(self.idle)),
        }
    }
}

/// Asks, and asks again where that may help, until an answer begins.
///
/// # Cancel safety
/// The exchange is released at once.
pub(crate) async fn ask(outgoing: &Outgoing) -> Result<WholeAnswer, ModelError> {
    let patience = &outgoing.prepared.patience;
    let mut failed = 0;
    loop {
        let answered = timeout(patience.idle, outgoing.request().send()).await;
        let answered = answered.map_err(|_elapsed| error::idle(patience.idle))?;
        let Miss { error, wait, is_worth_a_retry } = match begun(outgoing, answered).await {
            Ok(response) => return Ok(WholeAnswer { response, idle: patience.idle }),
            Err(miss) => miss,
        };
        failed += 1;
        match patience.retry.after(failed, wait) {
            Ok(after) if is_worth_a_retry => sleep(after).await,
            Ok(_) | Err(None) => return Err(error),
            Err(Some(too_long)) => return Err(error.with_hint(too_long)),
        }
    }
}

/// The answer, if it is one.
async fn begun(outgoing: &Outgoing, answered: Result<Response, HttpError>) -> Result<Response, Miss> {
    let prepared = &outgoing.prepared;
    let final_miss = |error| Miss { error, wait: None, is_worth_a_retry: false };
    let response = answered.map_err(|error| {
        // Once the request is out, another try might be billed twice; before that it cannot.
        let is_worth_a_retry = error.is_connect();
        Miss { error: error::unreachable(&prepared.url, error), wait: None, is_worth_a_retry }
    })?;
    let status = response.status();
    if status.is_redirection() {
        let location = response.headers().get(LOCATION);
        return Err(final_miss(error::elsewhere(status.as_u16(), &prepared.url, location)));
    }
    if !status.is_success() {
        return Err(refused(response, Arc::clone(prepared)).await);
    }
    let type_name = kind(&response).to_owned();
    if type_name.is_empty() || type_name.contains("json") {
        return Ok(response.without_headers());
    }
    let body = read_some(response, prepared.patience.idle).await;
    Err(final_miss(match error::provider_words(&body) {
        Some(words) => error::in_stream(&words),
        None => error::malformed(format_args!("it answered with {type_name} where JSON was asked for")),
    }))
}

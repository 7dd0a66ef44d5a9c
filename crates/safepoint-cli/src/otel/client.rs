//! How exports travel: by the client that models are asked with, on a runtime of the exports.

use std::{pin::Pin, str::FromStr as _};

use bytes::Bytes;
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::Handle;
use url::Url;

/// The client. The exporters have threads of their own, where no runtime is.
#[derive(Clone, Debug)]
pub(super) struct Client {
    http: safepoint_http::HttpClient,
    runtime: Handle,
}

impl Client {
    /// # Errors
    /// If the certificates of this machine cannot be loaded.
    pub(super) fn new(runtime: &Handle) -> Result<Self, String> {
        let http = safepoint_http::shared().map_err(|error| error.to_string())?;
        Ok(Self { http, runtime: runtime.clone() })
    }
}

impl HttpClient for Client {
    fn send_bytes<'life0, 'async_trait>(
        &'life0 self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        let Self { http, runtime } = self.clone();
        Box::pin(async move {
            let sent = runtime.spawn(sent(http, request)).await;
            let answer = sent.map_err(HttpError::from).and_then(|sent| sent);
            if let Err(error) = &answer {
                tracing::debug!(%error, "an export to OpenTelemetry failed");
            }
            answer
        })
    }
}

async fn sent(
    http: safepoint_http::HttpClient,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, HttpError> {
    let (parts, body) = request.into_parts();
    let address = Url::from_str(&parts.uri.to_string())?;
    let answer = http.request(parts.method, &address).headers(parts.headers).body(body).send().await?;
    let status = answer.status();
    Ok(Response::builder().status(status).body(answer.bytes().await?)?)
}

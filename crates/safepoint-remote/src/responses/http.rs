//! Exchanges with a provider: one value each, bounded, never repeated here.

use http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};
use safepoint::raw::json;
use safepoint_http::{HttpClient, Request};
use serde_json::Value;
use url::Url;

use super::limits;
use crate::exchange::{self, Broke, send, whole};

/// The HTTP client, the provider's address and the bounds.
#[derive(Clone)]
pub(super) struct Http {
    client: HttpClient,
    pub(super) base: Url,
    pub(super) headers: HeaderMap,
}

impl Http {
    pub(super) fn new(base: Url) -> Result<Self, String> {
        Ok(Self { client: exchange::client()?, base, headers: HeaderMap::new() })
    }

    /// Begins a response.
    pub(super) async fn begin(&self, body: &Value) -> Result<Value, Broke> {
        let kind = HeaderValue::from_static("application/json");
        self.answer(self.client.post(&self.at("")?).header(CONTENT_TYPE, kind).body(body.to_string())).await
    }

    /// The response as it stands.
    pub(super) async fn look(&self, id: &str) -> Result<Value, Broke> {
        self.answer(self.client.get(&self.at(&format!("/{id}"))?)).await
    }

    pub(super) async fn cancel(&self, id: &str) -> Result<Value, Broke> {
        self.answer(self.client.post(&self.at(&format!("/{id}/cancel"))?)).await
    }

    fn at(&self, place: &str) -> Result<Url, Broke> {
        let address = format!("{}/responses{place}", self.base.as_str().trim_end_matches('/'));
        Url::parse(&address).map_err(|error| Broke::Unreachable(error.to_string()))
    }

    async fn answer(&self, request: Request) -> Result<Value, Broke> {
        exchange::within(limits::ANSWER, async {
            let response = send(request.headers(self.headers.clone())).await?;
            let (status, again) = (response.status(), exchange::again(response.headers()));
            let body = whole(response, limits::ANSWER_BYTES).await?;
            let value = json::read(&body);
            if !status.is_success() {
                let message =
                    value.ok().and_then(|value| value["error"]["message"].as_str().map(str::to_owned));
                let message = match message {
                    Some(message) => format!("{message} ({})", status.as_u16()),
                    None => format!("the provider answered {status}"),
                };
                return Err(Broke::Status { status, message, again });
            }
            value.map_err(|error| {
                let shown = String::from_utf8_lossy(&body[..body.len().min(limits::SHOWN)]).into_owned();
                Broke::Foreign(format!("the answer is no JSON ({error}): {shown}"))
            })
        })
        .await
    }
}

//! What is sent to the engine.

use http::{HeaderValue, StatusCode, header};
use safepoint_http::HttpClient;
use url::Url;

use super::handler::WakeMessage;
use crate::{placement::PlacementError, taker::Wake};

/// The object's name with the engine.
const OBJECT: &str = "SafepointSession";

/// The address to which calls are sent.
#[derive(Debug)]
pub(super) struct Ingress {
    client: HttpClient,
    base: Url,
}

impl Ingress {
    pub(super) fn new(base: Url) -> Result<Self, PlacementError> {
        let is_usable = matches!(base.scheme(), "http" | "https")
            && base.host().is_some()
            && base.username().is_empty()
            && base.password().is_none();
        if !is_usable {
            return Err(PlacementError::new(
                "the address of the ingress is http://HOST:PORT or https://…, without a user",
            ));
        }
        let client = safepoint_http::shared()
            .map_err(|error| PlacementError::new("cannot make a client of the engine").because(error))?;
        Ok(Self { client, base })
    }

    /// Asks the engine to bring this to a node. A wake that it refuses alone is lost: the session is named again.
    pub(super) async fn send(&self, wake: &Wake) -> Result<(), PlacementError> {
        if matches!(wake.session.as_str(), "" | "." | "..") {
            // An address has no such segment.
            return Ok(());
        }
        let message = WakeMessage { pool: wake.pool.clone(), priority: wake.priority, tries: wake.tries };
        let body = serde_json::to_string(&message)
            .map_err(|error| PlacementError::new("cannot write a wake").because(error))?;
        let json = HeaderValue::from_static("application/json");
        let request = self.client.post(&self.address(wake)).header(header::CONTENT_TYPE, json).body(body);
        let mut answer = request.send().await.map_err(|error| {
            PlacementError::new(format!("cannot reach the ingress {}", self.base)).because(error)
        })?;
        let status = answer.status();
        /// What is read of an answer, so that its connection can be used again.
        const MOST: usize = 1 << 16;
        let mut read = 0;
        while let Ok(Some(bytes)) = answer.chunk().await {
            read += bytes.len();
            if read > MOST {
                break;
            }
        }
        self.judged(status)
    }

    fn judged(&self, status: StatusCode) -> Result<(), PlacementError> {
        match status {
            StatusCode::NOT_FOUND => Err(PlacementError::new(format!(
                "the engine at {} knows no object {OBJECT}: register the address of the nodes with its admin API, \
                 `curl -H 'content-type: application/json' -d '{{\"uri\": \"http://NODES:9080\"}}' http://ADMIN:9070/deployments`",
                self.base
            ))),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS => {
                Err(PlacementError::new(format!("the ingress {} refuses wakes: {status}", self.base)))
            }
            status if status.is_success() || status.is_client_error() => Ok(()),
            status => Err(PlacementError::new(format!("the ingress {} answers {status}", self.base))),
        }
    }

    fn address(&self, wake: &Wake) -> Url {
        let mut address = self.base.clone();
        if let Ok(mut path) = address.path_segments_mut() {
            path.pop_if_empty().extend([OBJECT, wake.session.as_str(), "own", "send"]);
        }
        address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S7.72: a session is one segment of the address, whatever its name.
    #[test]
    fn any_name_is_one_segment() {
        let ingress = Ingress::new("http://engine:8080/base/".parse().unwrap()).unwrap();
        let of = |name: &str| ingress.address(&Wake::of(name)).to_string();
        assert_eq!(of("trip"), "http://engine:8080/base/SafepointSession/trip/own/send");
        assert_eq!(of("a/b?c#d"), "http://engine:8080/base/SafepointSession/a%2Fb%3Fc%23d/own/send");
        assert!(of("ü\0").ends_with("/%C3%BC%00/own/send"));
        for wrong in ["ftp://a", "http://u:p@a"] {
            let error = Ingress::new(wrong.parse().unwrap()).unwrap_err();
            assert!(!error.to_string().contains("u:p"), "{error}");
        }
    }

    /// S7.72: one wake that is refused alone says nothing of the engine.
    #[test]
    fn an_answer_says_whether_the_engine_can_be_used() {
        let ingress = Ingress::new("http://engine:8080".parse().unwrap()).unwrap();
        let is_used = |status: u16| ingress.judged(StatusCode::from_u16(status).unwrap()).is_ok();
        assert!(is_used(202) && is_used(200) && is_used(400) && is_used(413));
        assert!(!is_used(404) && !is_used(401) && !is_used(429) && !is_used(503) && !is_used(302));
    }
}

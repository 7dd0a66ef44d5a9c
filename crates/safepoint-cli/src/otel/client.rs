//! How exports travel: by the client that models are asked with, on a runtime of the exports.
//!
//! **Invariants**: an export ends within a bound, whatever the collector does: the next one waits for it.

use std::{pin::Pin, str::FromStr as _, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use tokio::{runtime::Handle, time::timeout};
use url::Url;

/// The client. The exporters have threads of their own, where no runtime is.
#[derive(Clone, Debug)]
pub(super) struct Client {
    http: safepoint_http::HttpClient,
    runtime: Handle,
    /// How long one export may take.
    within: Duration,
}

impl Client {
    /// # Errors
    /// If the certificates of this machine cannot be loaded.
    pub(super) fn new(runtime: &Handle, within: Duration) -> Result<Self, String> {
        let http = safepoint_http::shared().map_err(|error| error.to_string())?;
        Ok(Self { http, runtime: runtime.clone(), within })
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
        let Self { http, runtime, within } = self.clone();
        Box::pin(async move {
            // The timer is made there too: here is no runtime.
            let sent = runtime.spawn(async move { timeout(within, sent(http, request)).await }).await;
            let late = |_elapsed| format!("no answer within {} ms", within.as_millis()).into();
            let answer =
                sent.map_err(HttpError::from).and_then(|sent| sent.unwrap_or_else(|over| Err(late(over))));
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

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::TcpListener,
        sync::Arc,
        task::{Context, Poll, Wake},
        thread::{self, Thread},
    };

    use super::*;

    fn export(listener: &TcpListener) -> Request<Bytes> {
        let address = format!("http://{}/v1/traces", listener.local_addr().unwrap());
        Request::post(address).body(Bytes::from_static(b"spans")).unwrap()
    }

    struct Unparks(Thread);

    impl Wake for Unparks {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    /// Sends it as an exporter does: on a thread that has no runtime.
    fn sends(client: &Client, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let waker = Arc::new(Unparks(thread::current())).into();
        let mut sends = client.send_bytes(request);
        loop {
            match sends.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(answer) => return answer,
                Poll::Pending => thread::park(),
            }
        }
    }

    /// S11.13: a collector that takes a connection and never answers does not end the exports: the next one is sent.
    #[test]
    fn a_collector_that_is_mute_ends_no_later_export() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let client = Client::new(runtime.handle(), Duration::from_millis(50)).unwrap();
        let mute = TcpListener::bind("127.0.0.1:0").unwrap();
        let failed = sends(&client, export(&mute));
        assert!(failed.unwrap_err().to_string().contains("no answer within 50 ms"));
        let client = Client { within: Duration::from_secs(60), ..client };
        let answers = TcpListener::bind("127.0.0.1:0").unwrap();
        let request = export(&answers);
        let answering = thread::spawn(move || {
            let (mut stream, _) = answers.accept().unwrap();
            let mut asked = Vec::new();
            while !asked.ends_with(b"spans") {
                let mut more = [0; 512];
                let read = stream.read(&mut more).unwrap();
                asked.extend_from_slice(&more[..read]);
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        });
        let answered = sends(&client, request).unwrap();
        assert_eq!(answered.status(), 200);
        answering.join().unwrap();
    }
}

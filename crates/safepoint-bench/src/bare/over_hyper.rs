//! The bare loop over `hyper`: one connection for each agent, polled by the agent's own future.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
};

use anyhow::Context as _;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request,
    client::conn::http1::{self, Connection, SendRequest},
    header::{AUTHORIZATION, CONTENT_TYPE, HOST},
};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::{Events, Transport, reply::BareReply};

/// Where its agents connect to.
#[derive(Clone)]
pub(crate) struct HyperLoop {
    authority: Arc<str>,
}

impl HyperLoop {
    /// For a base URL such as `http://127.0.0.1:8080/v1`.
    pub(crate) fn to(url: &str) -> Self {
        let authority = url.trim_start_matches("http://").split('/').next().unwrap_or_default();
        Self { authority: authority.into() }
    }

    pub(super) fn agent(&self) -> HyperTransport {
        HyperTransport { authority: Arc::clone(&self.authority), link: None }
    }
}

pub(super) struct HyperTransport {
    authority: Arc<str>,
    link: Option<Link>,
}

struct Link {
    sender: SendRequest<Full<Bytes>>,
    connection: Pin<Box<Connection<TokioIo<TcpStream>, Full<Bytes>>>>,
}

impl Link {
    async fn to(authority: &str) -> anyhow::Result<Self> {
        let socket = TcpStream::connect(authority).await?;
        socket.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
        Ok(Self { sender, connection: Box::pin(connection) })
    }
}

impl Transport for HyperTransport {
    async fn exchange(&mut self, body: Bytes) -> anyhow::Result<BareReply> {
        let Link { sender, connection } = match &mut self.link {
            Some(link) => link,
            none => none.insert(Link::to(&self.authority).await?),
        };
        let request = Request::post("/v1/chat/completions")
            .header(HOST, &*self.authority)
            .header(CONTENT_TYPE, "application/json")
            .header(AUTHORIZATION, "Bearer key")
            .body(Full::new(body))?;
        let mut response = driven(connection, sender.send_request(request)).await??;
        anyhow::ensure!(response.status().is_success(), "the server said {}", response.status());
        let mut events = Events::default();
        while let Some(frame) = driven(connection, response.body_mut().frame()).await? {
            if let Some(piece) = frame?.data_ref() {
                events.take(piece)?;
            }
        }
        Ok(events.reply)
    }
}

/// Polls the connection while an exchange waits on it.
async fn driven<T>(
    connection: &mut Pin<Box<Connection<TokioIo<TcpStream>, Full<Bytes>>>>,
    exchange: impl Future<Output = T>,
) -> anyhow::Result<T> {
    let mut exchange = pin!(exchange);
    let mut is_closed = false;
    poll_fn(|cx| {
        if let Poll::Ready(done) = exchange.as_mut().poll(cx) {
            return Poll::Ready(Some(done));
        }
        is_closed = is_closed || connection.as_mut().poll(cx).is_ready();
        // What the connection has read may be what the exchange waits for.
        match exchange.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if is_closed => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
    .context("the connection was closed")
}

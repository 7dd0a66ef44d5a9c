//! An answer that streams a session's events, written by its server itself from the head on: what comes for many readers at once
//! needs no task of each then.

use std::{io, pin::pin};

use axum::{
    body::Body,
    http::{HeaderValue, Method, Request, Version, header, response},
    response::Response,
};
use futures_util::{StreamExt as _, future::select};
use jiff::{Timestamp, fmt::rfc2822::DateTimePrinter};
use safepoint::stop::Scope;
use tokio::net::TcpStream;

use crate::{fan::Outlet, sse::DirectBody};

/// An answer that is written so.
pub(super) struct DirectAnswer {
    direct: DirectBody,
    response: Response,
}

impl DirectAnswer {
    /// # Errors
    /// The answer: it is to be written as all others.
    pub(super) fn of(request: &RequestLine, response: Response) -> Result<Self, Box<Response>> {
        match response.extensions().get::<DirectBody>().cloned() {
            Some(direct) if request.takes_chunks => Ok(Self { direct, response }),
            _ => Err(Box::new(response)),
        }
    }

    /// Writes it, until it ends or the client has gone.
    ///
    /// # Cancel safety
    /// A part of it was written.
    pub(super) async fn write(self, socket: TcpStream, scope: Scope) {
        let outlet = Outlet::new(socket, scope);
        self.direct.is_written_to(&outlet);
        let written = pin!(write(&outlet, self.response));
        let left = pin!(outlet.is_left());
        // Whichever is first; who has gone has no use for the rest.
        drop(select(written, left).await);
    }
}

async fn write(outlet: &Outlet, response: Response) -> io::Result<()> {
    let (head, body) = response.into_parts();
    outlet.write_head(&text(head)).await?;
    let mut pieces = Body::into_data_stream(body);
    while let Some(piece) = pieces.next().await {
        outlet.write(&piece.map_err(io::Error::other)?).await?;
    }
    outlet.end().await
}

/// What of a request says how it may be answered.
pub(super) struct RequestLine {
    takes_chunks: bool,
}

impl RequestLine {
    /// Of a request that came on a socket, or not.
    pub(super) fn of<T>(request: &Request<T>, has_socket: bool) -> Self {
        let is_read = request.version() == Version::HTTP_11 && request.method() != Method::HEAD;
        Self { takes_chunks: has_socket && is_read }
    }
}

/// The head of an answer whose body comes in chunks, and after which the connection ends.
fn text(mut head: response::Parts) -> Vec<u8> {
    let headers = &mut head.headers;
    headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    if let Ok(date) = DateTimePrinter::new().timestamp_to_rfc9110_string(&Timestamp::now())
        && let Ok(date) = HeaderValue::try_from(date)
    {
        headers.insert(header::DATE, date);
    }
    let mut text = format!("HTTP/1.1 {}\r\n", head.status).into_bytes();
    for (name, value) in &head.headers {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            text.extend_from_slice(part);
        }
    }
    text.extend_from_slice(b"\r\n");
    text
}

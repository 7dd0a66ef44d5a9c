//! Reading one HTTP/1.1 request.

use std::io;

use serde_json::Value;
use tokio::{io::AsyncReadExt as _, net::TcpStream};

/// The wire that a request speaks. Exhaustive: the two that the server knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// `…/chat/completions`.
    OpenAi,
    /// `…/messages`.
    Anthropic,
}

pub(super) struct Request {
    pub(super) wire: Wire,
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Value,
}

/// What came: a request, one for nobody, or the end of the connection.
pub(super) enum Incoming {
    Request(Request),
    Unknown(String),
    NotJson,
    End,
}

const MOST_HEADERS: usize = 64;
const MOST_HEAD: usize = 64 << 10;

/// Reads the next request; `buffer` keeps what was read beyond it.
pub(super) async fn read(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Incoming> {
    let (head, path, headers) = loop {
        if let Some(parsed) = parse(buffer)? {
            break parsed;
        }
        if buffer.len() > MOST_HEAD {
            return Err(io::Error::other("the request's head is too large"));
        }
        if socket.read_buf(buffer).await? == 0 {
            return Ok(Incoming::End);
        }
    };
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .map_or(Ok(0), |(_, value)| value.parse::<usize>().map_err(io::Error::other))?;
    while buffer.len() < head + length {
        if socket.read_buf(buffer).await? == 0 {
            return Ok(Incoming::End);
        }
    }
    let body = serde_json::from_slice(&buffer[head..head + length]);
    buffer.drain(..head + length);
    let wire = match &*path {
        path if path.ends_with("/chat/completions") => Wire::OpenAi,
        path if path.ends_with("/messages") => Wire::Anthropic,
        _ => return Ok(Incoming::Unknown(path)),
    };
    Ok(match body {
        Ok(body) => Incoming::Request(Request { wire, path, headers, body }),
        Err(_not_json) => Incoming::NotJson,
    })
}

type Head = (usize, String, Vec<(String, String)>);

fn parse(buffer: &[u8]) -> io::Result<Option<Head>> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(buffer).map_err(io::Error::other)? {
        httparse::Status::Partial => Ok(None),
        httparse::Status::Complete(head) => {
            let path = request.path.unwrap_or_default().to_owned();
            let headers = request
                .headers
                .iter()
                .map(|header| {
                    (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).into_owned())
                })
                .collect();
            Ok(Some((head, path, headers)))
        }
    }
}

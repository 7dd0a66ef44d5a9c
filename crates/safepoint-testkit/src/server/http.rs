//! Reading one HTTP/1.1 request.

use std::io;

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::kept;
use crate::oracle;

/// The wire that a request speaks. Exhaustive: those that the server knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServedWire {
    /// `…/chat/completions`.
    OpenAi,
    /// `…/messages`.
    Anthropic,
    /// `…/responses`.
    Responses,
    /// `…/models/NAME:generateContent` and `…:streamGenerateContent`.
    Gemini,
}

impl ServedWire {
    /// Its name: `openai`, `anthropic`, `responses` or `gemini`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Responses => "responses",
            Self::Gemini => "gemini",
        }
    }

    /// The body of the 400 with which the provider would refuse this request; none if it would take it.
    #[must_use]
    pub fn judge(self, body: &Value) -> Option<Value> {
        match self {
            Self::OpenAi => oracle::openai(body).err().map(|violation| violation.openai_body()),
            Self::Anthropic => oracle::anthropic(body).err().map(|violation| violation.anthropic_body()),
            Self::Responses => oracle::responses(body).err().map(|violation| violation.openai_body()),
            Self::Gemini => oracle::gemini(body).err().map(|violation| violation.gemini_body()),
        }
    }

    fn of(path: &str) -> Option<Self> {
        if Gemini::of(path).is_some() {
            return Some(Self::Gemini);
        }
        let path = path.split('?').next().unwrap_or_default();
        if path.ends_with("/chat/completions") {
            return Some(Self::OpenAi);
        }
        if path.ends_with("/responses") {
            return Some(Self::Responses);
        }
        path.ends_with("/messages").then_some(Self::Anthropic)
    }
}

/// What Gemini says in the path: the model, and whether it streams.
pub(super) struct Gemini<'p> {
    pub(super) model: &'p str,
    pub(super) streams: bool,
}

impl<'p> Gemini<'p> {
    pub(super) fn of(path: &'p str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default();
        let (_, model) = path.rsplit_once("/models/")?;
        let (model, verb) = model.split_once(':')?;
        let streams = match verb {
            "streamGenerateContent" => true,
            "generateContent" => false,
            _ => return None,
        };
        Some(Self { model, streams })
    }
}

#[derive(Debug)]
pub(super) struct Request {
    pub(super) wire: ServedWire,
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// What came: a request, one for nobody, or the end of the connection.
pub(super) enum Incoming {
    Request(Request),
    /// A request about a response that the server keeps, and who asks.
    Kept(kept::Ask, Option<String>),
    Unknown {
        method: String,
        path: String,
    },
    End,
}

const MOST_HEADERS: usize = 64;
const MOST_HEAD: usize = 64 << 10;
const FIRST_READ: usize = 2 << 10;

/// Reads the next request; `buffer` keeps what was read beyond it.
pub(super) async fn read(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Incoming> {
    let head = loop {
        if let Some(head) = parse(buffer)? {
            break head;
        }
        if buffer.len() > MOST_HEAD {
            return Err(io::Error::other("the request's head is too large"));
        }
        buffer.reserve(FIRST_READ);
        if socket.read_buf(buffer).await? == 0 {
            return Ok(Incoming::End);
        }
    };
    buffer.drain(..head.length);
    if head.value("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
        socket.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
    }
    let Some(body) = body(socket, buffer, &head).await? else { return Ok(Incoming::End) };
    let Head { method, path, headers, .. } = head;
    if let Some(ask) = kept::Ask::of(&method, &path) {
        return Ok(Incoming::Kept(ask, authorization(&headers)));
    }
    Ok(match ServedWire::of(&path) {
        Some(wire) if method == "POST" => Incoming::Request(Request { wire, path, headers, body }),
        Some(_) | None => Incoming::Unknown { method, path },
    })
}

/// Who asks, as the request says.
pub(super) fn authorization(headers: &[(String, String)]) -> Option<String> {
    headers.iter().find(|(name, _)| name == "authorization").map(|(_, value)| value.clone())
}

/// The body, by its length or in chunks; none if the connection ended first.
async fn body(socket: &mut TcpStream, buffer: &mut Vec<u8>, head: &Head) -> io::Result<Option<Vec<u8>>> {
    if head.value("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        return chunked(socket, buffer).await;
    }
    let length = match head.value("content-length") {
        Some(value) => value.parse().map_err(io::Error::other)?,
        None => 0,
    };
    if !fill(socket, buffer, length).await? {
        return Ok(None);
    }
    Ok(Some(take(buffer, length)))
}

async fn chunked(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    loop {
        let (line, size) = match httparse::parse_chunk_size(buffer) {
            Ok(httparse::Status::Complete(parsed)) => parsed,
            Ok(httparse::Status::Partial) => {
                if !fill(socket, buffer, buffer.len() + 1).await? {
                    return Ok(None);
                }
                continue;
            }
            Err(_invalid) => return Err(io::Error::other("the request's chunk has no size")),
        };
        let size = usize::try_from(size).map_err(io::Error::other)?;
        let line_end = 2;
        if !fill(socket, buffer, line + size + line_end).await? {
            return Ok(None);
        }
        body.extend_from_slice(&buffer[line..line + size]);
        buffer.drain(..line + size + line_end);
        if size == 0 {
            return Ok(Some(body));
        }
    }
}

/// Reads until the buffer holds so many bytes; false if the connection ended first.
async fn fill(socket: &mut TcpStream, buffer: &mut Vec<u8>, length: usize) -> io::Result<bool> {
    buffer.reserve(length.saturating_sub(buffer.len()));
    while buffer.len() < length {
        if socket.read_buf(buffer).await? == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

fn take(buffer: &mut Vec<u8>, length: usize) -> Vec<u8> {
    let rest = buffer.split_off(length);
    std::mem::replace(buffer, rest)
}

struct Head {
    length: usize,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
}

impl Head {
    fn value(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

fn parse(buffer: &[u8]) -> io::Result<Option<Head>> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(buffer).map_err(io::Error::other)? {
        httparse::Status::Partial => Ok(None),
        httparse::Status::Complete(length) => {
            let method = request.method.unwrap_or_default().to_owned();
            let path = request.path.unwrap_or_default().to_owned();
            let headers = request
                .headers
                .iter()
                .map(|header| {
                    (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).into_owned())
                })
                .collect();
            Ok(Some(Head { length, method, path, headers }))
        }
    }
}

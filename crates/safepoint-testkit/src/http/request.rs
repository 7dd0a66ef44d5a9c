//! One request, and the parsing of its head.

use std::io;

const MAX_HEADERS: usize = 64;

/// A request that arrived whole.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The path, with its query.
    pub(crate) path: String,
    /// Names are in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// The value of a header; its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }
}

/// The value of a header; its name in lower case.
pub(crate) fn header<'h>(headers: &'h [(String, String)], name: &str) -> Option<&'h str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// What precedes a body.
pub(super) struct Head {
    /// Its bytes.
    pub(super) length: usize,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
}

impl Head {
    /// Parses the head that the buffer begins with; none if it is incomplete.
    pub(super) fn parse(buffer: &[u8]) -> io::Result<Option<Self>> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let httparse::Status::Complete(length) = request.parse(buffer).map_err(io::Error::other)? else {
            return Ok(None);
        };
        let owned = |header: &httparse::Header<'_>| {
            (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).into_owned())
        };
        Ok(Some(Self {
            length,
            method: request.method.unwrap_or_default().to_owned(),
            path: request.path.unwrap_or_default().to_owned(),
            headers: request.headers.iter().map(owned).collect(),
        }))
    }

    pub(super) fn expects_continue(&self) -> bool {
        header(&self.headers, "expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue"))
    }

    pub(super) fn is_chunked(&self) -> bool {
        header(&self.headers, "transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"))
    }

    pub(super) fn content_length(&self) -> io::Result<usize> {
        header(&self.headers, "content-length").map_or(Ok(0), |value| value.parse().map_err(io::Error::other))
    }

    pub(super) fn with_body(self, body: Vec<u8>) -> Request {
        let Self { method, path, headers, .. } = self;
        Request { method, path, headers, body }
    }
}

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

    /// Parses the head that the buffer begins with: the request without its body, and the bytes of the head; none
    /// if it is incomplete.
    pub(super) fn parse(buffer: &[u8]) -> io::Result<Option<(Self, usize)>> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let httparse::Status::Complete(length) = request.parse(buffer).map_err(io::Error::other)? else {
            return Ok(None);
        };
        let owned = |header: &httparse::Header<'_>| {
            (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).into_owned())
        };
        let parsed = Self {
            method: request.method.unwrap_or_default().to_owned(),
            path: request.path.unwrap_or_default().to_owned(),
            headers: request.headers.iter().map(owned).collect(),
            body: Vec::new(),
        };
        Ok(Some((parsed, length)))
    }

    pub(super) fn expects_continue(&self) -> bool {
        self.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue"))
    }

    pub(super) fn is_chunked(&self) -> bool {
        self.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"))
    }

    pub(super) fn content_length(&self) -> io::Result<usize> {
        self.header("content-length").map_or(Ok(0), |value| value.parse().map_err(io::Error::other))
    }
}

/// The value of a header; its name in lower case.
pub(crate) fn header<'h>(headers: &'h [(String, String)], name: &str) -> Option<&'h str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

//! Reading one HTTP/1.1 request whose body has a length.

use std::io;

use tokio::{io::AsyncReadExt as _, net::TcpStream};

const MOST_HEADERS: usize = 64;

/// A request.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) authorization: Option<String>,
    /// What may be answered with.
    pub(crate) accept: Option<String>,
    /// The session of a protocol that has them.
    pub(crate) session: Option<String>,
    pub(crate) body: Vec<u8>,
}

/// The next request; none at the end. `buffer` keeps what was read beyond it.
pub(crate) async fn read(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<Request>> {
    loop {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut head = httparse::Request::new(&mut headers);
        let parsed = head.parse(buffer).map_err(io::Error::other)?;
        if let httparse::Status::Complete(end) = parsed {
            let method = head.method.unwrap_or_default().to_owned();
            let path = head.path.unwrap_or_default().to_owned();
            let length =
                head.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
            let length = length.and_then(|header| std::str::from_utf8(header.value).ok()?.parse().ok());
            let value = |name: &str| {
                let header = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
                header.map(|header| String::from_utf8_lossy(header.value).into_owned())
            };
            let (authorization, session) = (value("authorization"), value("mcp-session-id"));
            let accept = value("accept");
            let whole = end + length.unwrap_or(0_usize);
            while buffer.len() < whole {
                if socket.read_buf(buffer).await? == 0 {
                    return Ok(None);
                }
            }
            let body = buffer[end..whole].to_vec();
            buffer.drain(..whole);
            return Ok(Some(Request { method, path, authorization, accept, session, body }));
        }
        if socket.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

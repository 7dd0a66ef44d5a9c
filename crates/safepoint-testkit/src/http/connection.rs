//! One connection: requests are read from it, bytes are written to it, and its peer is watched.
//!
//! **Invariants**: every byte that was read lies in the buffer until a request takes it.

use std::io;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{Request, response};

const MAX_HEAD: usize = 64 << 10;
const FIRST_READ: usize = 2 << 10;

/// The server's end of a connection. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(super) fn new(socket: TcpStream) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        Ok(Self { socket, buffer: Vec::new() })
    }

    /// Reads the next request; none if the peer closed first.
    ///
    /// # Errors
    /// If the connection breaks, or what came is no request.
    pub(crate) async fn request(&mut self) -> io::Result<Option<Request>> {
        let (mut request, head) = loop {
            if let Some(parsed) = Request::parse(&self.buffer)? {
                break parsed;
            }
            if self.buffer.len() > MAX_HEAD {
                return Err(io::Error::other("the request's head is too large"));
            }
            self.buffer.reserve(FIRST_READ);
            if self.socket.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        };
        self.buffer.drain(..head);
        if request.expects_continue() {
            self.write(response::CONTINUE).await?;
        }
        let body = if request.is_chunked() {
            self.chunked_body().await?
        } else {
            let length = request.content_length()?;
            self.fill(length).await?.then(|| self.take(length))
        };
        Ok(body.map(|body| {
            request.body = body;
            request
        }))
    }

    /// Reads a body in chunks; none if the peer closed first.
    async fn chunked_body(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut body = Vec::new();
        loop {
            let (line, size) = match httparse::parse_chunk_size(&self.buffer) {
                Ok(httparse::Status::Complete(parsed)) => parsed,
                Ok(httparse::Status::Partial) => {
                    if !self.fill(self.buffer.len() + 1).await? {
                        return Ok(None);
                    }
                    continue;
                }
                Err(_invalid) => return Err(io::Error::other("the request's chunk has no size")),
            };
            let size = usize::try_from(size).map_err(io::Error::other)?;
            let line_end = 2;
            if !self.fill(line + size + line_end).await? {
                return Ok(None);
            }
            body.extend_from_slice(&self.buffer[line..line + size]);
            self.buffer.drain(..line + size + line_end);
            if size == 0 {
                return Ok(Some(body));
            }
        }
    }

    /// Reads until the buffer has `length` bytes; false if the peer closed first.
    async fn fill(&mut self, length: usize) -> io::Result<bool> {
        self.buffer.reserve(length.saturating_sub(self.buffer.len()));
        while self.buffer.len() < length {
            if self.socket.read_buf(&mut self.buffer).await? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        let rest = self.buffer.split_off(length);
        std::mem::replace(&mut self.buffer, rest)
    }

    /// Writes bytes of a response.
    ///
    /// # Errors
    /// If the peer closed.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes).await
    }

    /// Writes a whole response.
    pub(crate) async fn respond(&mut self, status: &str, kind: &str, body: &str) -> io::Result<()> {
        self.write(&response::whole(status, kind, &[], body.as_bytes())).await
    }

    /// Writes one chunk of a stream.
    pub(crate) async fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write(&response::chunk(bytes)).await
    }

    /// Waits until the peer closes its side.
    ///
    /// # Cancel safety
    /// Nothing is lost: what the peer sends is in the buffer.
    pub(crate) async fn closed(&mut self) {
        self.closed_counting(|_bytes| {}).await;
    }

    /// Waits until the peer closes its side, and reports how many bytes it sends meanwhile, read by read.
    ///
    /// # Cancel safety
    /// Nothing is lost: what the peer sends is in the buffer.
    pub(crate) async fn closed_counting(&mut self, mut on_bytes: impl FnMut(usize)) {
        loop {
            match self.socket.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return,
                Ok(bytes) => on_bytes(bytes),
            }
        }
    }

    /// Makes the connection end with a reset instead of a close.
    pub(crate) fn reset_on_drop(&self) -> io::Result<()> {
        self.socket.set_zero_linger()
    }
}

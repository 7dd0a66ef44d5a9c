//! A socket on which the body of an answer is written in chunks.

use std::{
    io::{self, ErrorKind},
    mem,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use bytes::{BufMut as _, Bytes, BytesMut};
use safepoint::stop::Scope;
use tokio::{net::TcpStream, task::coop::consume_budget, time::timeout};

/// How long a client may take nothing of what is sent.
pub(crate) const STALLED: Duration = Duration::from_secs(30);
/// The end of a body in chunks.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Such a socket (RFC 9112, 7.1).
#[derive(Clone, Debug)]
pub(crate) struct Outlet(Arc<OutletParts>);

#[derive(Debug)]
struct OutletParts {
    socket: TcpStream,
    /// What writes to it belongs to this.
    scope: Scope,
    /// What the client did not take of a chunk of the fan. Held for one look; no other lock is taken under it.
    rest: Mutex<Bytes>,
}

/// How much of a chunk a client took. Exhaustive: all, not all, or it has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Whole,
    Part,
    Gone,
}

impl Outlet {
    /// An outlet to this client, for a server of this scope.
    pub(crate) fn new(socket: TcpStream, scope: Scope) -> Self {
        Self(Arc::new(OutletParts { socket, scope, rest: Mutex::default() }))
    }

    pub(super) fn scope(&self) -> &Scope {
        &self.0.scope
    }

    /// Writes the head of the answer.
    ///
    /// # Errors
    /// The client has gone, or took nothing for [`STALLED`].
    ///
    /// # Cancel safety
    /// A part of it may have been written.
    pub(crate) async fn write_head(&self, head: &[u8]) -> io::Result<()> {
        self.write_all(head).await
    }

    /// Writes what was left, then this; nothing of it is empty.
    ///
    /// # Errors
    /// As for [`write_head`](Self::write_head).
    ///
    /// # Cancel safety
    /// A part of it may have been written.
    pub(crate) async fn write(&self, piece: &[u8]) -> io::Result<()> {
        let rest = mem::take(&mut *self.rest());
        self.write_all(&rest).await?;
        if piece.is_empty() {
            return Ok(());
        }
        self.write_all(&chunk(&[piece])).await
    }

    /// Says that the body has ended.
    ///
    /// # Errors
    /// As for [`write_head`](Self::write_head).
    ///
    /// # Cancel safety
    /// A part of it may have been written.
    pub(crate) async fn end(&self) -> io::Result<()> {
        self.write_all(LAST_CHUNK).await
    }

    /// Waits until the client has closed its side. What it sends is dropped: this answer is the last one.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn is_left(&self) {
        let mut dropped = [0; 512];
        while self.0.socket.readable().await.is_ok() {
            match self.0.socket.try_read(&mut dropped) {
                Ok(0) => return,
                Err(error) if error.kind() != ErrorKind::WouldBlock => return,
                Ok(_) | Err(_) => {}
            }
        }
    }

    async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.0.socket.try_write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    timeout(STALLED, self.0.socket.writable())
                        .await
                        .map_err(|_elapsed| ErrorKind::TimedOut)??;
                }
                Err(error) => return Err(error),
            }
        }
        // A client that takes all at once is in the way of no other.
        consume_budget().await;
        Ok(())
    }

    /// Writes as much of a chunk as the client takes now, and keeps the rest.
    pub(super) fn write_now(&self, chunk: &Bytes) -> Taken {
        let count = match self.0.socket.try_write(chunk) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(_gone) => return Taken::Gone,
        };
        if count == chunk.len() {
            return Taken::Whole;
        }
        *self.rest() = chunk.slice(count..);
        Taken::Part
    }

    fn rest(&self) -> MutexGuard<'_, Bytes> {
        self.0.rest.lock().expect("no code under this lock panics")
    }
}

/// These pieces as one chunk; none of nothing, which would be the last one.
pub(super) fn chunk(pieces: &[&[u8]]) -> Bytes {
    let long: usize = pieces.iter().map(|piece| piece.len()).sum();
    if long == 0 {
        return Bytes::new();
    }
    let size = format!("{long:x}\r\n");
    let mut chunk = BytesMut::with_capacity(size.len() + long + 2);
    chunk.put_slice(size.as_bytes());
    pieces.iter().for_each(|piece| chunk.put_slice(piece));
    chunk.put_slice(b"\r\n");
    chunk.freeze()
}

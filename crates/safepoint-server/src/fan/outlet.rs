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
    /// Held while the fan writes a chunk, which waits for nothing; no other lock is taken under it.
    body: Mutex<OutletBody>,
}

/// How far the body of an answer is. Exhaustive: more may come behind what the client did not take of a chunk of the fan, or
/// nothing comes any more.
#[derive(Debug)]
enum OutletBody {
    Open { rest: Bytes },
    Ended,
}

/// How much of a chunk a client took. Exhaustive: all, not all, or nothing is for it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Whole,
    Part,
    Gone,
}

impl Outlet {
    /// An outlet to this client, for a server of this scope.
    pub(crate) fn new(socket: TcpStream, scope: Scope) -> Self {
        let body = Mutex::new(OutletBody::Open { rest: Bytes::new() });
        Self(Arc::new(OutletParts { socket, scope, body }))
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
        let rest = match &mut *self.body() {
            OutletBody::Open { rest } => mem::take(rest),
            OutletBody::Ended => return Ok(()),
        };
        self.write_all(&rest).await?;
        if piece.is_empty() {
            return Ok(());
        }
        self.write_all(&chunk(&[piece])).await
    }

    /// Writes what was left, and that the body has ended: the fan writes nothing behind that, whatever its reader does.
    ///
    /// # Errors
    /// As for [`write_head`](Self::write_head).
    ///
    /// # Cancel safety
    /// A part of it may have been written.
    pub(crate) async fn end(&self) -> io::Result<()> {
        let body = mem::replace(&mut *self.body(), OutletBody::Ended);
        if let OutletBody::Open { rest } = body {
            self.write_all(&rest).await?;
            self.write_all(LAST_CHUNK).await?;
        }
        Ok(())
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
        let mut body = self.body();
        let OutletBody::Open { rest } = &mut *body else { return Taken::Gone };
        let count = match self.0.socket.try_write(chunk) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(_gone) => return Taken::Gone,
        };
        if count == chunk.len() {
            return Taken::Whole;
        }
        *rest = chunk.slice(count..);
        Taken::Part
    }

    fn body(&self) -> MutexGuard<'_, OutletBody> {
        self.0.body.lock().expect("no code under this lock panics")
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

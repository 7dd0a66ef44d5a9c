//! The HTTP/1.1 server under every part of the testkit that answers on a socket.
//!
//! ```text
//! Serving ── Connection::request ──▶ Request ──▶ the caller decides
//!                Connection::write  ◀── bytes from `response` ──┘
//!                Connection::closed: the peer is watched while the caller waits
//! ```
//!
//! **Invariants**: no library stands between a socket and its caller, because HTTP libraries hide the moment in which a
//! peer closes; what a peer sends early stays in the connection's buffer; dropping a [`Serving`] closes all its
//! connections.

mod connection;
mod request;
pub(crate) mod response;
mod serving;

pub(crate) use connection::Connection;
pub(crate) use request::{Request, header};
pub(crate) use serving::{LOOPBACK, Serving, bind};

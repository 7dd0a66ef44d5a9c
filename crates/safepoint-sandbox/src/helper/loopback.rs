//! The loopback of a separate network, so that a command can talk to servers that it starts itself.

use std::{io, net::UdpSocket, os::fd::AsFd as _};

use super::sys;

/// Brings it up. In a network without it no address can be bound, so any socket will do that needs none.
pub(super) fn bring_up() -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    sys::bring_up(socket.as_fd(), b"lo")
}

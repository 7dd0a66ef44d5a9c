//! Accepting connections.
//!
//! **Invariants**: each connection has a task; all tasks end when the [`Serving`] is dropped.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    sync::Arc,
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpSocket},
    sync::watch,
    time::sleep,
};

use super::Connection;

/// A free loopback port.
pub(crate) const LOOPBACK: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 4096;
/// The pause after a connection could not be accepted, which is usually for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Listens on an address; nothing is accepted yet.
///
/// # Errors
/// If the address cannot be listened on.
///
/// # Panics
/// Outside a tokio runtime.
pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Accepts and serves connections until it is dropped.
#[derive(Debug)]
pub(crate) struct Serving {
    _alive: watch::Sender<()>,
}

impl Serving {
    /// Gives each connection to `serve`, with what they share. Errors are ignored: they mean that the client is gone.
    pub(crate) fn start<S, F>(
        listener: TcpListener,
        shared: &Arc<S>,
        serve: impl Fn(Connection, Arc<S>) -> F + Send + 'static,
    ) -> Self
    where
        S: Send + Sync + 'static,
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        let shared = Arc::clone(shared);
        let serve = move |connection| serve(connection, Arc::clone(&shared));
        Self::start_with(listener, serve, |_client_is_gone| {})
    }

    /// Gives each connection to `serve`, and each error of a connection, or of accepting one, to `report`.
    pub(crate) fn start_with<F>(
        listener: TcpListener,
        serve: impl Fn(Connection) -> F + Send + 'static,
        report: impl Fn(io::Error) + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        let (alive, ends) = watch::channel(());
        tokio::spawn(accept(listener, serve, Arc::new(report), ends));
        Self { _alive: alive }
    }
}

async fn accept<F>(
    listener: TcpListener,
    serve: impl Fn(Connection) -> F,
    report: Arc<impl Fn(io::Error) + Send + Sync + 'static>,
    mut ends: watch::Receiver<()>,
) where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    loop {
        let accepted = tokio::select! {
            biased;
            // First: a server that is gone accepts nothing. Losing the other branch loses connections that wait to be
            // accepted.
            _gone = ends.changed() => return,
            // Losing this one loses nothing.
            accepted = listener.accept() => accepted,
        };
        let socket = match accepted {
            Ok((socket, _peer)) => socket,
            Err(error) => {
                report(error);
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let served = Connection::new(socket).map(&serve);
        let (report, mut ends) = (Arc::clone(&report), ends.clone());
        tokio::spawn(async move {
            let served = async { served?.await };
            tokio::select! {
                biased;
                // First: a server that is gone serves nothing. Losing the other branch closes the connection.
                _gone = ends.changed() => {}
                // Losing this one loses nothing.
                served = served => if let Err(error) = served { report(error) },
            }
        });
    }
}

//! A server of its own: it listens, bounds connections and heads, and drops a client that reads nothing.

use std::{
    convert::Infallible,
    fmt,
    future::{pending, poll_fn},
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use axum::{Extension, Router, body::Body, extract::Request, response::Response};
use futures_util::future::{Either, select};
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use safepoint::stop::{Scope, StopHandle};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch},
    task::yield_now,
    time::{sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tower_service::Service as _;

use crate::{
    access::Access,
    host::Host,
    routes::{OverTls, router},
    sse,
    surface::Surface,
};

mod direct;
mod patient;
mod streams;
mod tls;

pub use tls::Tls;

use self::{
    direct::{DirectAnswer, RequestLine},
    patient::{AnswerUnderWay, Patient},
    streams::StreamThreads,
};

/// How many connections there may be.
const CONNECTIONS: usize = 4_096;
/// How long the head of a request may take, and how long it may be.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
const HEAD: usize = 16 << 10;
/// What the system takes for a client that reads nothing, in bytes; it doubles that for its own use.
const SENT: u32 = 64 << 10;
/// How many connections may wait to be accepted.
const WAITING: u32 = 1_024;
/// How long the last answers may take, once the host has drained.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
/// How long the listener waits where no connection can be had, as without a free descriptor.
const AGAIN: Duration = Duration::from_millis(50);

/// A server that listens. It serves from [`serve_until`](Self::serve_until) on.
#[must_use = "a server serves by `serve_until`"]
pub struct HostServer {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
    host: Host,
    tls: Option<Arc<Tls>>,
}

impl HostServer {
    /// Listens on this address, for the names of the loopback with its port, and those of `access`.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    ///
    /// # Cancel safety
    /// Nothing listens.
    pub async fn bind(address: SocketAddr, host: &Host, access: Access) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        // Connections have what their listener has.
        socket.set_send_buffer_size(SENT)?;
        socket.bind(address)?;
        let listener = socket.listen(WAITING)?;
        let address = listener.local_addr()?;
        let router = router(host, access.on_port(address.port()));
        Ok(Self { listener, address, router, host: host.clone(), tls: None })
    }

    /// It speaks TLS with this certificate, and nothing else.
    pub fn tls(self, tls: Tls) -> Self {
        Self { tls: Some(Arc::new(tls)), router: self.router.layer(Extension(OverTls)), ..self }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `over`, or until a request has asked for the drain. Then it takes no connection any more; those that are
    /// there are served until the host has drained, which is the caller's to begin at once ([`Host::drain`]).
    ///
    /// # Cancel safety
    /// Connections are served to their end.
    pub async fn serve_until(self, over: impl Future<Output = ()> + Send) -> LastAnswers {
        let (scope, quiet) = Scope::root();
        let (last, over_for_all) = watch::channel(false);
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        let streams = Arc::new(StreamThreads::default());
        let asked = self.host.drain_asked();
        let (over, asked) = (pin!(over), pin!(asked));
        // Whichever is first ends the listening; the other one has nothing to lose.
        let over = select(over, asked);
        let serves = pin!(async {
            loop {
                let place = Arc::clone(&places).acquire_owned().await.expect("no place is closed");
                match self.listener.accept().await {
                    Ok((stream, _from)) => {
                        let (router, tls) = (self.router.clone(), self.tls.clone());
                        let served = Serving {
                            router,
                            scope: scope.clone(),
                            over: over_for_all.clone(),
                            streams: Arc::clone(&streams),
                            answer: AnswerUnderWay::default(),
                            _place: place,
                        };
                        drop(scope.spawn("connection", connection(stream, served, tls)));
                    }
                    Err(_no_connection) => sleep(AGAIN).await,
                }
            }
        });
        // A connection that was not accepted yet is refused by the end of the listener.
        match select(over, serves).await {
            Either::Left(_) => {}
            Either::Right((never, _)) => never,
        }
        LastAnswers { last, quiet }
    }
}

/// What a server still answers after it has stopped listening.
#[must_use = "the connections are served until `finish`"]
pub struct LastAnswers {
    last: watch::Sender<bool>,
    quiet: StopHandle,
}

impl LastAnswers {
    /// The host has drained: each connection ends with the answer that it is at. Returns how many did not.
    ///
    /// # Cancel safety
    /// They end all the same.
    pub async fn finish(self) -> usize {
        self.last.send_replace(true);
        if timeout(LAST_ANSWERS, self.quiet.idle()).await.is_err() {
            return self.quiet.alive().len();
        }
        0
    }
}

/// What serves one connection.
struct Serving {
    router: Router,
    /// What is written for many connections at once belongs to it.
    scope: Scope,
    /// The host has drained: the answer that it is at is the last one.
    over: watch::Receiver<bool>,
    streams: Arc<StreamThreads>,
    answer: AnswerUnderWay,
    _place: OwnedSemaphorePermit,
}

async fn connection(stream: TcpStream, serving: Serving, tls: Option<Arc<Tls>>) {
    if stream.set_nodelay(true).is_err() {
        // It is served as it is.
    }
    let stream = Patient::new(stream, serving.answer.clone());
    match tls {
        None => serving.serve(stream).await,
        Some(tls) => {
            let shakes = TlsAcceptor::from(tls.now()).accept(stream);
            // A client that speaks no TLS, or not in time, has no answer that it could read.
            if let Ok(Ok(stream)) = timeout(HEAD_WITHIN, shakes).await {
                serving.serve(stream).await;
            }
        }
    }
}

/// What requests come on.
trait Wire: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// The socket, where bytes go to it as they are.
    fn into_socket(self) -> Option<TcpStream>;
    /// Whether there is one.
    const HAS_SOCKET: bool;
}

impl Wire for Patient {
    const HAS_SOCKET: bool = true;

    fn into_socket(self) -> Option<TcpStream> {
        Some(self.into_socket())
    }
}

impl Wire for TlsStream<Patient> {
    const HAS_SOCKET: bool = false;

    fn into_socket(self) -> Option<TcpStream> {
        None
    }
}

impl Serving {
    /// Serves requests here, and from the first stream on among the threads of streams.
    async fn serve<W: Wire>(self, wire: W) {
        let streamed = Arc::new(AtomicBool::new(false));
        let (takes, taken) = oneshot::channel();
        let answering = Answering {
            router: self.router,
            has_socket: W::HAS_SOCKET,
            streamed: Arc::clone(&streamed),
            under_way: self.answer,
            takes: Arc::new(Mutex::new(Some(takes))),
        };
        let service = service_fn(move |request| answering.clone().answer(request));
        let mut http = http1::Builder::new();
        // A frame is small: it is copied behind the length that is sent before it, and written as one.
        let http =
            http.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN).max_buf_size(HEAD).writev(false);
        let mut served = http.serve_connection(TokioIo::new(wire), service);
        let (mut over, scope) = (self.over, self.scope);
        let mut ended = Box::pin(async move {
            let end = {
                let over = pin!(over.wait_for(|is_over| *is_over));
                // The connection first: one that has ended needs no end. The others are looked at again by none.
                match select(&mut served, select(taken, over)).await {
                    Either::Left(_) => return,
                    Either::Right((Either::Left((taken, _)), _)) => taken.ok(),
                    Either::Right((Either::Right(_), _)) => None,
                }
            };
            match end {
                Some(direct) => {
                    // It is written among the threads of streams.
                    yield_now().await;
                    if let Some(socket) = served.into_parts().io.into_inner().into_socket() {
                        direct.write(socket, scope).await;
                    }
                }
                None => {
                    Pin::new(&mut served).graceful_shutdown();
                    // A client that has gone has no use for its answer.
                    drop(served.await);
                }
            }
        });
        // Whether it has ended; otherwise it has begun to stream.
        let has_ended = poll_fn(|cx| match ended.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(true),
            // Relaxed: it is written in the poll above.
            Poll::Pending if streamed.load(Ordering::Relaxed) => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        });
        if has_ended.await {
            return;
        }
        match self.streams.spawn(ended) {
            // One that panicked has lost its client, as it would have here.
            Ok(moved) => drop(moved.await),
            Err(here) => here.await,
        }
    }
}

/// What answers the requests of one connection.
#[derive(Clone)]
struct Answering {
    router: Router,
    has_socket: bool,
    /// Whether a stream has begun.
    streamed: Arc<AtomicBool>,
    under_way: AnswerUnderWay,
    /// Held for one entry; no other lock is taken under it.
    takes: Arc<Mutex<Option<oneshot::Sender<DirectAnswer>>>>,
}

impl Answering {
    async fn answer(mut self, request: Request<hyper::body::Incoming>) -> Result<Response, Infallible> {
        let line = RequestLine::of(&request, self.has_socket);
        if self.has_socket && !Surface::stops_with_client(request.uri().path()) {
            self.under_way.begin();
        }
        let answer = self.router.call(request.map(Body::new)).await?;
        let is_stream = sse::is_stream(&answer);
        if is_stream {
            self.under_way.end()
        } else {
            self.under_way.is_made()
        }
        // Relaxed: it is read by the task that polls this, after it has.
        self.streamed.fetch_or(is_stream, Ordering::Relaxed);
        match DirectAnswer::of(&line, answer) {
            Ok(direct) => Ok(self.give(direct).await),
            Err(answer) => Ok(*answer),
        }
    }

    /// Gives the connection away with its answer: no other request is served on it.
    async fn give(self, direct: DirectAnswer) -> Response {
        let takes = self.takes.lock().expect("no code under this lock panics").take();
        if let Some(takes) = takes {
            drop(takes.send(direct));
        }
        pending().await
    }
}

impl fmt::Debug for HostServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostServer").field("address", &self.address).finish_non_exhaustive()
    }
}

impl fmt::Debug for LastAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LastAnswers").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use axum::routing::get;
    use bytes::Bytes;
    use futures_util::{StreamExt as _, stream};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;

    impl Wire for DuplexStream {
        const HAS_SOCKET: bool = false;

        fn into_socket(self) -> Option<TcpStream> {
            None
        }
    }

    /// How long the thread is held at most.
    const HELD: Duration = Duration::from_secs(20);

    /// S13.38: a stream that holds its thread is in the way of no request. Here requests have one thread, and so would streams
    /// without those of their own.
    #[tokio::test]
    async fn a_stream_that_holds_its_thread_is_in_the_way_of_no_request() {
        let (hold, held) = tokio::sync::oneshot::channel();
        let (release, released) = mpsc::channel();
        let ends = Arc::new(Mutex::new(Some((held, released))));
        let streamed = move || {
            let (held, released) = ends.lock().unwrap().take().unwrap();
            let last = async move {
                held.await.unwrap();
                Bytes::from(format!("data: {:?}\n\n", released.recv_timeout(HELD)))
            };
            let first = stream::iter([Bytes::from_static(b"data: first\n\n")]);
            async { sse::streamed(first.chain(stream::once(last))) }
        };
        let router = Router::new().route("/quick", get(async || "quick")).route("/stream", get(streamed));
        let (_last, over) = watch::channel(false);
        let (places, streams) = (Arc::new(Semaphore::new(2)), Arc::default());
        let connect = async |path: &str| {
            let (mut client, server) = duplex(HEAD);
            let _place = Arc::clone(&places).acquire_owned().await.unwrap();
            let (router, over, streams) = (router.clone(), over.clone(), Arc::clone(&streams));
            let scope = Scope::root().0;
            let answer = AnswerUnderWay::default();
            tokio::spawn(Serving { router, scope, over, streams, answer, _place }.serve(server));
            client.write_all(format!("GET {path} HTTP/1.0\r\nHost: here\r\n\r\n").as_bytes()).await.unwrap();
            client
        };
        let mut reader = connect("/stream").await;
        until(&mut reader, "first").await;
        hold.send(()).unwrap();
        until(&mut connect("/quick").await, "quick").await;
        release.send(()).unwrap();
        until(&mut reader, "data: Ok(())").await;
    }

    /// Reads until this has come.
    async fn until(client: &mut DuplexStream, wanted: &str) {
        let mut read = Vec::new();
        while !String::from_utf8_lossy(&read).contains(wanted) {
            let count = timeout(HELD * 2, client.read_buf(&mut read)).await.unwrap().unwrap();
            assert!(count > 0, "it ended: {}", String::from_utf8_lossy(&read));
        }
    }
}

//! A way to the server that loses what a test wants lost.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicIsize, Ordering},
    },
    thread,
};

/// What is lost of a request. Exhaustive: it, or its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The connection is cut before the request reaches the server.
    Request,
    /// It is cut once the server has answered, and the answer is not passed on.
    Answer,
    /// Nothing of the answer is passed on, and the connection stays.
    AnswerInSilence,
}

/// What all connections know.
struct Way {
    /// Requests until one is lost; below zero: none will be.
    left: AtomicIsize,
    lost: Lost,
    /// Whether a connection that listens for notices is cut.
    is_deaf: AtomicBool,
}

/// A proxy before a server. It serves until the test program ends.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    way: Arc<Way>,
}

impl Proxy {
    pub(crate) fn before(server: u16, lost: Lost) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let way = Arc::new(Way { left: AtomicIsize::new(-1), lost, is_deaf: AtomicBool::new(false) });
        let shared = Arc::clone(&way);
        let server = SocketAddr::from(([127, 0, 0, 1], server));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(server) else { continue };
                serve(client, server, &shared);
            }
        });
        Self { port, way }
    }

    /// Loses something of the request after the next `after`.
    pub(crate) fn lose(&self, after: usize) {
        self.way.left.store(isize::try_from(after).unwrap(), Ordering::SeqCst);
    }

    /// Whether it has lost something since.
    pub(crate) fn has_lost(&self) -> bool {
        self.way.left.load(Ordering::SeqCst) < 0
    }

    /// Cuts each connection that begins to listen for notices.
    pub(crate) fn be_deaf(&self) {
        self.way.is_deaf.store(true, Ordering::SeqCst);
    }
}

fn serve(client: TcpStream, server: TcpStream, way: &Arc<Way>) {
    for socket in [&client, &server] {
        socket.set_nodelay(true).unwrap();
    }
    let is_swallowing = Arc::new(AtomicBool::new(false));
    let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let (asks, swallows) = (Arc::clone(way), Arc::clone(&is_swallowing));
    thread::spawn(move || pass_requests(from, to, &asks, &swallows));
    let way = Arc::clone(way);
    thread::spawn(move || pass_answers(server, client, &way, &is_swallowing));
}

/// One message, after the first one of a connection, which has no type. `None` at the end.
fn message(from: &mut TcpStream, is_first: bool) -> Option<Vec<u8>> {
    let mut message = vec![0; if is_first { 4 } else { 5 }];
    from.read_exact(&mut message).ok()?;
    let length = u32::from_be_bytes(message[message.len() - 4..].try_into().unwrap()) as usize;
    let mut rest = vec![0; length - 4];
    from.read_exact(&mut rest).ok()?;
    message.extend(rest);
    Some(message)
}

fn cut(sockets: [&TcpStream; 2]) {
    for socket in sockets {
        if socket.shutdown(Shutdown::Both).is_err() {
            // It is cut already.
        }
    }
}

fn pass_requests(mut from: TcpStream, mut to: TcpStream, way: &Way, is_swallowing: &AtomicBool) {
    let mut is_first = true;
    // A request is sent as a whole, so that none of it is with the server where it is lost.
    let mut request = Vec::new();
    while let Some(message) = message(&mut from, is_first) {
        let ends = is_first || matches!(message[0], b'S' | b'Q');
        let listens = message.windows(7).any(|word| word == b"LISTEN ");
        request.extend(message);
        if !ends {
            continue;
        }
        let is_lost = !is_first && way.left.fetch_sub(1, Ordering::SeqCst) == 0;
        if (is_lost && way.lost == Lost::Request) || (listens && way.is_deaf.load(Ordering::SeqCst)) {
            break;
        }
        is_swallowing.fetch_or(is_lost, Ordering::SeqCst);
        is_first = false;
        if to.write_all(&std::mem::take(&mut request)).is_err() {
            break;
        }
    }
    cut([&from, &to]);
}

fn pass_answers(mut from: TcpStream, mut to: TcpStream, way: &Way, is_swallowing: &AtomicBool) {
    while let Some(message) = message(&mut from, false) {
        let is_ready = message[0] == b'Z';
        match is_swallowing.load(Ordering::SeqCst) {
            true if way.lost == Lost::Answer && is_ready => break,
            true => {}
            false if to.write_all(&message).is_err() => break,
            false => {}
        }
    }
    cut([&from, &to]);
}

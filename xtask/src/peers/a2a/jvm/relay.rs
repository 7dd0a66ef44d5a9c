//! A line of TCP in front of an agent, which notes when a word passed on its way to us, and which can be cut.

use std::{
    collections::HashMap,
    io::{self, Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// The word that the relay looks for: the state of a task that was stopped.
const WORD: &[u8] = b"canceled";

/// Listens on a port of this machine, and connects each client to another port.
pub(super) struct Relay {
    port: u16,
    line: Arc<RelayLine>,
}

/// What its connections share.
struct RelayLine {
    to: u16,
    /// SeqCst for simplicity, as `is_over`. A cut sets this and then shuts what is in `state`; a connection
    /// enters `state` and then looks here. The lock orders the two, so a new connection is shut by one of
    /// them.
    is_cut: AtomicBool,
    /// Set before the connection that wakes the listener.
    is_over: AtomicBool,
    /// Held for one entry or one look, and while connections are shut, which does not block.
    state: Mutex<RelayState>,
}

#[derive(Default)]
struct RelayState {
    next: u64,
    open: HashMap<u64, [TcpStream; 2]>,
    seen: Option<Instant>,
}

impl Relay {
    /// Starts it in front of this port.
    pub(super) fn start(to: u16) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let (is_cut, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
        let line = Arc::new(RelayLine { to, is_cut, is_over, state: Mutex::default() });
        let of_thread = Arc::clone(&line);
        thread::spawn(move || of_thread.accept(&listener));
        Ok(Self { port, line })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Forgets the bytes received so far.
    pub(super) fn listen(&self) {
        self.line.lock().seen = None;
    }

    /// When the agent's word passed.
    pub(super) fn seen(&self) -> Option<Instant> {
        self.line.lock().seen
    }

    /// Cuts all connections, and lets none through for this time.
    pub(super) fn cut(&self, time: Duration) {
        // Before the lock: see `is_cut`.
        self.line.is_cut.store(true, Ordering::SeqCst);
        for end in self.line.lock().open.values().flatten() {
            shut(end, Shutdown::Both);
        }
        thread::sleep(time);
        // A connection that comes from here on is let through.
        self.line.is_cut.store(false, Ordering::SeqCst);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // Before the connection below: the accept that it wakes reads it.
        self.line.is_over.store(true, Ordering::SeqCst);
        // A connection wakes the listener.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

impl RelayLine {
    fn lock(&self) -> MutexGuard<'_, RelayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            // Pairs with the store in `drop`.
            if self.is_over.load(Ordering::SeqCst) {
                return;
            }
            let line = Arc::clone(&self);
            // A connection that fails is closed, as one of a broken line is.
            thread::spawn(move || client.and_then(|client| line.serve(client)));
        }
    }

    fn serve(&self, client: TcpStream) -> io::Result<()> {
        let server = TcpStream::connect(("127.0.0.1", self.to))?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let id = self.keep([client.try_clone()?, server.try_clone()?]);
        // After the entry: see `is_cut`.
        if self.is_cut.load(Ordering::SeqCst) {
            shut(&client, Shutdown::Both);
            shut(&server, Shutdown::Both);
        }
        let (from, to) = (client.try_clone()?, server.try_clone()?);
        let asks = thread::spawn(move || copy(from, to, |_bytes| {}));
        let mut tail = Vec::new();
        copy(server, client, |bytes| self.hear(&mut tail, bytes));
        if asks.join().is_err() {
            // A thread that copies does not panic.
        }
        self.lock().open.remove(&id);
        Ok(())
    }

    fn keep(&self, ends: [TcpStream; 2]) -> u64 {
        let mut state = self.lock();
        state.next += 1;
        let id = state.next;
        state.open.insert(id, ends);
        id
    }

    /// Looks for the word in what passes, also where it comes in two pieces.
    fn hear(&self, tail: &mut Vec<u8>, bytes: &[u8]) {
        tail.extend_from_slice(bytes);
        if tail.windows(WORD.len()).any(|window| window == WORD) {
            self.lock().seen.get_or_insert_with(Instant::now);
            tail.clear();
        }
        let kept = tail.len().saturating_sub(WORD.len() - 1);
        tail.drain(..kept);
    }
}

/// Copies until one side ends, and tells the other.
fn copy(mut from: TcpStream, mut to: TcpStream, mut passes: impl FnMut(&[u8])) {
    let mut buffer = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        passes(&buffer[..count]);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    shut(&to, Shutdown::Both);
    shut(&from, Shutdown::Both);
}

fn shut(end: &TcpStream, how: Shutdown) {
    if end.shutdown(how).is_err() {
        // It was closed before.
    }
}

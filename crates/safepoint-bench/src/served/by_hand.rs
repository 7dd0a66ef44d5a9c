//! The same streams by hand: one thread that writes the time to sockets, with no session, run or record behind it. It is what this machine
//! can do at best beside the readers that it has to feed too.

use std::{
    io::{self, ErrorKind, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::Context as _;

use super::{SESSIONS, host::PACE, stamp};

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-store\r\ntransfer-encoding: chunked\r\n\r\n";
/// What a request asks for, before the number of the session and behind it.
const PATH: &str = "GET /v1/sessions/";
/// How often it is looked for new readers.
const LOOK: Duration = Duration::from_millis(5);
/// The longest head of a request.
const LONGEST: usize = 4 << 10;

/// A server by hand.
pub(super) struct ByHand {
    pub(super) address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<()>>,
}

/// A reader, and what of its request has come.
struct NewReader {
    socket: TcpStream,
    head: Vec<u8>,
}

impl ByHand {
    pub(super) fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let (address, is_over) = (listener.local_addr()?, Arc::<AtomicBool>::default());
        let over = Arc::clone(&is_over);
        let thread = thread::spawn(move || serve(&listener, &over));
        Ok(Self { address, is_over, thread })
    }

    /// The names of its sessions.
    pub(super) fn sessions() -> Vec<String> {
        (0..SESSIONS).map(|session| session.to_string()).collect()
    }

    pub(super) fn end(self) -> anyhow::Result<()> {
        // Relaxed: nothing else is read after it.
        self.is_over.store(true, Ordering::Relaxed);
        let served = self.thread.join().map_err(|_panic| anyhow::anyhow!("the server by hand panicked"))?;
        served.context("the server by hand")
    }
}

fn serve(listener: &TcpListener, is_over: &AtomicBool) -> io::Result<()> {
    let (mut new, mut readers) = (Vec::new(), Vec::new());
    readers.resize_with(SESSIONS, Vec::<TcpStream>::new);
    let (mut session, mut due, mut look) = (0, Instant::now(), Instant::now());
    let apart = PACE / u32::try_from(SESSIONS).expect("sessions are few");
    // Relaxed: see `end`.
    while !is_over.load(Ordering::Relaxed) {
        if Instant::now() >= look {
            take(listener, &mut new, &mut readers)?;
            look = Instant::now() + LOOK;
        }
        // A reader that does not follow loses the delta: it counts at no reader then.
        let frame = frame(session);
        readers[session].retain_mut(|socket| !is_gone(socket.write(&frame)));
        session = (session + 1) % SESSIONS;
        due += apart;
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

/// A chunk with a delta, as long as one of the server's.
fn frame(session: usize) -> Vec<u8> {
    let event = format!(
        "event: delta\ndata: {{\"schema\":2,\"type\":\"text\",\"session\":\"ses_{session:032}\",\"turn\":\"turn-1\",\"path\":[],\"text\":\"{} \"}}\n\n",
        stamp()
    );
    format!("{:x}\r\n{event}\r\n", event.len()).into_bytes()
}

fn is_gone(written: io::Result<usize>) -> bool {
    written.is_err_and(|error| error.kind() != ErrorKind::WouldBlock)
}

/// Takes connections, and those whose requests are there as readers.
fn take(listener: &TcpListener, new: &mut Vec<NewReader>, readers: &mut [Vec<TcpStream>]) -> io::Result<()> {
    loop {
        match listener.accept() {
            Ok((socket, _from)) => {
                socket.set_nonblocking(true)?;
                socket.set_nodelay(true)?;
                new.push(NewReader { socket, head: Vec::new() });
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    for mut reader in std::mem::take(new) {
        let mut came = [0; LONGEST];
        match reader.socket.read(&mut came) {
            Ok(count) => reader.head.extend_from_slice(&came[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        match session_of(&reader.head) {
            Some(session) => {
                reader.socket.write_all(HEAD)?;
                readers[session].push(reader.socket);
            }
            None => new.push(reader),
        }
    }
    Ok(())
}

/// The session of a whole request.
fn session_of(head: &[u8]) -> Option<usize> {
    let head = str::from_utf8(head).ok()?;
    let asked = head.strip_suffix("\r\n\r\n")?.strip_prefix(PATH)?;
    asked.split('/').next()?.parse().ok().filter(|session| *session < SESSIONS)
}

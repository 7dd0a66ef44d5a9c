//! Readers of streams, in a process of their own: HTTP by hand in one thread, so that they take as little of the machine as they
//! can.

use std::{
    cell::RefCell,
    io::{self, Write as _},
    rc::Rc,
    time::Duration,
};

use anyhow::Context as _;
use memchr::memmem;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Semaphore,
    task::LocalSet,
};

use crate::{figures::percentile, process::allow_files, timing::machine_time};

/// The hidden argument that makes this program the readers: the server's address, how many read, and how many do not follow; the
/// sessions are on stdin.
pub(crate) const READERS: &str = "__readers";
/// What they say once all have read a delta.
pub(crate) const READY: &str = "ready";

/// How long it is measured, after what is warmed up.
const WARM: Duration = Duration::from_secs(3);
const MEASURED: Duration = Duration::from_secs(10);
/// Readers of one token: all of it come at once, and a token has a limit of requests a second.
const A_TOKEN: usize = 50;
/// What a delta begins with, and how long the moment in it is.
const TEXT: &[u8] = b"\"text\":\"";
const DIGITS: usize = 20;

/// Milliseconds of each delta, once it is measured.
type Late = Rc<RefCell<Option<Vec<f64>>>>;

/// Reads, as the arguments after [`READERS`] say, and prints what was measured.
pub(crate) fn run(mut args: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let mut next = || args.next().context("an argument is missing");
    let (address, readers, stalled) = (next()?, next()?.parse()?, next()?.parse()?);
    allow_files()?;
    let sessions: Vec<String> = io::stdin().lines().collect::<Result<_, _>>()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, read_all(&address, &sessions, (readers, stalled)))
}

async fn read_all(
    address: &str,
    sessions: &[String],
    (readers, stalled): (usize, usize),
) -> anyhow::Result<()> {
    let (late, begun) = (Late::default(), Rc::new(Semaphore::new(0)));
    let mut idle = Vec::with_capacity(stalled);
    for at in 0..readers + stalled {
        let session = &sessions[at % sessions.len()];
        let mut socket = TcpStream::connect(address).await?;
        let head = format!(
            "GET /v1/sessions/{session}/events HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\
             Authorization: Bearer r{}\r\n\r\n",
            at / A_TOKEN
        );
        socket.write_all(head.as_bytes()).await?;
        if at < readers {
            let reader = DeltaReader { socket, buffer: Vec::new(), late: Rc::clone(&late) };
            tokio::task::spawn_local(reader.read(Rc::clone(&begun)));
        } else {
            idle.push(socket);
        }
    }
    begun.acquire_many(u32::try_from(readers)?).await?.forget();
    say(READY)?;
    tokio::time::sleep(WARM).await;
    late.replace(Some(Vec::new()));
    tokio::time::sleep(MEASURED).await;
    let all = late.take().unwrap_or_default();
    let rate = all.len() as f64 / MEASURED.as_secs_f64();
    say(&format!("{} {} {rate}", percentile(all.clone(), 50), percentile(all, 99)))?;
    // It reads until it is ended: a load for what is measured beside it.
    std::future::pending().await
}

fn say(line: &str) -> io::Result<()> {
    println!("{line}");
    io::stdout().flush()
}

struct DeltaReader {
    socket: TcpStream,
    buffer: Vec<u8>,
    late: Late,
}

impl DeltaReader {
    async fn read(mut self, begun: Rc<Semaphore>) {
        let mut has_begun = false;
        // The end of the stream, or of the server, is the end of the reader.
        while self.socket.read_buf(&mut self.buffer).await.is_ok_and(|read| read > 0) {
            let found = self.take(machine_time());
            if found && !has_begun {
                has_begun = true;
                begun.add_permits(1);
            }
        }
    }

    /// Takes the deltas of the buffer. Whether there were some.
    fn take(&mut self, now: u64) -> bool {
        let (mut from, mut found) = (0, false);
        while let Some(at) = memmem::find(&self.buffer[from..], TEXT) {
            let begins = from + at + TEXT.len();
            let Some(digits) = self.buffer.get(begins..begins + DIGITS) else {
                from += at;
                break;
            };
            from = begins;
            let Some(made) = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u64>().ok())
            else {
                continue;
            };
            found = true;
            if let Some(late) = &mut *self.late.borrow_mut() {
                late.push(now.saturating_sub(made) as f64 / 1e6);
            }
        }
        // What may be the beginning of a delta is kept.
        let kept = self.buffer.len().saturating_sub(TEXT.len() - 1).max(from);
        let from = if memmem::find(&self.buffer[from..], TEXT).is_some() { from } else { kept };
        self.buffer.drain(..from);
        found
    }
}

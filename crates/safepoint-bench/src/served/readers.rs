//! Readers of streams, in a process of their own: HTTP by hand over the system's own poll, in one thread, so that they take as little of
//! the machine as they can.

use std::{
    io::{self, ErrorKind, Read as _, Write as _},
    mem,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use memchr::{memmem::Finder, memrchr};
use mio::{Events, Interest, Poll, Token, net::TcpStream};

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
/// What one read takes at most.
const ONE_READ: usize = 64 << 10;

/// Reads, as the arguments after [`READERS`] say, and prints what was measured.
pub(crate) fn run(mut args: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let mut next = || args.next().context("an argument is missing");
    let (address, readers, stalled) = (next()?, next()?.parse()?, next()?.parse()?);
    allow_files()?;
    let sessions: Vec<String> = io::stdin().lines().collect::<Result<_, _>>()?;
    let mut crowd = ReaderCrowd::connect(&address, &sessions, (readers, stalled))?;
    while crowd.begun < readers {
        crowd.read_until(Instant::now() + WARM)?;
    }
    say(READY)?;
    crowd.read_until(Instant::now() + WARM)?;
    crowd.late = Some(Vec::new());
    crowd.read_until(Instant::now() + MEASURED)?;
    let all = crowd.late.take().unwrap_or_default();
    let rate = all.len() as f64 / MEASURED.as_secs_f64();
    say(&format!("{} {} {rate}", percentile(all.clone(), 50), percentile(all, 99)))?;
    // It reads until it is ended: a load for what is measured beside it.
    loop {
        crowd.read_until(Instant::now() + WARM)?;
    }
}

fn say(line: &str) -> io::Result<()> {
    println!("{line}");
    io::stdout().flush()
}

struct ReaderCrowd {
    poll: Poll,
    readers: Vec<DeltaReader>,
    /// Those that read nothing.
    _idle: Vec<std::net::TcpStream>,
    text: Finder<'static>,
    /// What one read takes.
    buffer: Vec<u8>,
    /// How many have read a delta.
    begun: usize,
    /// Milliseconds of each delta, once it is measured.
    late: Option<Vec<f64>>,
}

struct DeltaReader {
    socket: TcpStream,
    /// The line that has not come whole.
    rest: Vec<u8>,
    has_begun: bool,
}

impl ReaderCrowd {
    fn connect(
        address: &str,
        sessions: &[String],
        (readers, stalled): (usize, usize),
    ) -> anyhow::Result<Self> {
        let poll = Poll::new()?;
        let (mut reading, mut idle) = (Vec::with_capacity(readers), Vec::with_capacity(stalled));
        for at in 0..readers + stalled {
            let session = &sessions[at % sessions.len()];
            let mut socket = std::net::TcpStream::connect(address)?;
            write!(
                socket,
                "GET /v1/sessions/{session}/events HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\
                 Authorization: Bearer r{}\r\n\r\n",
                at / A_TOKEN
            )?;
            if at >= readers {
                idle.push(socket);
                continue;
            }
            socket.set_nonblocking(true)?;
            let mut socket = TcpStream::from_std(socket);
            poll.registry().register(&mut socket, Token(at), Interest::READABLE)?;
            reading.push(DeltaReader { socket, rest: Vec::new(), has_begun: false });
        }
        Ok(Self {
            poll,
            readers: reading,
            _idle: idle,
            text: Finder::new(TEXT),
            buffer: vec![0; ONE_READ],
            begun: 0,
            late: None,
        })
    }

    /// Reads until then, or until all have begun.
    fn read_until(&mut self, end: Instant) -> anyhow::Result<()> {
        let mut events = Events::with_capacity(self.readers.len());
        let all_began = self.begun == self.readers.len();
        while Instant::now() < end && (all_began || self.begun < self.readers.len()) {
            match self.poll.poll(&mut events, Some(end.saturating_duration_since(Instant::now()))) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                self.read(event.token().0)?;
            }
        }
        Ok(())
    }

    /// Reads all that this reader has.
    fn read(&mut self, at: usize) -> anyhow::Result<()> {
        loop {
            let reader = &mut self.readers[at];
            let count = match reader.socket.read(&mut self.buffer) {
                Ok(0) => anyhow::bail!("the server has ended a stream"),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let now = machine_time();
            let came = &self.buffer[..count];
            let whole = memrchr(b'\n', came).map_or(0, |last| last + 1);
            let found = if reader.rest.is_empty() {
                noted(&self.text, &came[..whole], now, &mut self.late)
            } else {
                reader.rest.extend_from_slice(&came[..whole]);
                let lines = if whole > 0 { mem::take(&mut reader.rest) } else { Vec::new() };
                noted(&self.text, &lines, now, &mut self.late)
            };
            reader.rest.extend_from_slice(&came[whole..]);
            if found && !mem::replace(&mut reader.has_begun, true) {
                self.begun += 1;
            }
            // Less than there is room for is all that there was; the poll says what comes now.
            if count < self.buffer.len() {
                return Ok(());
            }
        }
    }
}

/// Notes how late the deltas of these lines are. Whether there were some.
fn noted(text: &Finder<'_>, lines: &[u8], now: u64, late: &mut Option<Vec<f64>>) -> bool {
    let mut found = false;
    for at in text.find_iter(lines) {
        let digits = lines.get(at + TEXT.len()..at + TEXT.len() + DIGITS);
        let digits = digits.and_then(|digits| str::from_utf8(digits).ok());
        let Some(made) = digits.and_then(|digits| digits.parse::<u64>().ok()) else { continue };
        found = true;
        if let Some(late) = late {
            late.push(now.saturating_sub(made) as f64 / 1e6);
        }
    }
    found
}

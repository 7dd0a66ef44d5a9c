//! The model server of the comparison, in a separate process: one thread, HTTP/1.1 by hand, and for each request what the
//! user's message asks for. It notes when a connection that waits is closed, by the clock of the whole machine.

use std::{
    io::{self, Write as _},
    time::Duration,
};

use memchr::memmem;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpSocket, TcpStream},
    time::{MissedTickBehavior, interval},
};

mod count;
mod script;

pub(crate) use count::Count;

use self::{
    count::WaitingPeers,
    script::{Script, ScriptedReply},
};

/// The longest queue of connections that are not accepted yet.
const BACKLOG: u32 = 16_384;

/// Serves until its stdin ends; prints its base URL and the address where its count may be awaited.
pub(crate) async fn serve() -> anyhow::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(([127, 0, 0, 1], 0).into())?;
    let service = socket.listen(BACKLOG)?;
    let control = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/v1 {}", service.local_addr()?, control.local_addr()?);
    io::stdout().flush()?;
    let waiting = WaitingPeers::default();
    tokio::spawn(waiting.clone().tell(control));
    let mut over = tokio::task::spawn_blocking(|| io::copy(&mut io::stdin().lock(), &mut io::sink()));
    loop {
        // The end of stdin first: who started this is gone. A connection that is lost by it had no one to serve.
        let (socket, _) = tokio::select! {
            biased;
            _ended = &mut over => return Ok(()),
            accepted = service.accept() => accepted?,
        };
        socket.set_nodelay(true)?;
        let waiting = waiting.clone();
        tokio::spawn(async move {
            // A client that goes away in the midst of its request is no fault of the server.
            drop(Connection { socket, read: Vec::new() }.serve(&waiting).await);
        });
    }
}

struct Connection {
    socket: TcpStream,
    /// What was read and is not handled yet.
    read: Vec<u8>,
}

impl Connection {
    async fn serve(mut self, waiting: &WaitingPeers) -> io::Result<()> {
        while let Some(body) = self.request().await? {
            match Script::of(&body).answer(&body) {
                ScriptedReply::Whole(bytes) => self.socket.write_all(&bytes).await?,
                ScriptedReply::Waits(beginning) => {
                    self.socket.write_all(&beginning).await?;
                    waiting.add();
                    self.closed().await;
                    waiting.remove();
                    return Ok(());
                }
                ScriptedReply::Drips(beginning, piece, apart) => {
                    self.socket.write_all(&beginning).await?;
                    waiting.add();
                    self.drip(&piece, apart).await;
                    waiting.remove();
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The body of the next request; nothing when the client is gone.
    async fn request(&mut self) -> io::Result<Option<Vec<u8>>> {
        const END: &[u8] = b"\r\n\r\n";
        loop {
            if let Some(at) = memmem::find(&self.read, END) {
                let begins = at + END.len();
                let ends = begins + length(&self.read[..at])?;
                if ends <= self.read.len() {
                    let body = self.read[begins..ends].to_vec();
                    self.read.drain(..ends);
                    return Ok(Some(body));
                }
                self.read.reserve(ends - self.read.len());
            }
            if self.socket.read_buf(&mut self.read).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Waits until the client is gone.
    async fn closed(&mut self) {
        let mut some = [0; 64];
        while self.socket.read(&mut some).await.is_ok_and(|read| read > 0) {}
    }

    /// Sends a piece again and again until the client is gone.
    async fn drip(&mut self, piece: &[u8], apart: Duration) {
        let (mut reads, mut writes) = self.socket.split();
        let mut ticks = interval(apart);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut some = [0; 64];
        loop {
            // The close first: it is what is measured. A lost tick comes again, a lost read has read nothing.
            tokio::select! {
                biased;
                read = reads.read(&mut some) => if !read.is_ok_and(|read| read > 0) { return },
                _ = ticks.tick() => if writes.write_all(piece).await.is_err() { return },
            }
        }
    }
}

/// The length of a body.
fn length(head: &[u8]) -> io::Result<usize> {
    const NAME: &str = "content-length:";
    let head = str::from_utf8(head).map_err(io::Error::other)?;
    let line =
        head.lines().find(|line| line.get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME)));
    let length = line.and_then(|line| line[NAME.len()..].trim().parse().ok());
    length.ok_or_else(|| io::Error::other("a request without a length"))
}

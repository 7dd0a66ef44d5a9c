//! The owner's end of the socket: each connection asks once and is answered. What comes in is not trusted.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use tokio::{
    io::BufReader,
    net::{UnixListener, UnixStream},
    sync::{Semaphore, mpsc},
    time::timeout,
};

use super::{
    protocol::{self, Ask, Reply, Request, VERSION},
    socket_dir,
};
use crate::exit::Usage;

/// Who is talked to.
pub(super) trait Target: Send + Sync + 'static {
    /// Answers, with as many replies as it takes; returns the last one.
    fn answer(self: Arc<Self>, ask: Ask, replies: Replies) -> BoxFuture<'static, LastReply>;
}

/// The last reply, or none if its client has gone. An error is replied with as well.
pub(super) type LastReply = anyhow::Result<Option<Reply>>;

/// Where replies go.
#[derive(Clone, Debug)]
pub(super) struct Replies(pub(super) mpsc::UnboundedSender<Reply>);

impl Replies {
    /// One reply; another follows.
    pub(super) fn first(&self, reply: Reply) {
        self.send(Reply { last: false, ..reply });
    }

    /// Waits for something to reply, as long as a client does.
    pub(super) async fn unless_gone<T>(&self, reply: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            // First: an end is sent even to a client that is going. Losing this branch loses nothing: an end that is waited
            // for can be waited for again, and the store has what it has.
            reply = reply => Some(reply),
            () = self.0.closed() => None,
        }
    }

    fn send(&self, reply: Reply) {
        if self.0.send(reply).is_err() {
            // The client is gone.
        }
    }
}

/// An open socket; removed when dropped.
pub(crate) struct Server {
    path: PathBuf,
    accepting: tokio::task::JoinHandle<()>,
    places: Arc<Semaphore>,
}

/// How many may be connected at once.
const CONNECTIONS: u32 = 32;
/// How long a connected client may take to send its request.
const TO_ASK: Duration = Duration::from_secs(5);

impl Server {
    /// Opens the socket of `session` for `target`.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub(super) async fn open(session: &str, target: Arc<impl Target>) -> anyhow::Result<Self> {
        let (listener, path) = socket_dir::bind(session).await?;
        let places = Arc::new(Semaphore::new(CONNECTIONS as usize));
        let accepting = tokio::spawn(accept(listener, session.to_owned(), target, Arc::clone(&places)));
        Ok(Self { path, accepting, places })
    }

    /// Lets those who are connected hear their last reply, within a moment.
    pub(crate) async fn finish(self) {
        const PATIENCE: Duration = Duration::from_millis(300);
        self.accepting.abort();
        if timeout(PATIENCE, self.places.acquire_many(CONNECTIONS)).await.is_err() {
            // They hear that the connection is over.
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
        if std::fs::remove_file(&self.path).is_err() {
            // It is gone already.
        }
    }
}

async fn accept(listener: UnixListener, session: String, target: Arc<impl Target>, places: Arc<Semaphore>) {
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Too many open files, for a moment: not at full speed.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (session, target) = (session.clone(), Arc::clone(&target));
        tokio::spawn(async move {
            serve(stream, &session, target).await;
            drop(place);
        });
    }
}

async fn serve(mut stream: UnixStream, session: &str, target: Arc<impl Target>) {
    let ours = rustix::process::getuid().as_raw();
    let is_ours = stream.peer_cred().is_ok_and(|peer| peer.uid() == ours || peer.uid() == 0);
    if !is_ours {
        return;
    }
    let began = Instant::now();
    let (read, mut write) = stream.split();
    let mut reader = BufReader::new(read);
    let ask = match timeout(TO_ASK, protocol::read_line(&mut reader)).await {
        Ok(Ok(Some(line))) => understood(&line),
        Ok(Err(error)) => Err(Usage(error.to_string())),
        Ok(Ok(None)) | Err(_) => return,
    };
    let (replies, mut received) = mpsc::unbounded_channel();
    let replies = Replies(replies);
    tokio::spawn(async move {
        let last = async { target.answer(ask?, replies.clone()).await }.await;
        if let Some(reply) = last.unwrap_or_else(|error| Some(Reply::failed(&error))) {
            replies.send(Reply { last: true, ..reply });
        }
    });
    loop {
        let mut more = [0];
        let reply = tokio::select! {
            biased;
            // First: replies are written before the end of the client is looked at. Losing this branch loses nothing: a
            // reply stays in the channel.
            reply = received.recv() => reply,
            // Losing this branch loses bytes outside the protocol. Their end means that the client is gone.
            read = tokio::io::AsyncReadExt::read(&mut reader, &mut more) => match read {
                Ok(1..) if began.elapsed() < Duration::from_secs(3600) => continue,
                _ => return,
            },
        };
        let Some(reply) = reply else { return };
        let reply = Reply { session: session.to_owned(), ..reply };
        if protocol::write(&mut write, &reply).await.is_err() || reply.last {
            return;
        }
    }
}

fn understood(line: &[u8]) -> Result<Ask, Usage> {
    let Request { v, ask } = serde_json::from_slice(line)
        .map_err(|error| Usage(format!("the request is not understood: {error}")))?;
    match v {
        VERSION => Ok(ask),
        _ => Err(Usage(format!("the request has version {v}, and this session speaks {VERSION}"))),
    }
}

//! A server in a separate process that begins to answer and then stays silent; it counts the connections that
//! wait.

use std::{io::Write as _, sync::Arc};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// Headers, one event, and then silence.
const BEGINNING: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
32\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"well\"}}]}\n\n\r\n";

/// Connections waiting in silence.
struct WaitingPeers {
    /// Counted and reported in one step: of two changes at once the later report has the later count.
    reported: watch::Sender<usize>,
}

impl WaitingPeers {
    fn add(&self) {
        self.reported.send_modify(|count| *count += 1);
    }

    fn remove(&self) {
        self.reported.send_modify(|count| *count -= 1);
    }
}

/// Serves until it is killed; prints its base URL and the address where its count may be awaited.
pub(crate) async fn serve() -> anyhow::Result<()> {
    let (service, control) =
        (TcpListener::bind("127.0.0.1:0").await?, TcpListener::bind("127.0.0.1:0").await?);
    println!("http://{}/v1 {}", service.local_addr()?, control.local_addr()?);
    std::io::stdout().flush()?;
    let waiting = Arc::new(WaitingPeers { reported: watch::Sender::new(0) });
    let counted = Arc::clone(&waiting);
    tokio::spawn(async move {
        while let Ok((socket, _)) = control.accept().await {
            tokio::spawn(answer(socket, counted.reported.subscribe()));
        }
    });
    loop {
        let (socket, _) = service.accept().await?;
        tokio::spawn(be_silent(socket, Arc::clone(&waiting)));
    }
}

/// Reads the request to its end, answers a little, and then only watches for the close.
async fn be_silent(mut socket: TcpStream, waiting: Arc<WaitingPeers>) -> std::io::Result<()> {
    const END_OF_BODY: &[u8] = b"}";
    let mut buffer = [0; 4096];
    loop {
        let read = socket.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        if buffer[..read].ends_with(END_OF_BODY) {
            break;
        }
    }
    socket.write_all(BEGINNING).await?;
    waiting.add();
    while socket.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
    waiting.remove();
    Ok(())
}

/// Each line asks for a count; the answer comes when exactly that number of connections waits.
async fn answer(socket: TcpStream, mut reported: watch::Receiver<usize>) -> anyhow::Result<()> {
    socket.set_nodelay(true)?;
    let mut socket = BufReader::new(socket);
    let mut line = String::new();
    while socket.read_line(&mut line).await? > 0 {
        let wanted: usize = line.trim().parse()?;
        line.clear();
        reported.wait_for(|count| *count == wanted).await?;
        socket.write_all(b"so\n").await?;
    }
    Ok(())
}

/// The client side: waits until a given number of connections waits at the server.
pub(crate) struct Count(BufReader<TcpStream>);

impl Count {
    pub(crate) async fn of(address: &str) -> anyhow::Result<Self> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(Self(BufReader::new(socket)))
    }

    pub(crate) async fn reaches(&mut self, count: usize) -> anyhow::Result<()> {
        self.0.write_all(format!("{count}\n").as_bytes()).await?;
        let mut line = String::new();
        anyhow::ensure!(self.0.read_line(&mut line).await? > 0, "the silent server has gone");
        Ok(())
    }
}

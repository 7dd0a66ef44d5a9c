//! How many connections wait at the model server, and when that number last changed.

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::timing::machine_time;

/// The server's side: the number, and the nanosecond of its last change.
#[derive(Clone)]
pub(super) struct WaitingPeers {
    /// Changed and reported in one step: of two changes at once the later report has the later number.
    reported: watch::Sender<(usize, u64)>,
}

impl Default for WaitingPeers {
    fn default() -> Self {
        Self { reported: watch::Sender::new((0, 0)) }
    }
}

impl WaitingPeers {
    pub(super) fn add(&self) {
        self.reported.send_modify(|(count, at)| (*count, *at) = (*count + 1, machine_time()));
    }

    pub(super) fn remove(&self) {
        self.reported.send_modify(|(count, at)| (*count, *at) = (*count - 1, machine_time()));
    }

    /// Answers those who ask.
    pub(super) async fn tell(self, control: TcpListener) {
        while let Ok((socket, _)) = control.accept().await {
            tokio::spawn(answer(socket, self.reported.subscribe()));
        }
    }
}

/// Each line asks for a number; the answer comes when exactly that number of connections waits, and is when that came about.
async fn answer(socket: TcpStream, mut reported: watch::Receiver<(usize, u64)>) -> anyhow::Result<()> {
    socket.set_nodelay(true)?;
    let mut socket = BufReader::new(socket);
    let mut line = String::new();
    while socket.read_line(&mut line).await? > 0 {
        let wanted: usize = line.trim().parse()?;
        line.clear();
        let (_, at) = *reported.wait_for(|(count, _)| *count == wanted).await?;
        socket.write_all(format!("{at}\n").as_bytes()).await?;
    }
    Ok(())
}

/// The client's side.
pub(crate) struct Count(BufReader<TcpStream>);

impl Count {
    pub(crate) async fn of(address: &str) -> anyhow::Result<Self> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(Self(BufReader::new(socket)))
    }

    /// Waits until this many connections wait at the server; the nanosecond at which it was so.
    pub(crate) async fn reaches(&mut self, count: usize) -> anyhow::Result<u64> {
        self.0.write_all(format!("{count}\n").as_bytes()).await?;
        let mut line = String::new();
        anyhow::ensure!(self.0.read_line(&mut line).await? > 0, "the model server has gone");
        Ok(line.trim().parse()?)
    }
}

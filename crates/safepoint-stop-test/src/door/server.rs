//! A server that a command starts, on the port in `$PORT`.

use std::{
    fs, io,
    net::TcpListener,
    process,
    sync::atomic::{AtomicU16, Ordering},
    time::Duration,
};

use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};
use url::Url;

use super::{
    process::{Process, command},
    wrote,
};
use crate::stage::{StageError, TrialStage};

/// How long a server may take until it listens, and to answer: some start a virtual machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked whether it listens.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// The server's process, and where it listens.
pub(super) struct ServerProcess {
    process: Process,
    port: u16,
}

impl ServerProcess {
    /// Starts the command.
    ///
    /// # Errors
    /// Why this machine has no port for it, or does not start it.
    pub(super) fn start(line: &str, stage: &TrialStage) -> Result<Self, StageError> {
        let port = free_port().map_err(|error| StageError::Unbuilt(error.to_string()))?;
        let mut command = command(line, stage);
        command.env("PORT", port.to_string());
        Ok(Self { process: Process::start(command)?, port })
    }

    /// Its address, with a slash at its end.
    pub(super) fn address(&self) -> Url {
        format!("http://127.0.0.1:{}/", self.port).parse().expect("it is a URL")
    }

    /// Waits until it takes connections.
    ///
    /// # Errors
    /// That it ended before, or takes too long.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn listens(&mut self) -> Result<(), StageError> {
        let mut listening = async || {
            while TcpStream::connect(("127.0.0.1", self.port)).await.is_err() {
                self.is_alive().await?;
                sleep(LOOK).await;
            }
            Ok(())
        };
        let listens = timeout(PATIENCE, listening()).await;
        listens.unwrap_or_else(|_elapsed| {
            let why = format!("it does not listen on the port in `$PORT`{}", wrote(&self.words()));
            Err(StageError::NotStarted(why))
        })
    }

    /// # Errors
    /// How it ended, if it has.
    pub(super) async fn is_alive(&mut self) -> Result<(), StageError> {
        let Some(end) = self.end() else { return Ok(()) };
        self.process.is_heard().await;
        let why = format!("it ended before it listened: {end}{}", wrote(&self.words()));
        Err(StageError::NotStarted(why))
    }

    /// How it ended, if it has.
    pub(super) fn end(&mut self) -> Option<String> {
        Some(self.process.child.try_wait().ok()??.to_string())
    }

    /// The last of what it wrote for a reader.
    pub(super) fn words(&self) -> String {
        self.process.words()
    }
}

/// A port that is free, and stays so until the server takes it: no other trial of this process is given it, and it is none of those from
/// which the system gives one to whatever asks for any.
fn free_port() -> io::Result<u16> {
    static LAST: AtomicU16 = AtomicU16::new(0);
    let ports = lowest_given() - FIRST_PORT;
    // Tests that run beside each other begin at different ones.
    let begin = u16::try_from(process::id() * APART % u32::from(ports)).unwrap_or_default();
    for _ in 0..ports {
        // Relaxed: each caller gets a number of its own, and nothing else is shared by it.
        let next = LAST.fetch_add(1, Ordering::Relaxed);
        let port = FIRST_PORT + begin.wrapping_add(next) % ports;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::Error::new(io::ErrorKind::AddrInUse, "no port is free"))
}

/// The first port that a server is given.
const FIRST_PORT: u16 = 10_000;
/// How far apart tests begin whose processes have numbers that follow each other.
const APART: u32 = 37;

/// The first of the ports that the system gives to whatever asks for any.
fn lowest_given() -> u16 {
    const USUAL: u16 = 32_768;
    const FEW: u16 = 1000;
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let low = range.split_whitespace().next().and_then(|low| low.parse().ok());
    // Where it gives almost any, it may give one of ours.
    low.filter(|low| *low > FIRST_PORT + FEW).unwrap_or(USUAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_servers_are_given_one_port_and_none_is_given_by_the_system() {
        let mut ports: Vec<u16> = (0..50).map(|_| free_port().unwrap()).collect();
        assert!(ports.iter().all(|port| *port < lowest_given()), "{ports:?}");
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 50);
    }
}

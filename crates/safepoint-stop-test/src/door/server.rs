//! A server that a command starts, on the port in `$PORT`.

use std::{net::TcpListener, time::Duration};

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
                self.is_alive()?;
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
    pub(super) fn is_alive(&mut self) -> Result<(), StageError> {
        let Some(end) = self.end() else { return Ok(()) };
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

/// A port that is free now.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

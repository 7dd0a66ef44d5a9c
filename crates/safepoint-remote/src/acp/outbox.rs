//! What an agent is to be told, written when it reads: an agent that does not read holds up nobody.
//!
//! **Invariants** A message is written whole and in its turn, also where the write of it is dropped and taken up again.

use std::{collections::VecDeque, future::pending, io};

use serde_json::Value;
use tokio::net::unix::pipe::Sender;

/// Bytes on their way.
pub(super) struct Outbox {
    /// None once nobody reads.
    pipe: Option<Sender>,
    bytes: VecDeque<u8>,
}

impl Outbox {
    pub(super) fn new(pipe: Sender) -> Self {
        Self { pipe: Some(pipe), bytes: VecDeque::new() }
    }

    pub(super) fn push(&mut self, message: &Value) {
        if self.pipe.is_some() {
            self.bytes.extend(message.to_string().as_bytes());
            self.bytes.push_back(b'\n');
        }
    }

    /// Bytes that were not read yet.
    pub(super) fn waiting(&self) -> usize {
        self.bytes.len()
    }

    /// Resolves when everything is written, or nobody reads any more; never, if nothing was to be written.
    ///
    /// # Cancel safety
    /// What was written is no longer waiting; nothing is lost.
    pub(super) async fn write(&mut self) {
        if self.bytes.is_empty() {
            pending::<()>().await;
        }
        while !self.bytes.is_empty() {
            let Some(pipe) = &self.pipe else { break };
            let written = match pipe.writable().await {
                Ok(()) => pipe.try_write(self.bytes.as_slices().0),
                Err(error) => Err(error),
            };
            match written {
                Ok(written) => drop(self.bytes.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_nobody_reads) => {
                    self.pipe = None;
                    self.bytes.clear();
                }
            }
        }
    }

    /// Nothing more is written: the agent reads the end of its input.
    pub(super) fn close(&mut self) {
        self.pipe = None;
        self.bytes.clear();
    }
}

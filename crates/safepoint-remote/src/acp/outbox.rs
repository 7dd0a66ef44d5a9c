//! Messages to an agent, written as the agent reads: an agent that does not read blocks no task.
//!
//! **Invariants** A message is written whole and in order, also where its write is dropped and resumed.

use std::{collections::VecDeque, future::pending, io};

use serde_json::Value;
use tokio::net::unix::pipe::Sender;

/// Bytes on their way.
pub(super) struct Outbox {
    /// None once the agent no longer reads.
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

    /// Bytes that the agent has not read yet.
    pub(super) fn waiting(&self) -> usize {
        self.bytes.len()
    }

    /// Resolves when everything is written, or the agent no longer reads; never, if there was nothing to
    /// write.
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
                Err(_closed) => {
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

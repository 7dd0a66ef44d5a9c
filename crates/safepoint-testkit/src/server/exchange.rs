//! What the server saw of one request, and what became of it.

use std::sync::Arc;

use serde_json::Value;
use tokio::{sync::watch, time::Instant};

use super::{render::Rendering, route::ServedWire};
use crate::http;

/// One exchange, as it was recorded.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Its number, from 0.
    pub id: usize,
    /// The wire.
    pub wire: ServedWire,
    /// The request's path, with its query.
    pub path: String,
    /// The request's headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The request's body.
    pub body: Arc<Value>,
    /// The same, byte for byte: what a prompt cache compares.
    pub bytes: Arc<[u8]>,
    /// When it had arrived.
    pub at: Instant,
    /// What has become of it.
    pub fate: watch::Receiver<Fate>,
}

/// What has become of an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// When the first byte of the answer had been written.
    pub first_byte: Option<Instant>,
    /// When the peer was seen to close its side; after an answer, when the idle connection was closed.
    pub peer_closed: Option<Instant>,
    /// When the whole answer had been written.
    pub completed: Option<Instant>,
    /// Bytes that the peer sent after its request, while it was being answered.
    pub bytes_after: usize,
    /// The status that was answered; 0 as long as none was.
    pub status: u16,
}

impl Exchange {
    /// The value of a header; its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        http::header(&self.headers, name)
    }

    /// Whether it wants its answer as a stream of events.
    #[must_use]
    pub fn is_streamed(&self) -> bool {
        self.rendering().is_streamed()
    }

    /// How it wants its answer.
    pub(super) fn rendering(&self) -> Rendering {
        Rendering::of(self.wire, &self.path, &self.body).of_exchange(self.id)
    }

    /// What has become of it so far.
    #[must_use]
    pub fn fate_now(&self) -> Fate {
        *self.fate.borrow()
    }

    /// Waits until the peer was seen to close, and returns when. Never returns if the peer stays.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn peer_closed(&self) -> Instant {
        self.fate(|fate| fate.peer_closed).await
    }

    /// Waits until the answer was written whole, and returns when. Never returns if it is not.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn completed(&self) -> Instant {
        self.fate(|fate| fate.completed).await
    }

    async fn fate<T>(&self, of: impl Fn(&Fate) -> Option<T>) -> T {
        let mut fate = self.fate.clone();
        loop {
            if let Some(found) = of(&fate.borrow_and_update()) {
                return found;
            }
            if fate.changed().await.is_err() {
                // The connection's task is gone and this never came: it never will.
                std::future::pending::<()>().await;
            }
        }
    }
}

//! What is said to the editor: answers, updates, and questions that it answers.
//!
//! **Invariants**: lines leave in the order in which they were said; an editor that does not read holds up only what waits to say
//! something.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::message::{self, Refusal};

/// How many lines may wait to be written.
const AHEAD: usize = 256;

/// The way to the editor.
pub(super) struct Outbox {
    lines: mpsc::Sender<Value>,
    last: AtomicU64,
    /// Who waits for which answer. Held for one look or one entry; no other lock is taken under it.
    asked: Mutex<HashMap<u64, oneshot::Sender<Option<Value>>>>,
}

/// A question that the editor has.
pub(super) struct AskedEditor {
    pub(super) id: u64,
    /// What it says to it; `None`: it refused.
    pub(super) answer: oneshot::Receiver<Option<Value>>,
}

impl Outbox {
    pub(super) fn new() -> (Self, mpsc::Receiver<Value>) {
        let (lines, said) = mpsc::channel(AHEAD);
        (Self { lines, last: AtomicU64::new(0), asked: Mutex::default() }, said)
    }

    /// # Cancel safety
    /// It is said, or not at all.
    pub(super) async fn answer(&self, id: &Value, answered: Result<Value, Refusal>) {
        self.say(message::answer(id, answered)).await;
    }

    /// # Cancel safety
    /// As for [`answer`](Self::answer).
    pub(super) async fn update(&self, session: &str, update: &Value) {
        self.say(message::notice("session/update", &json!({"sessionId": session, "update": update}))).await;
    }

    /// Asks; the answer comes to what is returned.
    ///
    /// # Cancel safety
    /// It may have been asked, and its answer is dropped.
    pub(super) async fn ask(&self, method: &str, params: &Value) -> AskedEditor {
        // Relaxed: only that no two are the same.
        let id = self.last.fetch_add(1, Ordering::Relaxed);
        let (tell, answer) = oneshot::channel();
        self.asked().insert(id, tell);
        self.say(message::request(id, method, params)).await;
        AskedEditor { id, answer }
    }

    /// Takes a question back: its answer is not waited for any more.
    ///
    /// # Cancel safety
    /// As for [`answer`](Self::answer).
    pub(super) async fn take_back(&self, id: u64) {
        if self.asked().remove(&id).is_some() {
            self.say(message::notice("$/cancel_request", &json!({"requestId": id}))).await;
        }
    }

    /// The editor answered. What has no question, or no longer, is passed over.
    pub(super) fn answered(&self, id: u64, result: Option<Value>) {
        let asked = self.asked().remove(&id);
        if asked.is_some_and(|tell| tell.send(result).is_err()) {
            // What asked is gone.
        }
    }

    /// Waits until nothing can be said any more.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn closed(&self) {
        self.lines.closed().await;
    }

    async fn say(&self, line: Value) {
        if self.lines.send(line).await.is_err() {
            // The editor is gone: what it began is stopped where that is learned.
        }
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Option<Value>>>> {
        self.asked.lock().expect("no code under this lock panics")
    }
}

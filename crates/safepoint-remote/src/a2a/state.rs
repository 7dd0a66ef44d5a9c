//! The state of the exchange about one task: what was sent, what is awaited, and what is known.

use std::{
    collections::VecDeque,
    sync::{Arc, atomic::AtomicBool},
};

use futures_core::future::BoxFuture;
use safepoint::{
    raw::remote::{RemoteEnd, RemoteEvent, RemoteStopReply, RemoteTask},
    receipt::StopSupport,
};
use serde_json::Value;

use super::{
    Peer,
    http::{Broke, Events, Opened},
    look::Watch,
    text::Text,
    wire::Status,
};
use crate::cancel::Phase;

/// The exchange about one task.
pub(super) struct TaskCall {
    pub(super) peer: Arc<Peer>,
    pub(super) brief: RemoteTask,
    pub(super) grade: StopSupport,
    pub(super) task: Option<String>,
    pub(super) feed: Feed,
    pub(super) watch: Watch,
    pub(super) telling: Telling,
    pub(super) events: VecDeque<RemoteEvent>,
    pub(super) text: Text,
    /// Set before the first byte of a message is sent.
    pub(super) sent: Arc<AtomicBool>,
    pub(super) phase: Phase,
    pub(super) asking: Asking,
    /// The last reported status of the task.
    pub(super) stands: Option<Status>,
}

/// What is known of the answer to a cancel. No cancel was sent or its answer was reported; the answer is
/// pending; or it was a refusal, reported, and the adapter reads the task. Or it says that the work was over,
/// and waits for that end with what it is worth. Or the end is known, and waits briefly for the answer; or it
/// was a refusal, with the task's state after it.
#[derive(Default)]
pub(super) enum Telling {
    #[default]
    Done,
    Asked(BoxFuture<'static, Result<Value, Broke>>),
    Refused(Broke, BoxFuture<'static, Option<Value>>),
    WasOver(RemoteStopReply, RemoteEnd),
    Ending(BoxFuture<'static, Result<Value, Broke>>, RemoteEvent),
    Stands(RemoteStopReply),
}

/// The source of the next event, beside reads of the task.
pub(super) enum Feed {
    /// No request was sent.
    Unsent,
    /// The answer to a message or a subscription is pending.
    Opening(BoxFuture<'static, Result<Opened, Broke>>, Purpose),
    Reading(Box<Events>, Purpose),
    /// Only reads, or no source while a person is to answer.
    Closed,
    Over,
}

/// What the adapter opens: a message, or a subscription to a known task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Send,
    /// The subscription, and whether its stream sent any event.
    Rejoin {
        has_word: bool,
    },
}

/// The remote agent's questions so far.
#[derive(Default)]
pub(super) struct Asking {
    /// The open question: its id, and its status.
    pub(super) open: Option<(String, Status)>,
    /// The status that was answered last, until the task continues.
    pub(super) answered: Option<Status>,
    pub(super) asked: u32,
}

impl Asking {
    /// Marks the open question of this id as answered; false if there is none.
    pub(super) fn answers(&mut self, question: &str) -> bool {
        let taken = self.open.take_if(|(id, _)| id == question);
        let was_open = taken.is_some();
        self.answered = taken.map(|(_, asked)| asked).or(self.answered.take());
        was_open
    }
}

impl TaskCall {
    pub(super) fn new(peer: Arc<Peer>, brief: RemoteTask, grade: StopSupport) -> Self {
        let (task, text) = (brief.task.clone(), Text::within(brief.most_bytes));
        Self {
            peer,
            brief,
            grade,
            task,
            feed: Feed::Unsent,
            watch: Watch::default(),
            telling: Telling::Done,
            events: VecDeque::new(),
            text,
            sent: Arc::default(),
            phase: Phase::Working,
            asking: Asking::default(),
            stands: None,
        }
    }
}

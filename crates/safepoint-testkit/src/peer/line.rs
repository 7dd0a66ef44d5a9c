//! Our end of the line to a scripted peer.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use safepoint::{
    approval::Decision,
    raw::remote::{RemoteCall, RemoteEvent, RemoteStopReply, RemoteTask},
};
use tokio::sync::{Notify, mpsc};

use super::{
    Given, OnPeerStop, Peer,
    work::{self, WorkChannels},
};
use crate::sync::lock;

pub(super) struct PeerCall {
    peer: Peer,
    brief: RemoteTask,
    begun: Option<Begun>,
    /// Said once it has ended because of a stop, if it says so.
    ended: Option<String>,
}

struct Begun {
    /// Ends the work, when the peer does.
    ender: Arc<Notify>,
    receives: mpsc::UnboundedReceiver<RemoteEvent>,
    answers: mpsc::UnboundedSender<(String, Given)>,
    open: Vec<String>,
}

impl PeerCall {
    pub(super) fn new(peer: Peer, brief: RemoteTask) -> Self {
        Self { peer, brief, begun: None, ended: None }
    }

    fn begin(&mut self) -> RemoteEvent {
        lock(&self.peer.world.received).briefs.push(self.brief.clone());
        let (says, receives) = mpsc::unbounded_channel();
        let (answers, answered) = mpsc::unbounded_channel();
        let ender = work::begin(&self.peer, WorkChannels { says, receives: answered });
        self.begun = Some(Begun { ender, receives, answers, open: Vec::new() });
        RemoteEvent::Begun { task: format!("task-{}", self.peer.begun()) }
    }

    fn give(&mut self, question: String, given: Given) {
        lock(&self.peer.world.received).answers.push((question.clone(), given.clone()));
        let Some(begun) = &mut self.begun else { return };
        begun.open.retain(|open| *open != question);
        if begun.answers.send((question, given)).is_err() {
            // The work has ended.
        }
    }

    fn end(&self) {
        if let Some(begun) = &self.begun {
            begun.ender.notify_one();
        }
    }
}

impl RemoteCall for PeerCall {
    fn next(&mut self) -> BoxFuture<'_, RemoteEvent> {
        Box::pin(async move {
            if let Some(word) = self.ended.clone() {
                self.peer.idle().await;
                return RemoteEvent::Ended { word };
            }
            let Some(begun) = &mut self.begun else { return self.begin() };
            match begun.receives.recv().await {
                Some(RemoteEvent::Question(question)) => {
                    begun.open.push(question.id.clone());
                    RemoteEvent::Question(question)
                }
                Some(said) => said,
                // It has nothing more to say.
                None => std::future::pending().await,
            }
        })
    }

    fn answer(&mut self, question: String, decision: Decision) -> BoxFuture<'_, ()> {
        self.give(question, Given::Decision(decision));
        Box::pin(async {})
    }

    fn stop(&mut self) -> BoxFuture<'_, RemoteStopReply> {
        Box::pin(async move {
            let Some(begun) = &self.begun else { return RemoteStopReply::confirmed("nothing had been sent") };
            let open = begun.open.clone();
            // Before any effect of the stop, so that a test that sees the effect sees the count.
            self.peer.world.counts.send_modify(|counts| counts.stops += 1);
            match self.peer.on_stop {
                OnPeerStop::Silent => return std::future::pending().await,
                OnPeerStop::Unreachable => return RemoteStopReply::unreachable("connection refused"),
                OnPeerStop::CannotStop => return RemoteStopReply::refused("cancel is not implemented"),
                OnPeerStop::Refuses => return RemoteStopReply::refused("this agent cannot be canceled"),
                OnPeerStop::Ends | OnPeerStop::EndsLater | OnPeerStop::TakesNote | OnPeerStop::OnlySays => {}
            }
            open.into_iter().for_each(|question| self.give(question, Given::Cancelled));
            match self.peer.on_stop {
                OnPeerStop::Ends => {
                    self.end();
                    self.peer.idle().await;
                    RemoteStopReply::confirmed("canceled")
                }
                OnPeerStop::EndsLater => {
                    self.end();
                    self.ended = Some("canceled".into());
                    RemoteStopReply::acknowledged("canceling")
                }
                OnPeerStop::OnlySays => RemoteStopReply::confirmed("canceled"),
                _ => RemoteStopReply::acknowledged("noted"),
            }
        })
    }
}

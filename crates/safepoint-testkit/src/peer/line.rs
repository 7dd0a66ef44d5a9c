//! Our end of the line to a scripted peer.

use std::sync::atomic::Ordering;

use futures_util::future::BoxFuture;
use safepoint::{
    approval::Decision,
    remote::{Brief, Line, Said, Told},
};
use tokio::sync::mpsc;

use super::{
    Given, OnStop, Peer,
    work::{self, Ender, Ends},
};

pub(super) struct Wire {
    peer: Peer,
    brief: Brief,
    begun: Option<Begun>,
    /// Said once it has ended because of a stop, if it says so.
    ended: Option<String>,
}

struct Begun {
    ender: Ender,
    hears: mpsc::UnboundedReceiver<Said>,
    answers: mpsc::UnboundedSender<(String, Given)>,
    open: Vec<String>,
}

impl Wire {
    pub(super) fn new(peer: Peer, brief: Brief) -> Self {
        Self { peer, brief, begun: None, ended: None }
    }

    fn begin(&mut self) -> Said {
        self.peer.world.heard().briefs.push(self.brief.clone());
        let (says, hears) = mpsc::unbounded_channel();
        let (answers, answered) = mpsc::unbounded_channel();
        let ender = work::begin(&self.peer, Ends { says, hears: answered });
        self.begun = Some(Begun { ender, hears, answers, open: Vec::new() });
        Said::Begun { task: format!("task-{}", self.peer.begun()) }
    }

    fn give(&mut self, question: String, given: Given) {
        self.peer.world.heard().answers.push((question.clone(), given.clone()));
        let Some(begun) = &mut self.begun else { return };
        begun.open.retain(|open| *open != question);
        if begun.answers.send((question, given)).is_err() {
            // The work has ended.
        }
    }

    fn end(&self) {
        if let Some(begun) = &self.begun {
            begun.ender.end();
        }
    }
}

impl Line for Wire {
    fn next(&mut self) -> BoxFuture<'_, Said> {
        Box::pin(async move {
            if let Some(word) = self.ended.clone() {
                self.peer.idle().await;
                return Said::Ended { word };
            }
            let Some(begun) = &mut self.begun else { return self.begin() };
            match begun.hears.recv().await {
                Some(Said::Question(question)) => {
                    begun.open.push(question.id.clone());
                    Said::Question(question)
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

    fn stop(&mut self) -> BoxFuture<'_, Told> {
        Box::pin(async move {
            let Some(begun) = &self.begun else { return Told::confirmed("nothing had been sent") };
            let open = begun.open.clone();
            self.peer.world.stops.fetch_add(1, Ordering::AcqRel);
            match self.peer.on_stop {
                OnStop::Silent => return std::future::pending().await,
                OnStop::Unreachable => return Told::unreachable("connection refused"),
                OnStop::CannotStop => return Told::refused("cancel is not implemented"),
                OnStop::Refuses => return Told::refused("this agent cannot be canceled"),
                OnStop::Ends | OnStop::EndsLater | OnStop::TakesNote | OnStop::OnlySays => {}
            }
            open.into_iter().for_each(|question| self.give(question, Given::Cancelled));
            match self.peer.on_stop {
                OnStop::Ends => {
                    self.end();
                    self.peer.idle().await;
                    Told::confirmed("canceled")
                }
                OnStop::EndsLater => {
                    self.end();
                    self.ended = Some("canceled".into());
                    Told::acknowledged("canceling")
                }
                OnStop::OnlySays => Told::confirmed("canceled"),
                _ => Told::acknowledged("noted"),
            }
        })
    }
}

//! A peer is told to stop, has its time to say that it did, and is listened to a little longer.

use std::mem;

use jiff::Timestamp;
use safepoint_scope::Failure;
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

use super::{Line, RemoteSpec, Said, Told};
use crate::{
    limits::after,
    receipt::{Grade, RemoteReport, RemoteStop},
    tool::Cx,
};

/// What the peer's work came to under the stop.
pub(super) enum Came {
    /// It had finished: what it said is kept (S4.5).
    Done(String),
    /// It had failed, or the line broke.
    Failed(Failure),
    /// It was told; the row says what is known.
    Stopped,
}

/// A line whose work must end.
pub(super) struct Parting {
    pub(super) line: Box<dyn Line>,
    pub(super) cx: Cx,
    pub(super) spec: RemoteSpec,
    pub(super) row: RemoteReport,
    pub(super) said: String,
    /// How many bytes more of what the peer says are kept.
    pub(super) left: usize,
    pub(super) ears: Ears,
}

/// What becomes of what a peer goes on to say. Exhaustive: it is the call's, or it is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ears {
    InTime,
    /// The call has ended: so many bytes are told as late, and go nowhere else (S3.5).
    Late(usize),
}

impl Parting {
    /// The row, from before the peer is told.
    pub(super) fn ask(&mut self) {
        self.row.asked_at = Some(Timestamp::now());
        self.row.within_ms = u64::try_from(self.spec.stop_within.as_millis()).ok();
        self.row.stop = Some(RemoteStop::Requested);
        self.report();
    }

    /// Tells the peer; `tell` hears what came of it in the peer's time. Our end then listens on, for the audit.
    pub(super) async fn part(mut self, tell: oneshot::Sender<Came>) {
        let deadline = after(Instant::now(), self.spec.stop_within);
        if let Ok(told) = timeout_at(deadline, self.line.stop()).await {
            self.hear(told);
        }
        let came = match self.row.stop {
            // In the peer's time nothing more is to be waited for.
            Some(RemoteStop::Confirmed | RemoteStop::Refused | RemoteStop::Unreachable) => None,
            // Nothing more would be believed.
            Some(RemoteStop::Acknowledged) if self.spec.grade != Grade::Hard => None,
            _ => self.listen(deadline).await,
        };
        let is_over = came.is_some() || self.row.stop == Some(RemoteStop::Confirmed);
        if tell.send(came.unwrap_or(Came::Stopped)).is_err() {
            // The call was not given the peer's time, and has ended: the row says what is known.
        }
        if !is_over {
            self.listen_on().await;
        }
    }

    /// What comes until `deadline`, if it is an end.
    async fn listen(&mut self, deadline: Instant) -> Option<Came> {
        loop {
            tokio::task::coop::consume_budget().await;
            // A peer that always says one thing more has no more time than another.
            if Instant::now() >= deadline {
                return None;
            }
            match timeout_at(deadline, self.line.next()).await.ok()? {
                Said::Done(answer) => {
                    self.ended();
                    return Some(Came::Done(answer.unwrap_or(mem::take(&mut self.said))));
                }
                Said::Ended { word } => {
                    self.hear(Told::confirmed(word));
                    return Some(Came::Stopped);
                }
                Said::Failed(failure) => {
                    self.ended();
                    return Some(Came::Failed(failure));
                }
                Said::Lost(failure) => {
                    self.row.lost_at = Some(Timestamp::now());
                    self.row.word = failure.to_string();
                    self.report();
                    return Some(Came::Failed(failure));
                }
                Said::Text(text) => self.more(text),
                Said::Begun { task } => {
                    self.row.task = Some(task);
                    self.report();
                }
                Said::Progress(_) | Said::Question(_) | Said::Withdrawn { .. } => {}
            }
        }
    }

    fn more(&mut self, text: String) {
        if let Ears::Late(bytes) = &mut self.ears {
            *bytes += text.len();
            return;
        }
        // What is too much is not kept: the work ends in any case.
        if let Some(left) = self.left.checked_sub(text.len()) {
            self.left = left;
            self.said.push_str(&text);
            self.cx.progress(text);
        }
    }

    /// After the peer's time: what becomes of the work there changes the row, and nothing else.
    async fn listen_on(&mut self) {
        self.ears = Ears::Late(0);
        let deadline = after(Instant::now(), self.spec.listen);
        let came = self.listen(deadline).await;
        let peer = &self.row.peer;
        if let Ears::Late(bytes @ 1..) = self.ears {
            self.cx.late(format!("went on at {peer}, which said {bytes} bytes more"));
        }
        let Some(came) = came else { return };
        self.cx.late(match came {
            Came::Done(answer) => format!("was finished by {peer} with {} bytes", answer.len()),
            Came::Failed(failure) => format!("failed at {peer}: {failure}"),
            Came::Stopped => format!("has ended, says {peer}"),
        });
    }

    fn hear(&mut self, told: Told) {
        self.row.heard_at = Some(Timestamp::now());
        self.row.stop = Some(told.stop);
        self.row.word = told.word;
        self.report();
    }

    fn ended(&mut self) {
        self.row.ended_at = Some(Timestamp::now());
        self.report();
    }

    fn report(&self) {
        self.cx.report_remote(self.row.clone());
    }
}

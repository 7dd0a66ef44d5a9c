//! One task of a remote agent: its events, questions and answers, until it ends or must end.
//!
//! **Invariants**: what the agent sent before a stop is kept; the receipt reports only what the agent
//! confirmed; work that was begun and has not ended is stopped, even if this future is dropped first.

use std::{future::poll_fn, pin::pin, task::Poll};

use futures_core::future::BoxFuture;
use futures_util::future::{Either, select};
use safepoint_scope::{Failure, Halt, Stop};
use tokio::{runtime, sync::oneshot};

use super::{
    reach,
    stopping::{StopResult, Stopping},
};
use crate::contract::remote::{Reattach, RemoteCall, RemoteEnd, RemoteEvent, RemoteSpec, Term};
use crate::{
    contract::tool::{ToolContext, ToolResult},
    sync::clock,
    value::{approval::Decision, receipt::RemoteReport},
};

/// An open question of the remote agent: its id there, its tool, and the decision.
type OpenQuestion = (String, String, BoxFuture<'static, Result<Decision, Stop>>);

/// The hint for work that was not allowed.
const ALLOW: &str = "allow what it asks for by a rule, or run it where a person can be asked";

/// A running task.
pub(super) struct CallLoop {
    spec: RemoteSpec,
    /// `None` once the work has ended, or its stop is under way.
    line: Option<Box<dyn RemoteCall>>,
    cx: ToolContext,
    row: RemoteReport,
    /// All bytes that the remote agent has sent, in its answer and beside it.
    bytes: usize,
    asking: Vec<OpenQuestion>,
    /// The work's name is being recorded: no later event is received before that.
    naming: Option<oneshot::Receiver<()>>,
    /// What a person denied last.
    denied: Option<String>,
}

impl CallLoop {
    pub(super) fn new(spec: &RemoteSpec, line: Box<dyn RemoteCall>, cx: ToolContext) -> Self {
        let row = RemoteReport::of(&spec.peer, spec.grade);
        Self {
            spec: spec.clone(),
            line: Some(line),
            cx,
            row,
            bytes: 0,
            asking: Vec::new(),
            naming: None,
            denied: None,
        }
    }

    pub(super) async fn run(mut self, is_whole_run: bool) -> ToolResult {
        self.cx.report_remote(self.row.clone());
        let cx = self.cx.clone();
        loop {
            match cx.run(self.step_unless(is_whole_run)).await {
                // An agent that always has another event must not starve other tasks.
                Ok(Some(None)) => tokio::task::coop::consume_budget().await,
                Ok(Some(Some(end))) => return end,
                Ok(None) | Err(_) => return self.stop_work().await,
            }
        }
    }

    /// The result of one step; `None` if the work must end. A step that is done comes first.
    async fn step_unless(&mut self, is_whole_run: bool) -> Option<Option<ToolResult>> {
        let scope = self.cx.scope().clone();
        // The step first: what it has received counts. A stop may drop the step at any await; the call is
        // then parted, and an event or a decision that the step had in hand has no effect.
        match select(pin!(self.step()), pin!(reach::reached(is_whole_run, &scope))).await {
            Either::Left((end, _)) => Some(end),
            Either::Right(((), _)) => None,
        }
    }

    /// Receives one event or decision and handles it. A stop drops this at any await.
    async fn step(&mut self) -> Option<ToolResult> {
        if let Some(naming) = &mut self.naming {
            // An error means that the recording driver is gone.
            drop(naming.await);
            self.naming = None;
        }
        let line = self.line.as_mut()?;
        match receive(&mut **line, &mut self.asking).await {
            Either::Right(((id, tool, _), decision)) => {
                if matches!(decision, Decision::Deny { .. }) {
                    self.denied = Some(tool);
                }
                line.answer(id, decision).await;
                None
            }
            Either::Left(said) => self.handle(said),
        }
    }

    fn handle(&mut self, said: RemoteEvent) -> Option<ToolResult> {
        // Most of a complete answer was received before.
        let is_again = matches!(said, RemoteEvent::Done(..) | RemoteEvent::Reordered(..));
        let again = if is_again { self.row.text_len() } else { 0 };
        self.bytes = self.bytes.saturating_add(said.bytes().saturating_sub(again));
        if self.bytes > self.cx.host().output_bytes() {
            // Excess is not kept. The stop ends the next step, and is sent to the agent if the work still
            // runs.
            let why = self.cx.said_too_much(&self.row.peer);
            if said.is_last() {
                self.ended(RemoteEnd::Reported);
                return Some(Err(Failure::new(why).into()));
            }
            return None;
        }
        match said {
            RemoteEvent::Begun { task } => {
                if self.spec.rejoin == Reattach::ByTaskId {
                    self.naming = Some(self.cx.host().name_work(task.clone()));
                }
                self.row.task = Some(task);
                self.cx.report_remote(self.row.clone());
            }
            RemoteEvent::Text(text) => self.more(&text),
            RemoteEvent::Progress(text) => self.cx.progress(text),
            RemoteEvent::Notice(text) => self.cx.host().notice(text),
            RemoteEvent::Thought(_) => {}
            // No stop was sent.
            RemoteEvent::StopReply(_) | RemoteEvent::Parted(_) => {}
            RemoteEvent::Question(question) => {
                let (cx, tool) = (self.cx.clone(), question.tool.clone());
                let asked = async move { cx.ask(question.tool, question.args).await };
                self.asking.push((question.id, tool, Box::pin(asked)));
            }
            RemoteEvent::Withdrawn { question } => self.asking.retain(|(id, ..)| *id != question),
            RemoteEvent::Done(answer, end) => return Some(self.done(answer, end)),
            RemoteEvent::Reordered(answer, end) => {
                self.cx.host().answer_is_shown();
                return Some(self.done(Some(answer), end));
            }
            RemoteEvent::Ended { word } => {
                self.ended(RemoteEnd::Reported);
                if let Some(refused) = self.refused() {
                    return Some(Err(refused.into()));
                }
                let what = if word.is_empty() { String::new() } else { format!(": {word}") };
                let failure =
                    Failure::new(format!("{} ended the work without an answer{what}", self.row.peer));
                return Some(Err(failure.into()));
            }
            RemoteEvent::Failed(failure) => {
                self.ended(RemoteEnd::Reported);
                return Some(Err(failure.into()));
            }
            RemoteEvent::Lost(failure) => {
                self.line = None;
                self.row.lost_at = Some(clock::now());
                self.cx.report_remote(self.row.clone());
                return Some(Err(failure.into()));
            }
        }
        None
    }

    fn more(&mut self, text: &str) {
        if self.cx.host().add_text(text) {
            self.row.says(text);
        }
    }

    fn done(&mut self, answer: Option<String>, end: RemoteEnd) -> ToolResult {
        self.ended(end);
        let answer = self.cx.host().answer(answer);
        match self.refused().filter(|_| answer.trim().is_empty()) {
            Some(refused) => Err(refused.into()),
            None => Ok(answer.into()),
        }
    }

    /// What an end without an answer means if the work was denied something: it was refused here, whatever
    /// the agent calls its end (S10.68).
    fn refused(&self) -> Option<Failure> {
        let by_policy = self.cx.host().denied();
        let why = match (by_policy.as_slice(), &self.denied) {
            ([], None) => return None,
            ([], Some(tool)) => format!("refused: it was not allowed {tool}"),
            (tools, _) => format!("refused by the approval rule: it was not allowed {}", tools.join(", ")),
        };
        Some(Failure::new(why).denied().with_hint(ALLOW))
    }

    fn ended(&mut self, end: RemoteEnd) {
        self.line = None;
        end.write_into(&mut self.row);
        self.cx.report_remote(self.row.clone());
    }

    /// The work must end: the agent has its time to confirm that. If the stop would wait for a safe point,
    /// this is one.
    async fn stop_work(mut self) -> ToolResult {
        let result = match self.stop_peer() {
            Some(stopped) => stopped.await.ok(),
            None => None,
        };
        if let Some(StopResult::Done(answer)) = result {
            return Ok(self.cx.host().answer(answer).into());
        }
        self.cx.host().end_with_the_run();
        let stop = self.cx.stopped().await;
        Err(match result {
            Some(StopResult::Failed(failure)) => Halt::from(failure),
            Some(StopResult::Done(_) | StopResult::Stopped) | None => Halt::from(stop),
        })
    }

    /// Stops the work in a separate task, which outlives this future if necessary.
    fn stop_peer(&mut self) -> Option<oneshot::Receiver<StopResult>> {
        let line = self.line.take()?;
        // Withdrawn before the stop is sent, so that no answer crosses it.
        self.asking.clear();
        let (result, stopped) = oneshot::channel();
        let (cx, spec) = (self.cx.clone(), self.spec.clone());
        let row = self.row.clone();
        let left = cx.host().output_bytes().saturating_sub(self.bytes);
        let term = Term::begin(cx.scope(), spec.stop_within);
        let mut stopping = Stopping { line, cx, spec, row, left, late: None, term, noted: None };
        // Reported before any reader can look: from here on the work is not known to have ended.
        stopping.ask();
        drop(self.cx.scope().spawn(stopping.row.label(), stopping.run(result)));
        Some(stopped)
    }
}

impl Drop for CallLoop {
    /// Dropped when its time was over, before another poll.
    fn drop(&mut self) {
        if runtime::Handle::try_current().is_ok() {
            drop(self.stop_peer());
        }
    }
}

/// The next event of the remote agent, or the next decision of a person; events come first.
async fn receive(
    line: &mut dyn RemoteCall,
    asking: &mut Vec<OpenQuestion>,
) -> Either<RemoteEvent, (OpenQuestion, Decision)> {
    let next = line.next();
    let decided = pin!(poll_fn(|cx| {
        for place in 0..asking.len() {
            match asking[place].2.as_mut().poll(cx) {
                Poll::Ready(Ok(decision)) => return Poll::Ready((asking.swap_remove(place), decision)),
                // The stop ends the step itself.
                Poll::Ready(Err(_stop)) => return Poll::Pending,
                Poll::Pending => {}
            }
        }
        Poll::Pending
    }));
    // Events are polled first. The future that loses is dropped without loss: `next` is cancel-safe by contract, and a
    // decision leaves `asking` only when it is returned.
    match select(next, decided).await {
        Either::Left((said, _)) => Either::Left(said),
        Either::Right((decided, _)) => Either::Right(decided),
    }
}

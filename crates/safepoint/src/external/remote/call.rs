//! One piece of work with a peer: heard, asked and answered, until it ends or must end.
//!
//! **Invariants**: what the peer said before a stop is kept; the row in the receipt says what the peer confirmed, and
//! no more; work that was begun and has not ended is told to stop, also when this future is dropped before it could.

use std::{future::poll_fn, pin::pin, task::Poll};

use futures_core::future::BoxFuture;
use futures_util::future::{Either, select};
use jiff::Timestamp;
use safepoint_scope::{Failure, Halt, Stop};
use tokio::{runtime, sync::oneshot};

use super::{
    reach::Stands,
    stopping::{Listening, StopResult, Stopping},
};
use crate::contract::remote::{Reattach, RemoteCall, RemoteEvent, RemoteSpec, Term};
use crate::{
    contract::tool::{ToolContext, ToolResult},
    value::{approval::Decision, receipt::RemoteReport},
};

/// A question of the peer that stands open.
struct Open {
    /// Its id there.
    id: String,
    tool: String,
    decision: BoxFuture<'static, Result<Decision, Stop>>,
}

/// What to do about work that was not allowed.
const ALLOW: &str = "allow what it asks for by a rule, or run it where somebody can be asked";

/// The work in hand.
pub(super) struct CallLoop {
    spec: RemoteSpec,
    /// None once the work has ended, or is told to.
    line: Option<Box<dyn RemoteCall>>,
    cx: ToolContext,
    row: RemoteReport,
    /// Bytes that the peer has said in all, of its answer and beside it.
    bytes: usize,
    asking: Vec<Open>,
    /// The work's name is being recorded: nothing that comes after it is heard before.
    naming: Option<oneshot::Receiver<()>>,
    /// What a person did not allow it last.
    denied: Option<String>,
}

/// What a step came to.
enum Step {
    /// The call goes on, or ends with this.
    Heard(Option<ToolResult>),
    MustEnd,
}

/// What came first.
enum Heard {
    Said(RemoteEvent),
    Decided(Open, Decision),
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

    pub(super) async fn run(mut self, stands: Stands) -> ToolResult {
        self.cx.report_remote(self.row.clone());
        let cx = self.cx.clone();
        loop {
            match cx.run(self.step_unless(stands)).await {
                // A peer that always says one thing more must not keep others from being heard.
                Ok(Step::Heard(None)) => tokio::task::coop::consume_budget().await,
                Ok(Step::Heard(Some(end))) => return end,
                Ok(Step::MustEnd) | Err(_) => return self.part().await,
            }
        }
    }

    /// One step, unless the work is to end: a step that is done comes first.
    async fn step_unless(&mut self, stands: Stands) -> Step {
        let scope = self.cx.scope().clone();
        match select(pin!(self.step()), pin!(stands.reached(&scope))).await {
            Either::Left((end, _)) => Step::Heard(end),
            Either::Right(((), _)) => Step::MustEnd,
        }
    }

    /// Hears one thing and acts on it. Dropped by a stop, whatever it awaits.
    async fn step(&mut self) -> Option<ToolResult> {
        if let Some(naming) = &mut self.naming {
            // An error says that nobody is left to record it.
            drop(naming.await);
            self.naming = None;
        }
        let line = self.line.as_mut()?;
        match heard(&mut **line, &mut self.asking).await {
            Heard::Decided(question, decision) => {
                if matches!(decision, Decision::Deny { .. }) {
                    self.denied = Some(question.tool);
                }
                line.answer(question.id, decision).await;
                None
            }
            Heard::Said(said) => self.hear(said),
        }
    }

    fn hear(&mut self, said: RemoteEvent) -> Option<ToolResult> {
        // Of an answer that is whole the most was told before.
        let is_again = matches!(said, RemoteEvent::Done(_) | RemoteEvent::Reordered(_));
        let again = if is_again { self.row.told() } else { 0 };
        self.bytes = self.bytes.saturating_add(said.bytes().saturating_sub(again));
        if self.bytes > self.cx.output_bytes() {
            // What is too much is not kept. The stop ends the next step, and the peer is told, if it is still at work.
            let why = self.cx.said_too_much(&self.row.peer);
            if said.is_last() {
                self.ended();
                return Some(Err(Failure::new(why).into()));
            }
            return None;
        }
        match said {
            RemoteEvent::Begun { task } => {
                if self.spec.rejoin == Reattach::ByTaskId {
                    self.naming = Some(self.cx.name_work(task.clone()));
                }
                self.row.task = Some(task);
                self.cx.report_remote(self.row.clone());
            }
            RemoteEvent::Text(text) => self.more(&text),
            RemoteEvent::Progress(text) => self.cx.progress(text),
            RemoteEvent::Notice(text) => self.cx.notice(text),
            RemoteEvent::Thought(_) => {}
            // Nobody has asked it to stop.
            RemoteEvent::Told(_) | RemoteEvent::Parted(_) => {}
            RemoteEvent::Question(question) => {
                let (cx, tool) = (self.cx.clone(), question.tool.clone());
                let asked = async move { cx.ask(question.tool, question.args).await };
                self.asking.push(Open { id: question.id, tool, decision: Box::pin(asked) });
            }
            RemoteEvent::Withdrawn { question } => self.asking.retain(|open| open.id != question),
            RemoteEvent::Done(answer) => return Some(self.done(answer)),
            RemoteEvent::Reordered(answer) => {
                self.cx.said_all();
                return Some(self.done(Some(answer)));
            }
            RemoteEvent::Ended { word } => {
                self.ended();
                if let Some(refused) = self.refused() {
                    return Some(Err(refused.into()));
                }
                let what = if word.is_empty() { String::new() } else { format!(": {word}") };
                let failure =
                    Failure::new(format!("{} ended the work without an answer{what}", self.row.peer));
                return Some(Err(failure.into()));
            }
            RemoteEvent::Failed(failure) => {
                self.ended();
                return Some(Err(failure.into()));
            }
            RemoteEvent::Lost(failure) => {
                self.line = None;
                self.row.lost_at = Some(Timestamp::now());
                self.cx.report_remote(self.row.clone());
                return Some(Err(failure.into()));
            }
        }
        None
    }

    fn more(&mut self, text: &str) {
        if self.cx.say(text) {
            self.row.says(text);
        }
    }

    fn done(&mut self, answer: Option<String>) -> ToolResult {
        self.ended();
        let answer = self.cx.answer(answer);
        match self.refused().filter(|_| answer.trim().is_empty()) {
            Some(refused) => Err(refused.into()),
            None => Ok(answer.into()),
        }
    }

    /// What an end without an answer means where the work was not allowed: it was refused here, whatever the peer calls
    /// its end (S10.68).
    fn refused(&self) -> Option<Failure> {
        let by_policy = self.cx.denied_by_policy();
        let why = match (by_policy.as_slice(), &self.denied) {
            ([], None) => return None,
            ([], Some(tool)) => format!("refused: it was not allowed {tool}"),
            (tools, _) => format!("refused by the approval rule: it was not allowed {}", tools.join(", ")),
        };
        Some(Failure::new(why).denied().with_hint(ALLOW))
    }

    fn ended(&mut self) {
        self.line = None;
        self.row.ended_at = Some(Timestamp::now());
        self.cx.report_remote(self.row.clone());
    }

    /// The work must end: the peer has its time to say so. Where the stop would wait for a safe point, this is one.
    async fn part(mut self) -> ToolResult {
        let came = match self.tell() {
            Some(told) => told.await.ok(),
            None => None,
        };
        if let Some(StopResult::Done(answer)) = came {
            return Ok(self.cx.answer(answer).into());
        }
        self.cx.end_with_the_run();
        let stop = self.cx.stopped().await;
        Err(match came {
            Some(StopResult::Failed(failure)) => Halt::from(failure),
            Some(StopResult::Done(_) | StopResult::Stopped) | None => Halt::from(stop),
        })
    }

    /// Has the peer told by a task of its own, which outlives this future if it must.
    fn tell(&mut self) -> Option<oneshot::Receiver<StopResult>> {
        let line = self.line.take()?;
        // Taken back before the peer is told, so that no answer crosses the stop.
        self.asking.clear();
        let (tell, told) = oneshot::channel();
        let (cx, spec) = (self.cx.clone(), self.spec.clone());
        let row = self.row.clone();
        let left = cx.output_bytes().saturating_sub(self.bytes);
        let term = Term::begin(cx.scope(), spec.stop_within);
        let mut parting = Stopping { line, cx, spec, row, left, ears: Listening::InTime, term, noted: None };
        // Said before anybody can look: from here on the work is not known to have ended.
        parting.ask();
        drop(self.cx.scope().spawn(parting.row.label(), parting.part(tell)));
        Some(told)
    }
}

impl Drop for CallLoop {
    /// Its time was over before it was polled once more.
    fn drop(&mut self) {
        if runtime::Handle::try_current().is_ok() {
            drop(self.tell());
        }
    }
}

/// What the peer says, or a person: the peer first.
async fn heard(line: &mut dyn RemoteCall, asking: &mut Vec<Open>) -> Heard {
    let next = line.next();
    let decided = pin!(poll_fn(|cx| {
        for place in 0..asking.len() {
            match asking[place].decision.as_mut().poll(cx) {
                Poll::Ready(Ok(decision)) => return Poll::Ready((asking.swap_remove(place), decision)),
                // The stop ends the step itself.
                Poll::Ready(Err(_stop)) => return Poll::Pending,
                Poll::Pending => {}
            }
        }
        Poll::Pending
    }));
    match select(next, decided).await {
        Either::Left((said, _)) => Heard::Said(said),
        Either::Right(((question, decision), _)) => Heard::Decided(question, decision),
    }
}

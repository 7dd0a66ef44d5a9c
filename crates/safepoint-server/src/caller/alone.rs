//! A run that is kept nowhere: who asked for it holds it, and it is stopped when that is gone.
//!
//! **Invariants**: the run and what follows it are tasks of the host, and no request's future does work of it; a question is denied,
//! because an answer would find nothing.

use std::{pin::pin, time::Duration};

use futures_util::{
    StreamExt as _,
    future::{Either, select},
};
use safepoint::{
    Agent, Grace, Outcome, Reason, RunHandle, StopRequest,
    approval::Decision,
    event::{EventEncoder, EventLine},
    stop::{Actor, Code},
};
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};

use super::Caller;
use crate::{
    follow::ShownEvent,
    host::setup::{EarlierMessage, history},
    lines::text_of,
    load::Load,
    problem::{Answered, Problem},
};

/// How many events may wait for who reads them. The run does not wait for that.
const EVENTS: usize = 64;
/// How long the one that reads may take nothing.
const STALLED: Duration = Duration::from_secs(30);
/// What streams, and is no record.
const PROVISIONAL: [&str; 6] =
    ["text_delta", "reasoning_delta", "call_delta", "call_progress", "provider", "missed"];

/// What is read of a run that is kept nowhere. Dropping it stops the run, with the reason `disconnect`.
#[must_use = "the run stops when this is dropped"]
pub(crate) struct AloneRun {
    events: mpsc::Receiver<ShownEvent>,
}

impl AloneRun {
    /// The next event of its one turn; the last is the turn's end. `None`: there is no more.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn next(&mut self) -> Option<ShownEvent> {
        self.events.recv().await
    }
}

impl Caller {
    /// Begins a run of this agent behind what was said before.
    ///
    /// # Errors
    /// `blank`, and `no_such_agent`.
    pub(crate) fn run_alone(
        &self,
        agent: &str,
        (earlier, text): (&[EarlierMessage], String),
    ) -> Answered<AloneRun> {
        if text.trim().is_empty() {
            return Err(super::items::blank());
        }
        let offered = self.host.agents.get(agent).ok_or_else(|| Problem::no_such("agent"))?;
        let (agent, history) = (offered.agent.clone(), history(earlier.iter().map(EarlierMessage::message)));
        let (shows, events) = mpsc::channel(EVENTS);
        let (host, draining) = (self.host.clone(), self.host.draining());
        Load::count(&self.load.items);
        self.host.spawn("run without a session", async move {
            let mut gone = draining.clone();
            let place = {
                let (closed, drains) = (pin!(shows.closed()), pin!(gone.wait_for(Option::is_some)));
                // The place first; what loses changes nothing, and the run learns it from who watches it.
                match select(pin!(host.place()), select(closed, drains)).await {
                    Either::Left((place, _)) => place,
                    // Nothing has begun.
                    Either::Right(_) => return,
                }
            };
            let mut shower = Shower { shows, position: 0 };
            shower.show("turn_started", json!({"turn": 1, "items": [1]})).await;
            let run = agent.run_on(history, text).detach();
            let (outcome, run) = shower.follow(&agent, run, draining).await;
            shower.end(&outcome).await;
            drop(run.quiet().await);
            drop(place);
        });
        Ok(AloneRun { events })
    }
}

/// Shows the events of a run to the one that holds it.
struct Shower {
    shows: mpsc::Sender<ShownEvent>,
    /// The place of the next record among those of the run.
    position: u64,
}

impl Shower {
    /// Follows the run to its end; what it asks is denied, and then it continues.
    async fn follow(
        &mut self,
        agent: &Agent,
        mut run: RunHandle,
        draining: watch::Receiver<Option<Duration>>,
    ) -> (Outcome, RunHandle) {
        loop {
            let outcome = {
                let watched = pin!(watched(run.clone(), self.shows.clone(), draining.clone()));
                let shown = pin!(self.show_all(run.clone()));
                // Both end with the run.
                futures_util::future::join(watched, shown).await;
                run.done().await
            };
            let Outcome::Suspended(waits) = &outcome else { return (outcome, run) };
            let deny = |asked: &safepoint::approval::ApprovalRequest| {
                (asked.id.clone(), Decision::deny("no one can answer: the run is kept nowhere"))
            };
            let denied: Vec<_> = waits.approvals().iter().map(deny).collect();
            if denied.is_empty() {
                return (outcome, run);
            }
            run = agent.resume_with(&outcome, denied).detach();
        }
    }

    async fn show_all(&mut self, run: RunHandle) {
        let mut lines = EventEncoder::lines_of_run(&run, "");
        while let Some(line) = lines.next().await {
            let kind = line.kind().to_owned();
            if let Some(data) = data_of(line) {
                self.show(&kind, data).await;
            }
        }
    }

    async fn end(&mut self, outcome: &Outcome) {
        let word = match outcome {
            Outcome::Done(_) => "completed",
            Outcome::Stopped(_) => "interrupted",
            Outcome::Failed(_) => "failed",
            Outcome::Suspended(_) => "suspended",
        };
        let error = match outcome {
            Outcome::Failed(error) => json!({"code": error.code(), "message": error.to_string()}),
            _ => Value::Null,
        };
        let receipt = serde_json::to_value(outcome.receipt()).unwrap_or_default();
        let data = json!({"turn": 1, "outcome": word, "receipt": receipt, "error": error});
        self.show("turn_ended", data).await;
    }

    async fn show(&mut self, kind: &str, data: Value) {
        let is_record = !PROVISIONAL.contains(&kind);
        let position = is_record.then_some(self.position);
        self.position += u64::from(is_record);
        let event = ShownEvent { position, kind: kind.to_owned(), data };
        if timeout(STALLED, self.shows.send(event)).await.is_err() {
            // It takes nothing any more, and what it misses it does not get: it is closed as one that is gone.
            self.shows = mpsc::channel(1).0;
        }
    }
}

fn data_of(line: EventLine) -> Option<Value> {
    serde_json::from_str(&text_of(line)).ok()
}

/// Stops the run when the one that holds it is gone, or the host drains; ends with the run.
async fn watched(
    run: RunHandle,
    shows: mpsc::Sender<ShownEvent>,
    mut draining: watch::Receiver<Option<Duration>>,
) {
    let asked = {
        let (closed, drains) = (pin!(shows.closed()), pin!(draining.wait_for(Option::is_some)));
        // The end of the run first: then there is nothing to stop. A client that is gone next: its stop is the stronger one. What
        // loses changes nothing, and is looked at again below.
        match select(pin!(run.done()), select(closed, drains)).await {
            Either::Left(_) => return,
            Either::Right((Either::Left(_), _)) => {
                StopRequest::now().with_reason(Reason::new(Code::DISCONNECT).with_text("the client is gone"))
            }
            Either::Right((Either::Right((within, _)), _)) => {
                let within = within.ok().and_then(|within| *within).unwrap_or_default();
                let reason = Reason::new(Code::SHUTDOWN).with_actor(Actor::Engine);
                match Grace::try_from(within) {
                    Ok(grace) => StopRequest::graceful(grace),
                    Err(_none) => StopRequest::now(),
                }
                .with_reason(reason)
            }
        }
    };
    run.stop(asked);
    // A client that goes meanwhile makes it a stop now.
    if let Either::Right(_) = select(pin!(run.done()), pin!(shows.closed())).await {
        run.stop(StopRequest::now().with_reason(Reason::new(Code::DISCONNECT)));
    }
}

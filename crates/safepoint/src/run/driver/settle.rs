//! The end of an attempt: the outcome is fixed once, the fence goes up, and the driver waits until nothing is
//! alive.

use std::{pin::pin, sync::Arc};

use futures_util::future::{Either, select};
use safepoint_scope::DEFAULT_CLEANUP_CAP;
use tokio::{
    task::yield_now,
    time::{Instant, timeout_at},
};
use tracing::Span;

use super::{
    Driver, LogFailure,
    calls::{is_of_a_failure, run_failed},
    late::unended,
    start_calls::entry_of,
};
use crate::{
    contract::log::LogError,
    definition::window::WindowMeter,
    run::{
        machine::CallState,
        outcome::{Answer, LastWords, Outcome, OutcomeContext, Persisted, RunError, Stopped, Suspended},
        spans,
    },
    sync::{callback::Panicked, clock},
    value::{
        event::{ErrorReport, ErrorSource, EventKind, Fact},
        ids::ApprovalId,
        limits::after,
        receipt::{Ending, QuietReport, Receipt, StopSource},
    },
};

impl Driver {
    /// Fixes the outcome. Later requests come too late. What no caller waits for is done once it is published.
    pub(super) async fn settle(&mut self, ending: Ending, mut persisted: Persisted) -> Arc<Receipt> {
        self.hooks.end();
        self.steers.return_all();
        // Asked before anything that is open is closed.
        let origin = self.tree.parent.is_some().then(|| self.origin());
        let mut withdrawn = self.approvals.mid_call.take_withdrawn();
        if persisted == Persisted::Yes
            && let Err(broken) = self.close_open(ending, &mut withdrawn).await
        {
            persisted = self.lose_log(broken);
        }
        self.cx.shared.stop.settle();
        let mut receipt = Arc::new(self.receipt(ending, withdrawn));
        let error = self.machine.failure().cloned();
        let mut settled = Arc::new(Fact::Settled { receipt: Arc::clone(&receipt), error: error.clone() });
        let recording = persisted == Persisted::Yes;
        let recorded =
            if recording { Some(self.recorder.record_last(&self.cx, &settled).await) } else { None };
        let position = match recorded.transpose() {
            Ok(position) => position,
            Err(lost) => {
                persisted = self.lose_log(LogFailure::Log(lost));
                let unrecorded = self.recorder.lost().cloned();
                receipt = Arc::new(Receipt { unrecorded, ..Receipt::clone(&receipt) });
                settled = Arc::new(Fact::Settled { receipt: Arc::clone(&receipt), error });
                None
            }
        };
        let outcome = self.outcome(ending, &receipt, persisted);
        // Released before the outcome is visible, so that a reader of it can resume the run.
        self.attempt.release();
        self.cx.shared.publish(outcome.clone(), EventKind::Fact(settled), position);
        if ending == Ending::Stopped && origin.is_none() {
            // The caller is woken, and may wait for this very processor: it continues before anything is cleared away here.
            std::thread::yield_now();
        }
        if let Some(origin) = origin {
            self.report_to_parent(&outcome, origin);
        }
        self.cx.def.times.note(&receipt);
        self.stops.span.settled(&receipt);
        spans::end_run(&Span::current(), &receipt, self.machine.failure());
        if ending == Ending::Stopped {
            self.notify(|hooks| hooks.on_stop(&receipt));
        }
        receipt
    }

    /// Whether open questions stay open: only a requested stop withdraws them (S8.3). A child run that failed
    /// by itself has ended its call and is never resumed.
    fn keeps_questions(&self, ending: Ending) -> bool {
        match ending {
            Ending::Failed => self.tree.parent.is_none(),
            Ending::Stopped => {
                let asked = self.cx.scope.requests();
                !asked.is_empty() && asked.iter().all(|asked| is_of_a_failure(&asked.reason))
            }
            Ending::Done | Ending::Suspended => true,
        }
    }

    /// Closes what is open. Calls that never began are recorded as such; a stop withdraws questions, a
    /// suspension or a failure keeps them (S8.3).
    async fn close_open(
        &mut self,
        ending: Ending,
        withdrawn: &mut Vec<ApprovalId>,
    ) -> Result<(), LogFailure> {
        let mut asked = self.asked();
        if ending == Ending::Stopped {
            asked.extend(self.observed(None));
        }
        self.record_all(asked).await?;
        let open = self.machine.open_calls();
        if open.is_empty() || matches!(ending, Ending::Suspended | Ending::Done) {
            return Ok(());
        }
        let reason = self.stops.reason();
        let keeps_questions = self.keeps_questions(ending);
        let mut unbegun = Vec::new();
        for call in open {
            let asked: Vec<ApprovalId> = match &call.step {
                // Nothing here waits for the answer; the question stays open until the run is resumed.
                CallState::AwaitingApproval(request) if keeps_questions => {
                    self.approvals.ask_no_longer(&request.id);
                    continue;
                }
                CallState::Suspended { .. } if keeps_questions => continue,
                CallState::AwaitingApproval(request) => vec![request.id.clone()],
                CallState::Suspended { approvals, .. } => {
                    approvals.iter().map(|asked| asked.id.clone()).collect()
                }
                _ => Vec::new(),
            };
            withdrawn.extend(asked.iter().cloned());
            let stop = (reason.clone().unwrap_or_else(run_failed), StopSource::Run);
            let ending = self.unbegun(&call, entry_of(&call), stop);
            unbegun.push((call.call, ending, asked));
        }
        self.end_unbegun(unbegun).await
    }

    /// How a run without a log ends: one that was asked to stop has stopped, any other has failed (S2.13).
    pub(super) fn end_without_log(&mut self, error: LogError) -> Ending {
        self.recorder.lose(&error);
        match self.cx.scope.demand() {
            Some(_) if self.machine.failure().is_none() => {
                self.stops.take_effect_unrecorded(&self.machine);
                Ending::Stopped
            }
            _ => {
                self.machine.fail(
                    ErrorReport::new("store", error.to_string(), None).caused_by(ErrorSource::of(error)),
                );
                Ending::Failed
            }
        }
    }

    /// The outcome stays as it is, and is not recorded.
    fn lose_log(&mut self, broken: LogFailure) -> Persisted {
        if let LogFailure::Log(error) = &broken {
            self.recorder.lose(error);
        }
        broken.into()
    }

    /// What was said last, by the model or by the remote agent in its place.
    fn said_last(&self) -> LastWords {
        if self.cx.def.meter.as_ref().is_some_and(WindowMeter::is_compacting) {
            // A summary is no answer, and nothing else was said.
            return LastWords::default();
        }
        if !self.cx.def.is_remote {
            return self.machine.last_words();
        }
        match self.machine.history_now().last_result() {
            Some(result) => result.into(),
            // Its call did not complete: the part of the answer that was shown is kept.
            None if !self.model.said().as_str().is_empty() => self.model.said().clone(),
            None => self.machine.last_words(),
        }
    }

    /// The outcome, which takes the history over: nothing is added to it any more.
    pub(super) fn outcome(
        &mut self,
        ending: Ending,
        receipt: &Arc<Receipt>,
        persisted: Persisted,
    ) -> Outcome {
        let said = self.said_last();
        let ended = Arc::new(OutcomeContext {
            receipt: Arc::clone(receipt),
            history: self.machine.take_history(),
            said: said.clone(),
            persisted,
            log: Arc::clone(self.recorder.log()),
            lock: self.attempt.lock.clone(),
            def: Some(Arc::clone(&self.cx.def)),
        });
        match ending {
            Ending::Done => Outcome::Done(Answer::new(said, ended)),
            Ending::Stopped => Outcome::Stopped(Stopped { ended }),
            Ending::Suspended => {
                let approvals = self
                    .machine
                    .open_calls()
                    .into_iter()
                    .flat_map(|call| match call.step {
                        CallState::AwaitingApproval(request) => vec![request],
                        CallState::Suspended { approvals, .. } => approvals,
                        _ => Vec::new(),
                    })
                    .collect();
                Outcome::Suspended(Suspended { approvals, ended })
            }
            Ending::Failed => {
                let unknown = || ErrorReport::new("store", "the log failed", None);
                let error = self.machine.failure().cloned().unwrap_or_else(unknown);
                Outcome::Failed(RunError { error, ended })
            }
        }
    }

    /// Waits until nothing is alive, or names what is. Messages that arrive meanwhile are late: they go to
    /// the audit and into the final receipt, and change nothing else.
    pub(super) async fn quieten(mut self: Box<Self>, receipt: Arc<Receipt>) {
        if receipt.ending == Ending::Stopped {
            // What a stop woke together with this driver goes first: the run's own tasks end, and of many runs that are
            // stopped at once each has its outcome before the first is cleared away.
            yield_now().await;
        }
        let cap = self.cx.scope.demand().map_or(DEFAULT_CLEANUP_CAP, |demand| demand.cleanup_cap);
        let drain = self.model.drain_time(&self.cx);
        let patience = cap.saturating_add(drain).saturating_add(self.cx.def.limits.quiet_timeout);
        let mut deadline = after(Instant::now(), patience);
        // Apart, so that this future has no room for it.
        let mut last = Arc::new(Receipt::clone(&receipt));
        if let Err(Panicked(message)) = self.model.end() {
            self.name_late(
                format!("the model panicked as its conversation was dropped: {message}"),
                Arc::make_mut(&mut last),
            );
        }
        let stop = self.cx.shared.stop.clone();
        let idle = async move { stop.quiet().await };
        let mut idle = pin!(idle);
        let is_quiet = loop {
            let next = {
                let mail = pin!(self.queue.next());
                // Quiet is polled first, and messages already posted by then are taken after the loop. Dropping `mail` loses no
                // message: receiving is cancel-safe.
                match timeout_at(deadline, select(idle.as_mut(), mail)).await {
                    Ok(Either::Left(((), _))) => Ok(None),
                    Ok(Either::Right((msg, _))) => Ok(Some(msg)),
                    Err(elapsed) => Err(elapsed),
                }
            };
            match next {
                Ok(None) => break true,
                Ok(Some(msg)) => self.late(*msg, Arc::make_mut(&mut last)),
                Err(_elapsed) => match self.tree.children.patience(&self.cx.def) {
                    Some(more) => deadline = after(deadline, more),
                    None => break false,
                },
            }
        };
        while let Some(msg) = self.queue.now() {
            self.late(*msg, Arc::make_mut(&mut last));
        }
        let account = Arc::make_mut(&mut last);
        self.learn_the_bill(account);
        self.account_for_children(account);
        let (surviving_children, elsewhere) = (self.tree.children.survivors(), unended(account));
        let quiet = if is_quiet && surviving_children.is_none() && elsewhere.is_empty() {
            account.quiet_at = Some(clock::now());
            QuietReport::Quiet(last)
        } else {
            account.survivors = self.cx.shared.alive();
            account.survivors.extend(surviving_children.into_iter().flatten().chain(elsewhere));
            account.survivors.sort_unstable();
            account.survivors.dedup();
            QuietReport::NotQuiet(last)
        };
        self.cx.def.times.note_quiet(quiet.receipt());
        self.cx.shared.publish_quiet(quiet.clone());
        self.stops.span.quiet(&quiet);
        if let Some(up) = &self.tree.parent {
            up.quiet(quiet);
        }
    }
}

impl From<LogFailure> for Persisted {
    fn from(broken: LogFailure) -> Self {
        match broken {
            LogFailure::Log(error) => persisted(&error),
            LogFailure::Conflict => Self::No(TAKEN.into()),
        }
    }
}

/// Why an attempt does nothing.
pub(super) const TAKEN: &str = "another attempt of this run is active in this process";

/// Whether a record is persisted that the log did not take.
pub(super) fn persisted(error: &LogError) -> Persisted {
    if error.is_uncertain() { Persisted::Unknown } else { Persisted::No(error.to_string()) }
}

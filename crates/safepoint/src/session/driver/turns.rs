//! The run of a turn: started, stopped, steered, followed, and its end reported. Its background runs may outlive it:
//! they are reached through the turn's run while they are alive (S9.1).
//!
//! **Invariants**: the machine learns that background runs are alive before it learns that the turn ended,
//! and learns that none is left only once that is true.

use std::sync::Arc;

use safepoint_scope::{Actor, Code, Grace, Mode, Reach, Reason, SafePoints, StopRequest};

use super::{
    Agent, Driver, ErrorReport, History, Input, Item, ItemId, ItemOutcome, Log, Outcome, Reply, Request,
    RequestAnswer, RunHandle, RunId, SessionEvent, SessionMessage, TurnId, UserMessage, report,
};
use crate::{
    contract::log::MemoryLog,
    run::{Run, steer::SteerTiming},
    session::{
        ShownTurn, TurnView,
        journal::{InheritedTurn, TurnLog},
        machine::{PreemptedItems, SessionPhase, StartFrom, StopWhy, TurnEnd},
        stop::request_at,
    },
    sync::callback::Panicked,
};

mod follow;
mod read;

use follow::Follower;

/// A running turn, or one that ended early.
pub(super) struct CurrentTurn {
    pub(super) turn: TurnId,
    /// `None`: another owner began the turn, and the planner has not named an agent yet.
    pub(super) agent: Option<Agent>,
    /// `None`: nothing of the turn runs in this process.
    pub(super) handle: Option<RunHandle>,
    pub(super) run: RunId,
    pub(super) log: Arc<dyn Log>,
    /// The conversation before it.
    pub(super) before: History,
    pub(super) items: Vec<ItemId>,
    pub(super) outcome: Option<Outcome>,
}

/// The turns that the session still holds something of.
#[derive(Default)]
pub(super) struct Turns {
    /// Boxed, like everything that an idle session does not need.
    pub(super) current: Option<Box<CurrentTurn>>,
    /// The turn that ended early and may be resumed.
    pub(super) left: Option<(Box<CurrentTurn>, ItemOutcome)>,
    /// The conversation as the last turn left it.
    pub(super) history: History,
    /// Runs of earlier turns whose background runs are still alive.
    pub(super) background: Vec<RunHandle>,
    /// What the last owner left open, until everything that it left has arrived.
    pub(super) inherited: InheritedTurn,
    /// The request that stops only the turn, until the turn has ended.
    pub(super) stop_request: Option<Box<StopRequest>>,
    /// Callers that asked to resume a turn, until it is resumed or cannot be.
    pub(super) resumers: Vec<Reply<RequestAnswer>>,
}

impl Turns {
    pub(super) fn new(history: History) -> Self {
        Self { history, ..Self::default() }
    }

    /// The outcome of the turn that was left; `Some(None)`: another owner left it.
    pub(super) fn left_outcome(&self) -> Option<Option<&Outcome>> {
        self.left.as_ref().map(|(work, _)| work.outcome.as_ref())
    }
}

impl<T: Item> Driver<T> {
    pub(super) fn start(
        &mut self,
        (turn, position): (TurnId, Option<u64>),
        from: StartFrom,
        steers: &[(ItemId, SteerTiming)],
        request: &mut Request,
    ) {
        let input: Arc<[UserMessage]> = match request {
            Request::Plan(plan) if from == StartFrom::Plan => plan.input.clone().into(),
            _ => Arc::default(),
        };
        let Some((run, work)) = self.run_of(turn, from, request) else {
            // The machine starts only what was planned or left, so there always is one.
            return;
        };
        self.unmark_blocked();
        let allowed = Arc::clone(self.approvals.allowed.get_or_insert_default());
        let id = self.cx.shared.id().clone();
        let closings = Arc::clone(self.approvals.closings.get_or_insert_default());
        let run = run.within_session(&self.cx.shared.runs.scope, (allowed, closings, Some(id)));
        if let StartFrom::Withdrawal(why) = from {
            // Stopped before it starts: its questions are withdrawn, and nothing of it runs.
            run.handle().stop(at_any(self.request_for(why, request).unwrap_or_else(StopRequest::now)));
        } else {
            self.notify_lost(&run);
        }
        // Also before the run starts, so that its first request includes them.
        for (item, when) in steers {
            self.hand_over(&run.handle(), *item, *when);
        }
        let handle = run.detach();
        // One that is resumed is not over, however it ended before.
        let work = CurrentTurn { handle: Some(handle.clone()), outcome: None, ..*work };
        self.turns.current = Some(Box::new(work));
        let items = self.machine.items().to_vec();
        let started = SessionEvent::TurnStarted { turn, items, run: handle.clone(), input };
        self.show_recorded(started, position);
        self.forget_old_turns();
        let shared = Arc::clone(&self.cx.shared);
        let (bound, journal) = (self.cx.settings.quiet, self.recorder.journal.clone());
        let follower = Follower { turn, handle: handle.clone(), shared, bound, journal };
        drop(self.cx.scope.spawn("turn's follower", follower.follow()));
        match &self.cx.settings.reader {
            None => self.cx.shared.mailbox.post(SessionMessage::Read(turn)),
            Some(reader) => self.read(turn, reader.clone(), handle),
        }
    }

    /// Old turns are read in the journal. What followed the beginning of one whose background run is alive stays.
    fn forget_old_turns(&self) {
        const TURNS: usize = 2;
        const EVENTS: usize = 1024;
        let alive: Vec<&RunId> = self.turns.background.iter().map(RunHandle::id).collect();
        let begins = |event: &SessionEvent| matches!(event, SessionEvent::TurnStarted { .. });
        let holds = |event: &SessionEvent| match event {
            SessionEvent::TurnStarted { run, .. } => alive.contains(&run.id()),
            _ => false,
        };
        self.cx.shared.feed.forget((TURNS, EVENTS), begins, holds);
    }

    fn run_of(
        &mut self,
        turn: TurnId,
        from: StartFrom,
        request: &mut Request,
    ) -> Option<(Run, Box<CurrentTurn>)> {
        if from == StartFrom::Plan {
            let Request::Plan(plan) = std::mem::replace(request, Request::None) else { return None };
            let mut plan = *plan;
            let before = self.turns.history.clone();
            let mut history = before.clone();
            history.close();
            let last = plan.input.pop()?;
            for message in plan.input {
                history.push(crate::value::history::Message::User(message));
            }
            // No process can resume that turn any more.
            if let Some((left, _)) = self.turns.left.take() {
                left.items.iter().for_each(|item| self.items.release(*item));
            }
            self.approvals.decisions.clear();
            let items = self.machine.items().to_vec();
            let log = self.log_of(turn, &before);
            let run = plan.agent.run_recorded(Arc::clone(&log), history, last);
            let id = run.handle().id().clone();
            let agent = Some(plan.agent);
            let work = CurrentTurn { turn, agent, handle: None, run: id, log, before, items, outcome: None };
            return Some((run, Box::new(work)));
        }
        let (work, _) = self.turns.left.take()?;
        let agent = work.agent.clone()?;
        let decisions = std::mem::take(&mut self.approvals.decisions);
        let run = agent.resume_ruled(work.run.clone(), Arc::clone(&work.log), decisions);
        Some((run, work))
    }

    fn log_of(&self, turn: TurnId, before: &crate::value::history::History) -> Arc<dyn Log> {
        let Some(journal) = &self.recorder.journal else { return Arc::new(MemoryLog::default()) };
        let mut base = before.clone();
        base.close();
        Arc::new(TurnLog::new(journal, turn, base, journal.head()))
    }

    pub(super) fn stop_run(&mut self, turn: TurnId, why: StopWhy, request: &Request) {
        let Some(request) = self.request_for(why, request) else { return };
        if why == StopWhy::Broken {
            self.cx.shared.runs.stop.stop(request);
        } else if let Some(handle) = self.running(turn) {
            handle.stop(request);
        }
    }

    fn request_for(&self, why: StopWhy, request: &Request) -> Option<StopRequest> {
        let preempted = |text: &'static str| Reason::new(Code::PREEMPTED).with_text(text);
        let request = match why {
            // A suspended turn ends only once it is quiet; the requester is remembered until then.
            StopWhy::Asked => match request {
                Request::Stop(request) => (**request).clone(),
                _ => (**self.turns.stop_request.as_ref()?).clone(),
            },
            // The caller has already joined the stop to the demand of all runs.
            StopWhy::Session(_) => return None,
            StopWhy::Preempt { points, grace } => {
                let grace =
                    grace.map(std::time::Duration::from_micros).and_then(|grace| Grace::try_from(grace).ok());
                request_at(points, grace).with_reason(preempted("a newer item came"))
            }
            StopWhy::Escalated => StopRequest::now()
                .with_reach(Reach::Tree)
                .grace_over()
                .with_reason(preempted("its grace is over")),
            StopWhy::Broken => StopRequest::now().with_reach(Reach::Tree).with_reason(self.why_broken()),
        };
        Some(request)
    }

    fn why_broken(&self) -> Reason {
        let code = self.end.turns_end_by.clone().unwrap_or(Code::SHUTDOWN);
        let why =
            self.end.error.as_ref().map_or("the session failed".to_owned(), |error| error.message.clone());
        Reason::new(code).with_actor(Actor::Engine).with_text(why)
    }

    pub(super) fn running(&self, turn: TurnId) -> Option<&RunHandle> {
        self.turns.current.as_ref().filter(|work| work.turn == turn)?.handle.as_ref()
    }

    pub(super) fn view(&self) -> Option<TurnView> {
        let SessionPhase::Running(running) = self.machine.phase() else { return None };
        let work = self.turns.current.as_ref()?;
        Some(TurnView { turn: running.turn, items: self.machine.items().to_vec(), run: work.handle.clone()? })
    }

    /// What handles see of the turns.
    pub(super) fn shown(&self) -> ShownTurn {
        match (self.view(), self.machine.left()) {
            (Some(running), _) => ShownTurn::Running(running),
            // What waits for a decision begins with that alone.
            (None, Some(left)) if !self.machine.is_suspended() => ShownTurn::Left(left),
            (None, None) if self.machine.is_holding() => ShownTurn::Held,
            (None, _) => ShownTurn::None,
        }
    }

    pub(super) async fn settled(&mut self, turn: TurnId, outcome: Outcome) {
        self.note_background(turn).await;
        let Some(mut work) = self.turns.current.take_if(|work| work.turn == turn) else { return };
        let mut panicked = None;
        let end = match &outcome {
            Outcome::Done(_) => TurnEnd::Done,
            Outcome::Failed(_) => TurnEnd::Failed,
            Outcome::Suspended(_) => TurnEnd::Suspended,
            Outcome::Stopped(stopped) => {
                let stop = stopped.receipt().stop.as_ref();
                if stop.is_none_or(|stop| stop.reason.code != Code::PREEMPTED.as_str()) {
                    TurnEnd::Stopped
                } else if self.machine.would_be_preempted() {
                    TurnEnd::Preempted(self.after_preempt(turn).unwrap_or_else(|error| {
                        panicked = Some(error);
                        PreemptedItems::Drop
                    }))
                } else {
                    TurnEnd::Preempted(PreemptedItems::Drop)
                }
            }
        };
        let lost = self.note_unrecorded(&outcome);
        self.turns.history = outcome.history().clone();
        work.items = self.machine.items().to_vec();
        work.outcome = Some(outcome);
        self.turns.current = Some(work);
        self.step(Input::Settled(turn, end)).await;
        self.withdraw_wanted().await;
        if let Some(error) = lost {
            self.fail_unless_stopped(error);
            self.step(Input::Broke).await;
        }
        if let Some(error) = panicked {
            self.broke(error).await;
        }
    }

    fn after_preempt(&self, turn: TurnId) -> Result<PreemptedItems, ErrorReport> {
        let items = self.machine.items().to_vec();
        let asked = self.cx.shared.planner.call(|planner| planner.preempted(turn, &items));
        asked.map_err(|Panicked(why)| report("the planner panicked", &why))
    }

    pub(super) fn turn_ended(&mut self, turn: TurnId, fate: ItemOutcome, position: Option<u64>) {
        let Some(work) = self.turns.current.take_if(|work| work.turn == turn) else { return };
        if let Some(outcome) = &work.outcome {
            let receipt = Arc::clone(outcome.receipt());
            self.show_recorded(SessionEvent::TurnEnded { turn, fate, receipt }, position);
        }
        if let ItemOutcome::Suspended(_) = fate {
            if let Some(Outcome::Suspended(suspended)) = &work.outcome {
                self.watch_questions(suspended);
            }
            self.mark_all_blocked(turn);
        } else {
            self.turns.stop_request = None;
        }
        let gone = self.turns.left.take().map(|(left, _)| left.items).unwrap_or_default();
        if self.machine.left() == Some(turn) {
            self.turns.left = Some((work, fate));
        }
        // Items of an older turn that can no longer be resumed are released.
        for item in gone {
            if !self.machine.is_waiting(item) {
                self.items.release(item);
            }
        }
    }

    /// Called when the turn has ended; what it began in the background may still run.
    pub(super) async fn note_background(&mut self, turn: TurnId) {
        let aside = self.running(turn).filter(|run| run.has_background_runs()).cloned();
        if let Some(run) = aside {
            self.turns.background.push(run);
            self.step(Input::Background { is_alive: true }).await;
        }
    }

    pub(super) async fn background_over(&mut self) {
        if self.turns.background.is_empty() {
            return;
        }
        self.turns.background.retain(RunHandle::has_background_runs);
        if self.turns.background.is_empty() {
            self.step(Input::Background { is_alive: false }).await;
        }
    }
}

/// Waiting for a decision is a safe point of every set (S8.3). With a narrower set the turn would only
/// suspend again.
fn at_any(request: StopRequest) -> StopRequest {
    if request.mode() == Mode::Now {
        return request;
    }
    // Nothing runs that a grace could wait for; it is kept, so that what was asked is what is recorded.
    let at = request_at(Some(SafePoints::ANY), request.grace());
    let at = at.with_reach(request.reach()).with_cleanup_cap(request.cleanup_cap());
    match request.reason() {
        Some(reason) => at.with_reason(reason.clone()),
        None => at,
    }
}

//! The task of a session: receives messages, steps the machine, performs its actions.
//!
//! **Invariants**: nothing else changes the session's state; at most one run is active; the driver holds each
//! item that the machine knows until the item is settled.

use std::{iter::repeat, sync::Arc};

use safepoint_scope::{DropHandle, Scope, StopRequest};

use super::{
    Item, Settings, SharedSession,
    builder::engine,
    event::SessionEvent,
    exit::{report, store_report},
    item::Policy,
    lost_runs::LostRun,
    machine::{Action, Input, Machine, Moment, RequestAnswer},
    message::{Received, Reply, SessionMessage},
    outcome::ItemOutcome,
    planner::{Arrival, TurnPlan},
    stop::StoppedTurn,
    stored_stop::StoredStop,
    ticket::{Delivery, TicketState},
};
use crate::{
    agent::Agent,
    contract::log::Log,
    run::{RunHandle, outcome::Outcome},
    sync,
    value::{
        approval::{Decision, Ruled},
        event::ErrorReport,
        history::History,
        ids::{ApprovalId, ItemId, RunId, TurnId},
        message::UserMessage,
    },
};

mod approvals;
mod begin;
mod items;
mod lost_runs;
mod planning;
mod queue;
mod rare;
mod recorder;
mod resume;
mod settle;
mod stops;
mod stored;
mod turns;

use approvals::OpenApprovals;
use items::{HeldItem, Items};
use queue::Queue;
use rare::Rare;
use recorder::Recorder;
use settle::SessionEnd;
use stops::StoredStops;
use turns::{CurrentTurn, Turns};

/// Its task may be dropped at any moment, for example when its runtime shuts down: its drop gives the session an end.
pub(super) struct Driver<T: Item> {
    cx: SessionContext<T>,
    machine: Machine,
    queue: Queue<T>,
    items: Items<T>,
    turns: Turns,
    /// The planner that is asked now.
    planner: Option<DropHandle>,
    approvals: Rare<OpenApprovals>,
    stops: Rare<StoredStops>,
    /// Background runs of another owner that ended with it, each with the turn in which the model was notified.
    lost: Vec<(LostRun, Option<TurnId>)>,
    recorder: Rare<Recorder>,
    end: Rare<SessionEnd>,
}

/// What comes with an input and the machine does not need. Exhaustive: each caller that performs an answer
/// handles all of them.
#[derive(Debug)]
enum Request {
    None,
    /// How the turn is to be stopped.
    Stop(Box<StopRequest>),
    /// What was decided, of the turn that is suspended.
    Decide(Box<(ApprovalId, Ruled)>),
    /// The turn that was planned.
    Plan(Box<TurnPlan>),
}

/// What a session is and reads, for its whole life.
struct SessionContext<T> {
    shared: Arc<SharedSession<T>>,
    settings: Arc<Settings>,
    /// Where planners, followers and readers run, and the driver itself.
    scope: &'static Scope,
}

impl<T: Item> Driver<T> {
    /// Creates a driver that is not running yet; the caller spawns it.
    pub(super) fn new(
        shared: Arc<SharedSession<T>>,
        settings: Arc<Settings>,
        history: History,
        received: Received<T>,
        machine: Machine,
    ) -> Self {
        Self {
            machine,
            queue: Queue::new(received),
            items: Items::new(),
            turns: Turns::new(history),
            planner: None,
            approvals: Rare::default(),
            stops: Rare::default(),
            lost: Vec::new(),
            recorder: Rare::default(),
            end: Rare::default(),
            cx: SessionContext { shared, settings, scope: engine() },
        }
    }

    async fn run(&mut self) {
        self.cx.shared.show(self.shown());
        while self.end.exit.is_none() {
            match self.next().await {
                // Boxed, so that an idle session carries no room for what it does not do.
                Some(message) => Box::pin(self.handle(*message)).await,
                None => Box::pin(self.pass_time()).await,
            }
        }
        // Items accepted a moment before the end are unhandled too. A session that was only idle wants an owner for them.
        if let Some(journal) = &self.recorder.journal {
            journal.sees_no_more();
        }
        self.cx.shared.inbox.shut();
        while let Some(message) = self.queue.ahead.pop_front().or_else(|| self.queue.received.now()) {
            self.end.is_called_for |= message.is_work();
            Box::pin(self.handle(*message)).await;
        }
    }

    async fn handle(&mut self, message: SessionMessage<T>) {
        match message {
            SessionMessage::Push(item, ticket, policy, client_id) => {
                if let Some(item) = self.store_item(item, &ticket, policy, client_id).await {
                    self.accept(item, ticket, policy).await;
                }
                self.cx.shared.inbox.note(1, self.machine.room_taken());
            }
            SessionMessage::PushWith(item, ticket, strategy) => {
                self.push_with_strategy(item, ticket, strategy).await
            }
            SessionMessage::PushStored(number, item, ticket, policy) => {
                self.accept_stored(number, (item, ticket), policy).await
            }
            SessionMessage::Unreadable(number, why) => self.show(SessionEvent::Unreadable { number, why }),
            SessionMessage::Inherited => self.inherited().await,
            SessionMessage::WithdrawnElsewhere(number) => self.item_withdrawn_elsewhere(number).await,
            SessionMessage::StopIntent(number, intent) => self.apply_stored_stop(number, intent).await,
            SessionMessage::Decided(id, ruled) => self.apply_decision(id, ruled).await,
            SessionMessage::Withdraw(item, reply) => self.withdraw(item, reply).await,
            SessionMessage::WithdrawAtEnd(turn, item, reply) => self.withdraw_at_end(turn, item, reply).await,
            SessionMessage::ListQueued(reply) => self.list_queued(reply).await,
            SessionMessage::SteerReturned(item, reply) => {
                self.withdraw_now(Input::SteerReturned(item), item, reply).await
            }
            SessionMessage::Stop(stop, reply) => self.stop(stop, reply).await,
            SessionMessage::StopTurn { turn, request, reached, reply } => {
                self.stop_turn((turn, request), &reached, reply).await;
            }
            SessionMessage::StopItem(stop, steer) => self.stop_item(stop, steer).await,
            SessionMessage::WriteTurnStop { request, reached, reply } => {
                self.write_turn_stop(request, reached.get().copied(), reply);
            }
            SessionMessage::WriteStop(stop, reply) => self.write_stop(StoredStop::Session(stop), reply),
            SessionMessage::StopWritten(number, stop) => self.stop_written(number, stop).await,
            SessionMessage::WithdrawIdleStop => self.withdraw_idle_stop().await,
            SessionMessage::Resume(reply) => self.resume(reply).await,
            SessionMessage::Decide(id, ruled, reply) => self.decide(id, ruled, reply).await,
            SessionMessage::Planned(plan, made) => self.planned(plan, made).await,
            SessionMessage::Gathered(plan) => self.step(Input::Gathered(plan)).await,
            SessionMessage::SteerTaken(item, delivered) => self.steer_taken(item, delivered).await,
            SessionMessage::Noticed(turn, notice) => self.lost_notified(turn, &notice),
            SessionMessage::Settled(turn, outcome) => self.settled(turn, outcome).await,
            SessionMessage::Quiet { turn, survivors, receipt, position } => {
                self.show_recorded(SessionEvent::TurnQuiet { turn, survivors, receipt }, position);
                self.step(Input::Quiet(turn)).await;
            }
            SessionMessage::BackgroundOver => self.background_over().await,
            SessionMessage::History(reply) => sync::reply(reply, self.turns.history.clone()),
            SessionMessage::Rename(title, reply) => sync::reply(reply, self.recorder.rename(&title).await),
            SessionMessage::ListApprovals(reply) => self.questions(reply).await,
            SessionMessage::Read(turn) => self.step(Input::Read(turn)).await,
            SessionMessage::ReadEnough(turn) => self.read_enough(turn).await,
            SessionMessage::Broke(error) => self.broke(error).await,
            SessionMessage::LeaseLost(error) => self.lease_lost(error).await,
        }
    }

    /// Steps the machine with `input` and performs its actions.
    async fn step(&mut self, input: Input) {
        self.step_with(input, Request::None).await;
    }

    /// Like [`step`](Self::step), for a caller that waits for the answer.
    async fn step_with(&mut self, input: Input, mut request: Request) -> Option<RequestAnswer> {
        let mut actions = Vec::new();
        self.machine.step(self.now(), input, &mut actions);
        self.hold_back_start(&mut actions);
        self.require_agent(&mut actions);
        let positions = self.record(&mut actions, &request).await;
        let waited = self.machine.room_taken();
        let mut answer = None;
        for (action, position) in actions.into_iter().zip(positions.into_iter().chain(repeat(None))) {
            answer = self.perform((action, position), &mut request).or(answer);
        }
        self.answer_resumers();
        self.cx.shared.inbox.note(0, waited);
        self.cx.shared.show(self.shown());
        answer
    }

    /// Performs an action, whose record is at `position`.
    fn perform(
        &mut self,
        (action, position): (Action, Option<u64>),
        request: &mut Request,
    ) -> Option<RequestAnswer> {
        match action {
            Action::Gather(plan) => self.cx.shared.inbox.mark(SessionMessage::Gathered(plan)),
            Action::Plan { plan, waiting, left, wanted } => self.ask_planner(plan, &waiting, left, wanted),
            Action::DropPlan => {
                if let Some(planner) = self.planner.take() {
                    planner.drop_now();
                }
            }
            Action::Start { turn, from, steers } => {
                self.start((turn, position), from, &steers, request);
            }
            Action::StopRun(turn, why) => self.stop_run(turn, why, request),
            Action::Steer(turn, item, when) => self.steer(turn, item, when),
            Action::Held(turn, item) => self.mark_blocked(item, turn),
            Action::Forget(turn) => {
                self.forget_lost_runs(turn);
                if let Some(work) = &self.turns.current {
                    self.turns.history = work.before.clone();
                }
            }
            Action::Settle(item, fate) => self.settle_item(item, fate),
            Action::Requeued(item) => {
                // The item was part of a turn, so it has used its place in the queue.
                if let Some(held) = self.items.held.get_mut(&item) {
                    held.arrival = Arrival::Queued;
                }
                self.show(SessionEvent::Requeued(item));
            }
            Action::Resolve(item, preempted) => {
                self.show(SessionEvent::Preempted { item, preempted });
                let withdrawn = self.items.preempting.remove(&item);
                let ticket = withdrawn.as_ref().or(self.items.held.get(&item).map(|held| &held.ticket));
                if let Some(ticket) = ticket {
                    ticket.set_preempted(preempted);
                }
            }
            Action::TurnEnded(turn, fate) => self.turn_ended(turn, fate, position),
            Action::RequestAnswer(answer) => {
                if answer == RequestAnswer::Resuming
                    && let Request::Decide(decided) = std::mem::replace(request, Request::None)
                {
                    self.approvals.decisions.push(*decided);
                }
                return Some(answer);
            }
            Action::End(exit) => self.end.exit = Some(exit),
        }
        None
    }

    fn show(&self, event: SessionEvent) {
        self.show_recorded(event, None);
    }

    /// Shows an event whose record is at `position` in the journal.
    fn show_recorded(&self, event: SessionEvent, position: Option<u64>) {
        self.cx.shared.feed.push_recorded((event, position));
    }
}

//! The one task that owns a session: hears its mail, asks the machine, and does what it says.
//!
//! **Invariants**: nothing else changes the session's state; at most one run is at work; each item that the machine
//! knows is held here until it comes to rest.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    pin::Pin,
    sync::Arc,
};

use safepoint_scope::{Code, DropHandle, Scope, StopRequest};
use tokio::{
    sync::oneshot,
    time::{Instant, Sleep},
};

use super::{
    Item, Settings, SharedSession,
    event::SessionEvent,
    item::{Delivery, Policy, TicketState},
    journal::Journal,
    machine::{self, Action, Answer, Input, Machine, Moment},
    mail::{Received, SessionMessage},
    planner::{Arrival, TurnPlan},
    stop::StoppedTurn,
    words::ItemOutcome,
};
use crate::{
    agent::Agent,
    contract::log::Log,
    run::{
        RunHandle,
        outcome::{Outcome, Persisted},
        shared::{AllowList, Closings},
    },
    value::{
        approval::Decision,
        event::ErrorReport,
        history::History,
        ids::{ApprovalId, ItemId, RunId, TurnId},
        message::UserMessage,
    },
};

mod aside;
mod asked;
mod bounds;
mod clock;
mod decisions;
mod follower;
mod heeded;
mod held;
mod items;
mod lost;
mod others;
mod plan;
mod read;
mod records;
mod resume;
mod steer;
mod strategy;
mod turn;
mod waits;

use held::{CurrentTurn, HeldItem};

pub(super) struct Driver<T> {
    shared: Arc<SharedSession<T>>,
    settings: Arc<Settings<T>>,
    mail: Received<T>,
    machine: Machine,
    /// Where planners, followers and readers run, and this task itself.
    scope: Scope,
    began: Instant,
    sleep: Option<Pin<Box<Sleep>>>,
    items: HashMap<ItemId, HeldItem<T>>,
    /// Of an item that was accepted, while the store or a strategy is asked about it.
    hand: Option<(T, Arc<TicketState<T>>)>,
    /// Of items that were taken back, while their preempts are out.
    preempting: HashMap<ItemId, Arc<TicketState<T>>>,
    history: History,
    /// The planner at work, by its number.
    planner: Option<DropHandle>,
    /// What it said, until the machine says what becomes of it.
    planned: Option<Box<TurnPlan>>,
    /// Boxed, as all that an idle session has no use for.
    work: Option<Box<CurrentTurn>>,
    left: Option<(Box<CurrentTurn>, ItemOutcome)>,
    /// Runs of earlier turns that began others in the background, which go on.
    elders: Vec<RunHandle>,
    decisions: Vec<(ApprovalId, Decision)>,
    /// What may run without a further question.
    always: Arc<AllowList>,
    /// What became of questions, where no store knows it.
    closings: Arc<Closings>,
    /// The open questions of the turn that another owner left.
    open: HashSet<ApprovalId>,
    /// When the open questions of the suspended turn are to be looked at.
    overdue: Option<waits::Overdue>,
    /// What was told that it waits behind that turn.
    behind: Vec<ItemId>,
    error: Option<Box<ErrorReport>>,
    cause: Option<String>,
    after: StoppedTurn,
    /// The request of whoever asks just now.
    request: Option<Box<StopRequest>>,
    /// That of whoever asked for the end of the turn alone, until it has ended.
    turn_request: Option<Box<StopRequest>>,
    /// The decision at hand.
    deciding: Option<Box<(ApprovalId, Decision)>>,
    /// Mail that was opened while a push strategy was asked.
    ahead: VecDeque<Box<SessionMessage<T>>>,
    answer: Option<Answer>,
    /// Who asks just now for a turn to be taken up, and those who were heard and wait until it is, or is not.
    taker: Option<oneshot::Sender<Answer>>,
    takers: Vec<oneshot::Sender<Answer>>,
    unhandled: Vec<(ItemId, T)>,
    ended: Option<machine::ExitKind>,
    journal: Option<Arc<Journal>>,
    /// Stops that the store keeps.
    heeded: heeded::StoredStops,
    /// A turn that was cut with its process, or by the end of it, and nothing else.
    restart: Option<TurnId>,
    /// Items that the store knows as taken.
    taken: HashSet<ItemId>,
    /// The turn that the store knows as given up.
    given_up: Option<TurnId>,
    /// What went on in the background of another owner, and ended with it.
    lost: Vec<lost::LostNotice>,
    /// Numbers of items that somebody else took out.
    gone: HashSet<u64>,
    /// Steers that are wanted back from a run that is over, until its end is heard.
    wanted: Vec<(ItemId, oneshot::Sender<Option<T>>)>,
    persisted: Persisted,
    /// What ends the turn at work, where nobody asked for it.
    ended_by: Option<Code>,
}

impl<T: Item> Driver<T> {
    /// One that is not alive yet, to be spawned in `scope`.
    pub(super) fn new(
        scope: Scope,
        shared: Arc<SharedSession<T>>,
        settings: Arc<Settings<T>>,
        mail: Received<T>,
        machine: Machine,
    ) -> Self {
        Self {
            shared,
            machine,
            history: settings.history.clone(),
            settings,
            mail,
            scope,
            began: Instant::now(),
            sleep: None,
            items: HashMap::new(),
            hand: None,
            preempting: HashMap::new(),
            planner: None,
            planned: None,
            work: None,
            left: None,
            elders: Vec::new(),
            decisions: Vec::new(),
            always: Arc::default(),
            closings: Arc::default(),
            open: HashSet::new(),
            overdue: None,
            behind: Vec::new(),
            error: None,
            cause: None,
            after: StoppedTurn::Resumable,
            request: None,
            turn_request: None,
            deciding: None,
            ahead: VecDeque::new(),
            answer: None,
            taker: None,
            takers: Vec::new(),
            unhandled: Vec::new(),
            ended: None,
            journal: None,
            heeded: heeded::StoredStops::default(),
            restart: None,
            taken: HashSet::new(),
            given_up: None,
            lost: Vec::new(),
            gone: HashSet::new(),
            wanted: Vec::new(),
            persisted: Persisted::Yes,
            ended_by: None,
        }
    }

    async fn live(&mut self) {
        while self.ended.is_none() {
            match self.next().await {
                // Boxed, so that an idle session carries no room for what it does not do.
                Some(mail) => Box::pin(self.hear(*mail)).await,
                None => Box::pin(self.pass_time()).await,
            }
        }
        // What was accepted a moment before the end is unhandled too.
        self.shared.door.shut();
        while let Some(mail) = self.ahead.pop_front().or_else(|| self.mail.now()) {
            Box::pin(self.hear(*mail)).await;
        }
    }

    async fn hear(&mut self, mail: SessionMessage<T>) {
        match mail {
            SessionMessage::Push { item, slip, policy, client_id } => {
                if let Some(item) = self.store_item(item, &slip, policy, client_id).await {
                    self.accept(item, slip, policy).await;
                }
                self.shared.door.note(1, self.machine.room_taken());
            }
            SessionMessage::PushBy { item, slip, strategy } => self.push_by(item, slip, strategy).await,
            SessionMessage::Adopt { number, item, slip, policy } => {
                self.adopt(number, (item, slip), policy).await
            }
            SessionMessage::Unreadable { number, why } => self.show(SessionEvent::Unreadable { number, why }),
            SessionMessage::Adopted => self.adopted().await,
            SessionMessage::Gone { number } => self.vanish(number).await,
            SessionMessage::Intent { number, intent } => self.heed(number, intent).await,
            SessionMessage::Decided { id, decision } => self.take_up_decision(id, decision).await,
            SessionMessage::Withdraw { item, reply } => self.withdraw(item, reply).await,
            SessionMessage::WantedAtEnd { turn, item, reply } => self.want_at_end(turn, item, reply).await,
            SessionMessage::Waiting { reply } => self.tell_waiting(reply).await,
            SessionMessage::TookBack { item, reply } => {
                self.give_back(Input::TookBack(item), item, reply).await
            }
            SessionMessage::Stop { stop, reply } => self.stop(stop, reply).await,
            SessionMessage::StopTurn { turn, request, reached, reply } => {
                self.stop_turn((turn, request), &reached, reply).await;
            }
            SessionMessage::KeepTurnStop { request, reached, reply } => {
                self.keep_turn_stop(request, reached.get().copied(), reply);
            }
            SessionMessage::TurnStopKept { number, turn } => self.turn_stop_kept(number, turn).await,
            SessionMessage::KeepStop { stop, reply } => self.keep_stop(stop, reply),
            SessionMessage::StopKept { number, is_idle } => self.stop_kept(number, is_idle).await,
            SessionMessage::KeepOpen => self.keep_open().await,
            SessionMessage::Resume { reply } => self.resume(reply).await,
            SessionMessage::Decide { id, ruled, reply } => self.decide(id, ruled, reply).await,
            SessionMessage::Planned { plan, made } => self.planned(plan, made).await,
            SessionMessage::Gathered(plan) => self.step(Input::Gathered(plan)).await,
            SessionMessage::SteerTaken { turn, item, round } => {
                self.steer_taken(item, Delivery { turn, round }).await
            }
            SessionMessage::Noticed { turn, notice } => self.lost_told(turn, &notice),
            SessionMessage::Settled { turn, outcome } => self.settled(turn, outcome).await,
            SessionMessage::Quiet { turn, survivors } => {
                self.show(SessionEvent::TurnQuiet { turn, survivors });
                self.step(Input::Quiet(turn)).await;
            }
            SessionMessage::AsideOver => self.aside_over().await,
            SessionMessage::Questions { reply } => self.questions(reply).await,
            SessionMessage::Read { turn } => self.step(Input::Read(turn)).await,
            SessionMessage::ReadEnough { turn } => self.read_enough(turn).await,
            SessionMessage::Broke(error) => self.broke(error).await,
            SessionMessage::Lost(error) => self.lose_hold(error).await,
        }
    }

    /// Lets the machine take what happened, and does what it says.
    async fn step(&mut self, input: Input) {
        let mut effects = Vec::new();
        self.machine.step(self.now(), input, &mut effects);
        self.hold_back(&mut effects);
        self.find_agent(&mut effects);
        self.record(&mut effects).await;
        let waited = self.machine.room_taken();
        for effect in effects {
            self.perform(effect);
        }
        self.request = None;
        self.tell_takers();
        self.shared.door.note(0, waited);
        self.shared.view(self.view());
    }

    fn perform(&mut self, effect: Action) {
        match effect {
            Action::Gather(plan) => self.shared.door.mark(SessionMessage::Gathered(plan)),
            Action::Plan { plan, waiting, left, wanted } => {
                self.ask_planner(plan, &waiting, left, wanted.into())
            }
            Action::DropPlan => {
                if let Some(planner) = self.planner.take() {
                    planner.drop_now();
                }
            }
            Action::Start { turn, from, steers } => self.start(turn, from, &steers),
            Action::StopRun { turn, why } => self.stop_run(turn, why),
            Action::Steer { turn, item, when } => self.steer(turn, item, when),
            Action::Held { turn, item } => self.tell_behind(item, turn),
            Action::Forget(turn) => {
                self.forget_lost(turn);
                if let Some(work) = &self.work {
                    self.history = work.before.clone();
                }
            }
            Action::Fate { item, fate } => self.rest(item, fate),
            Action::Requeued(item) => {
                // A turn had it: it has had its place.
                if let Some(held) = self.items.get_mut(&item) {
                    held.came = Arrival::Queued;
                }
                self.show(SessionEvent::Requeued(item));
            }
            Action::Return { item, why } => self.rest(item, ItemOutcome::Returned(why)),
            Action::Resolve { item, preempted } => {
                self.show(SessionEvent::Preempted { item, preempted });
                let taken_back = self.preempting.remove(&item);
                let slip = taken_back.as_ref().or(self.items.get(&item).map(|held| &held.slip));
                if let Some(slip) = slip {
                    slip.preempted(preempted);
                }
            }
            Action::TurnEnded { turn, fate } => self.turn_ended(turn, fate),
            Action::Answer(answer) => {
                if answer == Answer::Resuming {
                    self.takers.extend(self.taker.take());
                    self.decisions.extend(self.deciding.take().map(|deciding| *deciding));
                }
                self.answer = Some(answer);
            }
            Action::End(exit) => self.ended = Some(exit),
        }
    }

    fn show(&self, event: SessionEvent) {
        self.shared.feed.push(event);
    }
}

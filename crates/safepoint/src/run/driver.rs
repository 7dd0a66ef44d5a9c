//! The actor of a run: asks the machine what is due, records the fact that announces it, mints the permit, and hands
//! the effect to a performer. It awaits only the log and its mailbox, never an effect.
//!
//! **Invariants**: no effect without a permit, no permit without a recorded announcement; after `settle` nothing of
//! the attempt is recorded.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use jiff::Timestamp;
use safepoint_scope::{Actor, Code, Demand, DropHandle, Reason, Scope, StopHandle, StopRequest};

use crate::{
    contract::{
        hook::HookKey,
        log::{self, Log, LogError, Recorded},
        model::Talk,
    },
    definition::Definition,
    run::{
        attempt::{AttemptGuard, AttemptLock},
        executor::CallBoard,
        machine::{Machine, NextStep, StepContext},
        outcome::{LastWords, Persisted},
        shared::{Activity, RunMessage, Shared},
    },
    sync::{callback, mailbox::Received},
    value::{
        approval::Decision,
        event::{ErrorReport, EventKind, Fact},
        history::{History, Message},
        ids::{ApprovalId, CallId},
        message::UserMessage,
        receipt::{CallReport, Ending, Receipt},
    },
};

mod approvals;
mod approved;
mod beginning;
mod calls;
mod children;
mod clock;
mod expiry;
mod failure;
mod grace;
mod hooks;
mod host;
mod last_word;
mod late;
mod live;
mod mail;
mod model_call;
mod model_errors;
mod opening;
mod page;
mod parent;
mod rest;
mod settle;
mod steering;
mod stop;
mod unsaid;
mod window;
mod word;

use children::Children;
use clock::Clock;
use grace::Grace;
use live::MidCallApprovals;
use model_call::ModelCall;
use parent::Parent;
use steering::Steers;
use stop::StopTracker;

/// What an attempt starts from.
pub(crate) enum Start {
    /// A new run on this conversation.
    Fresh(History),
    /// The same, but nothing was said: it is refused (S5.1).
    Blank(History),
    /// The log of a run that ended early, and decisions for what it waits for.
    Resume(Vec<(ApprovalId, Decision)>, AttemptLock),
    /// The work of a call: a new run on this input, or one that its tree remembers.
    Child(UserMessage),
}

impl Start {
    /// A run that goes on from `history` with `input`, unless that is blank.
    pub(crate) fn on(mut history: History, input: UserMessage) -> Self {
        if input.is_blank() {
            return Self::Blank(history);
        }
        history.push(Message::User(input));
        Self::Fresh(history)
    }
}

pub(crate) struct Driver {
    desk: AttemptLock,
    claim: Option<AttemptGuard>,
    shared: Arc<Shared>,
    def: Arc<Definition>,
    scope: Scope,
    log: Arc<dyn Log>,
    machine: Machine,
    mailbox: Received<RunMessage>,
    conversation: Talk,
    streaming: Option<ModelCall>,
    draining: Option<ModelCall>,
    calls: HashMap<CallId, CallScope>,
    asking: HashMap<ApprovalId, DropHandle>,
    live: MidCallApprovals,
    /// Ends of calls that the log did not take.
    unrecorded: Vec<CallReport>,
    /// Why the log takes nothing more.
    log_lost: Option<String>,
    /// What readers were shown of the answer of the call that ended last, where that is the run's.
    said: LastWords,
    hooks_passed: HashSet<HookKey>,
    hooks_running: HashMap<HookKey, DropHandle>,
    /// How many hooks are being told of something.
    hooks_told: usize,
    steers: Steers,
    watch: StopTracker,
    clock: Clock,
    grace: Grace,
    up: Option<Parent>,
    kin: Children,
    started_at: Timestamp,
}

/// How much mail is handled between two looks at what is demanded.
const MAIL_BETWEEN_LOOKS: usize = 32;

/// A call's own scope, and what its body leaves behind.
struct CallScope {
    scope: Scope,
    stop: StopHandle,
    board: Arc<CallBoard>,
    started_at: Option<Timestamp>,
}

/// Why the conductor could not go on.
enum LogFailure {
    /// Another attempt of the run goes on in this process.
    Conflict,
    /// The log failed, or nobody knows whether it has taken a fact.
    Log(LogError),
}

impl Driver {
    pub(crate) fn new(
        shared: Arc<Shared>,
        def: Arc<Definition>,
        log: Arc<dyn Log>,
        mailbox: Received<RunMessage>,
    ) -> Self {
        let spec = def.spec();
        let scope = shared.scope.clone();
        let machine = Machine::answering(def.form.clone());
        Self {
            desk: AttemptLock::default(),
            claim: None,
            conversation: def.model.open(spec),
            watch: StopTracker::new(&scope),
            scope,
            shared,
            def,
            log,
            machine,
            mailbox,
            streaming: None,
            draining: None,
            calls: HashMap::new(),
            asking: HashMap::new(),
            live: MidCallApprovals::default(),
            unrecorded: Vec::new(),
            log_lost: None,
            said: LastWords::default(),
            hooks_passed: HashSet::new(),
            hooks_running: HashMap::new(),
            hooks_told: 0,
            steers: Steers::default(),
            clock: Clock::new(),
            grace: Grace::default(),
            up: None,
            kin: Children::default(),
            started_at: Timestamp::now(),
        }
    }

    /// The whole life of an attempt: until its outcome is fixed, and on until it is quiet. What it does now and then
    /// is boxed, so that a run that waits for its model carries no room for its beginning and its end.
    pub(crate) async fn conduct(mut self: Box<Self>, start: Start) {
        let driven = match callback::run(self.drive(start)).await {
            Ok(driven) => driven,
            Err(panic) => {
                self.callback_panicked("something that the run's own task called", &panic);
                self.end_running_calls();
                // What runs is waited for, as after any failure.
                callback::run(self.go_on()).await.unwrap_or(Ok(Ending::Failed))
            }
        };
        let (ending, persisted) = match driven {
            Ok(ending) => (ending, Persisted::Yes),
            Err(LogFailure::Log(error)) => (self.end_without_log(&error), settle::persisted(&error)),
            Err(LogFailure::Conflict) => {
                let hint = "wait until the other attempt has settled, and resume what it came to";
                self.fail("conflict", settle::TAKEN.into(), Some(hint.into()));
                (Ending::Failed, Persisted::No(settle::TAKEN.into()))
            }
        };
        if persisted != Persisted::Yes {
            self.end_running_calls();
        }
        let receipt: Arc<Receipt> = Box::pin(self.settle(ending, persisted)).await;
        Box::pin(self.quieten(receipt)).await;
    }

    async fn drive(&mut self, start: Start) -> Result<Ending, LogFailure> {
        Box::pin(self.open(start)).await?;
        self.go_on().await
    }

    async fn go_on(&mut self) -> Result<Ending, LogFailure> {
        loop {
            // No more than so much, and then a look at what is demanded: a stop does not queue behind mail (S12.5).
            for _ in 0..MAIL_BETWEEN_LOOKS {
                let Some(msg) = self.mailbox.now() else { break };
                Box::pin(self.handle(*msg)).await?;
            }
            self.keep_time().await?;
            self.notice().await?;
            let demand = self.scope.demand();
            let def = Arc::clone(&self.def);
            let steered = self.steers.urgency();
            let bounds = StepContext {
                limits: &def.limits,
                price: def.price.as_ref(),
                gauge: def.gauge.as_ref(),
                steered,
            };
            let due = self.machine.next_step(demand, &bounds);
            match &due {
                NextStep::Wait => self.rest(),
                NextStep::Settle(Ending::Suspended) => {}
                _ => self.say(Activity::Works),
            }
            match due {
                NextStep::CallModel { gate } => self.call_model(gate).await?,
                NextStep::Shorten(cut) => self.shorten(&cut).await?,
                NextStep::Summarise { cut, gate } => Box::pin(self.summarise(cut, gate)).await?,
                NextStep::Refuse(text) => self.refuse(text),
                NextStep::CutModel(whole) => self.cut_model(whole).await?,
                NextStep::TakeSteer => self.take_steers().await?,
                NextStep::Judge(calls) => self.judge(calls).await?,
                NextStep::StartCalls { calls, gate } => self.start_calls(calls, gate).await?,
                NextStep::Limit { code, text } => self.stop_for_limit(code, text),
                NextStep::Settle(Ending::Suspended) if !self.may_suspend() => self.wait().await?,
                NextStep::Settle(Ending::Done) if self.is_telling() => self.wait().await?,
                NextStep::Settle(Ending::Stopped) if self.is_thinking() => self.wait().await?,
                NextStep::Settle(ending) => return Ok(ending),
                NextStep::Wait => {
                    if self.machine.failure().is_some() {
                        self.end_running_calls();
                    }
                    self.end_what_rests();
                    self.wait().await?;
                }
            }
        }
    }

    /// Records a fact, applies it, shows it. The only way in which state changes.
    fn record(&mut self, fact: Fact) -> impl Future<Output = Result<Recorded, LogFailure>> + Send {
        // Shared before there is a future, so that a run that waits has no room for facts in any of its futures.
        let fact = Arc::new(fact);
        async move {
            let limit = self.def.limits.append;
            let recording = log::record(&*self.log, &self.shared.path, fact, limit);
            let recorded = recording.await.map_err(LogFailure::Log)?;
            self.take_in(&recorded);
            Ok(recorded)
        }
    }

    /// The same for several, which are recorded in one.
    async fn record_all(&mut self, facts: Vec<Fact>) -> Result<(), LogFailure> {
        let facts = facts.into_iter().map(Arc::new).collect();
        let recording = log::record_all(&*self.log, &self.shared.path, facts, self.def.limits.append);
        let recorded = recording.await.map_err(LogFailure::Log)?;
        recorded.iter().for_each(|recorded| self.take_in(recorded));
        Ok(())
    }

    fn take_in(&mut self, recorded: &Recorded) {
        self.machine.apply(recorded);
        self.shared.tree.always.take(recorded.fact());
        self.shared.feed.push(EventKind::Fact(Arc::clone(recorded.fact())));
    }

    fn fail(&mut self, code: &str, message: String, hint: Option<String>) {
        self.machine.fail(ErrorReport { code: code.to_owned(), message, hint });
    }

    fn stop_for_limit(&self, code: Code, text: String) {
        let reason = Reason::new(code).with_actor(Actor::Engine).with_text(text);
        self.shared.stop.stop(StopRequest::now().with_reason(reason));
    }
}

/// The demand that the conductor last looked at.
type Seen = Option<Demand>;

//! The real session of a walk, its gated model, and the comparison with the reference.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{FutureExt as _, StreamExt as _, stream};
use safepoint::{
    Agent, Grace, History, Model, SafePoints, Session, StopRequest,
    approval::{ApprovalMode, Decision, Rule, RuleAction, WithoutApprover},
    event::{EventKind, Events, Fact},
    ids::{ApprovalId, TurnId},
    message::ToolCall,
    model::{Conversation, Delta, DeltaStream, Finish, ModelError, ModelErrorKind, ModelSpec},
    session::{
        ChatPlanner, ExitReason, IfUndelivered, ItemOutcome, Policy, Preempt, Push, SessionEvent,
        SessionStop, Ticket,
    },
    steer::SteerTiming,
    tool::{self, EffectClass},
};
use tokio::{
    runtime::{Builder, Runtime},
    sync::mpsc,
};

use super::{
    expected::{Expected, HOUR},
    steps::Step,
};
use crate::{
    desk::{accounted, one_after_the_other, turn},
    dice::Dice,
};

/// How steps follow each other. Exhaustive: each when nothing moves any more, or in bursts by the seed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pace {
    Calm,
    Hasty(u64),
}

type Reply = Result<Delta, ModelError>;

/// Says what the walk says; the latest call is the one that is spoken to.
#[derive(Clone, Default)]
struct Gated(Arc<Mutex<Option<mpsc::UnboundedSender<Reply>>>>);

impl Model for Gated {
    fn name(&self) -> &str {
        "gated"
    }
    fn open(&self, _: ModelSpec) -> Box<dyn Conversation> {
        Box::new(self.clone())
    }
}

impl Conversation for Gated {
    fn stream(&mut self, _: &History) -> DeltaStream {
        let (sender, replies) = mpsc::unbounded_channel();
        *self.0.lock().unwrap() = Some(sender);
        let said = stream::unfold(Some(replies), |open| async {
            let mut replies = open?;
            let reply = replies.recv().await?;
            let over = matches!(reply, Ok(Delta::Ended(_)) | Err(_));
            Some((reply, (!over).then_some(replies)))
        });
        stream::iter([Ok(Delta::Sent), Ok(Delta::Opened)]).chain(said).boxed()
    }
}

struct Real {
    session: Session<String>,
    model: Gated,
    tickets: Vec<Ticket<String>>,
    /// Whether it came with a preempt.
    preempts: Vec<bool>,
    events: Events<SessionEvent>,
    /// The open questions, as the last events gave them.
    questions: Vec<ApprovalId>,
    calls: u64,
}

fn tool(name: &'static str) -> tool::FnTool {
    tool::from_fn(name, "does nothing", |_cx, (): ()| async { Ok("ok") })
        .with(|spec| spec.effect(EffectClass::ReadOnly))
}

impl Real {
    fn new() -> Self {
        let model = Gated::default();
        let agent = Agent::builder(model.clone())
            .approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend))
            .rule(Rule::on("ask", RuleAction::Ask))
            .rule(Rule::on("run", RuleAction::Allow))
            .tool(tool("ask"))
            .tool(tool("run"))
            .build();
        let session = Session::builder(ChatPlanner::new(agent)).start();
        let events = session.events();
        let (tickets, preempts, questions) = (Vec::new(), Vec::new(), Vec::new());
        Self { session, model, tickets, preempts, events, questions, calls: 0 }
    }

    /// Until nothing moves any more: the paused clock advances only then.
    async fn settle(&mut self) {
        tokio::time::sleep(Duration::from_millis(1)).await;
        while let Some(Some(event)) = self.events.next().now_or_never() {
            self.hear(&event.kind);
        }
    }

    fn hear(&mut self, event: &SessionEvent) {
        let SessionEvent::Run { event, .. } = event else { return };
        let EventKind::Fact(fact) = &event.kind else { return };
        match &**fact {
            Fact::ApprovalRequested(question) => self.questions.push(question.id.clone()),
            Fact::ApprovalResolved { id, .. } => self.questions.retain(|open| open != id),
            _ => {}
        }
    }

    fn push(&mut self, policy: impl Into<Policy>) {
        let policy = policy.into();
        let text = format!("item {}", self.tickets.len());
        // After its end the session takes nothing, and the reference counts nothing.
        if let Ok(ticket) = self.session.push(Push::new(text).policy(policy)) {
            self.tickets.push(ticket);
            self.preempts.push(matches!(policy, Policy::Preempt(_) | Policy::Rollback));
        }
    }

    fn says(&mut self, deltas: impl IntoIterator<Item = Reply>) {
        let Some(gate) = self.model.0.lock().unwrap().clone() else { return };
        for delta in deltas {
            if gate.send(delta).is_err() {
                return;
            }
        }
    }

    fn calls(&mut self, name: &str) {
        self.calls += 1;
        let id = format!("c{}", self.calls).into();
        let call = ToolCall { id, name: name.into(), args: "{}".into() };
        self.says([Ok(Delta::CallReady(call)), Ok(Delta::Ended(Finish::Natural))]);
    }

    async fn take(&mut self, step: Step) {
        let hour = Duration::from_millis(HOUR);
        match step {
            Step::Enqueue => self.push(Policy::Enqueue),
            Step::Reject => self.push(Policy::Reject),
            Step::SteerOrQueue => self.push(Policy::steer()),
            Step::SteerOrReturn => self.push(Policy::Steer(SteerTiming::NextRequest, IfUndelivered::Return)),
            Step::PreemptNow => self.push(Preempt::now()),
            Step::PreemptAtAny => self.push(Preempt::at(SafePoints::ANY)),
            Step::PreemptWithin => self.push(Preempt::at_within(SafePoints::ANY, Grace::from_millis(HOUR))),
            Step::PreemptLater => self.push(Preempt::now().after(hour)),
            Step::PreemptOther => self.push(Preempt::now().of(other())),
            Step::Rollback => self.push(Policy::Rollback),
            Step::Withdraw(wanted) => {
                let wanted = self.tickets.get(wanted % self.tickets.len().max(1)).map(Ticket::id);
                if let Some(wanted) = wanted {
                    drop(self.session.withdraw(wanted).await);
                }
            }
            Step::StopTurnNow => drop(self.session.stop_turn(None, StopRequest::now())),
            Step::StopTurnAtAny => drop(self.session.stop_turn(None, StopRequest::at(SafePoints::ANY))),
            Step::StopTurnOther => drop(self.session.stop_turn(Some(other()), StopRequest::now())),
            Step::Resume => {
                self.session.resume().await;
            }
            Step::Approve => {
                for question in self.questions.clone() {
                    if self.session.decide(&question, Decision::Approve).await.is_err() {
                        // It was closed meanwhile.
                    }
                }
            }
            Step::Answer => {
                self.says([Ok(Delta::Text("done".into())), Ok(Delta::Ended(Finish::Natural))]);
            }
            Step::Fail => self.says([Err(ModelError::new(ModelErrorKind::Refused, "no"))]),
            Step::Round => self.calls("run"),
            Step::Ask => self.calls("ask"),
            Step::StopAtTurnEnd => drop(self.session.stop(SessionStop::at_turn_end())),
            Step::StopGraceful => drop(self.session.stop(SessionStop::graceful())),
            Step::StopNow => drop(self.session.stop(SessionStop::now())),
            Step::StopWhenIdle => drop(self.session.stop(SessionStop::when_idle_for(hour))),
            Step::KeepOpen => self.session.withdraw_idle_stop(),
            Step::Wait => tokio::time::sleep(2 * hour).await,
        }
    }

    /// What differs from the reference.
    fn differs(&self, expected: &Expected) -> Option<String> {
        let places: HashMap<_, usize> =
            self.tickets.iter().enumerate().map(|(n, ticket)| (ticket.id(), n)).collect();
        let running = self.session.current_turn().map(|view| {
            (view.turn.number(), view.items.iter().map(|item| places[item]).collect::<Vec<usize>>())
        });
        if running != expected.running() {
            return Some(format!("running is {running:?}, not {:?}", expected.running()));
        }
        if self.session.is_done() != expected.over {
            return Some(format!("over is {}, not {}", self.session.is_done(), expected.over));
        }
        for (item, known) in expected.items.iter().enumerate() {
            let fate = self.tickets[item].fate_now();
            if fate != known.fate {
                return Some(format!("item {item} is {fate:?}, not {:?}", known.fate));
            }
            let preempted = self.tickets[item].preempted().now_or_never();
            if self.preempts[item] && known.preempted.is_some() && preempted != known.preempted {
                return Some(format!("the preempt of {item} is {preempted:?}, not {:?}", known.preempted));
            }
            let is_open =
                known.fate.is_none() || known.fate == Some(ItemOutcome::Withdrawn) && self.preempts[item];
            if known.preempted.is_none() && is_open && preempted.is_some() {
                return Some(format!("the preempt of {item} is {preempted:?}, and not open"));
            }
        }
        None
    }
}

/// A turn that no walk gets to.
fn other() -> TurnId {
    turn(1_000_000)
}

/// A session that walks, and what it runs on. The session goes first.
pub(super) struct Walk {
    real: Real,
    hasty: Option<Dice>,
    runtime: Runtime,
}

impl Walk {
    pub(super) fn new(pace: Pace) -> Self {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let hasty = match pace {
            Pace::Calm => None,
            Pace::Hasty(seed) => Some(Dice(seed)),
        };
        let real = runtime.block_on(async {
            let mut real = Real::new();
            real.settle().await;
            real
        });
        Self { real, hasty, runtime }
    }

    /// Takes a step; where nothing is under way then, what differs from the reference.
    pub(super) fn step(&mut self, step: Step, expected: &Expected) -> Result<(), String> {
        let Self { real, hasty, runtime } = self;
        if real.session.is_done() {
            return Ok(());
        }
        runtime.block_on(async {
            real.take(step).await;
            let Some(dice) = hasty else {
                real.settle().await;
                return real.differs(expected).map_or(Ok(()), Err);
            };
            match dice.below(4) {
                0 => real.settle().await,
                1 => tokio::task::yield_now().await,
                _ => {}
            }
            Ok(())
        })
    }

    /// Ends the session, and counts every item.
    pub(super) fn close(self, expected: &Expected) -> Result<(), String> {
        let Self { real, hasty, runtime } = self;
        runtime.block_on(async move {
            drop(real.session.stop(SessionStop::now()));
            let exit = accounted(&real.session, &real.tickets).await;
            one_after_the_other(&real.session).await;
            if let ExitReason::Failed(error) = exit.reason() {
                return Err(format!("it failed: {error:?}"));
            }
            // What was done in haste was not looked at after each step: the reference may know of items that
            // were not taken.
            if hasty.is_some() {
                return Ok(());
            }
            let unhandled: Vec<_> = exit.unhandled().iter().map(|(id, _)| *id).collect();
            let wanted: Vec<_> =
                expected.unhandled().into_iter().map(|item| real.tickets[item].id()).collect();
            if unhandled != wanted {
                return Err(format!("unhandled are {unhandled:?}, not {wanted:?}"));
            }
            Ok(())
        })
    }
}

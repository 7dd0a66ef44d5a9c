//! A desk in process: sessions over a scripted model, with planners and readers that follow the test.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use safepoint::{
    Agent, History, Session, SessionHandle,
    approval::{ApprovalMode, Rule, RuleAction, WithoutApprover},
    event::{EventKind, Events},
    ids::{ItemId, TurnId},
    message::UserMessage,
    model::{Delta, Finish},
    session::{
        ChatPlanner, ItemOutcome, Plan, PlanContext, Planner, PreemptedItems, Reader, SessionBuilder,
        SessionEvent, SessionExit, Ticket,
    },
    stop::Failure,
};
use safepoint_testkit::{
    script::{Reply, Script},
    scripted::{ModelGate, ScriptedModel},
    tools::GateTools,
    wait::InTime as _,
};
use serde_json::json;

pub(crate) fn turn(number: u64) -> TurnId {
    number.to_string().parse().unwrap()
}

/// A model in process, and sessions on it.
pub(crate) struct Desk {
    pub(crate) model: ScriptedModel,
    pub(crate) tools: GateTools,
}

impl Desk {
    /// It says these, and then echoes.
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self { model: ScriptedModel::new(Script::of(replies)), tools: GateTools::new() }
    }

    /// `pay` waits at its gate; `ask` needs a decision.
    pub(crate) fn agent(&self) -> Agent {
        Agent::builder(self.model.clone())
            .approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend))
            .rule(Rule::on("ask", RuleAction::Ask))
            .rule(Rule::on("pay", RuleAction::Allow))
            .tool(self.tools.gated("pay"))
            .tool(self.tools.gated("ask"))
            .build()
    }

    pub(crate) fn chat(&self) -> SessionBuilder<String> {
        Session::builder(ChatPlanner::new(self.agent()))
    }

    pub(crate) fn planned(&self, how: Planning) -> SessionBuilder<String> {
        Session::builder(Strange {
            chat: ChatPlanner::new(self.agent()),
            how,
            preempted_turns: Arc::default(),
        })
    }
}

pub(crate) fn asks() -> Reply {
    Reply::default().and_call("ask", json!({}))
}

pub(crate) fn pays() -> Reply {
    Reply::default().and_call("pay", json!({}))
}

/// Lets a gated model call end with a final answer.
pub(crate) fn answers(gate: &ModelGate, text: &str) {
    gate.send(Delta::Text(text.into())).send(Delta::Ended(Finish::Natural));
}

/// How a planner misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planning {
    PanicsAtOnce,
    PanicsLater,
    Fails,
    /// At this turn.
    FailsAt(usize),
    Hangs,
    /// Only where a turn was preempted.
    PanicsWhenPreempted,
    /// Only where it is asked what a steer says.
    PanicsAtASteer,
    /// What was preempted waits again.
    Requeues,
}

/// Chat, but for one thing.
pub(crate) struct Strange {
    chat: ChatPlanner,
    how: Planning,
    preempted_turns: Arc<Mutex<Vec<TurnId>>>,
}

impl Planner<String> for Strange {
    fn plan(&self, situation: PlanContext<String>) -> BoxFuture<'_, Result<Plan, Failure>> {
        match self.how {
            Planning::PanicsAtOnce => panic!("before its first await"),
            Planning::PanicsLater => Box::pin(async {
                tokio::task::yield_now().await;
                panic!("after its first await")
            }),
            Planning::Fails => Box::pin(async { Err(Failure::new("no plan")) }),
            Planning::FailsAt(count) if said(&situation.history).len() >= count => {
                Box::pin(async { Err(Failure::new("no further plan")) })
            }
            Planning::Hangs => Box::pin(std::future::pending()),
            Planning::FailsAt(_)
            | Planning::PanicsWhenPreempted
            | Planning::PanicsAtASteer
            | Planning::Requeues => self.chat.plan(situation),
        }
    }

    fn steer(&self, item: &String) -> UserMessage {
        assert_ne!(self.how, Planning::PanicsAtASteer, "asked what a steer says");
        item.clone().into()
    }

    fn preempted(&self, turn: TurnId, _items: &[ItemId]) -> PreemptedItems {
        self.preempted_turns.lock().unwrap().push(turn);
        assert_ne!(self.how, Planning::PanicsWhenPreempted, "asked what becomes of preempted items");
        if self.how == Planning::Requeues { PreemptedItems::Requeue } else { PreemptedItems::Drop }
    }
}

/// How a reader reads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reading {
    /// Returns after the first event.
    One,
    PanicsAtOnce,
    Panics,
    Fails,
    Never,
    /// To the end, and lets others go first at each event.
    Slow,
}

impl Reader for Reading {
    fn read(&self, _turn: TurnId, mut events: Events) -> BoxFuture<'_, Result<(), Failure>> {
        let how = *self;
        if let Self::PanicsAtOnce = how {
            panic!("before its first await");
        }
        Box::pin(async move {
            while let Some(event) = events.next().in_time("the next event of the session, or their end").await
            {
                match how {
                    Self::One => return Ok(()),
                    Self::Panics | Self::PanicsAtOnce => panic!("at {event:?}"),
                    Self::Fails => return Err(Failure::new("unreadable")),
                    Self::Never => std::future::pending().await,
                    Self::Slow => tokio::task::yield_now().await,
                }
            }
            Ok(())
        })
    }
}

/// Each accepted item is in exactly one place, and the exit, the tickets and the events agree on which.
pub(crate) async fn accounted(
    session: &SessionHandle<String>,
    tickets: &[Ticket<String>],
) -> Arc<SessionExit<String>> {
    let exit = session.done().in_time("the session's end").await;
    let open: Vec<ItemId> =
        exit.open().into_iter().flat_map(|open| open.items.iter().map(|(id, _)| *id)).collect();
    let unhandled: Vec<ItemId> = exit.unhandled().iter().map(|(id, _)| *id).collect();
    let mut last = std::collections::HashMap::new();
    let mut accepted = 0_usize;
    let mut events = session.events();
    while let Some(event) = events.next().in_time("the next event of the session, or their end").await {
        match event.kind {
            SessionEvent::Accepted(_) => accepted += 1,
            SessionEvent::ItemSettled { item, fate } => {
                last.insert(item, fate);
            }
            SessionEvent::Requeued(item) => {
                last.remove(&item);
            }
            _ => {}
        }
    }
    for ticket in tickets {
        let (id, fate) = (ticket.id(), ticket.fate_now());
        let fate = fate.unwrap_or_else(|| panic!("item {id} is nowhere"));
        assert_eq!(last.get(&id), Some(&fate), "the events tell another place of {id}");
        assert_eq!(unhandled.contains(&id), fate == ItemOutcome::Unhandled, "{id}: {fate:?}");
        assert!(!open.contains(&id) || is_open(fate), "{id} is open and {fate:?}");
        let is_back = matches!(fate, ItemOutcome::Returned(_) | ItemOutcome::Withdrawn);
        assert_eq!(ticket.take_back().is_some(), is_back, "{id}: {fate:?}");
        assert_eq!(ticket.take_back(), None, "it comes back once");
    }
    let known: std::collections::HashSet<ItemId> = tickets.iter().map(Ticket::id).collect();
    assert_eq!(known.len(), accepted, "an item was accepted twice, or without a ticket");
    exit
}

fn is_open(fate: ItemOutcome) -> bool {
    matches!(
        fate,
        ItemOutcome::Interrupted(_)
            | ItemOutcome::Failed(_)
            | ItemOutcome::Preempted(_)
            | ItemOutcome::Suspended(_)
    )
}

/// Turns never overlap: each begins after the one before is quiet (S6.9). Returns how many there were.
pub(crate) async fn one_after_the_other(session: &SessionHandle<String>) -> usize {
    let (mut running, mut turns) = (None, 0);
    let mut events = session.events();
    while let Some(event) = events.next().in_time("the next event of the session, or their end").await {
        match event.kind {
            SessionEvent::TurnStarted { turn, .. } => {
                assert_eq!(running.replace(turn), None, "two turns at once");
                turns += 1;
            }
            SessionEvent::Run { turn, .. } => assert_eq!(running, Some(turn), "an event after the quiet"),
            SessionEvent::TurnQuiet { turn, .. } => assert_eq!(running.take(), Some(turn)),
            _ => {}
        }
    }
    assert_eq!(running, None, "the session ended before its turn was quiet");
    turns
}

/// The texts that people said, as the model would get them.
pub(crate) fn said(history: &History) -> Vec<String> {
    history
        .entries()
        .iter()
        .filter_map(|entry| match &**entry {
            safepoint::history::Message::User(message) => Some(message.text.clone()),
            _ => None,
        })
        .collect()
}

/// Whether it is a fact that `wanted` accepts.
pub(crate) fn is_fact(event: &SessionEvent, wanted: impl Fn(&safepoint::event::Fact) -> bool) -> bool {
    matches!(event, SessionEvent::Run { event, .. } if matches!(&event.kind, EventKind::Fact(fact) if wanted(fact)))
}

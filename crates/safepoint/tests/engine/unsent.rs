//! A request that waits to be sent, or to be sent again: a stop at a safe point ends it there.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};
use safepoint::{
    Agent, Grace, History, Model, Outcome, Receipt, SafePoints, StopRequest,
    event::EventKind,
    model::{Conversation, Delta, DeltaStream, Finish, ModelSpec, OnModelStop},
    receipt::{Escalation, ModelState},
};
use tokio::{sync::Notify, time::timeout};

use crate::world::until;

/// On the paused clock: longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

/// Sends, gives `next` once the gate opens, and then waits; where `answers` is set, it answers in place of the wait.
#[derive(Clone)]
struct Waits {
    gate: Arc<Notify>,
    next: Delta,
    answers: bool,
}

impl Model for Waits {
    fn name(&self) -> &str {
        "waits"
    }
    fn open(&self, _: ModelSpec) -> Box<dyn Conversation> {
        Box::new(self.clone())
    }
}

impl Conversation for Waits {
    fn stream(&mut self, _: &History) -> DeltaStream {
        let (gate, next, answers) = (Arc::clone(&self.gate), self.next.clone(), self.answers);
        let rest = if answers {
            stream::iter([
                Ok(Delta::Sent),
                Ok(Delta::Opened),
                Ok(Delta::Text("yes".into())),
                Ok(Delta::Ended(Finish::Natural)),
            ])
            .boxed()
        } else {
            stream::pending().boxed()
        };
        let waits = stream::once(async move {
            gate.notified().await;
            Ok(next)
        });
        stream::iter([Ok(Delta::Sent)]).chain(waits).chain(rest).boxed()
    }
}

fn fails_and_waits() -> Delta {
    Delta::Retrying { failed: 1, after: LONG * 60, error: "overloaded".into() }
}

fn waits_its_turn() -> Delta {
    Delta::Waiting { what: "the rate limit".into() }
}

/// What the receipt says of a run that was stopped at a safe point: before the wait began, or while it lasted.
async fn stopped(next: Delta, on_cut: OnModelStop, before: bool) -> Receipt {
    let gate = Arc::new(Notify::new());
    let model = Waits { gate: Arc::clone(&gate), next, answers: false };
    let handle = Agent::builder(model).on_cut(on_cut).build().run("go").detach();
    until(&handle, |kind| matches!(kind, EventKind::Fact(fact) if matches!(**fact, safepoint::event::Fact::ModelStarted { .. }))).await;
    let stop = || handle.stop(StopRequest::at_within(SafePoints::ANY, Grace::from_secs(3600)));
    if before {
        stop();
        gate.notify_one();
    } else {
        gate.notify_one();
        until(&handle, |kind| matches!(kind, EventKind::Retrying { .. } | EventKind::Waiting { .. })).await;
        stop();
    }
    let outcome = timeout(LONG, handle.done()).await.expect("the stop waits for the wait");
    let Outcome::Stopped(stopped) = outcome else { panic!("not stopped: {outcome:?}") };
    timeout(LONG, handle.quiet()).await.expect("something of it is alive");
    Receipt::clone(stopped.receipt())
}

/// S2.21: it ends where it waits, by whichever order, in the way of each `OnModelStop`; nothing is read for a bill.
#[tokio::test(start_paused = true)]
async fn a_stop_at_a_safe_point_ends_a_request_that_waits_to_be_sent() {
    for next in [fails_and_waits(), waits_its_turn()] {
        for on_cut in [OnModelStop::Disconnect, OnModelStop::Drain] {
            for before in [false, true] {
                let receipt = stopped(next.clone(), on_cut, before).await;
                let stop = receipt.stop.as_ref().unwrap();
                assert_eq!(stop.escalated, Escalation::No, "{next:?} {on_cut:?} {before}");
                let model = receipt.model.as_ref().unwrap();
                if matches!(next, Delta::Retrying { .. }) {
                    assert_eq!(model.state, ModelState::NeverSent, "{on_cut:?} {before}");
                }
                if !before {
                    assert_eq!(stop.phase, "the model's request waited to be sent");
                }
            }
        }
    }
}

/// S2.3, S2.21: one that has been sent again is read to its end.
#[tokio::test(start_paused = true)]
async fn a_request_that_was_sent_again_is_read_to_its_end() {
    let gate = Arc::new(Notify::new());
    let model = Waits { gate: Arc::clone(&gate), next: fails_and_waits(), answers: true };
    let handle = Agent::builder(model).build().run("go").detach();
    gate.notify_one();
    until(&handle, |kind| matches!(kind, EventKind::Text(_))).await;
    handle.stop(StopRequest::at_within(SafePoints::ANY, Grace::from_secs(3600)));
    let outcome = timeout(LONG, handle.done()).await.unwrap();
    assert_eq!(outcome.answer(), Some("yes"));
}

//! A `safepoint run` as the target of requests from other processes: they can stop and steer it; its turns
//! are those that it was started with.

use std::sync::{Arc, Mutex, OnceLock};

use futures_util::future::BoxFuture;
use safepoint::{RunHandle, Steer, ids::CallId, receipt::QuietReport, steer::SteerOutcome};
use serde_json::json;

use super::{
    about::About,
    chat_target::{asked_reply, no_such_call, not_running},
    inlet::{Inlet, looking},
    offline,
    protocol::{Ask, ModeArg, PushAsk, Reply, StopAsk, Wait},
    server::{LastReply, Replies, Target},
};
use crate::{args::control::PolicyArg, exit::code, sync::lock};

/// The running turn, set by the run's loop.
#[derive(Default)]
pub(crate) struct Turns {
    /// Held for one look or one change, so that a stop either reaches the turn that begins, or comes before it; no other
    /// lock is taken under it.
    state: Mutex<TurnsState>,
    /// The entry to the stored session of these turns.
    inlet: OnceLock<Inlet>,
}

#[derive(Default)]
struct TurnsState {
    running: Option<RunHandle>,
    is_ending: bool,
}

/// Whether a turn may begin. Exhaustive: it may, or the session was asked to stop before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a turn after the stop of its session is stopped"]
pub(crate) enum Begins {
    Now,
    TooLate,
}

impl Turns {
    /// Sets the running turn. A stop of the session that comes later finds it.
    pub(crate) fn begin(&self, handle: &RunHandle) -> Begins {
        let mut state = lock(&self.state);
        state.running = Some(handle.clone());
        if state.is_ending { Begins::TooLate } else { Begins::Now }
    }

    /// Has no further turn begin, and returns the turn that has begun.
    fn end(&self) -> Option<RunHandle> {
        let mut state = lock(&self.state);
        state.is_ending = true;
        state.running.clone()
    }

    /// Sets the entry to the stored session of these turns.
    pub(crate) fn of(&self, inlet: Inlet) {
        // Set once, when the conversation is opened.
        drop(self.inlet.set(inlet));
    }

    /// Whether the session was asked to stop: no further turn begins.
    pub(crate) fn is_ending(&self) -> bool {
        lock(&self.state).is_ending
    }

    fn running(&self) -> Option<RunHandle> {
        lock(&self.state).running.clone()
    }
}

pub(super) struct RunTarget {
    pub(super) turns: Arc<Turns>,
    pub(super) about: About,
}

impl Target for RunTarget {
    fn answer(self: Arc<Self>, ask: Ask, replies: Replies) -> BoxFuture<'static, LastReply> {
        Box::pin(async move {
            let inlet = self.turns.inlet.get();
            match (ask, inlet) {
                (Ask::Show, _) => Ok(Some(self.show())),
                (Ask::Look, inlet) => Ok(Some(inlet.map_or_else(looking, Inlet::look))),
                (Ask::Push(push), Some(inlet)) => {
                    inlet.take(push, |text, policy, id| inlet.put(text, policy, id), &replies).await
                }
                (Ask::Push(push), None) => Ok(Some(self.steer(&push, &replies).await)),
                (Ask::Withdraw { item }, _) => match inlet.and_then(Inlet::place) {
                    Some(place) => offline::withdraw(place, &item).await.map(Some),
                    None => {
                        let why = "nothing waits in a single run";
                        Ok(Some(Reply::new(code::TOO_LATE, "too_late", why)))
                    }
                },
                (Ask::Stop(stop), _) => self.stop(&stop, &replies).await.map(Some),
            }
        })
    }
}

impl RunTarget {
    fn show(&self) -> Reply {
        let run = self.turns.running();
        let detail = self.about.detail(json!({
            "run": run.as_ref().map(|run| run.id().as_str().to_owned()),
            "alive": run.as_ref().map(RunHandle::alive).unwrap_or_default(),
        }));
        Reply::new(code::ACCEPTED, "running", self.about.to_string()).detail(detail)
    }

    async fn steer(&self, push: &PushAsk, replies: &Replies) -> Reply {
        let steer = match (push.policy, Steer::new(push.text.as_str())) {
            (PolicyArg::Steer, Ok(steer)) => steer,
            (_, Err(blank)) => return Reply::new(code::USAGE, "blank", blank.to_string()),
            _ => {
                let why = "a single run takes the turns that it was started with, and steers; nothing can wait in it";
                return Reply::new(code::NO_ROOM, "closed", why);
            }
        };
        let Some(run) = self.turns.running().filter(|run| !run.is_done()) else {
            return Reply::new(code::TOO_LATE, "no_active_turn", "no turn is running");
        };
        let steering = run.steer(steer);
        let accepted =
            Reply::new(code::ACCEPTED, "accepted", "it goes with the next request, if there is one");
        if push.wait == Wait::No {
            return accepted;
        }
        replies.first(accepted);
        match steering.outcome().await {
            SteerOutcome::Delivered { round } => {
                Reply::new(code::ACCEPTED, "delivered", format!("delivered with request {round}"))
                    .detail(json!({ "round": round }))
            }
            SteerOutcome::Returned(_) => {
                Reply::new(code::TOO_LATE, "not_delivered", "the turn ended before its next request")
            }
        }
    }

    async fn stop(&self, stop: &StopAsk, replies: &Replies) -> anyhow::Result<Reply> {
        let is_it = |run: &RunHandle| stop.run.as_deref().is_none_or(|id| id == run.id().as_str());
        let is_all = stop.run.is_none() && stop.call.is_none();
        if is_all && matches!(stop.mode, ModeArg::TurnEnd | ModeArg::WhenIdle { .. }) {
            drop(self.turns.end());
            return Ok(Reply::new(code::ACCEPTED, "first", "it ends with its turn"));
        }
        let request = stop.request()?;
        // Only now: a stop that is refused ends nothing.
        let run = if is_all { self.turns.end() } else { self.turns.running() };
        let run = match run {
            None if is_all => {
                return Ok(Reply::new(code::ACCEPTED, "first", "it ends before its first turn"));
            }
            Some(run) if is_it(&run) => run,
            _ => return Ok(not_running(stop)),
        };
        let asked = match &stop.call {
            None => run.stop(request),
            Some(call) => match run.stop_call(&CallId::from(call.as_str()), request) {
                Some(asked) => asked,
                None => return Ok(no_such_call(call)),
            },
        };
        let reply = asked_reply(asked);
        if stop.wait == Wait::No || reply.code != code::ACCEPTED || stop.call.is_some() {
            return Ok(reply);
        }
        replies.first(reply);
        let outcome = run.done().await;
        let ending = outcome.ending().as_str();
        if stop.wait != Wait::Quiet {
            let reply = Reply::new(code::ACCEPTED, ending, ending);
            return Ok(reply.detail(json!({ "receipt": **outcome.receipt() })));
        }
        let quiet = run.quiet().await;
        let reply = match &quiet {
            QuietReport::Quiet(_) => Reply::new(code::ACCEPTED, ending, ending),
            QuietReport::NotQuiet(receipt) => {
                let alive = receipt.survivors.join(", ");
                Reply::new(code::OTHER, "not_quiet", format!("{ending}; may still be running: {alive}"))
            }
        };
        Ok(reply.detail(json!({ "receipt": **quiet.receipt() })))
    }
}

#[cfg(test)]
mod tests {
    use safepoint::{
        raw::backend::{BackendSpec, RunInput, WrappedEnd, wrap_finished},
        receipt::StopSupport,
    };

    use tokio::sync::mpsc;

    use super::*;
    use crate::{args::control::ScopeArg, control::protocol::Afterwards};

    /// S6.13: a stop of the session reaches the turn that runs, and a turn that begins after it knows of it: none slips
    /// through between two turns.
    #[test]
    fn a_turn_that_begins_after_the_stop_of_its_session_is_too_late() {
        let spec = BackendSpec { name: "done".into(), grade: StopSupport::Hard };
        let run = || wrap_finished(&spec, RunInput::new("go"), WrappedEnd::Done("there".into()));
        let (turns, first) = (Turns::default(), run());
        assert_eq!(turns.begin(&first), Begins::Now);
        let reached = turns.end();
        assert_eq!(reached.as_ref().map(RunHandle::id), Some(first.id()));
        assert!(turns.is_ending());
        assert_eq!(turns.begin(&run()), Begins::TooLate);
    }

    /// S6.7: a stop that is refused ends nothing: the turns after it begin.
    #[tokio::test]
    async fn a_stop_that_is_refused_ends_nothing() {
        let turns = Arc::new(Turns::default());
        let target = RunTarget { turns: Arc::clone(&turns), about: About::new("run", String::new()) };
        let (replies, _answers) = mpsc::unbounded_channel();
        let ask = |mode| StopAsk {
            mode,
            within_ms: None,
            scope: ScopeArg::Root,
            run: None,
            call: None,
            cleanup_cap_ms: None,
            afterwards: Afterwards::Resumable,
            because: None,
            wait: Wait::No,
        };
        let refused = target.stop(&ask(ModeArg::Points("lunch".into())), &Replies(replies.clone())).await;
        assert_eq!(Reply::failed(&refused.unwrap_err()).code, code::USAGE);
        assert!(!turns.is_ending());
        // Before the first turn: none begins, so it is accepted.
        let accepted = target.stop(&ask(ModeArg::Now), &Replies(replies)).await.unwrap();
        assert_eq!((accepted.code, turns.is_ending()), (code::ACCEPTED, true));
    }
}

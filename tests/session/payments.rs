//! Two payments, a stop or a crash between them: what is never paid again, and what the model learns.

use std::sync::Arc;

use safepoint::{
    Agent, Session,
    approval::ApprovalMode,
    event::Fact,
    history::{Message, note},
    ids::SessionId,
    message::CallResult,
    raw::store::Liveness,
    session::{ChatPlanner, ItemOutcome, SessionEvent, SessionStop},
    store::Store,
    tool::{Concurrency, EffectClass},
};
use safepoint_testkit::{
    ledger::Mark,
    script::{Reply, Script},
    scripted::ScriptedModel,
    store_suite::{Population, owner},
    tools::GateTools,
};
use serde_json::json;

use super::{
    desk::{is_fact, turn},
    world::{mortals, seen},
};

/// How the session's first life ends, in the second payment. Exhaustive: a stop of it, or the death of its
/// process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Stopped,
    Died,
}

impl End {
    /// What the model reads about the call that it ended.
    fn note(self) -> &'static str {
        match self {
            Self::Stopped => note::STOPPED_UNKNOWN,
            Self::Died => note::CUT_OFF,
        }
    }
}

/// What runs beside the payment. Exhaustive: nothing, or a look that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Nothing,
    ALook,
}

struct World {
    store: Arc<dyn Store>,
    lives: Population,
    model: ScriptedModel,
    /// Lets through as many as the test says.
    pays: GateTools,
    /// Does not wait.
    looks: GateTools,
}

impl World {
    fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let (store, lives) = mortals();
        let looks = GateTools::new();
        looks.gate().open_for_all();
        Self { store, lives, model: ScriptedModel::new(Script::of(replies)), pays: GateTools::new(), looks }
    }

    async fn open(&self, pid: u32) -> Session<String> {
        let look = self.looks.gated("look").with(|spec| spec.effect(EffectClass::ReadOnly));
        let agent = Agent::builder(self.model.clone())
            .approvals(ApprovalMode::Auto)
            .tool(self.pays.gated("pay").with(|spec| spec.overlap(Concurrency::Parallel)))
            .tool(look)
            .build();
        let builder = Session::builder(ChatPlanner::new(agent));
        builder.open(Arc::clone(&self.store), SessionId::from("s"), owner(pid)).await.unwrap()
    }

    /// The first life, until it ended while `count` payments had begun, and all of them but one were let
    /// through.
    async fn lives_until(&self, count: usize, beside: Beside, end: End) -> Session<String> {
        let first = self.open(1).await;
        first.push("go".to_owned()).unwrap();
        self.pays.gate().let_pass(count - 1);
        self.pays.gate().came(count).await;
        if beside == Beside::ALook {
            let looked = |event: &SessionEvent| {
                is_fact(event, |fact| matches!(fact, Fact::CallEnded { report, .. } if report.name == "look"))
            };
            seen(&first, looked).await;
        }
        match end {
            End::Stopped => {
                first.stop(SessionStop::now());
                first.done().await;
            }
            End::Died => self.lives.say(1, Liveness::Dead),
        }
        first
    }

    /// The second life takes it up, to its end.
    async fn resumes(&self) -> Session<String> {
        let next = self.open(2).await;
        assert!(next.resume().await);
        let ended = seen(&next, |event| matches!(event, SessionEvent::TurnEnded { .. })).await;
        assert!(
            matches!(ended, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(of), .. } if of == turn(1)),
            "{ended:?}"
        );
        next
    }

    /// The results in the model's last request, in the order of its calls.
    fn results(&self) -> Vec<String> {
        let requests = self.model.requests();
        let entries = requests.last().unwrap().entries();
        let results = entries.iter().filter_map(|entry| match &**entry {
            Message::Results { results } => Some(results),
            Message::User(_) | Message::Assistant(_) => None,
        });
        results.flatten().map(|CallResult { text, .. }| String::clone(text)).collect()
    }
}

/// S2.7, S7.2, S7.3, S4.5 / T2, T10: stopped, or killed, in round 2, with a payment that was made in round 1
/// and one that is half done. The resume makes neither again; the model learns the result of the first and
/// that the second is unknown.
#[tokio::test]
async fn a_payment_of_round_one_and_half_a_one_of_round_two_are_not_repeated() {
    for end in [End::Stopped, End::Died] {
        let pay = || Reply::call("pay", json!({}));
        let world = World::new([pay(), pay(), Reply::text("done")]);
        let first = world.lives_until(2, Beside::Nothing, end).await;
        let next = world.resumes().await;
        let ledger = world.pays.ledger();
        assert_eq!((ledger.count(Mark::Entry), ledger.count(Mark::Commit)), (2, 1), "{end:?}");
        assert_eq!(world.results(), ["done", end.note()], "{end:?}");
        assert_eq!(world.model.requests().len(), 3, "{end:?}: each round is asked for once");
        drop((first, next));
    }
}

/// S2.7, S4.5, S7.2 / T2: in a round of calls that run beside each other, the result of the finished one is
/// kept, and it is not run again; the running one is reported as unknown.
#[tokio::test]
async fn a_finished_sibling_keeps_its_result() {
    for end in [End::Stopped, End::Died] {
        let both = Reply::call("look", json!({})).and_call("pay", json!({}));
        let world = World::new([both, Reply::text("done")]);
        let first = world.lives_until(1, Beside::ALook, end).await;
        let next = world.resumes().await;
        assert_eq!(world.looks.ledger().count(Mark::Entry), 1, "{end:?}: it is not read again");
        let ledger = world.pays.ledger();
        assert_eq!((ledger.count(Mark::Entry), ledger.count(Mark::Commit)), (1, 0), "{end:?}");
        assert_eq!(world.results(), ["done", end.note()], "{end:?}");
        drop((first, next));
    }
}

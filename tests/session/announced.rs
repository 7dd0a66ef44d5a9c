//! A rule for every way on which an effect begins: the record of its start is in the store before it does.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures_util::{FutureExt as _, StreamExt as _};
use safepoint::{
    Agent, AgentBuilder, History, Limits, Model, ToolContext,
    approval::{ApprovalMode, Decision, ToolApproval, WithoutApprover},
    event::Fact,
    model::{Conversation, DeltaStream, ModelSpec},
    raw::{JournalFact, read_journal, store::ApprovalState},
    session::{ItemOutcome, SessionEvent},
    store::{MemoryStore, Store},
    tool::{EffectClass, FnTool, from_fn},
    window::Window,
};
use safepoint_testkit::{
    script::{Reply, Script},
    scripted::ScriptedModel,
};
use serde_json::json;

use super::world::{chat, open_here, seen};

/// What watches the effects of one session.
#[derive(Clone)]
struct Watch {
    store: Arc<dyn Store>,
    asked: Arc<AtomicUsize>,
    called: Arc<AtomicUsize>,
}

impl Watch {
    async fn facts(&self) -> Vec<Arc<Fact>> {
        let mut facts = Vec::new();
        read_journal(&*self.store, &"s".into(), |step| {
            if let Ok(JournalFact::Fact { fact, .. }) = step.what {
                facts.push(fact);
            }
        })
        .await
        .unwrap();
        facts
    }

    /// A model is asked: as many calls of models were announced as begin with this one.
    async fn a_model_is_asked(&self) {
        let asked = 1 + self.asked.fetch_add(1, Ordering::SeqCst);
        let facts = self.facts().await;
        let announced = facts.iter().filter(|fact| matches!(***fact, Fact::ModelStarted { .. })).count();
        assert!(announced >= asked, "model call {asked} begins, and {announced} are recorded");
    }

    /// A call begins: that is recorded, and no end of it is.
    async fn a_call_begins(&self, cx: &ToolContext) {
        self.called.fetch_add(1, Ordering::SeqCst);
        let (mut began, mut ended) = (0, 0);
        for fact in self.facts().await {
            match &*fact {
                Fact::CallStarted { call_id, .. } if call_id == cx.call_id() => began += 1,
                Fact::CallEnded { report, .. } if report.call_id == *cx.call_id() => ended += 1,
                _ => {}
            }
        }
        assert_eq!((began, ended), (1, 0), "call {}", cx.call_id());
    }

    fn model(&self, script: impl IntoIterator<Item = Reply>) -> WatchedModel {
        WatchedModel(Arc::new(ScriptedModel::new(Script::of(script))), self.clone())
    }

    /// A tool that looks before it does anything.
    fn tool(&self, name: &str) -> FnTool {
        let watch = self.clone();
        from_fn(name, "works", move |cx: ToolContext, (): ()| {
            let watch = watch.clone();
            async move {
                watch.a_call_begins(&cx).await;
                Ok("ok")
            }
        })
    }

    /// An agent with a tool of this effect.
    fn agent(&self, script: impl IntoIterator<Item = Reply>, effect: EffectClass) -> AgentBuilder {
        let work = self.tool("work");
        Agent::builder(self.model(script))
            .approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend))
            .tool(work.with(|spec| spec.effect(effect)))
    }
}

/// A model that looks before it says anything.
struct WatchedModel(Arc<ScriptedModel>, Watch);

struct WatchedConversation(Box<dyn Conversation>, Watch);

impl Model for WatchedModel {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn open(&self, spec: ModelSpec) -> Box<dyn Conversation> {
        Box::new(WatchedConversation(self.0.open(spec), self.1.clone()))
    }
}

impl Conversation for WatchedConversation {
    fn stream(&mut self, history: &History) -> DeltaStream {
        let (inner, watch) = (self.0.stream(history), self.1.clone());
        async move {
            watch.a_model_is_asked().await;
            inner
        }
        .flatten_stream()
        .boxed()
    }
}

/// A turn of this agent, to its end. Returns how many calls it had.
async fn turn(agent: impl FnOnce(&Watch) -> Agent) -> usize {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let watch = Watch { store: Arc::clone(&store), asked: Arc::default(), called: Arc::default() };
    let session = open_here(chat(agent(&watch)), &store).await.unwrap();
    let outcome = session.push("go".to_owned()).unwrap().outcome().await;
    if let ItemOutcome::Suspended(_) = outcome {
        let asked = store.approvals(&"s".into()).await.unwrap();
        let open = asked.iter().find(|row| row.state == ApprovalState::Open).unwrap();
        session.decide(&open.asked.id, Decision::Approve).await.unwrap();
        seen(&session, |event| {
            matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. })
        })
        .await;
    } else {
        assert!(matches!(outcome, ItemOutcome::Completed(_)), "{outcome:?}");
    }
    watch.called.load(Ordering::SeqCst)
}

fn one() -> [Reply; 2] {
    [Reply::call("work", json!({})), Reply::text("done")]
}

fn three() -> [Reply; 2] {
    let calls = Reply::call("work", json!({})).and_call("work", json!({})).and_call("work", json!({}));
    [calls, Reply::text("done")]
}

/// S7.1: whatever begins, the record of its start is there before: model calls and calls of tools, one at a time and side by
/// side, more than may run at once, after a question, of a child, and where a window is measured between them.
#[tokio::test]
async fn nothing_begins_before_its_record_is_there() {
    for effect in [EffectClass::ReadOnly, EffectClass::Idempotent, EffectClass::Keyed, EffectClass::Unsafe] {
        assert_eq!(turn(|watch| watch.agent(one(), effect).build()).await, 1);
        assert_eq!(turn(|watch| watch.agent(three(), effect).build()).await, 3);
        let narrow = Limits::default().with_parallel_calls(2);
        assert_eq!(turn(|watch| watch.agent(three(), effect).limits(narrow).build()).await, 3);
        let measured = Window::of(100_000);
        assert_eq!(turn(|watch| watch.agent(three(), effect).window(measured).build()).await, 3);
        let twice = [Reply::call("work", json!({})), Reply::call("work", json!({})), Reply::text("done")];
        assert_eq!(turn(|watch| watch.agent(twice, effect).build()).await, 2);
        let asked = |watch: &Watch| {
            let needs = watch.tool("sign");
            let needs = needs.with(|spec| spec.effect(effect).approval(ToolApproval::Required));
            let script = [Reply::call("work", json!({})).and_call("sign", json!({})), Reply::text("done")];
            watch.agent(script, effect).tool(needs).build()
        };
        assert_eq!(turn(asked).await, 2);
        let nested = |watch: &Watch| {
            let child = watch.agent(three(), effect).build().as_subagent("helper", "helps");
            let script = [
                Reply::call("helper", json!({"task": "help"})).and_call("work", json!({})),
                Reply::text("done"),
            ];
            watch.agent(script, effect).child(child).build()
        };
        assert_eq!(turn(nested).await, 4);
    }
}

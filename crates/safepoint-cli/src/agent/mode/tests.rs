//! Plan mode against a model that tries everything.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use safepoint::{
    Agent, Receipt, Tool,
    approval::Decision,
    receipt::CallStatus,
    tool::{EffectClass, from_fn},
};
use safepoint_testkit::{
    script::{Reply, Script},
    scripted::ScriptedModel,
};
use serde_json::json;

use super::*;
use crate::{
    agent::{
        current::{Asking, Making, build},
        helpers::Helpers,
    },
    args::{agent::Approve, chat::ChatArgs},
    settings::{AgentSettings, config::Config, project_files::AgentFile},
};

/// Tools that count how often something was changed, and one that chooses plan mode.
struct World {
    settings: AgentSettings,
    mode: CurrentMode,
    changes: Arc<AtomicUsize>,
    tools: Vec<Arc<dyn Tool>>,
}

impl World {
    fn new(mode: WorkMode, approve: Approve) -> Self {
        let mut args = ChatArgs::usual().agent;
        args.approve = Some(approve);
        let settings = Config::default().fill(args);
        let current = CurrentMode::of(&settings.args, PlanEnd::Question);
        current.set(mode);
        let changes = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&changes);
        let change = from_fn("change", "Changes something", move |_cx, (): ()| {
            // Relaxed: it orders nothing else.
            counted.fetch_add(1, Ordering::Relaxed);
            async { Ok("changed") }
        });
        let to_plan = current.clone();
        let flip = from_fn("flip", "The user presses Shift-Tab", move |_cx, (): ()| {
            to_plan.set(WorkMode::Plan);
            async { Ok("flipped") }
        });
        let flip = flip.with(|spec| spec.effect(EffectClass::ReadOnly));
        Self { settings, mode: current, changes, tools: vec![Arc::new(change), Arc::new(flip)] }
    }

    async fn agent(&self, model: &ScriptedModel, asking: Asking) -> Agent {
        let Self { settings, mode, tools, .. } = self;
        let helpers = Helpers::of(settings, tools, |note| panic!("{note}")).await;
        let making = Making { settings, asking: &asking, mode, helpers: &helpers };
        build(Agent::builder(model.clone()), tools, &making).unwrap()
    }

    fn changes(&self) -> usize {
        self.changes.load(Ordering::Relaxed)
    }
}

fn model(replies: impl IntoIterator<Item = Reply>) -> ScriptedModel {
    ScriptedModel::new(Script::of(replies))
}

fn status(receipt: &Receipt, tool: &str) -> Vec<CallStatus> {
    receipt.calls.iter().filter(|call| call.name == tool).map(|call| call.status).collect()
}

/// S8.23
#[tokio::test]
async fn in_plan_mode_no_call_that_changes_something_begins_though_all_is_allowed() {
    let world = World::new(WorkMode::Plan, Approve::Auto);
    let model = model([Reply::call("change", json!({})), Reply::text("so be it")]);
    let outcome = world.agent(&model, Asking::NotAsked).await.run("go").await;
    assert_eq!((outcome.answer(), world.changes()), (Some("so be it"), 0));
    let world = World::new(WorkMode::Ask, Approve::Auto);
    let model = self::model([Reply::call("change", json!({})), Reply::text("done")]);
    let outcome = world.agent(&model, Asking::NotAsked).await.run("go").await;
    assert_eq!((outcome.answer(), world.changes()), (Some("done"), 1), "the same runs in another mode");
}

/// S8.23: the tools of a turn that began in another mode are held back from the next call on.
#[tokio::test]
async fn plan_mode_holds_from_the_next_call_on() {
    let world = World::new(WorkMode::Auto, Approve::Auto);
    let model = model([
        Reply::call("change", json!({})),
        Reply::call("flip", json!({})),
        Reply::call("change", json!({})),
        Reply::text("no more"),
    ]);
    let outcome = world.agent(&model, Asking::NotAsked).await.run("go").await;
    assert_eq!(world.changes(), 1);
    assert_eq!(status(outcome.receipt(), "change"), [CallStatus::Completed, CallStatus::Denied]);
}

/// S8.23: a yes that is given in plan mode to a question from before runs nothing, and the question is not answered by the mode.
#[tokio::test]
async fn a_yes_from_before_runs_nothing_in_plan_mode() {
    let world = World::new(WorkMode::Ask, Approve::Ask);
    let model = model([Reply::call("change", json!({})), Reply::text("no")]);
    let run = world.agent(&model, Asking::OnScreen).await.run("go").detach();
    let mut events = run.events();
    while let Some(event) = events.next().await {
        if let Some(asked) = event.approval_asked() {
            world.mode.set(WorkMode::Plan);
            assert_eq!(run.approvals().len(), 1, "it is open as before");
            run.decide(&asked.id, Decision::Approve).await.unwrap();
        }
    }
    let outcome = run.done().await;
    assert_eq!((outcome.answer(), world.changes()), (Some("no"), 0));
}

/// S8.23: an agent that does a part of the work is in the mode of the conversation, also where that changes in the turn.
#[tokio::test]
async fn a_sub_agent_changes_nothing_in_plan_mode() {
    for (mode, flips, changes) in
        [(WorkMode::Auto, false, 1), (WorkMode::Plan, false, 0), (WorkMode::Auto, true, 0)]
    {
        let mut world = World::new(mode, Approve::Auto);
        let (name, description) = ("helper".to_owned(), "Helps".to_owned());
        let helper = AgentFile { name, description, tools: None, model: None, instructions: "Help.".into() };
        world.settings.project.agents.push(helper);
        let flip = flips.then(|| Reply::call("flip", json!({})));
        let model = model(flip.into_iter().chain([
            Reply::call("helper", json!({"task": "change it"})),
            Reply::call("change", json!({})),
            Reply::text("the helper is done"),
            Reply::text("done"),
        ]));
        let outcome = world.agent(&model, Asking::NotAsked).await.run("go").await;
        assert_eq!((outcome.answer(), world.changes()), (Some("done"), changes), "{mode:?} {flips}");
    }
}

/// S8.23: what could change something is not offered, and the plan is asked for.
#[tokio::test]
async fn in_plan_mode_only_tools_that_read_are_offered() {
    let names = |tools: &[Arc<dyn Tool>]| -> Vec<String> {
        tools.iter().map(|tool| tool.spec().name.clone()).collect()
    };
    let world = World::new(WorkMode::Plan, Approve::Ask);
    assert_eq!(names(&world.mode.offered(&world.tools)), ["flip", PRESENT_PLAN]);
    assert!(world.mode.instructions().unwrap().contains(PRESENT_PLAN));
    world.mode.set(WorkMode::Ask);
    assert_eq!(names(&world.mode.offered(&world.tools)), ["change", "flip"]);
    assert_eq!(world.mode.instructions(), None);
    let run = CurrentMode { plan_end: PlanEnd::Answer, ..world.mode.clone() };
    run.set(WorkMode::Plan);
    assert_eq!(names(&run.offered(&world.tools)), ["flip"], "the answer is the plan");
    assert!(!run.instructions().unwrap().contains(PRESENT_PLAN));
}

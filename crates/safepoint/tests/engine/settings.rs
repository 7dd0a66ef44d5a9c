//! What belongs to one run: its context, and instructions, tools, limits and model in place of its agent's.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};

use safepoint::{
    Agent, AgentBuilder, History, Limits, Model, Outcome, SafePoints, StopRequest, Tool,
    agent::RunSetup,
    approval::{ApprovalMode, Decision, ToolApproval, WithoutApprover},
    message::ResultStatus,
    model::{Conversation, DeltaStream, ModelError, ModelErrorKind, ModelSpec, Parameter, Parameters},
    outcome::ErrorKind,
    raw::remote::RemoteSpec,
    receipt::{Ending, SideEffect},
    secret::Secrets,
    state::RunState,
    stop::Failure,
    tool::{self, FnTool, Tools},
    usage::Price,
};
use serde_json::json;

use crate::elsewhere::Elsewhere;
use crate::tools::results;
use crate::world::{Reply, Scripted, agent, ask, ask_with, does, say};

/// Instructions, and the names of tools.
type Begun = (Option<String>, Vec<String>);

/// A model that keeps what its conversations were opened with.
#[derive(Clone)]
struct Seeing(Scripted, Arc<Mutex<Vec<Begun>>>);

impl Model for Seeing {
    fn name(&self) -> &str {
        "seeing"
    }
    fn open(&self, spec: ModelSpec) -> Box<dyn Conversation> {
        let tools = spec.tools.iter().map(|tool| tool.name.clone()).collect();
        self.1.lock().unwrap().push((spec.system.as_deref().map(str::to_owned), tools));
        Box::new(self.clone())
    }
}

impl Conversation for Seeing {
    fn stream(&mut self, history: &History) -> DeltaStream {
        self.0.stream(history)
    }
}

impl Seeing {
    fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self(Scripted::new(replies), Arc::default())
    }

    /// With what the newest conversation began.
    fn last(&self) -> Begun {
        self.1.lock().unwrap().last().cloned().unwrap()
    }
}

#[derive(Clone)]
struct User(&'static str);

/// Says who asks.
#[safepoint::tool(effect = "read_only")]
async fn who(#[context] user: &User) -> &'static str {
    user.0
}

/// Does nothing, under this name.
fn named(name: &str) -> FnTool {
    does(name, |_| async { Ok("done".into()) })
}

/// The texts of the newest calls' results.
fn texts(outcome: &Outcome) -> Vec<String> {
    results(outcome).iter().map(|result| result.text.to_string()).collect()
}

fn asks_who() -> AgentBuilder {
    agent([ask(&["who"]), say("ok")]).tool(who)
}

/// S4.19: a tool finds what its run was given, else what its agent has; of another run it sees nothing.
#[tokio::test]
async fn a_tool_finds_what_its_run_was_given() {
    assert_eq!(texts(&asks_who().build().run("go").with(User("Ana")).await), ["Ana"]);
    assert_eq!(texts(&asks_who().with(User("anyone")).build().run("go").await), ["anyone"]);
    let both = asks_who().with(User("anyone")).build();
    assert_eq!(texts(&both.run("go").with(User("Bo")).with(User("Ana")).await), ["Ana"]);
    let twice = agent([ask(&["who"]), say("ok"), ask(&["who"]), say("ok")]).tool(who).build();
    assert_eq!(texts(&twice.run("go").with(User("Ana")).await), ["Ana"]);
    assert!(texts(&twice.run("go").await)[0].starts_with("error: "));
}

/// S4.19: where there is no such value the call fails without effect, and its text says which type, and what to do.
#[tokio::test]
async fn a_value_that_is_missing_is_named() {
    let unsafe_one =
        tool::from_fn("who", "Says who asks", |cx, (): ()| async move { Ok(cx.get::<User>()?.0) });
    let outcome = agent([ask(&["who"]), say("ok")]).tool(unsafe_one).build().run("go").with(7_u8).await;
    let result = &results(&outcome)[0];
    assert_eq!((result.verdict, outcome.receipt().calls[0].effect), (ResultStatus::Error, SideEffect::None));
    for part in [
        "the run's context has no `engine::settings::User`",
        "agent.run(..).with(value)",
        "Agent::builder(..).with(value)",
    ] {
        assert!(result.text.contains(part), "{}", result.text);
    }
}

/// S4.19: child runs at any depth have the context of the runs above; what their own agent has wins over agents above it, and
/// what the run was given wins over all.
#[tokio::test]
async fn child_runs_have_the_context_of_the_run_above() {
    async fn leaf_says(middle_has: Option<User>, root_has: Option<User>, given: Option<User>) -> String {
        let said = Arc::new(Mutex::new(String::new()));
        let leaf = agent([ask(&["who"]), say("leaf")]).tool(tool::from_fn_with_state(
            Arc::clone(&said),
            "who",
            "Says who asks",
            |cx, said, (): ()| async move {
                let user = cx.get::<User>()?.0;
                user.clone_into(&mut said.lock().unwrap());
                Ok(user)
            },
        ));
        let leaf = leaf.build().as_subagent("leaf", "works");
        let mut middle = agent([ask_with(&[("leaf", json!({"task": "go"}))]), say("middle")]).child(leaf);
        if let Some(user) = middle_has {
            middle = middle.with(user);
        }
        let middle = middle.build().as_subagent("middle", "works");
        let mut root = agent([ask_with(&[("middle", json!({"task": "go"}))]), say("root")]).child(middle);
        if let Some(user) = root_has {
            root = root.with(user);
        }
        let mut run = root.build().run("go");
        if let Some(user) = given {
            run = run.with(user);
        }
        assert_eq!(run.await.answer(), Some("root"));
        said.lock().unwrap().clone()
    }
    let [root, middle, given] = ["root", "middle", "given"].map(User);
    assert_eq!(leaf_says(None, Some(root.clone()), None).await, "root");
    assert_eq!(leaf_says(Some(middle.clone()), Some(root.clone()), None).await, "middle");
    assert_eq!(leaf_says(Some(middle), Some(root), Some(given)).await, "given");
}

/// S4.20: a run's own instructions, tools and model are that run's alone.
#[tokio::test]
async fn the_settings_of_a_run_are_its_own() {
    let (first, other) = (Seeing::new([say("a"), say("b")]), Seeing::new([say("c")]));
    let agent = Agent::builder(first.clone()).system("the agent's").tool(named("one")).build();
    let own = agent.run("go").system("its own").tool(named("two")).tools(Tools::new().tool(named("three")));
    assert_eq!(own.await.answer(), Some("a"));
    assert_eq!(first.last(), (Some("its own".into()), ["one", "two", "three"].map(String::from).into()));
    assert_eq!(agent.run("go").await.answer(), Some("b"));
    assert_eq!(first.last(), (Some("the agent's".into()), vec!["one".into()]));
    assert_eq!(agent.run("go").model(other.clone()).await.answer(), Some("c"));
    assert_eq!(other.last(), (Some("the agent's".into()), vec!["one".into()]));
}

/// S4.20, S12.1, S12.8: a run's own limits hold, at once and over its attempts; a resume may have others.
#[tokio::test]
async fn the_limits_of_a_run_are_its_own() {
    let agent = agent([ask(&["one"]), ask(&["one"]), say("ok")]).tool(named("one")).build();
    let limits = |most| Limits::default().with_max_rounds(most);
    let stopped = agent.run("go").limits(limits(1)).await;
    let Outcome::Stopped(_) = &stopped else { panic!("{stopped:?}") };
    assert_eq!(stopped.receipt().stop.as_ref().map(|stop| stop.reason.code.as_str()), Some("max_rounds"));
    // It has its limit again.
    assert_eq!(agent.resume(&stopped).await.ending(), Ending::Stopped);
    assert_eq!(agent.resume(&stopped).limits(limits(9)).await.answer(), Some("ok"));
}

/// S4.20, S9.2, S12.1: the depth that a run's own limits allow holds for its child runs.
#[tokio::test]
async fn the_depth_of_a_run_is_its_own() {
    let child = agent([say("child")]).build().as_subagent("child", "works");
    let agent = agent([ask_with(&[("child", json!({"task": "go"}))]), say("ok")]).child(child).build();
    let outcome = agent.run("go").limits(Limits::default().with_max_depth(0)).await;
    assert_eq!(results(&outcome)[0].verdict, ResultStatus::Error, "{outcome:?}");
}

/// S4.20: settings that cannot be used fail the run before anything is sent, and nothing is lost.
#[tokio::test]
async fn a_run_whose_settings_cannot_be_used_sends_nothing() {
    let model = Seeing::new([say("ok")]);
    let agent = Agent::builder(model).tool(named("one")).build();
    let none = Limits::default().with_parallel_calls(0);
    let runs = [
        (agent.run("go").tool(named("one")), "two tools are named `one`"),
        (agent.run("go").tool(named("no name")), "a tool cannot be named `no name`"),
        (
            agent.run("go").limits(none),
            "the settings of the run cannot be used: of the limits, `parallel_calls` is 0",
        ),
    ];
    for (run, why) in runs {
        let outcome = run.await;
        let Outcome::Failed(error) = &outcome else { panic!("{outcome:?}") };
        assert_eq!((error.code(), error.kind()), ("setup", ErrorKind::InvalidRequest));
        assert!(error.to_string().starts_with(why), "{error}");
        assert!(outcome.receipt().model.is_none() && outcome.history().entries().len() == 1);
    }
    assert_eq!(agent.run("go").await.answer(), Some("ok"));
}

/// A model that has no form for a seed, and keeps the parameters that its conversations were opened with.
#[derive(Clone)]
struct Tuned(Scripted, Arc<Mutex<Option<Parameters>>>);

impl Model for Tuned {
    fn name(&self) -> &str {
        "tuned"
    }
    fn open(&self, spec: ModelSpec) -> Box<dyn Conversation> {
        *self.1.lock().unwrap() = spec.parameters.map(Arc::unwrap_or_clone);
        self.0.open(ModelSpec::default())
    }
    fn check(&self, parameters: &Parameters) -> Result<(), ModelError> {
        let has_seed = parameters.iter().any(|it| matches!(it, Parameter::Seed(_)));
        let refusal = || ModelError::new(ModelErrorKind::Refused, "`seed` has no form here");
        if has_seed { Err(refusal()) } else { Ok(()) }
    }
}

/// S4.20, S12.40: a run's own parameters stand over its agent's. Those that no model, or not its model, takes fail it before
/// anything is sent, and so do those of the agent that the run's own model does not take.
#[tokio::test]
async fn the_parameters_of_a_run_are_its_own() {
    let model = Tuned(Scripted::new([say("ok"), say("ok")]), Arc::default());
    let shared = Parameters::new().temperature(0.5).max_tokens(9);
    let agent = Agent::builder(model.clone()).parameters(shared.clone()).build();
    let exact = Parameters::new().temperature(0.0).extra("user", "ann");
    assert_eq!(agent.run("go").parameters(exact.clone()).await.answer(), Some("ok"));
    assert_eq!(*model.1.lock().unwrap(), Some(shared.with(&exact)));
    assert_eq!(agent.run("go").await.answer(), Some("ok"));
    assert_eq!(*model.1.lock().unwrap(), Some(shared));
    let runs = [
        (agent.run("go").parameters(Parameters::new().top_p(2.0)), "of the parameters, `top_p`"),
        (agent.run("go").parameters(Parameters::new().seed(1)), "`seed` has no form here"),
        (agent.run("go").model(Scripted::new([say("no")])), "takes no parameters"),
    ];
    for (run, why) in runs {
        let outcome = run.await;
        let Outcome::Failed(error) = &outcome else { panic!("{outcome:?}") };
        assert_eq!(error.code(), "setup");
        assert!(error.to_string().contains(why) && outcome.receipt().model.is_none(), "{error}");
    }
}

/// S4.20, S3.12: the price of the agent's model is not that of the run's own model. A limit on the cost cannot hold without
/// one, so the run fails and sends nothing.
#[tokio::test]
async fn the_model_of_a_run_has_its_own_price() {
    let price = Price::new(1.0, 1.0, 1.0);
    let agent = agent([say("ok")]).price(price).build();
    let other = || Scripted::new([say("ok")]);
    assert!(agent.run("go").await.cost().is_some());
    assert_eq!(agent.run("go").model(other()).await.cost(), None);
    assert!(agent.run("go").model(other()).price(price).await.cost().is_some());
    let limits = Limits::default().with_max_cost(1.0);
    let limited = agent.run("go").model(other()).limits(limits.clone()).await;
    let Outcome::Failed(error) = &limited else { panic!("{limited:?}") };
    assert_eq!(error.code(), "setup");
    assert!(error.to_string().contains("`max_cost`") && error.hint().is_some(), "{error}");
    assert!(limited.receipt().model.is_none());
    let priced = agent.run("go").model(other()).price(price).limits(limits).await;
    assert_eq!(priced.answer(), Some("ok"), "{priced:?}");
}

/// S4.20, S7.18, S8.8: the value of a run is that of its agent. The resume gets the run's tool again, and what was approved
/// runs; without the tool, or with another one of that name, it does not.
#[tokio::test]
async fn the_value_of_a_run_is_that_of_its_agent() {
    fn pays(text: &'static str) -> FnTool {
        does("pay", move |_| async move { Ok(text.to_owned()) })
            .with(|spec| spec.approval(ToolApproval::Required))
    }
    let build = |replies: Vec<Reply>| {
        agent(replies).approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend)).build()
    };
    let first = build(vec![ask(&["pay"])]).run("go").system("its own").tool(pays("paid")).await;
    assert_eq!(first.ending(), Ending::Suspended, "{first:?}");
    let bytes = first.state().await.unwrap().to_bytes();
    let resumed = async |tool: Option<FnTool>| {
        let state = RunState::from_bytes(&bytes).unwrap();
        let id = state.approvals()[0].id.clone();
        let state = state.with_decision(id, Decision::Approve);
        let claimed = build(vec![say("ok")]).resume_state(state, |_, _| async { Ok(true) }).await;
        claimed.unwrap().tools(tool.map(|tool| Arc::new(tool) as Arc<dyn Tool>)).await
    };
    let outcome = resumed(Some(pays("paid"))).await;
    assert_eq!((outcome.answer(), texts(&outcome)), (Some("ok"), vec!["paid".to_owned()]));
    let without = resumed(None).await;
    assert_eq!(texts(&without), ["error: there is no tool `pay`; this agent has no tools."]);
    let other = resumed(Some(pays("paid").with(|spec| spec.place("elsewhere")))).await;
    assert_eq!(other.ending(), Ending::Suspended, "{other:?}");
}

/// S4.20, S5.3: a resume has what the run had, and what it is given replaces that.
#[tokio::test]
async fn a_resume_has_the_settings_of_the_run() {
    let model = Seeing::new([ask(&["mine"])]);
    let agent = Agent::builder(model.clone()).build();
    let fails = does("mine", |cx| async move {
        cx.stop_run(StopRequest::now());
        Ok(cx.get::<User>()?.0.to_owned())
    });
    let run = agent.run("go").system("its own").with(User("Ana")).tool(fails);
    let stopped = run.await;
    assert_eq!(stopped.ending(), Ending::Stopped, "{stopped:?}");
    *model.0.0.lock().unwrap() = vec![ask(&["mine"]), say("ok"), ask(&["mine"]), say("ok")];
    let gentle = || does("mine", |cx| async move { Ok(cx.get::<User>()?.0.to_owned()) });
    let resumed = agent.resume(&stopped).tool(gentle()).await;
    assert_eq!((resumed.answer(), texts(&resumed)), (Some("ok"), vec!["Ana".to_owned()]));
    assert_eq!(model.last(), (Some("its own".into()), vec!["mine".into()]));
    let other = agent.run_on(resumed.history().clone(), "more").await;
    assert_eq!(texts(&other), ["error: there is no tool `mine`; this agent has no tools."]);
}

/// S4.20, S4.21, S5.3: a call that an attempt left open, and whose tool the next attempt has not, fails; nothing runs for it.
#[tokio::test]
async fn a_call_whose_tool_is_gone_fails() {
    let ran = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&ran);
    let model = Scripted::new([ask(&["halts", "one"]), say("ok")]);
    let halts = does("halts", |cx| async move {
        cx.stop_run(StopRequest::at(SafePoints::AFTER_STARTED_CALLS));
        Ok("halted".into())
    });
    let agent = Agent::builder(model)
        .approvals(ApprovalMode::Auto)
        .tool(halts)
        .tools_with(move |cx| {
            let count = Arc::clone(&count);
            let one = does("one", move |_| {
                let count = Arc::clone(&count);
                async move { Ok(count.fetch_add(1, Ordering::SeqCst).to_string()) }
            });
            Ok(if cx.get::<User>()?.0 == "Ana" { Tools::new().tool(one) } else { Tools::new() })
        })
        .build();
    let stopped = agent.run("go").with(User("Ana")).await;
    assert_eq!((stopped.ending(), ran.load(Ordering::SeqCst)), (Ending::Stopped, 0), "{stopped:?}");
    let outcome = agent.resume(&stopped).with(User("Bo")).await;
    assert_eq!(outcome.answer(), Some("ok"), "{outcome:?}");
    assert_eq!(texts(&outcome), ["halted", "error: there is no tool `one`. There are: halts."]);
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

/// S4.19, S9.1: a background run has the context too, also after the run above it has settled.
#[tokio::test]
async fn a_background_run_has_the_context() {
    let (said, says) = tokio::sync::oneshot::channel();
    let said = Mutex::new(Some(said));
    let leaf = agent([ask(&["who"]), say("leaf")]).tool(tool::from_fn_with_state(
        said,
        "who",
        "Says who asks",
        |cx, said, (): ()| async move {
            let sender = said.lock().unwrap().take().ok_or("it was said")?;
            sender.send(cx.get::<User>()?.0).map_err(|_unheard| "no one listens")?;
            Ok("said")
        },
    ));
    let leaf = leaf.build().as_subagent("leaf", "works").background();
    let root = agent([ask_with(&[("leaf", json!({"task": "go"}))]), say("ok")]).child(leaf).build();
    let handle = root.run("go").with(User("Ana")).detach();
    assert_eq!(says.await, Ok("Ana"));
    assert_eq!(handle.done().await.answer(), Some("ok"));
}

/// S4.20: a remote agent has its own model, so a run of it can have no other.
#[tokio::test]
async fn a_run_of_a_remote_agent_has_no_other_model() {
    let agent = Agent::remote(Elsewhere(RemoteSpec::new("there", "works", "test:there"))).build();
    let outcome = agent.run("go").model(Scripted::new([say("no")])).await;
    let Outcome::Failed(error) = &outcome else { panic!("{outcome:?}") };
    assert_eq!((error.code(), error.to_string().as_str()), ("setup", "a remote agent has its own model"));
    assert!(error.hint().is_some() && outcome.receipt().calls.is_empty());
}

/// S4.20, S8.10: a run's own model and tools tell none of the agent's secrets.
#[tokio::test]
async fn the_settings_of_a_run_tell_no_secret() {
    let secrets = Secrets::of([("key".to_owned(), "hunter2hunter2".to_owned())]);
    let agent = agent([]).secrets(secrets).build();
    let leaks = does("leaks", |_| async { Ok("it is hunter2hunter2".into()) });
    let model = Scripted::new([ask(&["leaks"]), say("hunter2hunter2!")]);
    let outcome = agent.run("go").model(model).tool(leaks).await;
    assert_eq!(
        (outcome.answer(), texts(&outcome)),
        (Some("[secret key]!"), vec!["it is [secret key]".to_owned()])
    );
}

/// S4.20: the tools of a run whose answer has a type stand beside the one that it answers with.
#[tokio::test]
async fn the_settings_of_a_typed_run_stand_beside_its_answer() {
    let model = Seeing::new([ask_with(&[("final_answer", json!({"answer": 3}))])]);
    let agent = Agent::builder(model.clone()).build();
    let outcome = agent.run_typed::<u8>("go").tool(named("one")).system("count").await;
    assert_eq!(outcome.into_value(), Some(3));
    assert_eq!(model.last(), (Some("count".into()), vec!["final_answer".into(), "one".into()]));
}

/// S4.21: instructions and tools that an agent makes are made once for each attempt, from the run's context.
#[tokio::test]
async fn instructions_and_tools_are_made_for_each_attempt() {
    let made = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&made);
    let model = Seeing::new([ask(&["one"]), say("ok"), say("ok"), say("ok")]);
    let agent = Agent::builder(model.clone())
        .system("Be brief.")
        .system_with(|cx| Ok(format!("You talk to {}.", cx.get::<User>()?.0)))
        .system_with(move |_| Ok(format!("{}", count.fetch_add(1, Ordering::SeqCst))))
        .tools_with(|cx| {
            Ok(if cx.get::<User>()?.0 == "Ana" { Tools::new().tool(named("one")) } else { Tools::new() })
        })
        .build();
    let outcome = agent.run("go").with(User("Ana")).await;
    assert_eq!((outcome.answer(), texts(&outcome)), (Some("ok"), vec!["done".to_owned()]));
    assert_eq!(model.last(), (Some("Be brief.\n\nYou talk to Ana.\n\n0".into()), vec!["one".into()]));
    assert_eq!(agent.run("go").with(User("Bo")).await.answer(), Some("ok"));
    assert_eq!(model.last(), (Some("Be brief.\n\nYou talk to Bo.\n\n1".into()), vec![]));
    assert_eq!(agent.run("go").with(User("Bo")).system("Only this.").await.answer(), Some("ok"));
    assert_eq!((model.last().0.as_deref(), made.load(Ordering::SeqCst)), (Some("Only this."), 2));
}

/// S4.21, S2.16: what fails or panics as it is made fails the run, and nothing is sent.
#[tokio::test]
async fn what_cannot_be_made_fails_the_run() {
    async fn fails(
        make: impl Fn(&RunSetup) -> Result<String, Failure> + Send + Sync + 'static,
    ) -> (String, ErrorKind, String) {
        let outcome = agent([say("no")]).system_with(make).build().run("go").await;
        let Outcome::Failed(error) = &outcome else { panic!("{outcome:?}") };
        assert!(outcome.receipt().model.is_none());
        (error.code().to_owned(), error.kind(), error.to_string())
    }
    let (code, kind, text) = fails(|cx| Ok(cx.get::<User>()?.0.to_owned())).await;
    assert_eq!((code.as_str(), kind), ("setup", ErrorKind::Callback));
    assert!(text.contains("the run's instructions cannot be made"), "{text}");
    let (code, kind, text) = fails(|_| panic!("oh")).await;
    assert_eq!((code.as_str(), kind), ("callback", ErrorKind::Callback));
    assert_eq!(text, "what makes the run's instructions panicked: oh");
}

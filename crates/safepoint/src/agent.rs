//! The definition of an agent, and how its runs begin.

use std::{error::Error as StdError, fmt, sync::Arc};

use crate::{
    contract::{
        approver::{ApprovalMode, Rule},
        hook::Hooks,
        log::{Log, MemoryLog},
        model::{self, Model, ModelSpec, OnModelStop},
        remote::{Remote, RemoteSpec},
        tool::Tool,
    },
    definition::{
        AnswerOf, Definition, OnRestart,
        child::Subagent,
        observe::StopTimes,
        secret::{Cleaned, Secrets},
        toolset::{Callable, Toolset},
        window::{Window, WindowMeter},
    },
    external::{
        backend::{Backend, BackendSpec, RunInput},
        remote::{RemoteModel, RemoteTool},
    },
    run::{Run, RunHandle, attempt::AttemptLock, driver::Start, outcome::Outcome, shared::Place},
    sync::callback::Foreign,
    value::{
        approval::{Decision, OnUnknownEffect},
        history::History,
        ids::{ApprovalId, Path, RunId},
        limits::Limits,
        message::UserMessage,
        receipt::StopSupport,
        usage::Price,
    },
};

pub mod typed;

/// A definition: model, instructions, tools, limits. Its runs share nothing but this (S1.8). Cheap to clone.
///
/// ```no_run
/// # use safepoint::{Agent, Model, Outcome, StopRequest, Reason, secs};
/// # async fn hello(model: impl Model) {
/// let agent = Agent::builder(model).system("You are brief.").build();
/// let run = agent.run("What changed in this repository last week?");
/// let handle = run.handle();
/// tokio::spawn(async move {
///     tokio::signal::ctrl_c().await.ok();
///     handle.stop(StopRequest::graceful(secs(5)).with_reason(Reason::user("ctrl-c")));
/// });
/// match run.await {
///     Outcome::Done(answer) => println!("{answer}"),
///     Outcome::Stopped(receipt) => println!("{receipt}"),
///     other => println!("{:?}", other.ending()),
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct Agent {
    pub(crate) def: Arc<Definition>,
}

impl Agent {
    /// This agent as a tool of another, under the name that the model uses: an attached child run. Its calls may overlap with
    /// others.
    pub fn as_subagent(&self, name: impl Into<String>, description: impl Into<String>) -> Subagent {
        Subagent::of(name, description, Arc::clone(&self.def))
    }

    /// Begins a definition around a model.
    pub fn builder(model: impl Model) -> AgentBuilder {
        AgentBuilder {
            model: Arc::new(model),
            system: None,
            tools: Vec::new(),
            limits: Limits::default(),
            price: None,
            on_cut: OnModelStop::default(),
            approvals: ApprovalMode::Ask(None, crate::contract::approver::WithoutApprover::Deny),
            on_unknown: OnUnknownEffect::Tell,
            on_restart: OnRestart::Wait,
            rules: Vec::new(),
            hooks: Vec::new(),
            window: None,
            grade: StopSupport::Hard,
            answer: AnswerOf::TheModel,
            secrets: Secrets::default(),
        }
    }

    /// Begins a definition of an agent that *is* a remote one: each message of a person is one call of it, and its
    /// answer is the run's. What the call comes to, also where it was stopped or is in doubt, is told as such.
    pub fn remote(remote: impl Remote) -> AgentBuilder {
        let remote: Arc<dyn Remote> = Arc::new(remote);
        let RemoteSpec { peer, name, grade, .. } = remote.spec().clone();
        let builder = Self::builder(RemoteModel::new(peer, name)).tool(RemoteTool::alone(remote));
        AgentBuilder { grade, answer: AnswerOf::TheCall, ..builder }
    }

    /// A run on one input. Nothing happens before it is awaited or [started](Run::start). A blank input is refused: the
    /// run fails with the code `input` before anything is sent (S5.1).
    pub fn run(&self, input: impl Into<UserMessage>) -> Run {
        self.run_on(History::new(), input)
    }

    /// A run on one input that goes on from a conversation: its open end is closed first (S5.3).
    pub fn run_on(&self, mut history: History, input: impl Into<UserMessage>) -> Run {
        history.close();
        let log: Arc<dyn Log> = Arc::new(MemoryLog::default());
        Run::new(Arc::clone(&self.def), Place::root(), log, Start::on(history, input.into()))
    }

    /// A run whose facts are recorded in `log`.
    pub fn run_recorded(
        &self,
        log: Arc<dyn Log>,
        mut history: History,
        input: impl Into<UserMessage>,
    ) -> Run {
        history.close();
        Run::new(Arc::clone(&self.def), Place::root(), log, Start::on(history, input.into()))
    }

    /// Takes a run up again where it ended: calls that never began run, those that may run twice run again, of the
    /// others the model is told that their effect is unknown (S5.3, S7.3). One attempt goes on at a time: while it does,
    /// another fails with the code `conflict` and does nothing (S7.4).
    pub fn resume(&self, outcome: &Outcome) -> Run {
        self.resume_with(outcome, Vec::new())
    }

    /// The same, with decisions for the approvals that a suspended run waits for.
    pub fn resume_with(&self, outcome: &Outcome, decisions: Vec<(ApprovalId, Decision)>) -> Run {
        let ended = outcome.ended();
        let (run, path) = (ended.receipt.run.clone(), ended.receipt.path.clone());
        let place = Place::of(run, path);
        Run::new(
            Arc::clone(&self.def),
            place,
            Arc::clone(&ended.log),
            Start::Resume(decisions, ended.desk.clone()),
        )
    }

    /// Takes a run up again from the log that remembers it, in whatever process.
    pub(crate) fn resume_recorded(
        &self,
        run: RunId,
        log: Arc<dyn Log>,
        decisions: Vec<(ApprovalId, Decision)>,
    ) -> Run {
        let place = Place::of(run, Path::default());
        Run::new(Arc::clone(&self.def), place, log, Start::Resume(decisions, AttemptLock::default()))
    }

    /// How long stops of this agent's runs took, by phase.
    #[must_use]
    pub fn stop_times(&self) -> &StopTimes {
        &self.def.times
    }
}

impl Backend for Agent {
    fn spec(&self) -> BackendSpec {
        BackendSpec { name: self.def.model.name().to_owned(), grade: self.def.grade }
    }

    fn start(&self, task: RunInput) -> RunHandle {
        self.run_on(task.history, task.input).detach()
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("model", &self.def.model.name()).finish_non_exhaustive()
    }
}

/// Builds an [`Agent`]. A clone builds another from the same description.
#[derive(Clone)]
#[must_use = "an agent is made by `build`"]
pub struct AgentBuilder {
    model: Arc<dyn Model>,
    system: Option<Arc<str>>,
    tools: Vec<Callable>,
    limits: Limits,
    price: Option<Price>,
    on_cut: OnModelStop,
    approvals: ApprovalMode,
    on_unknown: OnUnknownEffect,
    on_restart: OnRestart,
    rules: Vec<Rule>,
    hooks: Vec<Arc<dyn Hooks>>,
    window: Option<Window>,
    grade: StopSupport,
    answer: AnswerOf,
    secrets: Secrets,
}

impl AgentBuilder {
    /// Sets the instructions.
    pub fn system(mut self, text: impl Into<Arc<str>>) -> Self {
        self.system = Some(text.into());
        self
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(Callable::body(Arc::new(tool)));
        self
    }

    /// Adds tools.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools.into_iter().map(Callable::body));
        self
    }

    /// Adds an agent that this one can call like a tool: each call is a run of it, part of this run's tree (S9).
    pub fn child(mut self, child: Subagent) -> Self {
        self.tools.push(Callable::Child(Arc::new(child)));
        self
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the prices, without which `max_cost` has no meaning.
    pub fn price(mut self, price: Price) -> Self {
        self.price = Some(price);
        self
    }

    /// Sets what becomes of a model call that a stop cuts. Default: it is released.
    pub fn on_cut(mut self, on_cut: OnModelStop) -> Self {
        self.on_cut = on_cut;
        self
    }

    /// Sets who decides when a call needs approval. Default: ask, and deny when nobody can be asked.
    pub fn approvals(mut self, approvals: ApprovalMode) -> Self {
        self.approvals = approvals;
        self
    }

    /// Sets what becomes of unsafe calls that began and whose end is not known, when a run is taken up again. Default:
    /// the model is told (S7.3).
    pub fn on_unknown(mut self, on_unknown: OnUnknownEffect) -> Self {
        self.on_unknown = on_unknown;
        self
    }

    /// Sets what becomes of a turn that was cut by the end of its process and by nothing else, when its session is opened
    /// again. Default: it waits for somebody (S7.8).
    pub fn on_restart(mut self, on_restart: OnRestart) -> Self {
        self.on_restart = on_restart;
        self
    }

    /// Adds a rule on a tool and its arguments; the first that fits decides.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Sets the model's window, and what happens when a conversation outgrows it. Default: nothing is measured, and
    /// the provider refuses what it does not take.
    pub fn window(mut self, window: Window) -> Self {
        self.window = Some(window);
        self
    }

    /// Adds hooks. All that were added run: what decides something is asked one after the other, in this order, and a
    /// refusal ends it; what is only told something is told beside the others.
    pub fn hooks(mut self, hooks: impl Hooks) -> Self {
        self.hooks.push(Arc::new(hooks));
        self
    }

    /// Makes the agent.
    ///
    /// # Panics
    /// Where [`AgentBuilder::try_build`] gives an error.
    #[must_use]
    pub fn build(self) -> Agent {
        match self.try_build() {
            Ok(agent) => agent,
            Err(error) => panic!("{error}"),
        }
    }

    /// Names the secrets that the program knows. Where one stands in what a model, a tool or a peer says, its name takes its
    /// place before anything is done with it: it is in no record, no event and no later request. What people say to the
    /// agent is left as it is. Child runs have their own.
    pub fn secrets(mut self, secrets: Secrets) -> Self {
        self.secrets = secrets;
        self
    }

    /// Makes the agent.
    ///
    /// # Errors
    /// If a tool has a name that no provider takes, or that of another, a tool's schema is not a JSON Schema, the answer
    /// takes all of the window, or no run could work under one of the limits.
    pub fn try_build(self) -> Result<Agent, BuildError> {
        if let Some(flaw) = self.limits.flaw() {
            return Err(BuildError(format!("of the limits, {flaw}")));
        }
        let secrets = self.secrets;
        let (model, tools) = match secrets.is_empty() {
            true => (self.model, self.tools),
            false => {
                let model: Arc<dyn Model> = Arc::new(Cleaned::new(self.model, secrets.clone()));
                (model, self.tools.into_iter().map(|work| work.cleaned(&secrets)).collect())
            }
        };
        let tools = Toolset::new(tools).map_err(BuildError)?;
        let spec = ModelSpec { system: self.system.clone(), tools: tools.decls(), ..ModelSpec::default() };
        let gauge = match self.window {
            None => None,
            Some(window) => Some(WindowMeter::new(window, &spec).ok_or_else(no_room)?),
        };
        Ok(Agent {
            def: Arc::new(Definition {
                model: model::Guarded::new(model),
                system: self.system,
                tools,
                limits: Arc::new(self.limits),
                price: self.price,
                on_cut: self.on_cut,
                approvals: self.approvals,
                on_unknown: self.on_unknown,
                on_restart: self.on_restart,
                rules: self.rules,
                hooks: self.hooks.into_iter().map(Foreign::new).collect(),
                times: Arc::new(StopTimes::default()),
                gauge,
                form: None,
                grade: self.grade,
                answer: self.answer,
                secrets,
            }),
        })
    }
}

impl fmt::Debug for AgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentBuilder").field("model", &self.model.name()).finish_non_exhaustive()
    }
}

/// Why an agent cannot be made, and of which tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildError(String);

fn no_room() -> BuildError {
    BuildError("the window leaves no room: what is kept for the answer is all of it".into())
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for BuildError {}

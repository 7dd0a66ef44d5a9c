//! What makes an agent, and why one cannot be made.

use std::{fmt, sync::Arc};

use safepoint_scope::Failure;

use super::Agent;
use crate::{
    contract::{
        approver::{ApprovalMode, Rule},
        hook::{Hooks, NamedHooks},
        model::{self, Model, OnModelStop, Parameters, ProviderTool},
        setup::RunSetup,
        tool::{IntoTool, Tool, Tools},
    },
    definition::{
        Definition, OnRestart,
        secret::{Cleaned, Secrets},
        settings::SetupStep,
        subagent::Subagent,
        toolset::{Callable, Toolset},
        window::{Window, WindowMeter},
    },
    sync::callback::Foreign,
    value::{approval::OnUnknownEffect, limits::Limits, usage::Price},
};

/// Builds an [`Agent`]. A clone builds another from the same description.
#[derive(Clone)]
#[must_use = "an agent is made by `build`"]
pub struct AgentBuilder {
    pub(super) model: Arc<dyn Model>,
    pub(super) tools: Vec<Callable>,
    pub(super) window: Option<Window>,
    /// The rest of the agent, whose model, tools and window are made at the end.
    pub(super) def: Definition,
}

impl AgentBuilder {
    /// Sets the instructions.
    pub fn system(mut self, text: impl Into<Arc<str>>) -> Self {
        self.def.system = Some(text.into());
        self
    }

    /// Sets the parameters of its model's calls, over those of the model itself.
    ///
    /// ```
    /// # use safepoint::{Agent, Model};
    /// use safepoint::model::Parameters;
    /// # fn agent(model: impl Model) -> Result<Agent, safepoint::agent::BuildError> {
    /// Agent::builder(model).parameters(Parameters::new().temperature(0.2).max_tokens(2000)).try_build()
    /// # }
    /// ```
    pub fn parameters(mut self, parameters: Parameters) -> Self {
        self.def.parameters = Some(Arc::new(parameters)).filter(|set| !set.is_empty());
        self
    }

    /// Sets the agent's name, as spans show it. A child run without one has the name of its tool.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.def.name = Some(name.into());
        self
    }

    /// Adds a tool: an `async fn` under [`#[safepoint::tool]`](macro@crate::tool), a closure by
    /// [`tool::from_fn`](crate::tool::from_fn), or a type that implements [`TypedTool`](crate::tool::TypedTool) or [`Tool`].
    pub fn tool<Kind>(mut self, tool: impl IntoTool<Kind>) -> Self {
        self.tools.push(Callable::body(tool.into_tool()));
        self
    }

    /// Adds tools.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools.into_iter().map(Callable::body));
        self
    }

    /// Adds a value to the context of all its runs, in place of an earlier one of the same type: tools find it with
    /// [`ToolContext::get`](crate::ToolContext::get). A value that is given [to a run](crate::Run::with) wins, and child runs have
    /// what this agent has and theirs does not.
    pub fn with<V: Send + Sync + 'static>(mut self, value: V) -> Self {
        self.def.context.insert(value);
        self
    }

    /// Adds instructions that are made anew for each attempt of a run, behind those of [`system`](Self::system). The closure is
    /// called on the task that starts the run, and must not block. If it fails, the run fails with the code `setup`, and
    /// nothing is sent.
    ///
    /// ```no_run
    /// # use safepoint::{Agent, Model};
    /// struct User { name: String }
    ///
    /// # async fn greet(model: impl Model) {
    /// let agent = Agent::builder(model)
    ///     .system("You are brief.")
    ///     .system_with(|cx| Ok(format!("You talk to {}.", cx.get::<User>()?.name)))
    ///     .build();
    /// let outcome = agent.run("Hello!").with(User { name: "Ana".into() }).await;
    /// # drop(outcome); }
    /// ```
    pub fn system_with(
        mut self,
        make: impl Fn(&RunSetup) -> Result<String, Failure> + Send + Sync + 'static,
    ) -> Self {
        self.def.setup.push(SetupStep::System(Foreign::new(Arc::new(make))));
        self
    }

    /// Adds tools that are chosen anew for each attempt of a run, as [`system_with`](Self::system_with) makes instructions.
    /// A call that an earlier attempt left open and whose tool is not there any more fails, and the model learns that.
    ///
    /// ```no_run
    /// # use safepoint::{Agent, Model, tool::{self, Tools}};
    /// struct Admin;
    ///
    /// # fn agent(model: impl Model) -> Agent {
    /// let reset = || tool::from_fn("reset", "Resets the counter", |_cx, (): ()| async { Ok("done") });
    /// Agent::builder(model)
    ///     .tools_with(move |cx| Ok(if cx.get::<Admin>().is_ok() { Tools::new().tool(reset()) } else { Tools::new() }))
    ///     .build()
    /// # }
    /// ```
    pub fn tools_with(
        mut self,
        choose: impl Fn(&RunSetup) -> Result<Tools, Failure> + Send + Sync + 'static,
    ) -> Self {
        self.def.setup.push(SetupStep::Tools(Foreign::new(Arc::new(choose))));
        self
    }

    /// Gives the model a tool that its provider runs itself. No call of it passes through this process: see
    /// [`ProviderTool`].
    ///
    /// ```no_run
    /// use safepoint::{Agent, model::WebSearch};
    /// # fn agent(model: impl safepoint::Model) -> Agent {
    /// Agent::builder(model).provider_tool(WebSearch::new().max_uses(3)).build()
    /// # }
    /// ```
    pub fn provider_tool(mut self, tool: impl Into<ProviderTool>) -> Self {
        let all = self.def.provider_tools.iter().cloned();
        self.def.provider_tools = all.chain([tool.into()]).collect();
        self
    }

    /// Adds an agent that this one can call like a tool: each call is a run of it, part of this run's tree (S9).
    pub fn child(mut self, child: Subagent) -> Self {
        self.tools.push(Callable::Child(Arc::new(child)));
        self
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.def.limits = Arc::new(limits);
        self
    }

    /// Sets the prices, without which `max_cost` has no meaning.
    pub fn price(mut self, price: Price) -> Self {
        self.def.price = Some(price);
        self
    }

    /// Sets what becomes of a model call that a stop cuts. Default: it is released.
    pub fn on_cut(mut self, on_cut: OnModelStop) -> Self {
        self.def.on_cut = on_cut;
        self
    }

    /// Sets who decides when a call needs approval. Default: ask, and deny without an approver.
    pub fn approvals(mut self, approvals: ApprovalMode) -> Self {
        self.def.approvals = approvals;
        self
    }

    /// Sets what happens on resume to unsafe calls that began and whose end is unknown. Default: the model
    /// learns that (S7.3).
    pub fn on_unknown(mut self, on_unknown: OnUnknownEffect) -> Self {
        self.def.on_unknown = on_unknown;
        self
    }

    /// Sets what happens to a turn that was cut by the end of its process and by nothing else, when its
    /// session is opened again. Default: it waits for a resume (S7.8).
    pub fn on_restart(mut self, on_restart: OnRestart) -> Self {
        self.def.on_restart = on_restart;
        self
    }

    /// Adds a rule on a tool and its arguments; the first that fits decides.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.def.rules.push(rule);
        self
    }

    /// Sets the model's window, and what happens when a conversation outgrows it. Default: nothing is measured, and
    /// the provider refuses what it does not take.
    pub fn window(mut self, window: Window) -> Self {
        self.window = Some(window);
        self
    }

    /// Adds hooks. All added hooks run: those that decide are asked one after the other, in this order; each sees what
    /// those before it have changed, and a refusal ends it. Those that are only notified run in parallel.
    pub fn hooks(mut self, hooks: impl Hooks) -> Self {
        self.def.hooks.push(NamedHooks::new(Arc::new(hooks)));
        self
    }

    /// Makes the agent.
    ///
    /// # Panics
    /// Where [`AgentBuilder::try_build`] gives an error.
    #[must_use]
    pub fn build(self) -> Agent {
        self.try_build().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Names the secrets that the program knows. Where one occurs in the output of a model, a tool or a
    /// remote agent, its name replaces it before anything else happens: it is in no record, no event and no
    /// later request. Messages of people stay as they are. Child runs have their own secrets.
    pub fn secrets(mut self, secrets: Secrets) -> Self {
        self.def.secrets = secrets;
        self
    }

    /// Makes the agent.
    ///
    /// # Errors
    /// If a tool has a name that no provider takes, or that of another, a tool's schema is not a JSON Schema, the answer
    /// takes all of the window, no run could work under one of the limits, or the model does not have one of the provider
    /// tools or has no form for one of the parameters.
    pub fn try_build(self) -> Result<Agent, BuildError> {
        let Self { mut model, mut tools, window, mut def } = self;
        if !def.secrets.is_empty() {
            model = Arc::new(Cleaned::new(model, def.secrets.clone()));
            tools = tools.into_iter().map(|work| work.cleaned(&def.secrets)).collect();
        }
        def.model = model::Guarded::new(model);
        def.tools = Toolset::new(tools).map_err(BuildError)?;
        def.check().map_err(BuildError)?;
        let no_room =
            || BuildError("the window leaves no room: what is kept for the answer is all of it".into());
        let meter = |window| WindowMeter::new(window, &def.spec()).ok_or_else(no_room);
        def.meter = window.map(meter).transpose()?;
        // Clones of the builder make agents of which each counts its own stops.
        def.times = Arc::default();
        Ok(Agent { def: Arc::new(def) })
    }
}

impl fmt::Debug for AgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentBuilder").field("model", &self.model.name()).finish_non_exhaustive()
    }
}

/// Why an agent cannot be built, and which tool is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BuildError(String);

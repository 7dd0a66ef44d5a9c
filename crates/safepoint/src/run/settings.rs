//! What one run has in place of its agent's own: set before it starts.

use std::sync::Arc;

use super::Run;
use crate::{
    contract::{
        model::{Model, Parameters},
        tool::{IntoTool, Tool},
    },
    definition::{settings::RunSettings, window::Window},
    value::{limits::Limits, usage::Price},
};

/// Settings of this run alone. Its agent stays as it is.
///
/// They are kept with the outcome: [`Agent::resume`](crate::Agent::resume) has them again, and what is set on the resumed run
/// replaces them. They are not recorded, so a resume in another process, or by a session, has only what it is given there
/// (S4.20).
///
/// Each of these panics if the run has started.
impl<T> Run<T> {
    /// Adds a value to the run's context, in place of an earlier one of the same type: tools and child runs find it with
    /// [`ToolContext::get`](crate::ToolContext::get). It wins over a value that an agent [has](crate::AgentBuilder::with).
    ///
    /// ```no_run
    /// # use safepoint::{Agent, ToolResult, ToolContext, tool};
    /// struct User { name: String }
    ///
    /// /// Says who asks.
    /// #[tool(effect = "read_only")]
    /// async fn who(#[context] user: &User) -> String {
    ///     user.name.clone()
    /// }
    ///
    /// # async fn ask(agent: Agent) {
    /// let outcome = agent.run("Greet me.").with(User { name: "Ana".into() }).await;
    /// # drop(outcome); }
    /// ```
    ///
    /// # Panics
    /// If the run has started.
    pub fn with<V: Send + Sync + 'static>(mut self, value: V) -> Self {
        self.settings().given.insert(value);
        self
    }

    /// Sets the instructions, in place of all that the agent has.
    ///
    /// # Panics
    /// If the run has started.
    pub fn system(mut self, text: impl Into<Arc<str>>) -> Self {
        self.settings().system = Some(text.into());
        self
    }

    /// Adds a tool. One that cannot be used beside the agent's own fails the run with the code `setup`, and nothing is sent.
    ///
    /// # Panics
    /// If the run has started.
    pub fn tool<Kind>(mut self, tool: impl IntoTool<Kind>) -> Self {
        self.settings().add_tool(tool.into_tool());
        self
    }

    /// Adds tools, as [`tool`](Self::tool) does.
    ///
    /// # Panics
    /// If the run has started.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        tools.into_iter().for_each(|tool| self.settings().add_tool(tool));
        self
    }

    /// Sets the limits, in place of the agent's.
    ///
    /// # Panics
    /// If the run has started.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.settings().limits = Some(Arc::new(limits));
        self
    }

    /// Sets the model, in place of the agent's. The price of the agent's model is not its price: set that with
    /// [`price`](Self::price). The agent's window stays: set that of another size with [`window`](Self::window). Parameters of the agent that it does not take fail the run with the code `setup`.
    ///
    /// # Panics
    /// If the run has started.
    pub fn model(mut self, model: impl Model) -> Self {
        self.settings().model = Some(Arc::new(model));
        self
    }

    /// Sets the prices of the run's model, in place of the agent's.
    ///
    /// # Panics
    /// If the run has started.
    pub fn price(mut self, price: Price) -> Self {
        self.settings().price = Some(price);
        self
    }

    /// Sets the window of the run's model and what happens when the conversation outgrows it, in place of the agent's. One that the
    /// answer takes all of fails the run with the code `setup`, and nothing is sent.
    ///
    /// ```no_run
    /// # use safepoint::{Agent, Model, window::Window};
    /// # async fn ask(agent: Agent, small: impl Model) {
    /// let window = Window::of(32_000).keep_for_answer(4_000).drop_oldest();
    /// let outcome = agent.run("Which port is for HTTPS?").model(small).window(window).await;
    /// # drop(outcome); }
    /// ```
    ///
    /// # Panics
    /// If the run has started.
    pub fn window(mut self, window: Window) -> Self {
        self.settings().window = Some(window);
        self
    }

    /// Sets parameters of the run's model calls, over [those of the agent](crate::AgentBuilder::parameters). Those that the
    /// model does not take fail the run with the code `setup`, and nothing is sent.
    ///
    /// ```no_run
    /// # use safepoint::{Agent, model::Parameters};
    /// # async fn ask(agent: Agent) {
    /// let exact = Parameters::new().temperature(0.0).max_tokens(200);
    /// let outcome = agent.run("Which port is for HTTPS?").parameters(exact).await;
    /// # drop(outcome); }
    /// ```
    ///
    /// # Panics
    /// If the run has started.
    pub fn parameters(mut self, parameters: Parameters) -> Self {
        self.settings().parameters = Some(Arc::new(parameters));
        self
    }

    fn settings(&mut self) -> &mut RunSettings {
        &mut self.idle.as_mut().expect("settings are made before a run starts").settings
    }
}
